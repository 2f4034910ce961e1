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
    #[slot(runtime)]
    size: u32,
}

fn start(agent: &Agent<Ctx, Count>) {
    let _ = agent.run(Count::update(), ());
}

fn main() {}
