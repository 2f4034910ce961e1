//@ names: `String`
//@ remedy: #[derive(Context)]

use harness::Context;

fn run<C: Context>() {}

fn main() {
    run::<String>();
}
