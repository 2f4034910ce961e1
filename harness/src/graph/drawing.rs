//! A drawing with the path of a run marked.

use std::fmt;
use std::sync::Arc;

use super::render::{self, Trail};
use super::wiring::Wiring;

/// A drawing of a loop, made by [`Graph::drawing`](super::Graph::drawing). `Debug` and `Display`
/// draw a Mermaid diagram.
///
/// ```
/// # use harness::prelude::*;
/// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// # struct Draft { #[state(reduce = add)] rounds: u32 }
/// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Write, Review, Drop }
/// # #[derive(Signal, Clone, Copy, Debug, PartialEq)] enum Verdict { Good, Poor, Bad }
/// # fn judge(draft: &Draft) -> Verdict {
/// #     if draft.rounds < 2 { Verdict::Poor } else { Verdict::Good }
/// # }
/// # async fn write(_: View<Draft>, _: Cx<()>) -> StepResult<Draft> { Ok(Draft::update().rounds(1)) }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use harness::observe::Recorder;
///
/// let seen = Recorder::default();
/// let harness = Harness::<(), Draft>::builder("drafts")
///     .start(Step::Write)
///     .steps(|define, step| match step {
///         Step::Write => define.run(write).then(Step::Review),
///         Step::Review => define.run(write).route(judge, |verdict| match verdict {
///             Verdict::Poor => to(Step::Write),
///             Verdict::Bad => to(Step::Drop),
///             Verdict::Good => end(),
///         }),
///         Step::Drop => define.run(write).end(),
///     })
///     .build()?
///     .observe(seen.clone());
/// harness.agent("author", ()).run(Draft::update(), ()).await?.ended()?;
///
/// let drawing = harness.graph().drawing().mark(seen.started());
/// assert!(drawing.to_mermaid().contains("s0[\"Write ×1\"]:::visited"));
/// assert!(drawing.to_dot().contains("s2 [label=\"Drop\", shape=box];"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Drawing {
    wiring: Arc<Wiring>,
    trail: Option<Trail>,
}

impl Drawing {
    pub(super) fn new(wiring: Arc<Wiring>) -> Self {
        Self { wiring, trail: None }
    }

    /// Marks a path: step names in the order they were entered, as
    /// [`Recorder::started`](crate::observe::Recorder::started) returns them.
    ///
    /// A step on the path is highlighted, with the number of times the path names it. If the path
    /// has retries, they count too. An edge is highlighted if it leads from one step of the path to
    /// the next. Names do not show which of several such edges was taken, so all of them are
    /// highlighted. A step without an edge from the step before it was reached by an edge of the
    /// loop (the start, the error route or `finally`), and those are highlighted.
    ///
    /// Unknown names are ignored. A name that several steps have means the first of them. Each call
    /// adds a path.
    #[must_use = "it returns the marked drawing"]
    pub fn mark(mut self, path: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut trail = self.trail.take().unwrap_or_default();
        trail.follow(&self.wiring, path);
        self.trail = Some(trail);
        self
    }

    /// The drawing as a [Mermaid](https://mermaid.js.org/syntax/flowchart.html) flowchart.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        render::mermaid(&self.wiring, self.trail.as_ref())
    }

    /// The drawing as a [Graphviz](https://graphviz.org/doc/info/lang.html) digraph.
    #[must_use]
    pub fn to_dot(&self) -> String {
        render::dot(&self.wiring, self.trail.as_ref())
    }
}

impl fmt::Display for Drawing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_mermaid())
    }
}

impl fmt::Debug for Drawing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_mermaid())
    }
}
