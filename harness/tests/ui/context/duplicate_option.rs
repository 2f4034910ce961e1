//@ names: `required`
//@ remedy: remove one of them

use harness::Context;

#[derive(Context)]
struct Ctx {
    #[slot(required, required)]
    tools: String,
}

fn main() {}
