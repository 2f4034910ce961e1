//! A report of a session: what its log says, for a person to read.
//!
//! A [`Report`] is data. [`to_html`](Report::to_html) renders it as one page that needs no other file,
//! no script and no network, and [`to_markdown`](Report::to_markdown) as Markdown with a Mermaid drawing.
//! Both show what a session holds as text: nothing that a user, a model or a tool has written becomes
//! markup, and characters that are invisible or reorder text are written out.

mod changes;
mod difference;
mod drawing;
mod entries;
mod fence;
mod html;
mod items;
mod lines;
mod markdown;
#[cfg(feature = "code")]
mod program;
mod read;
mod talk;
mod timeline;
mod tools;
mod value;
mod words;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::clock::UtcMillis;
use crate::graph::Graph;
use crate::id::{Seq, SessionId};
use crate::llm::Spend;
use crate::session::{Resolution, StepKind};
use crate::step::{Failure, Interrupt};

use super::{Sessions, SessionsError, Status};

pub use changes::{StateChange, compare};
pub use difference::difference_html;
pub use entries::describe;
pub use html::STYLE;
pub use lines::{DiffLine, LineChange};
#[cfg(feature = "code")]
pub use program::{CodeStatus, CodeStep, CodeVersion, ProgramReport, programs, programs_html};
pub use talk::conversations;
pub use timeline::changes_html;
pub use value::value_html;
pub use words::visible;

/// The most entries in a timeline: the last ones of a log.
pub const MAX_TIMELINE: usize = 2_000;

/// What the log of a session says, made by [`Sessions::report`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Its current status.
    pub status: Status,
    /// The name of the harness of its loop.
    pub harness: String,
    /// The steps of its loop: those that were entered, in the order of their first visit, then the
    /// others.
    pub steps: Vec<StepReport>,
    /// Which step followed on which.
    pub transitions: Vec<Transition>,
    /// The steps in the order in which they were entered.
    pub path: Vec<Arc<str>>,
    /// What happened, oldest first: at most [`MAX_TIMELINE`] entries.
    pub timeline: Vec<TimelineEntry>,
    /// How many earlier entries the timeline leaves out.
    pub omitted: u64,
    /// The items of the step at work, if it has items and is not over: the first ones.
    pub items: Vec<ItemReport>,
    /// How many items are left out.
    pub more_items: usize,
    /// Every question, in the order in which they were asked.
    pub questions: Vec<QuestionReport>,
    /// Every failure, repeated attempts among them.
    pub failures: Vec<FailureReport>,
    /// The state as of the last entry.
    pub state: Value,
}

/// A step of a loop, and what it took.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StepReport {
    /// Its name.
    pub name: Arc<str>,
    /// Its kind; `None` if only an earlier version of the loop had the step.
    pub kind: Option<StepKind>,
    /// How often it was entered.
    pub visits: u64,
    /// How many attempts failed and were repeated.
    pub retries: u64,
    /// How long runs worked on it, by the times of the log. Waiting for answers and timers is not
    /// counted.
    pub active: Duration,
    /// What it spent.
    pub spent: Spend,
}

/// An item of the step at work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemReport {
    /// Which item, from 0.
    pub index: u32,
    /// The item as JSON, or the tool call that it is; cut if it is long.
    pub item: String,
    /// How far it is.
    pub state: ItemState,
    /// Its result as JSON, or the outcome of its tool call, or why it failed; cut if it is long, empty
    /// before.
    pub outcome: String,
}

/// How far an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemState {
    /// It is at work, or will be.
    Open,
    /// It waits for an answer, a timer or a child.
    Waits,
    /// It has a result.
    Done,
    /// It failed for good.
    Failed,
}

/// A place of a loop.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Spot {
    /// Where a turn begins.
    Start,
    /// A step, by its name.
    Step(Arc<str>),
    /// Where a turn ends.
    End,
}

/// An edge of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transition {
    /// Where it begins.
    pub from: Spot,
    /// Where it leads.
    pub to: Spot,
    /// How often it was taken. 0 is an edge that only the [loop](Report::of_loop) has.
    pub times: u64,
    /// Whether it was taken because a step failed.
    pub on_error: bool,
}

