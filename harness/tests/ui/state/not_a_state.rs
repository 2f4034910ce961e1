//@ names: `String`
//@ remedy: #[derive(State, Clone, Default, Serialize, Deserialize)]

use harness::State;

fn run<S: State>() {}

fn main() {
    run::<String>();
}
