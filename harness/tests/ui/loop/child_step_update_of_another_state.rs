//@ names: `ReportUpdate`, `SearchUpdate`
//@ remedy: expected `ReportUpdate`, found `SearchUpdate`
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
            .child(searcher, |_, _| (Search::update(), ()), |found| Search::update().topic(found.topic))
            .end(),
    });
}

fn main() {}
