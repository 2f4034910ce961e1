-- The tables. Ids, keys and texts are `bytea`: they may hold zero bytes, and are ordered by their bytes.
-- Numbers of 64 bits without a sign are kept with the same bits.

-- Fences grow even if a session is removed and created again.
CREATE SEQUENCE fence AS bigint;

CREATE TABLE session (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id bytea NOT NULL UNIQUE,
    fence bigint NOT NULL DEFAULT 0,
    -- Of the last claim; null once it was released.
    token bytea,
    -- When the lease expires, in microseconds by the clock of the server.
    until bigint NOT NULL DEFAULT 0,
    -- Whether it exists: an entry was appended.
    written boolean NOT NULL DEFAULT false,
    first bigint NOT NULL DEFAULT 1,
    head bigint NOT NULL DEFAULT 0,
    -- The last snapshot; 0 if there is none.
    snapshot bigint NOT NULL DEFAULT 0,
    inbox bigint NOT NULL DEFAULT 0,
    created bigint NOT NULL DEFAULT 0,
    updated bigint NOT NULL DEFAULT 0,
    has_open boolean NOT NULL DEFAULT false,
    -- Whether `bare` has a row of this token.
    bare boolean NOT NULL DEFAULT false,
    agent bytea,
    phase smallint,
    summary bytea
-- Appends change no indexed column, so a new version of a row fits beside the old one.
) WITH (fillfactor = 60);

-- Each row is one batch with entries.
CREATE TABLE batch (
    session bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    bytes bigint NOT NULL,
    token bytea NOT NULL,
    snapshots bigint[],
    entries bytea NOT NULL,
    sum bytea NOT NULL,
    PRIMARY KEY (session, first)
);
CREATE INDEX batch_snapshots ON batch (session, first) WHERE snapshots IS NOT NULL;

-- The last batch of a token, if it had no entries.
CREATE TABLE bare (
    session bigint NOT NULL,
    token bytea NOT NULL,
    after bigint NOT NULL,
    changes bytea NOT NULL,
    PRIMARY KEY (session, token)
);

CREATE TABLE interrupt (
    session bigint NOT NULL,
    id bytea NOT NULL,
    since bigint NOT NULL,
    expires bigint,
    PRIMARY KEY (session, id)
);

CREATE TABLE message (
    session bigint NOT NULL,
    seq bigint NOT NULL,
    key bytea NOT NULL,
    digest bytea NOT NULL,
    interrupt bytea,
    expiry boolean NOT NULL,
    body bytea NOT NULL,
    sum bytea NOT NULL,
    PRIMARY KEY (session, seq)
);
-- A key may be longer than an index takes.
CREATE UNIQUE INDEX message_keys ON message (session, sha256(key));
