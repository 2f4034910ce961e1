-- What a store calls. The number in the names is the version of the schema: a store of an older one
-- finds its functions no more, and knows why.

CREATE FUNCTION now_3() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- From when on a session can be claimed as due, by the rule of all stores (phase 1 is a run that has not
-- settled), and not before its lease expires. Whatever changes one of these columns keeps it in `ready`.
CREATE FUNCTION ready_3(s session) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN NOT s.written THEN NULL
        WHEN s.phase = 1 OR s.inbox > greatest(s.read, s.counted)
            THEN CASE WHEN s.token IS NULL THEN 0 ELSE s.until END
        WHEN s.due IS NOT NULL
            THEN greatest(s.due, CASE WHEN s.token IS NULL THEN 0 ELSE s.until END)
    END
$$;

-- This transaction commits without a flush: it outlives the end of the client, not a crash of the
-- server. A connection of the store flushes all others, and a flush takes all earlier commits along, for
-- there is one write-ahead log.
CREATE FUNCTION unflushed_3() RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT set_config('synchronous_commit', 'off', true)
$$;

-- The last sound entry before the first damage, from the last snapshot on; null if all is sound.
CREATE FUNCTION damage_3(s session) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    expected bigint := greatest(s.first, s.snapshot);
    b record;
BEGIN
    IF NOT s.written THEN
        RETURN NULL;
    END IF;
    SELECT first INTO b FROM batch WHERE session = s.key AND first <= expected
        ORDER BY first DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN expected - 1;
    END IF;
    expected := b.first;
    FOR b IN
        SELECT first, last, sum = substr(sha256(int8send(first) || int8send(last) || token
            || int8send(octet_length(s.id)) || s.id || entries), 1, 16) AS sound
        FROM batch WHERE session = s.key AND first >= expected ORDER BY first
    LOOP
        IF b.first <> expected OR NOT b.sound THEN
            RETURN expected - 1;
        END IF;
        expected := b.last + 1;
    END LOOP;
    IF expected <> s.head + 1 THEN
        RETURN expected - 1;
    END IF;
    RETURN NULL;
END $$;

-- Flushed: a later holder must not get the fence of one that a crash of the server took back.
CREATE FUNCTION claim_3(
    p_id bytea, p_token bytea, p_ttl bigint,
    OUT o_damage bigint, OUT o_left bigint, OUT o_released boolean, OUT o_fence bigint,
    OUT o_head bigint, OUT o_inbox bigint, OUT o_summary bytea
) LANGUAGE plpgsql AS $$
DECLARE
    s session;
    now bigint;
BEGIN
    LOOP
        SELECT * INTO s FROM session WHERE id = p_id FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO session (id) VALUES (p_id) ON CONFLICT (id) DO NOTHING;
    END LOOP;
    o_damage := damage_3(s);
    IF o_damage IS NOT NULL THEN
        RETURN;
    END IF;
    now := now_3();
    IF s.token IS NOT NULL AND s.until > now THEN
        o_left := s.until - now;
        RETURN;
    END IF;
    o_released := s.token IS NULL;
    o_fence := nextval('fence');
    o_head := s.head;
    o_inbox := s.inbox;
    o_summary := s.summary;
    s.token := p_token;
    s.until := now + p_ttl;
    UPDATE session SET fence = o_fence, token = s.token, until = s.until, ready = ready_3(s),
        bare = false WHERE key = s.key;
END $$;

-- Claims sessions that are due, each with one of the tokens. Of those that are not sound, it says so
-- and changes nothing.
CREATE FUNCTION claim_due_3(p_agents bytea[], p_except bytea[], p_tokens bytea[], p_ttl bigint)
RETURNS TABLE (o_damage bigint, o_left bigint, o_released boolean, o_fence bigint,
    o_head bigint, o_inbox bigint, o_summary bytea, o_id bytea
) LANGUAGE plpgsql AS $$
DECLARE
    s session;
    a bytea;
    now bigint := now_3();
    count integer := 0;
    seen_ready bigint;
    seen_key bigint;
BEGIN
    FOREACH a IN ARRAY p_agents LOOP
        seen_ready := -1;
        seen_key := 0;
        WHILE count < cardinality(p_tokens) LOOP
            SELECT * INTO s FROM session
                WHERE agent = a AND ready <= now AND (ready, key) > (seen_ready, seen_key)
                AND id <> ALL (p_except)
                ORDER BY ready, key LIMIT 1 FOR UPDATE SKIP LOCKED;
            EXIT WHEN NOT FOUND;
            seen_ready := s.ready;
            seen_key := s.key;
            o_damage := damage_3(s);
            o_released := s.token IS NULL;
            o_head := s.head;
            o_inbox := s.inbox;
            o_summary := s.summary;
            o_id := s.id;
            IF o_damage IS NULL THEN
                count := count + 1;
                o_fence := nextval('fence');
                s.token := p_tokens[count];
                s.until := now + p_ttl;
                UPDATE session SET fence = o_fence, token = s.token, until = s.until,
                    ready = ready_3(s), bare = false WHERE key = s.key;
            END IF;
            RETURN NEXT;
        END LOOP;
    END LOOP;
