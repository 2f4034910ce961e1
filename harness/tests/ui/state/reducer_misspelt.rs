//@ names: `apend`
//@ remedy: did you mean `append`?

use harness::State;
use serde::{Deserialize, Serialize};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = apend)]
    lines: Vec<String>,
}

fn main() {}
