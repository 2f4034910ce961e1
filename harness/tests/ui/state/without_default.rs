//@ names: `Note`
//@ remedy: #[derive(Default)]
//@ lines: 20

use harness::prelude::*;

#[derive(State, Clone, Debug, Serialize, Deserialize)]
struct Note {
    title: Option<String>,
    #[state(reduce = append)]
    lines: Vec<String>,
}

async fn write(_: View<Note>, _: Cx<()>) -> StepResult<Note> {
    Ok(Note::update().title("a"))
}

fn main() {
    let _ = write;
}
