//@ names: `String`, `lines`
//@ remedy: write one item as `[item]`
//@ lines: 22

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Note {
    title: Option<String>,
    #[state(reduce = append)]
    lines: Vec<String>,
}

fn main() {
    let _ = Note::update().lines("a".to_owned());
}
