//@ names: `ask`
//@ remedy: rename it, for example to `my_ask`

use harness::Context;

#[derive(Context)]
struct Ctx {
    ask: String,
}

fn main() {
    let _ = Ctx::fixed().ask("x".to_owned()).build();
}
