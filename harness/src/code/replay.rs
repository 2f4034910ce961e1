//! A replay whose records are effects of a step, one after the other.
use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, PoisonError};

use harness_esg::{Ending, Journal, JournalError, KillHandle, Record};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{Receiver, channel as channel_to_step};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::{Span, info, info_span};

use super::bench::{Bench, BenchError};
use super::state::{Code, CodeChange};
use crate::context::Context;
use crate::session::REPLAY;
use crate::step::{Cx, ResultExt as _, Scope, StepError};

/// Runs the program of a state, and returns the changes of it. Each record is durable, as an effect of
/// this step, before the replay continues: after a crash, the step that is entered again finds the
/// records so far, and runs what is left.
pub(super) async fn replay<C: Context>(
    bench: Bench,
    code: &Code,
    cx: &Cx<C>,
) -> Result<Vec<CodeChange>, StepError> {
    let mut counted = Counted { span: span(cx), ran: 0, recorded: 0 };
    let kill = Kill::new(cx);
    kill.watch(cx);
    let replay = Arc::new(Mutex::new(Replay::Recorded { bench, code: code.clone(), kill }));
    let mut records: Vec<Record> = Vec::new();
    for nth in 0_u32.. {
        let at = Arc::clone(&replay);
        let next = cx
            .once(&format!("{REPLAY}{nth}"), async move || {
                Ok::<Option<Vec<Record>>, StepError>(at.lock().await.next().await?)
            })
            .await?;
        let Some(new) = next else { break };
        let mut replay = replay.lock().await;
        let earlier = matches!(*replay, Replay::Recorded { .. });
        replay.recorded(&new)?;
        for record in &new {
            let Record::Ran(execution) = record else { continue };
            if earlier {
                counted.recorded += 1;
                continue;
            }
            counted.ran += 1;
            let ok = execution.ending == Ending::Ok;
            info!(target: "harness", parent: &counted.span, code_step = &*execution.step, ok, "executed");
        }
        records.extend(new);
    }
    Ok(records.into_iter().map(CodeChange::from).collect())
}

/// The span of a replay, and how many executions it has. They are counted also if it fails or is
/// cancelled.
struct Counted {
    span: Span,
    ran: i64,
    recorded: i64,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.span.record("ran", self.ran);
        self.span.record("recorded", self.recorded);
    }
}

/// The span of a replay, in that of its step.
fn span<C: Context>(cx: &Cx<C>) -> Span {
    let Scope { effects, place } = cx.here();
    let within = effects.span(place);
    match within.is_disabled() {
        true => within,
        false => info_span!(
            target: "harness",
            parent: &within,
            "harness.replay",
            step = cx.step(),
            ran = Empty,
            recorded = Empty,
        ),
    }
}

/// Ends the running code step of a step that is cancelled or has no more time. The effects of a step are
/// waited for, so it cannot be dropped before that.
#[derive(Clone)]
struct Kill {
    given_up: CancellationToken,
    /// The handle of the worker, once a replay runs.
    worker: Arc<std::sync::Mutex<Option<KillHandle>>>,
}

impl Kill {
    fn new<C: Context>(cx: &Cx<C>) -> Self {
        let Scope { effects, place } = cx.here();
        Self { given_up: effects.giving_up(place), worker: Arc::default() }
    }

    /// Watches over the step until its effects are over.
    fn watch<C: Context>(&self, cx: &Cx<C>) {
        let kill = self.clone();
        cx.spawn(async move {
            kill.given_up.cancelled().await;
            kill.end();
        });
    }

    fn begun(&self, worker: Option<KillHandle>) {
        *self.worker.lock().unwrap_or_else(PoisonError::into_inner) = worker;
        if self.given_up.is_cancelled() {
            self.end();
        }
    }

    fn end(&self) {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        worker.iter().for_each(KillHandle::kill);
    }
}

enum Replay {
    /// Before the first record that an earlier attempt has not left.
    Recorded {
        bench: Bench,
        code: Code,
        kill: Kill,
    },
    Running(Running),
}

struct Running {
    batches: Receiver<Batch>,
    /// Lets the replay continue after the batch that was received last.
    waiting: Option<Sender<()>>,
    done: JoinHandle<Result<(), BenchError>>,
}

struct Batch {
    records: Vec<Record>,
    stored: Sender<()>,
}

impl Replay {
    /// Notes what an earlier attempt has recorded, or lets the replay continue.
    fn recorded(&mut self, records: &[Record]) -> Result<(), StepError> {
        match self {
            // The step began with the same program.
            Self::Recorded { code, .. } => code.extend(records).fatal()?,
            Self::Running(running) => {
                if let Some(stored) = running.waiting.take() {
                    let _ = stored.send(());
                }
            }
        }
        Ok(())
    }

    /// The next records, or `None` at the end.
    async fn next(&mut self) -> Result<Option<Vec<Record>>, BenchError> {
        if let Self::Recorded { bench, code, kill } = self {
            *self = Self::Running(Running::start(bench.clone(), code.clone(), kill.clone()));
        }
        let Self::Running(running) = self else { return Ok(None) };
        match running.batches.recv().await {
            Some(batch) => {
                running.waiting = Some(batch.stored);
                Ok(Some(batch.records))
            }
            None => match (&mut running.done).await {
                Ok(done) => done.map(|()| None),
                Err(error) => Err(BenchError::BrokenOff(error)),
            },
        }
    }
}

impl Running {
    fn start(bench: Bench, code: Code, kill: Kill) -> Self {
        let (to, batches) = channel_to_step(1);
        let done = tokio::spawn(async move {
            let begun = move |worker| kill.begun(worker);
            bench
                .journalled(&code, Some(Box::new(ToStep(to))), begun, |graph| {
                    graph.replay().map(drop)
                })
                .await
        });
        Self { batches, waiting: None, done }
    }
}

/// The journal of a replay: hands the records to the step, and waits until they are stored.
struct ToStep(tokio::sync::mpsc::Sender<Batch>);

impl Journal for ToStep {
    fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let (stored, wait) = channel();
        let gone = || JournalError::new("the step that runs the program has ended");
        let batch = Batch { records: records.to_vec(), stored };
        self.0.blocking_send(batch).map_err(|_| gone())?;
        wait.recv().map_err(|_| gone())
    }
}

impl fmt::Debug for ToStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToStep")
    }
}
