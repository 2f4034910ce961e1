//@ names: `Ctx`
//@ remedy: Arc<dyn Trait>

use harness::Context;

#[derive(Context)]
struct Ctx<T> {
    tools: T,
}

fn main() {}
