//@ names: `tone`, `Ctx`
//@ remedy: `.tone(..)` is missing before `.build()`
//@ lines: 26

use harness::Context;

#[derive(Context)]
struct Ctx {
    tools: Vec<String>,
    #[slot(required)]
    prompts: String,
    #[slot(required)]
    tone: String,
    #[slot(runtime)]
    seed: u64,
}

fn main() {
    let _ = Ctx::required().prompts("a".into()).build();
}
