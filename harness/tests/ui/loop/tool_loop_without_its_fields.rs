//@ names: `Chat`
//@ remedy: give it two fields: `#[state(provides, reduce = transcript)] talk: Transcript` and `#[state(provides, nest)] tools: ToolUse`

use harness::llm::Scripted;
use harness::loops::tool_loop;
use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = transcript)]
    talk: Transcript,
}

fn main() {
    let _ = tool_loop::<Chat>(Scripted::new(["hello"]), ToolSet::default());
}
