-- What lists are read from.
CREATE INDEX session_agents ON session (agent, id) WHERE written;
CREATE INDEX session_phases ON session (phase, id) WHERE written;
CREATE INDEX session_agent_phases ON session (agent, phase, id) WHERE written;
CREATE INDEX session_open ON session (id) WHERE has_open;
CREATE INDEX session_agents_open ON session (agent, id) WHERE has_open;

-- What decides from when on a session is due: the last message that a release has read; of the summary,
-- the last message that it counts as read, and a time in microseconds.
ALTER TABLE session
    ADD read bigint NOT NULL DEFAULT 0,
    ADD counted bigint NOT NULL DEFAULT 0,
    ADD due bigint;
UPDATE session SET
    counted = coalesce((convert_from(summary, 'UTF8')::json ->> 'inbox')::bigint, 0),
    due = (convert_from(summary, 'UTF8')::json ->> 'due')::bigint * 1000
WHERE summary IS NOT NULL;
-- From when on it can be claimed as due, by the rule of all stores (phase 1 is a run that has not
-- settled), and not before its lease expires.
ALTER TABLE session ADD ready bigint GENERATED ALWAYS AS (
    CASE
        WHEN NOT written THEN NULL
        WHEN phase = 1 OR inbox > greatest(read, counted)
            THEN CASE WHEN token IS NULL THEN 0 ELSE until END
        WHEN due IS NOT NULL
            THEN greatest(due, CASE WHEN token IS NULL THEN 0 ELSE until END)
    END
) STORED;
CREATE INDEX session_ready ON session (agent, ready, key) WHERE ready IS NOT NULL;
