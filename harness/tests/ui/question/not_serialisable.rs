//@ names: `Proceed`
//@ remedy: write `#[derive(Serialize, Deserialize)]` above `Proceed`
//@ lines: 20

use harness::Question;

#[derive(Question)]
#[question(answer = bool)]
struct Proceed {
    cost: u32,
}

fn main() {}
