//@ names: `Ctx`
//@ remedy: takes `Ctx::fixed()..build()`
//@ lines: 18

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: u32,
}

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
    let _ = Harness::<Ctx, Count>::builder("counter").provide(());
}
