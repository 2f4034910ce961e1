-- What lists are read from.
CREATE INDEX session_agents ON session (agent, id) WHERE written;
CREATE INDEX session_phases ON session (phase, id) WHERE written;
CREATE INDEX session_agent_phases ON session (agent, phase, id) WHERE written;
CREATE INDEX session_open ON session (id) WHERE has_open;
CREATE INDEX session_agents_open ON session (agent, id) WHERE has_open;
