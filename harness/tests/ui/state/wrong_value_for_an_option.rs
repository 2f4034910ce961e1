//@ names: `Option<String>`, `title`, `{integer}`
//@ remedy: expected `String`, `Some(..)` or `None`
//@ lines: 28

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Note {
    title: Option<String>,
    #[state(reduce = append)]
    lines: Vec<String>,
}

fn main() {
    let _ = Note::update().title(3);
}
