//! Typed state-machine loops for agents.
