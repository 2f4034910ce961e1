//! A report whose steps call other agents: one researches each topic, one checks the text. A person answers
//! a question of one of them, and everything continues in another process.
//!
//! ```text
//! cargo run -p examples --bin children
//! ```
//!
//! Needs no network. The program checks what became of the sessions, and fails if an agent ran twice.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use harness::inspect::{Filter, Phase};
use harness::prelude::*;
use harness::{BuildError, Sessions};
use harness_store::SqliteStore;

/// How many topics were looked up, in all sessions.
static LOOKED_UP: AtomicUsize = AtomicUsize::new(0);

const TOPICS: [&str; 2] = ["wells", "dragons"];

/// The state of a researcher.
#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Search {
    topic: String,
    finding: String,
}

/// The state of the writer.
#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Report {
    topics: Vec<String>,
    #[state(reduce = append)]
    lines: Vec<String>,
    faults: u32,
}

/// The state of the checker.
#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Check {
    lines: Vec<String>,
    faults: u32,
}

/// The question of a researcher: is this true?
#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Doubt {
    finding: String,
}

#[rustfmt::skip]
#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Researching { LookUp }

#[rustfmt::skip]
#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Checking { Read }

#[rustfmt::skip]
#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Writing { Collect, Check }

#[derive(Context)]
struct Writer {
    #[slot(required)]
    researcher: Agent<(), Search>,
}

async fn look_up(search: View<Search>, cx: Cx<()>) -> StepResult<Search> {
    let topic = search.topic.clone();
    let found = cx.once("look up", async move || {
        LOOKED_UP.fetch_add(1, Relaxed);
        Ok(format!("{topic} are deep"))
    });
    let finding = found.await?;
    if search.topic != "dragons" {
        return Ok(Search::update().finding(finding));
    }
    match cx.ask("doubt", Doubt { finding: finding.clone() }).await? {
        true => Ok(Search::update().finding(finding)),
        false => Ok(Search::update().finding(format!("nothing is known of {}", search.topic))),
    }
}

/// Calls the researcher once for each topic. This body may run again; a researcher does not.
async fn collect(report: View<Report>, cx: Cx<Writer>) -> StepResult<Report> {
    let mut lines = Vec::new();
    for topic in &report.topics {
        let input = Search::update().topic(topic.clone());
        let found = cx.call(&cx.researcher, input, ()).key(topic.clone()).await?;
        lines.push(found.state.finding);
    }
    Ok(Report::update().lines(lines))
}

async fn read(check: View<Check>, _cx: Cx<()>) -> StepResult<Check> {
    let faults = check.lines.iter().filter(|line| line.is_empty()).count();
    Ok(Check::update().faults(u32::try_from(faults).unwrap_or(u32::MAX)))
}

fn researcher() -> Result<Agent<(), Search>, BuildError> {
    let harness = Harness::<(), Search>::builder("research")
        .start(Researching::LookUp)
        .steps(|define, step| match step {
            Researching::LookUp => define.run(look_up).end(),
        })
        .build()?;
    Ok(harness.agent("researcher", ()))
}

fn checker() -> Result<Agent<(), Check>, BuildError> {
    let harness = Harness::<(), Check>::builder("check")
        .start(Checking::Read)
        .steps(|define, step| match step {
            Checking::Read => define.run(read).end(),
        })
        .build()?;
    Ok(harness.agent("checker", ()))
}

/// The agents of a process, on the store that all processes share.
async fn writer(file: &Path) -> Result<Agent<Writer, Report>, Box<dyn Error>> {
    let checker = checker()?;
    let harness = Harness::<Writer, Report>::builder("report")
        .start(Writing::Collect)
        .steps(move |define, step| match step {
            Writing::Collect => define.run(collect).then(Writing::Check),
            Writing::Check => define
                .child(
                    &checker,
                    |report, _cx| (Check::update().lines(report.lines.clone()), ()),
                    |check| Report::update().faults(check.faults),
                )
                .end(),
        })
        .build()?;
    let slots = Writer::required().researcher(researcher()?).build();
    Ok(harness.agent("writer", slots).store(SqliteStore::open(file).await?))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("reports.db");

    let input = Report::update().topics(TOPICS.map(str::to_owned).to_vec());
    let outcome = writer(&file).await?.run(input, ()).session("report").await?;
    let Outcome::Waiting(waiting) = outcome else {
        return Err(format!("the report does not wait: {outcome:?}").into());
    };
    for child in &waiting.children {
        println!("the report waits for `{}`, a session of `{}`", child.session, child.agent);
    }

    // From here on in another process: the first one has ended.
    let sessions = Sessions::new(SqliteStore::open(&file).await?);
    for asked in sessions.pending_interrupts().await?.rows {
        let doubt = asked.interrupt.as_question::<Doubt>()?;
        println!("`{}` asks whether it is true that {}", asked.session, doubt.question.finding);
        sessions.answer_json(&asked.session, doubt.answer(false).by("a person")).await?;
    }
    let ended = writer(&file).await?.resume("report", Answers::none(), ()).await?.ended()?;
    println!("{}; {} faults", ended.state.lines.join("; "), ended.state.faults);
    verify(&sessions, &ended.state).await
}

/// That each agent had its turns, and no more.
async fn verify(sessions: &Sessions, report: &Report) -> Result<(), Box<dyn Error>> {
    let mut turns = BTreeMap::<String, u32>::new();
    for row in sessions.all(&Filter::sessions().phase(Phase::Ended)).await? {
        *turns.entry(row.agent.to_string()).or_default() += 1;
    }
    let expected = [("checker", 1), ("researcher", 2), ("writer", 1)];
    let expected = expected.map(|(agent, sessions)| (agent.to_owned(), sessions)).into();
    if turns != expected || LOOKED_UP.load(Relaxed) != TOPICS.len() {
        return Err(format!("an agent ran twice: {turns:?}").into());
    }
    if report.lines != ["wells are deep", "nothing is known of dragons"] {
        return Err(format!("the report is wrong: {report:?}").into());
    }
    println!("each topic was looked up once, by a session of its own");
    Ok(())
}
