-- What a store calls. The number in the names is the version of the schema: a store of an older one
-- finds its functions no more, and knows why.

CREATE FUNCTION now_2() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- How this transaction commits. Without a flush it outlives the end of the client, not a crash of the
-- server. A flush takes all earlier commits along, for there is one write-ahead log.
CREATE FUNCTION durable_2(p_flush boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT p_flush THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    ELSIF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END $$;

-- The last sound entry before the first damage, from the last snapshot on; null if all is sound.
CREATE FUNCTION damage_2(s session) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
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

CREATE FUNCTION claim_2(
    p_id bytea, p_token bytea, p_ttl bigint,
    OUT o_damage bigint, OUT o_left bigint, OUT o_released boolean, OUT o_fence bigint,
    OUT o_head bigint, OUT o_inbox bigint, OUT o_summary bytea
) LANGUAGE plpgsql AS $$
DECLARE
    s session;
    now bigint;
BEGIN
    -- A later holder must not get the fence of one that a crash of the server took back.
    PERFORM durable_2(true);
    LOOP
        SELECT * INTO s FROM session WHERE id = p_id FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO session (id) VALUES (p_id) ON CONFLICT (id) DO NOTHING;
    END LOOP;
    o_damage := damage_2(s);
    IF o_damage IS NOT NULL THEN
        RETURN;
    END IF;
    now := now_2();
    IF s.token IS NOT NULL AND s.until > now THEN
        o_left := s.until - now;
        RETURN;
    END IF;
    o_released := s.token IS NULL;
    o_fence := nextval('fence');
    o_head := s.head;
    o_inbox := s.inbox;
    o_summary := s.summary;
    UPDATE session SET fence = o_fence, token = p_token, until = now + p_ttl, bare = false
        WHERE key = s.key;
END $$;

-- Claims sessions that are due, each with one of the tokens. Of those that are not sound, it says so
-- and changes nothing.
CREATE FUNCTION claim_due_2(p_agents bytea[], p_except bytea[], p_tokens bytea[], p_ttl bigint)
RETURNS TABLE (o_damage bigint, o_left bigint, o_released boolean, o_fence bigint,
    o_head bigint, o_inbox bigint, o_summary bytea, o_id bytea
) LANGUAGE plpgsql AS $$
DECLARE
    s session;
    a bytea;
    now bigint := now_2();
    count integer := 0;
    seen_ready bigint;
    seen_key bigint;
BEGIN
    PERFORM durable_2(true);
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
            o_damage := damage_2(s);
            o_released := s.token IS NULL;
            o_head := s.head;
            o_inbox := s.inbox;
            o_summary := s.summary;
            o_id := s.id;
            IF o_damage IS NULL THEN
                count := count + 1;
                o_fence := nextval('fence');
                UPDATE session SET fence = o_fence, token = p_tokens[count], until = now + p_ttl,
                    bare = false WHERE key = s.key;
            END IF;
            RETURN NEXT;
        END LOOP;
    END LOOP;
END $$;

-- Notifies those that wait for due sessions of an agent.
CREATE FUNCTION notify_2(p_agent bytea) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify('harness_' || encode(substr(sha256(convert_to(current_schema(), 'UTF8')), 1, 16), 'hex'),
        encode(substr(sha256(p_agent), 1, 16), 'hex'))
$$;

-- `o_token` is that of the last claim; no row if there is no such session.
CREATE FUNCTION renew_2(p_id bytea, p_token bytea, p_ttl bigint)
RETURNS TABLE (o_token bytea, o_inbox bigint) LANGUAGE plpgsql AS $$
DECLARE
    s session;
BEGIN
    PERFORM durable_2(false);
    SELECT * INTO s FROM session WHERE id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF s.token = p_token THEN
        UPDATE session SET until = now_2() + p_ttl WHERE key = s.key;
    END IF;
    RETURN QUERY SELECT s.token, s.inbox;
END $$;

CREATE FUNCTION release_2(p_id bytea, p_token bytea, p_read bigint)
RETURNS TABLE (o_token bytea, o_inbox bigint) LANGUAGE plpgsql AS $$
DECLARE
    s session;
BEGIN
    PERFORM durable_2(false);
    SELECT * INTO s FROM session WHERE id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF s.token = p_token THEN
        IF s.written THEN
            UPDATE session SET token = NULL, read = greatest(read, p_read) WHERE key = s.key
                RETURNING ready INTO s.ready;
            IF s.ready <= now_2() THEN
                PERFORM notify_2(s.agent);
            END IF;
        ELSE
            DELETE FROM session WHERE key = s.key;
        END IF;
    END IF;
    RETURN QUERY SELECT s.token, s.inbox;
END $$;

-- Appends a batch if it is new. `o_done` says so; if it does not, the rest is what the answer follows
-- from: `o_found` whether there is such a session, `o_written` whether it has entries, `o_token` that
-- of the last claim, and `o_repeated` whether the batch was appended before.
CREATE FUNCTION append_2(
    p_id bytea, p_token bytea, p_after bigint, p_count bigint, p_bytes bigint, p_entries bytea,
    p_sum bytea, p_snapshots bigint[], p_at bigint, p_agent bytea, p_phase smallint,
    p_summary bytea, p_counted bigint, p_due bigint, p_open bytea[], p_since bigint[], p_expires bigint[], p_close bytea[],
    p_changes bytea, p_flush boolean,
    OUT o_done boolean, OUT o_found boolean, OUT o_written boolean, OUT o_token bytea,
    OUT o_head bigint, OUT o_inbox bigint, OUT o_repeated boolean
) LANGUAGE plpgsql AS $$
DECLARE
    s session;
    k bigint;
    was_bare boolean;
    has_changes boolean := cardinality(p_open) > 0 OR cardinality(p_close) > 0;
BEGIN
    PERFORM durable_2(p_flush);
    o_repeated := false;
    IF p_count > 0 THEN
        -- A repetition begins below the head.
        UPDATE session SET
            head = p_after + p_count,
            snapshot = coalesce(p_snapshots[cardinality(p_snapshots)], snapshot),
            created = CASE WHEN written THEN created ELSE p_at END,
            updated = p_at,
            written = true,
            agent = coalesce(p_agent, agent),
            phase = coalesce(p_phase, phase),
            summary = coalesce(p_summary, summary),
            counted = coalesce(p_counted, counted),
            due = CASE WHEN p_summary IS NULL THEN due ELSE p_due END
        WHERE id = p_id AND token = p_token AND head = p_after
            AND (written OR p_summary IS NOT NULL)
        RETURNING key, inbox, bare INTO k, o_inbox, was_bare;
        o_done := FOUND;
        IF o_done THEN
            INSERT INTO batch VALUES (k, p_after + 1, p_after + p_count, p_bytes, p_token,
                p_snapshots, p_entries, p_sum);
            IF was_bare THEN
                DELETE FROM bare WHERE session = k AND token = p_token;
                UPDATE session SET bare = false WHERE key = k;
            END IF;
        END IF;
    ELSE
        SELECT * INTO s FROM session WHERE id = p_id FOR UPDATE;
        o_repeated := FOUND AND EXISTS (SELECT FROM bare WHERE session = s.key
            AND token = p_token AND after = p_after AND changes = p_changes);
        o_done := s.written AND s.token = p_token AND s.head = p_after AND NOT o_repeated
            AND (p_summary IS NOT NULL OR has_changes);
        o_done := coalesce(o_done, false);
        IF o_done THEN
            k := s.key;
            o_inbox := s.inbox;
            UPDATE session SET
                updated = p_at,
                bare = true,
                agent = coalesce(p_agent, agent),
                phase = coalesce(p_phase, phase),
                summary = coalesce(p_summary, summary),
                counted = coalesce(p_counted, counted),
                due = CASE WHEN p_summary IS NULL THEN due ELSE p_due END
            WHERE key = k;
            INSERT INTO bare VALUES (k, p_token, p_after, p_changes)
                ON CONFLICT (session, token)
                DO UPDATE SET after = EXCLUDED.after, changes = EXCLUDED.changes;
        END IF;
    END IF;
    IF o_done THEN
        o_head := p_after + p_count;
        IF has_changes THEN
            INSERT INTO interrupt
                SELECT k, * FROM unnest(p_open, p_since, p_expires)
                ON CONFLICT (session, id)
                DO UPDATE SET since = EXCLUDED.since, expires = EXCLUDED.expires;
            DELETE FROM interrupt WHERE session = k AND id = ANY (p_close);
            UPDATE session SET has_open = NOT has_open WHERE key = k
                AND has_open <> EXISTS (SELECT FROM interrupt WHERE session = k);
        END IF;
        RETURN;
    END IF;
    SELECT * INTO s FROM session WHERE id = p_id FOR UPDATE;
    o_found := FOUND;
    o_written := s.written;
    o_token := s.token;
    o_head := s.head;
    o_inbox := s.inbox;
    IF o_found AND p_count > 0 THEN
        o_repeated := EXISTS (SELECT FROM batch WHERE session = s.key AND first = p_after + 1
            AND last = p_after + p_count AND token = p_token AND entries = p_entries);
    END IF;
    IF p_flush AND (o_repeated OR s.token = p_token) THEN
        -- A transaction that has written nothing would not flush what was written before.
        UPDATE session SET updated = updated WHERE key = s.key;
    END IF;
END $$;

-- The last snapshot at or below an entry.
CREATE FUNCTION snapshot_2(p_key bigint, p_seq bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
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
CREATE FUNCTION read_2(p_id bytea, p_kind smallint, p_from bigint, p_limit bigint, p_read bigint)
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
            found_snapshot := snapshot_2(s.key, CASE p_kind WHEN 1 THEN s.head ELSE p_from END);
            begins := coalesce(found_snapshot, s.first);
        ELSE
            begins := greatest(p_from, s.first);
        END IF;
    END IF;
    o_row := 0;
    o_numbers := ARRAY[s.fence, CASE WHEN s.token IS NULL THEN 0 ELSE s.until - now_2() END,
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
CREATE FUNCTION inbox_2(p_id bytea, p_keys bytea[], p_interrupts bytea[])
RETURNS TABLE (o_row smallint, o_numbers bigint[], o_blobs bytea[]) LANGUAGE plpgsql AS $$
DECLARE
    s session;
BEGIN
    PERFORM durable_2(true);
    SELECT * INTO s FROM session WHERE id = p_id AND written FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT 0::smallint, ARRAY[s.key, s.inbox, now_2(), damage_2(s)], ARRAY[]::bytea[];
    RETURN QUERY SELECT 2::smallint, ARRAY[m.seq, m.expiry::integer],
        ARRAY[m.key, m.digest, m.interrupt, m.body, m.sum]
    FROM unnest(p_keys) k JOIN message m
        ON m.session = s.key AND sha256(m.key) = sha256(k) AND m.key = k;
    RETURN QUERY SELECT 3::smallint, ARRAY[i.since, i.expires], ARRAY[i.id]
    FROM interrupt i WHERE i.session = s.key AND i.id = ANY (p_interrupts);
END $$;

CREATE FUNCTION put_2(
    p_key bigint, p_keys bytea[], p_digests bytea[], p_interrupts bytea[], p_expiries boolean[],
    p_bodies bytea[], p_sums bytea[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
    is_due_from bigint;
    its_agent bytea;
BEGIN
    UPDATE session SET inbox = inbox + cardinality(p_keys) WHERE key = p_key
        RETURNING inbox, ready, agent INTO last, is_due_from, its_agent;
    IF is_due_from <= now_2() THEN
        PERFORM notify_2(its_agent);
    END IF;
    INSERT INTO message
        SELECT p_key, last - cardinality(p_keys) + m.at, m.key, m.digest, m.interrupt, m.expiry,
            m.body, m.sum
        FROM unnest(p_keys, p_digests, p_interrupts, p_expiries, p_bodies, p_sums)
            WITH ORDINALITY AS m (key, digest, interrupt, expiry, body, sum, at);
    RETURN last;
END $$;

-- Locks a session to remove what it has.
CREATE FUNCTION lock_2(p_id bytea)
RETURNS TABLE (o_key bigint, o_token bytea, o_first bigint, o_snapshot bigint)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM durable_2(true);
    RETURN QUERY SELECT key, token, first, snapshot FROM session WHERE id = p_id FOR UPDATE;
END $$;

CREATE FUNCTION remove_2(p_key bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM batch WHERE session = p_key;
    DELETE FROM bare WHERE session = p_key;
    DELETE FROM interrupt WHERE session = p_key;
    DELETE FROM message WHERE session = p_key;
    DELETE FROM session WHERE key = p_key;
END $$;

-- Removes the entries below `p_first`. The batch that it is in, if any of that is kept, is written
-- without the rest: `p_last` is its last entry.
CREATE FUNCTION prune_2(
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
