//@ names: `Ctx`, `runtime`
//@ remedy: no function or associated item named `runtime` found

use harness::Context;

#[derive(Context)]
struct Ctx {
    tools: Vec<String>,
}

fn main() {
    let _ = Ctx::runtime();
}
