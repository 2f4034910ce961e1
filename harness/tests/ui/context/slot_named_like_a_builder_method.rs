//@ names: `build`
//@ remedy: rename it, for example to `my_build`

use harness::Context;

#[derive(Context)]
struct Ctx {
    build: String,
}

fn main() {}
