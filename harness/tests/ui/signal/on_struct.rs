//@ names: `Next`
//@ remedy: needs an enum

use harness::Signal;

#[derive(Signal, Clone, Copy, Debug)]
struct Next;

fn main() {}
