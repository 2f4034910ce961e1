//@ names: `Next::Retry`
//@ remedy: write `Retry`

use harness::Signal;

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Done,
    Retry(u32),
}

fn main() {
    let _ = (Next::ALL, Next::Retry(1).name(), Next::Done);
}
