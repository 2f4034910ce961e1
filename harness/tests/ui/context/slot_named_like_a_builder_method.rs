//@ names: `build`
//@ remedy: choose another, like `my_build`

use harness::Context;

#[derive(Context)]
struct Ctx {
    build: String,
}

fn main() {}