END $$;

-- Notifies those that wait for due sessions of an agent.
CREATE FUNCTION notify_3(p_agent bytea) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify('harness_' || encode(substr(sha256(convert_to(current_schema(), 'UTF8')), 1, 16), 'hex'),
        encode(substr(sha256(p_agent), 1, 16), 'hex'))
$$;

-- `o_token` is that of the last claim; no row if there is no such session.
CREATE FUNCTION renew_3(p_id bytea, p_token bytea, p_ttl bigint)
RETURNS TABLE (o_token bytea, o_inbox bigint) LANGUAGE plpgsql AS $$
DECLARE
    s session;
BEGIN
    PERFORM unflushed_3();
    SELECT * INTO s FROM session WHERE id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF s.token = p_token THEN
        s.until := now_3() + p_ttl;
        UPDATE session SET until = s.until, ready = ready_3(s) WHERE key = s.key;
    END IF;
    RETURN QUERY SELECT s.token, s.inbox;
END $$;

CREATE FUNCTION release_3(p_id bytea, p_token bytea, p_read bigint)
RETURNS TABLE (o_token bytea, o_inbox bigint) LANGUAGE plpgsql AS $$
DECLARE
    s session;
    last bytea;
BEGIN
    PERFORM unflushed_3();
    SELECT * INTO s FROM session WHERE id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    last := s.token;
    IF last = p_token THEN
        IF s.written THEN
            s.token := NULL;
            s.read := greatest(s.read, p_read);
            s.ready := ready_3(s);
            UPDATE session SET token = s.token, read = s.read, ready = s.ready WHERE key = s.key;
            IF s.ready <= now_3() THEN
                PERFORM notify_3(s.agent);
            END IF;
        ELSE
            DELETE FROM session WHERE key = s.key;
        END IF;
    END IF;
    RETURN QUERY SELECT last, s.inbox;
END $$;

-- Whether the statement for the usual append can append. It is inlined, and makes that statement one of
-- this version.
CREATE FUNCTION takes_3(
    token bytea, head bigint, written boolean, bare boolean, p_token bytea, p_after bigint
) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT token = p_token AND head = p_after AND written AND NOT bare
$$;

-- Appends a batch if it is new. `o_done` says so; if it does not, the rest is what the answer follows
-- from: `o_found` whether there is such a session, `o_written` whether it has entries, `o_token` that
-- of the last claim, and `o_repeated` whether the batch was appended before.
CREATE FUNCTION append_3(
    p_id bytea, p_token bytea, p_after bigint, p_count bigint, p_bytes bigint, p_entries bytea,
    p_sum bytea, p_snapshots bigint[], p_at bigint, p_agent bytea, p_phase smallint,
    p_summary bytea, p_counted bigint, p_due bigint, p_open bytea[], p_since bigint[], p_expires bigint[], p_close bytea[],
    p_changes bytea, p_flush boolean,
    OUT o_done boolean, OUT o_found boolean, OUT o_written boolean, OUT o_token bytea,
    OUT o_head bigint, OUT o_inbox bigint, OUT o_repeated boolean
) LANGUAGE plpgsql AS $$
DECLARE
    s session;
    changes_open boolean := cardinality(p_open) > 0 OR cardinality(p_close) > 0;
