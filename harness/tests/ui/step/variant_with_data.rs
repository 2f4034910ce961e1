//@ names: `Step::Act`
//@ remedy: write `Act`

use harness::StepId;

#[derive(StepId, Clone, Debug, PartialEq)]
enum Step {
    Think,
    Act { tool: String },
}

fn main() {
    let _ = (Step::all(), Step::Think.name());
}
