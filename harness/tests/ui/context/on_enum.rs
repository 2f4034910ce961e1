//@ names: `Ctx`
//@ remedy: make it a field of a struct

use harness::Context;

#[derive(Context)]
enum Ctx {
    One,
}

fn main() {}