/// An entry of the log, in words.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TimelineEntry {
    /// Its number.
    pub seq: Seq,
    /// When it was written, by its writer's clock.
    pub at: UtcMillis,
    /// The name of its change, such as `commit`.
    pub kind: String,
    /// The step at work.
    pub step: Arc<str>,
    /// What happened, in a line.
    pub words: String,
    /// How long a run worked since the entry before.
    pub active: Option<Duration>,
    /// What was spent since the entry before.
    pub spent: Option<Spend>,
    /// What it did to the state.
    pub changes: Vec<StateChange>,
    /// How many changes of the state are left out.
    pub more_changes: usize,
}

/// A question of a session, and how it was resolved.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct QuestionReport {
    /// The entry that asked it.
    pub seq: Seq,
    /// The question.
    pub interrupt: Interrupt,
    /// How it was resolved, and by which entry; `None` if the log does not say.
    pub resolved: Option<(Seq, Resolution)>,
    /// Whether it waits for an answer.
    pub open: bool,
}

/// A failure of a step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FailureReport {
    /// The entry that records it.
    pub seq: Seq,
    /// The failure, with its causes.
    pub failure: Arc<Failure>,
    /// What happened next.
    pub then: AfterFailure,
}

/// Where a page leads to, of those that stand beside it. Without an address there is no link.
#[derive(Clone, Copy, Debug, Default)]
pub struct Links<'a> {
    /// The address of an entry, which its number follows.
    pub entries: Option<&'a str>,
    /// The address of a version of a code step, which the place of its program among those of the state,
    /// `&version=` and its number follow.
    pub versions: Option<&'a str>,
}

/// What followed on a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AfterFailure {
    /// The step, or the item, was tried again.
    Retried,
    /// This error step took over.
    Diverted(Arc<str>),
    /// The item failed for good; the others continued.
    ItemFailed,
    /// The turn failed.
    TurnFailed,
    /// The last steps of the turn failed.
    LastStepsFailed,
}

impl Sessions {
    /// Reads the whole log of a session into a [`Report`], which renders as HTML and as Markdown. Runs
    /// no code of the loop.
    ///
    /// The log has the steps of a loop and the path taken, but not the edges that no turn has taken: a
    /// program that has the loop adds them by [`Report::of_loop`].
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # use harness::store::MemoryStore;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Doc { text: String }
    /// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Write }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let harness = Harness::<(), Doc>::builder("d").start(Step::Write).steps(|define, step| match step {
    /// #     Step::Write => define.run(|_, _| async move { Ok(Doc::update().text("<b>dear all</b>")) }).end(),
    /// # }).build()?;
    /// # let store = MemoryStore::new();
    /// # harness.agent("notices", ()).store(store.clone()).run(Doc::update(), ()).session("notice-7").await?;
    /// let report = harness::Sessions::new(store).report("notice-7").await?.of_loop(harness.graph());
    ///
    /// assert_eq!(report.path[..], ["Write".into()]);
    /// assert!(report.to_html().contains("&lt;b&gt;dear all"));
    /// assert!(report.to_markdown().contains("# Session `notice-7`"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// Those of [`status`](Sessions::status).
    pub async fn report(&self, session: impl AsRef<str>) -> Result<Report, SessionsError> {
        let session = SessionId::new(session)?;
        let status = self.status(&session).await?;
        read::read(self, status).await
    }
}

impl Report {
    /// Adds the edges of the loop that no turn has taken, so that the drawing shows them, too.
    #[must_use]
    pub fn of_loop(mut self, graph: &Graph) -> Self {
        for (from, to, on_error) in graph.edges() {
            let spot = |name: Option<&str>, other: Spot| match name {
                Some(name) => Spot::Step(name.into()),
                None => other,
            };
            let (from, to) = (spot(from, Spot::Start), spot(to, Spot::End));
            if !self.transitions.iter().any(|it| it.from == from && it.to == to) {
                self.transitions.push(Transition { from, to, times: 0, on_error });
            }
        }
        self
    }

    /// The report as one HTML page, without scripts and without references to other files.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::page(self)
    }

    /// The sections of that page, for a page that has a head of its own and the [`STYLE`].
    #[must_use]
    pub fn to_html_sections(&self, links: Links<'_>) -> String {
        html::sections(self, links).into_string()
    }

    /// The loop with the path taken, as an SVG element of an HTML page.
    #[must_use]
    pub fn to_svg(&self) -> String {
        drawing::svg(self).into_string()
    }

    /// The loop with the path taken, as a Mermaid flowchart.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        drawing::mermaid(self)
    }

    /// The report as Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        markdown::render(self)
    }
}
