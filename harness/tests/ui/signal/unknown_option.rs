//@ names: `default`
//@ remedy: remove it

use harness::Signal;

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    #[signal(default)]
    Done,
}

fn main() {}
