//@ names: `tools`
//@ remedy: remove one

use harness::Context;

#[derive(Context)]
struct Ctx {
    #[slot(required, runtime)]
    tools: String,
}

fn main() {}
