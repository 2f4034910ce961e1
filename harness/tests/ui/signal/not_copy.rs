//@ names: `Next`
//@ remedy: Copy

use harness::Signal;

#[derive(Signal, Debug)]
enum Next {
    Done,
}

fn main() {}
