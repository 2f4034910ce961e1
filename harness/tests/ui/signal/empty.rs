//@ names: `Next`
//@ remedy: at least one variant

use harness::Signal;

#[derive(Signal, Clone, Copy, Debug)]
enum Next {}

fn main() {}
