//! An agent that writes a program, whose process is killed at any moment: between a reply of the model and
//! its record, while code steps run, while a patch is applied, before and after the review.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::async_trait;
use harness::code::{Bench, Code, Reviewed};
use harness::esg::{Blobs, CPython, Trust};
use harness::llm::{CallCx, Llm, LlmError, ModelId, Reply, Request, StopReason};
use harness::loops::{Coding, code_loop};
use harness::prelude::*;
use harness::store::Phase;
use harness::{Interrupt, Sessions};
use harness_store::FileStore;

use crate::check::Log;
use crate::child::{Other, say};
use crate::place::{Place, report};
use crate::random::Random;
use crate::work::runtime;

/// How long the model takes.
const REPLIES_IN: Duration = Duration::from_millis(200);
const SESSIONS: usize = 5;
/// The most kills of one session.
const KILLS: usize = 4;

/// Plans, writes and patches always the same, and notes in a file that it was asked.
struct Author(Arc<Path>);

const PLAN: &str = r#"{"parts": [{"name": "load", "does": "the rows"}]}"#;
const PROGRAM: &str = "```python\n# %% load\nrows = [3, 1]\n# %% twice\nrows = rows * 2\n# %% total\nn = rows + 1\n# %% show\nprint(n)\n```";
const PATCH: &str =
    "STEP total\n<<<<<<< SEARCH\nn = rows + 1\n=======\nn = sum(rows)\n>>>>>>> REPLACE\n";

#[async_trait]
impl Llm for Author {
    fn id(&self) -> ModelId {
        ModelId::new("test", "author")
    }

    async fn complete(&self, request: Request<'_>, _: &CallCx) -> Result<Reply, LlmError> {
        let asked = format!("{request:?}");
        let (kind, text) = match () {
            () if asked.contains("You plan a Python program") => ("plan", PLAN),
            () if asked.contains("You write a Python program") => ("write", PROGRAM),
            () => ("call", PATCH),
        };
        let asked = OpenOptions::new().create(true).append(true).open(&self.0);
        asked.unwrap().write_all(format!("{kind}\n").as_bytes()).unwrap();
        // As models do, it takes a while: some kills come between a question and its reply.
        tokio::time::sleep(REPLIES_IN).await;
        Ok(Reply::new(text, StopReason::End, self.id()))
    }
}

fn store(dir: &Path) -> impl Future<Output = FileStore> {
    let dir = dir.join("store");
    async move { FileStore::open(dir).await.unwrap() }
}

/// In the other process: brings the session to its end, and approves what it asks.
pub async fn coder(dir: &Path) {
    let store = store(dir).await;
    let blobs = Blobs::dir(dir.join("blobs")).unwrap();
    let bench = Bench::new(|| CPython::find().trust(Trust::Mine).start(), blobs);
    let author = Author(dir.join("asked").into());
    let agent = code_loop::<Coding>(author, bench).build().unwrap().agent("coder", ());
    let agent = agent.store(store.clone());
    say("ready");
    loop {
        let run = match Sessions::new(store.clone()).status("s").await {
            Ok(status) if status.phase == Phase::Ended => return say("ended"),
            Ok(status) => {
                let approve = |asked: &Interrupt| {
                    Answers::json(
                        asked.id.clone(),
                        serde_json::to_value(Reviewed::Approved).unwrap(),
                    )
                };
                let answers = status.questions.first().map_or_else(Answers::none, approve);
                agent.resume("s", answers, ())
            }
            Err(_) => agent.run(Coding::task("Add the rows up."), ()).session("s"),
        };
        match run.await.unwrap() {
            Outcome::Interrupted(_) | Outcome::Ended(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// How often the model was asked, by what for.
fn asked(dir: &Path) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for line in std::fs::read_to_string(dir.join("asked")).unwrap_or_default().lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    counts
}

/// The versions of the program, and every execution that was recorded.
fn story(code: &Code) -> (Vec<String>, Vec<String>) {
    let versions = code.program().versions().iter();
    let versions = versions.map(|it| format!("{} {:?} {}", it.step, it.provenance.kind, it.source));
    let executions = code.ledger().executions().iter();
    (versions.collect(), executions.map(|it| format!("{} {}", it.step, it.ending)).collect())
}

/// What is recorded is asked for once, and runs once: returns the story of the session that has ended.
async fn check(
    dir: &Path,
    frozen: &mut BTreeMap<String, u32>,
) -> Option<(Vec<String>, Vec<String>)> {
    let (store, asked) = (store(dir).await, asked(dir));
    for (kind, count) in &*frozen {
        assert_eq!(asked[kind], *count, "the model is asked again for what is recorded: {kind}");
    }
    let log = Log::read(&store, "s").await?;
    for key in log.effects() {
        let kind = key.split(['/', ' ']).next().unwrap_or_default();
        // The other effects are replays and questions.
        if let Some(count) = asked.get(kind) {
            frozen.insert(kind.to_owned(), *count);
        }
    }
    let state: Coding = serde_json::from_value(log.states.last()?.clone()).unwrap();
    let over = Sessions::new(store).status("s").await.unwrap().phase == Phase::Ended;
    over.then(|| {
        assert!(state.code.is_ok());
        assert_eq!(state.code.reviewed(), Some(&Reviewed::Approved));
        story(&state.code)
    })
}

#[test]
fn an_agent_that_is_killed_while_it_writes_a_program_does_nothing_twice() {
    let _alone = crate::alone();
    let (mut random, seed) = Random::seeded();
    let place = Place::new("code", Some(seed));
    let runtime = runtime();
    let begin = |name: &str| {
        let dir = place.path().join(name);
        std::fs::create_dir(&dir).unwrap();
        dir
    };

    let dir = begin("plain");
    let mut other = Other::start("coder", &dir, &[]);
    assert_eq!(other.hear(), "ready");
    let begun = Instant::now();
    assert_eq!(other.hear(), "ended");
    let takes = begun.elapsed();
    assert!(other.end().0.success());
    let mut replies = BTreeMap::new();
    let plain = runtime.block_on(check(&dir, &mut replies)).unwrap();
    assert_eq!(replies.values().copied().collect::<Vec<_>>(), [1, 1, 1], "{replies:?}");
    // Four code steps, and after the patch `total` and `show`.
    assert_eq!((plain.0.len(), plain.1.len()), (5, 6), "{plain:?}");

    let (mut kills, mut repeated) = (0, 0);
    for session in 0..SESSIONS {
        let dir = begin(&session.to_string());
        let (mut frozen, mut ended) = (BTreeMap::new(), None);
        for _ in 0..KILLS {
            let mut other = Other::start("coder", &dir, &[]);
            assert_eq!(other.hear(), "ready");
            std::thread::sleep(random.micros(takes.as_micros() as u64));
            kills += 1;
            drop(other.kill());
            ended = runtime.block_on(check(&dir, &mut frozen));
        }
        if ended.is_none() {
            assert!(Other::start("coder", &dir, &[]).end().0.success());
            ended = runtime.block_on(check(&dir, &mut frozen));
        }
        assert_eq!(ended.as_ref(), Some(&plain));
        repeated += asked(&dir).values().sum::<u32>() - 3;
    }
    report(&format!(
        "code: {kills} kills within {takes:.1?} each; {repeated} replies were lost before they were recorded"
    ));
}
