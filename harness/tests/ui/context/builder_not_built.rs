//@ names: `Ctx`
//@ remedy: takes `Ctx::runtime()..build()`
//@ lines: 20

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

fn start(agent: &Agent<Ctx, Count>) {
    let _ = agent.run(Count::update(), Ctx::runtime().seed(1));
}

fn main() {}
