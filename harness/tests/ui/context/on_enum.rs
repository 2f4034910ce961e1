//@ names: `Ctx`
//@ remedy: wrap it in a struct

use harness::Context;

#[derive(Context)]
enum Ctx {
    One,
}

fn main() {}
