//@ names: `later`
//@ remedy: `fixed`, `required` and `runtime`

use harness::Context;

#[derive(Context)]
struct Ctx {
    #[slot(later)]
    tools: String,
}

fn main() {}
