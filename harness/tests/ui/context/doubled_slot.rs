//@ names: `prompts`, `Ctx`
//@ remedy: remove one of the calls of `.prompts(..)`
//@ lines: 30

use harness::Context;

#[derive(Context)]
struct Ctx {
    tools: Vec<String>,
    #[slot(required)]
    prompts: String,
    #[slot(runtime)]
    seed: u64,
}

fn main() {
    let _ = Ctx::required().prompts("a".to_owned()).prompts("b".to_owned()).build();
}
