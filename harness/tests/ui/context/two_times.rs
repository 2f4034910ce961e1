//@ names: `tools`
//@ remedy: keep one of them

use harness::Context;

#[derive(Context)]
struct Ctx {
    #[slot(required, runtime)]
    tools: String,
}

fn main() {}
