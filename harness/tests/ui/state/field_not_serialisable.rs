//@ names: `Socket`
//@ remedy: #[derive(serde::Serialize)]

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default)]
struct Socket;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    socket: Socket,
}

fn main() {}
