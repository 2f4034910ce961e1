//@ names: `Socket`
//@ remedy: #[derive(Clone)]

use harness::Context;

struct Socket;

#[derive(Context)]
struct Ctx {
    #[slot(required)]
    socket: Socket,
}

fn main() {}
