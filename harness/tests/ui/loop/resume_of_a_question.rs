//@ names: Pending<Proceed>
//@ remedy: pass the outcome
//@ lines: 20

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Count {
    #[state(reduce = add)]
    n: u32,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Proceed {}

fn resume(agent: &Agent<(), Count>, question: &harness::step::Pending<Proceed>) {
    let _ = agent.resume(question, question.answer(true), ());
}

fn main() {}