BEGIN
    IF NOT p_flush THEN
        PERFORM unflushed_3();
    END IF;
    SELECT * INTO s FROM session WHERE id = p_id FOR UPDATE;
    o_found := FOUND;
    o_written := s.written;
    o_token := s.token;
    o_head := s.head;
    o_inbox := s.inbox;
    IF p_count > 0 THEN
        o_repeated := EXISTS (SELECT FROM batch WHERE session = s.key AND first = p_after + 1
            AND last = p_after + p_count AND token = p_token AND entries = p_entries);
        o_done := s.written OR p_summary IS NOT NULL;
    ELSE
        o_repeated := EXISTS (SELECT FROM bare WHERE session = s.key
            AND token = p_token AND after = p_after AND changes = p_changes);
        o_done := s.written AND (p_summary IS NOT NULL OR changes_open);
    END IF;
    o_done := coalesce(o_done AND s.token = p_token AND s.head = p_after AND NOT o_repeated, false);
    IF NOT o_done THEN
        IF p_flush AND (o_repeated OR s.token = p_token) THEN
            -- A transaction that has written nothing would not flush what was written before.
            UPDATE session SET updated = updated WHERE key = s.key;
        END IF;
        RETURN;
    END IF;
    IF p_count > 0 THEN
        INSERT INTO batch VALUES (s.key, p_after + 1, p_after + p_count, p_bytes, p_token,
            p_snapshots, p_entries, p_sum);
        IF s.bare THEN
            DELETE FROM bare WHERE session = s.key AND token = p_token;
        END IF;
    ELSE
        INSERT INTO bare VALUES (s.key, p_token, p_after, p_changes)
            ON CONFLICT (session, token)
            DO UPDATE SET after = EXCLUDED.after, changes = EXCLUDED.changes;
    END IF;
    IF changes_open THEN
        INSERT INTO interrupt
            SELECT s.key, * FROM unnest(p_open, p_since, p_expires)
            ON CONFLICT (session, id)
            DO UPDATE SET since = EXCLUDED.since, expires = EXCLUDED.expires;
        DELETE FROM interrupt WHERE session = s.key AND id = ANY (p_close);
        s.has_open := EXISTS (SELECT FROM interrupt WHERE session = s.key);
    END IF;
    IF p_summary IS NOT NULL THEN
        s.agent := p_agent;
        s.phase := p_phase;
        s.summary := p_summary;
        s.counted := p_counted;
        s.due := p_due;
    END IF;
    IF NOT s.written THEN
        s.created := p_at;
        s.written := true;
    END IF;
    o_head := p_after + p_count;
    UPDATE session SET
        head = o_head,
        snapshot = coalesce(p_snapshots[cardinality(p_snapshots)], snapshot),
        created = s.created,
        updated = p_at,
        written = s.written,
        has_open = s.has_open,
        bare = p_count = 0,
        agent = s.agent,
        phase = s.phase,
        summary = s.summary,
        counted = s.counted,
        due = s.due,
        ready = ready_3(s)
    WHERE key = s.key;
END $$;

