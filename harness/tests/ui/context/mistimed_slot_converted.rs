//@ names: `seed`
//@ remedy: set it in `Ctx::runtime()`
//@ lines: 30

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
    let _ = Ctx::required().prompts("a".into()).seed(1_u32.into());
}
