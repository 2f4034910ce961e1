//@ names: `SearchUpdate`, `ReportUpdate`
//@ remedy: arguments to this method are incorrect
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

async fn write(_: View<Report>, cx: Cx<()>, searcher: Agent<(), Search>) -> StepResult<Report> {
    let found = cx.call(&searcher, Report::update(), ()).await?;
    Ok(Report::update().lines(vec![found.state.topic]))
}

fn main() {}
