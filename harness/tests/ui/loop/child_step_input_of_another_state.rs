//@ names: `SearchUpdate`, `ReportUpdate`
//@ remedy: expected `SearchUpdate`, found `ReportUpdate`
//@ lines: 20

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Search {
    topic: String,
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Report {
    lines: Vec<String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Find,
}

fn report(searcher: &Agent<(), Search>) {
    let _ = Harness::<(), Report>::builder("report").start(Step::Find).steps(|define, step| match step {
        Step::Find => define
            .child(searcher, |_, _| (Report::update(), ()), |found| Report::update().lines(vec![found.topic]))
            .end(),
    });
}

fn main() {}
