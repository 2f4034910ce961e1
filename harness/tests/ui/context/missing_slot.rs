//@ names: `CtxRequired`
//@ remedy: Missing required field prompts

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
    let _ = Ctx::required().build();
}