-- The last snapshot at or below an entry.
CREATE FUNCTION snapshot_3(p_key bigint, p_seq bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    -- Those of the batch that the entry is in may all come after it.
    SELECT max(place) FROM (
        SELECT snapshots FROM batch
        WHERE session = p_key AND snapshots IS NOT NULL AND first <= p_seq
        ORDER BY first DESC LIMIT 2
    ) found, unnest(found.snapshots) AS place WHERE place <= p_seq
$$;

-- A part of a session, as of one moment: a row of the session itself (0), of each batch (1), message
-- (2) and open interrupt (3). Of a batch that no longer fits, the entries are null.
-- `p_from` is null for no entries; `p_kind` is 0 from it on, 1 from the last snapshot on, 2 from the
-- last snapshot at or below it.
CREATE FUNCTION read_3(p_id bytea, p_kind smallint, p_from bigint, p_limit bigint, p_read bigint)
RETURNS TABLE (o_row smallint, o_numbers bigint[], o_blobs bytea[]) LANGUAGE plpgsql STABLE AS $$
DECLARE
    s session;
    b record;
    begins bigint;
    found_snapshot bigint;
    size bigint := 0;
    count bigint := 0;
BEGIN
    SELECT * INTO s FROM session WHERE id = p_id AND written;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF p_from IS NOT NULL THEN
        IF p_kind > 0 THEN
            found_snapshot := snapshot_3(s.key, CASE p_kind WHEN 1 THEN s.head ELSE p_from END);
            begins := coalesce(found_snapshot, s.first);
        ELSE
            begins := greatest(p_from, s.first);
        END IF;
    END IF;
    o_row := 0;
    o_numbers := ARRAY[s.fence, CASE WHEN s.token IS NULL THEN 0 ELSE s.until - now_3() END,
        s.first, s.head, found_snapshot, s.inbox, s.created, s.updated];
    o_blobs := ARRAY[s.summary];
    RETURN NEXT;
    IF begins <= s.head THEN
        FOR b IN
            SELECT first, last, bytes, token, sum, entries FROM batch
            WHERE session = s.key AND first >= coalesce((
                SELECT max(first) FROM batch WHERE session = s.key AND first <= begins), begins)
            ORDER BY first
        LOOP
            -- How much of the first one is wanted, its reader knows.
            IF count > 0 THEN
                size := size + b.bytes;
            END IF;
            count := count + 1;
            o_row := 1;
            o_numbers := ARRAY[b.first, b.last, b.bytes];
            IF size > p_limit THEN
                o_blobs := ARRAY[b.token, b.sum, NULL];
                RETURN NEXT;
                EXIT;
            END IF;
            o_blobs := ARRAY[b.token, b.sum, b.entries];
            RETURN NEXT;
        END LOOP;
    END IF;
    IF p_read IS NOT NULL THEN
        RETURN QUERY SELECT 2::smallint, ARRAY[m.seq, m.expiry::integer],
            ARRAY[m.key, m.digest, m.interrupt, m.body, m.sum]
        FROM message m WHERE m.session = s.key AND m.seq > p_read ORDER BY m.seq;
    END IF;
    RETURN QUERY SELECT 3::smallint, ARRAY[i.since, i.expires], ARRAY[i.id]
    FROM interrupt i WHERE i.session = s.key ORDER BY i.id;
END $$;

-- Locks a session, and says what decides on messages to it: a row of the session itself (0), of each
-- message under one of the keys (2) and of each of the interrupts that is open (3).
CREATE FUNCTION inbox_3(p_id bytea, p_keys bytea[], p_interrupts bytea[])
RETURNS TABLE (o_row smallint, o_numbers bigint[], o_blobs bytea[]) LANGUAGE plpgsql AS $$
DECLARE
    s session;
BEGIN
    SELECT * INTO s FROM session WHERE id = p_id AND written FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT 0::smallint, ARRAY[s.key, s.inbox, now_3(), damage_3(s)], ARRAY[]::bytea[];
    RETURN QUERY SELECT 2::smallint, ARRAY[m.seq, m.expiry::integer],
        ARRAY[m.key, m.digest, m.interrupt, m.body, m.sum]
    FROM unnest(p_keys) k JOIN message m
        ON m.session = s.key AND sha256(m.key) = sha256(k) AND m.key = k;
    RETURN QUERY SELECT 3::smallint, ARRAY[i.since, i.expires], ARRAY[i.id]
    FROM interrupt i WHERE i.session = s.key AND i.id = ANY (p_interrupts);
END $$;

CREATE FUNCTION put_3(
    p_key bigint, p_keys bytea[], p_digests bytea[], p_interrupts bytea[], p_expiries boolean[],
    p_bodies bytea[], p_sums bytea[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    s session;
    before bigint;
BEGIN
    SELECT * INTO s FROM session WHERE key = p_key FOR UPDATE;
    before := s.inbox;
    s.inbox := before + cardinality(p_keys);
    s.ready := ready_3(s);
    UPDATE session SET inbox = s.inbox, ready = s.ready WHERE key = p_key;
    IF s.ready <= now_3() THEN
        PERFORM notify_3(s.agent);
    END IF;
    INSERT INTO message
        SELECT p_key, before + m.at, m.key, m.digest, m.interrupt, m.expiry,
            m.body, m.sum
        FROM unnest(p_keys, p_digests, p_interrupts, p_expiries, p_bodies, p_sums)
            WITH ORDINALITY AS m (key, digest, interrupt, expiry, body, sum, at);
    RETURN s.inbox;
END $$;

-- Locks a session to remove what it has.
CREATE FUNCTION lock_3(p_id bytea)
RETURNS TABLE (o_key bigint, o_token bytea, o_first bigint, o_snapshot bigint)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT key, token, first, snapshot FROM session WHERE id = p_id FOR UPDATE;
END $$;

CREATE FUNCTION remove_3(p_key bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM batch WHERE session = p_key;
    DELETE FROM bare WHERE session = p_key;
    DELETE FROM interrupt WHERE session = p_key;
    DELETE FROM message WHERE session = p_key;
    DELETE FROM session WHERE key = p_key;
END $$;

-- Removes the entries below `p_first`. The batch that it is in, if any of that is kept, is written
-- without the rest: `p_last` is its last entry.
CREATE FUNCTION prune_3(
    p_key bigint, p_first bigint, p_last bigint, p_bytes bigint, p_token bytea,
    p_snapshots bigint[], p_entries bytea, p_sum bytea
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM batch WHERE session = p_key AND first < p_first;
    IF p_last IS NOT NULL THEN
        INSERT INTO batch
            VALUES (p_key, p_first, p_last, p_bytes, p_token, p_snapshots, p_entries, p_sum);
    END IF;
    -- A batch after the first entry can still be sent again.
    DELETE FROM bare WHERE session = p_key AND after + 1 < p_first;
    UPDATE session SET first = p_first WHERE key = p_key;
END $$;
