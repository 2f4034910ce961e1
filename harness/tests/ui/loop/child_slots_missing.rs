//@ names: `Model`
//@ remedy: takes `Model::runtime()..build()`
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

#[derive(Context)]
struct Model {
    #[slot(runtime)]
    name: String,
}

async fn write(_: View<Report>, cx: Cx<()>, searcher: Agent<Model, Search>) -> StepResult<Report> {
    let found = cx.call(&searcher, Search::update(), ()).await?;
    Ok(Report::update().lines(vec![found.state.topic]))
}

fn main() {}
