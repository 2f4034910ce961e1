use std::sync::{Arc, Mutex, PoisonError};

use super::{Event, Observer};

/// An observer that keeps the events it receives, for tests that assert which steps ran.
///
/// ```
/// # use harness::prelude::*;
/// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Doc { text: String }
/// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Write }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use harness::observe::Recorder;
///
/// let seen = Recorder::default();
/// let harness = Harness::<(), Doc>::builder("writer")
///     .start(Step::Write)
///     .steps(|define, step| match step {
///         Step::Write => define.run(|_doc, _cx| async move { Ok(Doc::update().text("hi")) }).end(),
///     })
///     .build()?
///     .observe(seen.clone());
/// harness.agent("w", ()).run(Doc::update(), ()).await?;
/// assert_eq!(
///     seen.lines(),
///     ["run started", "Write#1 started", "Write#1 committed -> end", "run ended"],
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    seen: Arc<Mutex<Vec<Event>>>,
    tokens: bool,
}

impl Recorder {
    /// Keeps [`Token`](super::EventKind::Token) events too.
    #[must_use]
    pub fn with_tokens(mut self) -> Self {
        self.tokens = true;
        self
    }

    /// The events so far.
    pub fn events(&self) -> Vec<Event> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The events so far, each as one line.
    pub fn lines(&self) -> Vec<String> {
        self.events().iter().map(Event::to_string).collect()
    }

    /// The steps that were started, in order.
    pub fn started(&self) -> Vec<String> {
        let started = |event: &Event| matches!(event.kind, super::EventKind::StepStarted);
        self.events()
            .iter()
            .filter(|event| started(event))
            .filter_map(|event| event.step.as_deref().map(str::to_owned))
            .collect()
    }

    /// Removes all events.
    pub fn clear(&self) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Observer for Recorder {
    fn on_event(&self, event: &Event) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
    }

    fn wants_tokens(&self) -> bool {
        self.tokens
    }
}
