//@ names: `Model`
//@ remedy: takes `Model::runtime()..build()`
//@ lines: 30

use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Search {
    topic: String,
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Report {
    lines: Vec<String>,
}

#[derive(Context)]
struct Model {
    #[slot(runtime)]
    name: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Find,
}

fn report(searcher: &Agent<Model, Search>) {
    let _ = Harness::<(), Report>::builder("report").start(Step::Find).steps(|define, step| match step {
        Step::Find => define
            .child(searcher, |_, _| (Search::update(), ()), |found| Report::update().lines(vec![found.topic]))
            .end(),
    });
}

fn main() {}
