//! A loop with one step that has items, and a probe through which items and tests meet.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::observe::Recorder;
pub use harness::prelude::*;
use harness::{Ended, Exhausted, Failed, Interrupted, Stopped};
pub use harness::{FailureKind, Interrupt};
use tokio::sync::Semaphore;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    pub items: Vec<String>,
    #[state(reduce = append)]
    pub out: Vec<String>,
    pub note: Option<String>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = String)]
pub struct What {
    pub item: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Each,
    After,
    Mend,
    Clean,
}

pub fn items<const N: usize>(items: [&str; N]) -> <Work as State>::Update {
    Work::update().items(items.map(str::to_owned).to_vec())
}

/// What items did, and gates at which they wait for their test.
#[derive(Clone, Default)]
pub struct Probe(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    hits: Vec<String>,
    gates: HashMap<String, Arc<Semaphore>>,
    at_work: usize,
    most: usize,
}

/// Counts one that is at work.
pub struct AtWork(Probe);

impl Probe {
    pub fn hit(&self, what: impl Into<String>) {
        self.0.lock().unwrap().hits.push(what.into());
    }

    pub fn hits(&self) -> Vec<String> {
        self.0.lock().unwrap().hits.clone()
    }

    pub fn count(&self, what: &str) -> usize {
        self.hits().iter().filter(|hit| *hit == what).count()
    }

    fn gate(&self, name: &str) -> Arc<Semaphore> {
        let mut seen = self.0.lock().unwrap();
        let gate = seen.gates.entry(name.to_owned());
        Arc::clone(gate.or_insert_with(|| Arc::new(Semaphore::new(0))))
    }

    /// Lets one pass.
    pub fn open(&self, name: &str) {
        self.gate(name).add_permits(1);
    }

    pub async fn pass(&self, name: &str) {
        self.gate(name).acquire().await.unwrap().forget();
    }

    pub fn work(&self) -> AtWork {
        let mut seen = self.0.lock().unwrap();
        seen.at_work += 1;
        seen.most = seen.most.max(seen.at_work);
        AtWork(self.clone())
    }

    /// How many were at work at a time, at most.
    pub fn most(&self) -> usize {
        self.0.lock().unwrap().most
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().at_work -= 1;
    }
}

/// How the loop is declared.
#[derive(Clone, Default)]
pub struct Loop {
    pub concurrency: Option<usize>,
    pub retry: Option<u32>,
    pub timeout: Option<Duration>,
    /// Failures are results.
    pub collects: bool,
    pub mends: bool,
    pub cleans: bool,
    pub budget: Option<Budget>,
}

impl Loop {
    /// The plan is the list of items in the state.
    pub fn build<F, Fut>(self, body: F) -> Harness<(), Work>
    where
        F: Fn(String, Cx<()>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<String, StepError>> + Send + 'static,
    {
        self.plan(|work| Ok(work.items.clone()), body)
    }

    pub fn plan<P, F, Fut>(self, plan: P, body: F) -> Harness<(), Work>
    where
        P: Fn(&Work) -> Result<Vec<String>, StepError> + Clone + Send + Sync + 'static,
        F: Fn(String, Cx<()>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<String, StepError>> + Send + 'static,
    {
        let made = Harness::<(), Work>::builder("each").start(Step::Each);
        let made = made.budget(self.budget.unwrap_or_default());
        let made = if self.cleans { made.finally(Step::Clean) } else { made };
        let made = made.steps(move |define, step| match step {
            Step::Each => {
                let (plan, body) = (plan.clone(), body.clone());
                let each = define.each(move |work: View<Work>, _| {
                    let planned = plan(&work);
                    async move { planned }
                });
                let each = each.concurrency(self.concurrency.unwrap_or(8));
                let each = each.run(move |item: String, _, cx| body(item, cx));
                let step = match self.collects {
                    false => each.fold(|_, out| Ok(Work::update().out(out))),
                    true => each.fold_all(|_, ends| {
                        let line = |end: Result<String, _>| match end {
                            Ok(line) => line,
                            Err(failure) => {
                                let failure: std::sync::Arc<harness::Failure> = failure;
                                format!("{:?} {failure}", failure.kind)
                            }
                        };
                        Ok(Work::update().out(ends.into_iter().map(line)))
                    }),
                };
                let step = match self.retry {
                    Some(n) => step.retry(Retry::every(Duration::from_millis(1)).times(n)),
                    None => step,
                };
                let step = match self.timeout {
                    Some(limit) => step.timeout(limit),
                    None => step,
                };
                let step = if self.mends { step.on_error(Step::Mend) } else { step };
                step.at_most(9, Step::Mend).then(Step::After)
            }
            Step::After => define.run(line).end(),
            Step::Mend => define.run(line).end(),
            Step::Clean if !self.cleans => define.off("nothing cleans"),
            Step::Clean => define.run(line).end(),
        });
        let made = made.build();
        made.unwrap_or_else(|error| panic!("{error:#}"))
    }
}

async fn line(_: View<Work>, cx: Cx<()>) -> StepResult<Work> {
    let why = cx.failure().map_or(String::new(), |it| format!(" {}", it.message));
    Ok(Work::update().out([format!("{}{why}", cx.step())]))
}

/// Asks under one key, whatever the item.
pub async fn ask(item: String, cx: &Cx<()>) -> Result<String, StepError> {
    Ok(cx.ask("what", What { item }).await?)
}

pub fn ended(outcome: Outcome<Work>) -> Ended<Work> {
    match outcome {
        Outcome::Ended(it) => it,
        other => panic!("{other:?}"),
    }
}

pub fn failed(outcome: Outcome<Work>) -> Failed<Work> {
    match outcome {
        Outcome::Failed(it) => it,
        other => panic!("{other:?}"),
    }
}

pub fn waiting(outcome: Outcome<Work>) -> Interrupted<Work> {
    match outcome {
        Outcome::Interrupted(it) => it,
        other => panic!("{other:?}"),
    }
}

pub fn stopped(outcome: Outcome<Work>) -> Stopped<Work> {
    match outcome {
        Outcome::Stopped(it) => it,
        other => panic!("{other:?}"),
    }
}

pub fn exhausted(outcome: Outcome<Work>) -> Exhausted<Work> {
    match outcome {
        Outcome::Exhausted(it) => it,
        other => panic!("{other:?}"),
    }
}

/// The items that ask, in the order of the questions.
pub fn asking(questions: &[Interrupt]) -> Vec<u32> {
    questions.iter().map(|asked| asked.item.unwrap()).collect()
}

/// Answers each question with its item.
pub fn answers<'a>(questions: impl IntoIterator<Item = &'a Interrupt>) -> Answers {
    let answer = |asked: &Interrupt| {
        let text = format!("said {}", asked.question["item"].as_str().unwrap());
        Answers::json(asked.id.clone(), text.into())
    };
    questions.into_iter().map(answer).collect()
}

pub fn recorder() -> Recorder {
    Recorder::default()
}
