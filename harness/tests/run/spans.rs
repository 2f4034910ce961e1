//! The spans of runs and steps.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::common::*;

type Fields = BTreeMap<String, String>;

/// Keeps each span with its fields, and the names of the spans that were entered around it.
#[derive(Clone, Default)]
struct Spans {
    kept: Arc<Mutex<Kept>>,
    /// The level that is enabled, if not all are.
    least: Option<Level>,
}

#[derive(Default)]
struct Kept {
    made: Vec<(&'static str, Fields, Vec<&'static str>)>,
    entered: Vec<usize>,
}

struct Collect<'a>(&'a mut Fields);

impl Visit for Collect<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "harness" && self.least.is_none_or(|least| *metadata.level() <= least)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut kept = self.kept.lock().unwrap();
        let mut fields = Fields::new();
        span.record(&mut Collect(&mut fields));
        let around = kept.entered.iter().map(|at| kept.made[*at].0).collect();
        kept.made.push((span.metadata().name(), fields, around));
        Id::from_u64(kept.made.len() as u64)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        self.kept.lock().unwrap().entered.push(span.into_u64() as usize - 1);
    }

    fn exit(&self, span: &Id) {
        let mut kept = self.kept.lock().unwrap();
        let at = kept.entered.iter().rposition(|it| *it == span.into_u64() as usize - 1);
        if let Some(at) = at {
            kept.entered.remove(at);
        }
    }
}

#[tokio::test]
async fn a_run_and_its_steps_have_spans_with_their_ids() {
    let spans = Spans::default();
    let _subscribed = tracing::subscriber::set_default(spans.clone());
    let bench = two(
        |define| {
            define
                .run(async |_, _| {
                    tracing::info_span!(target: "harness", "inside").in_scope(|| {});
                    tokio::task::yield_now().await;
                    tracing::info_span!(target: "harness", "after a pause").in_scope(|| {});
                    Ok(line("first"))
                })
                .then(Two::Second)
        },
        |define| {
            define
                .run(async |_, cx| {
                    if cx.attempt() == 1 {
                        Err(Oops("no"))?
                    }
                    Ok(line("second"))
                })
                .retry(Retry::every(std::time::Duration::ZERO))
                .end()
        },
    );
    let out = ended(bench.agent.run(Log::update(), ()).session("s-1").await.unwrap());
    let kept = spans.kept.lock().unwrap();
    let names: Vec<&str> = kept.made.iter().map(|it| it.0).collect();
    let step = "harness.step";
    // The attempts at a step have one span.
    assert_eq!(names, ["harness.run", step, "inside", "after a pause", step]);
    let run = &kept.made[0].1;
    assert_eq!((&*run["harness"], &*run["agent"], &*run["session"]), ("two", "bench", "s-1"));
    assert_eq!(run["run"], out.run.as_str());
    let steps: Vec<_> = kept.made.iter().filter(|it| it.0 == step).collect();
    let fields = |at: usize| {
        let fields = &steps[at].1;
        (&*fields["step"], &*fields["position"], &*fields["attempt"])
    };
    assert_eq!(fields(0), ("First", "1", "1"));
    assert_eq!(fields(1), ("Second", "2", "1"));
    assert!(steps.iter().all(|it| it.2 == ["harness.run"]), "{:?}", steps);
    assert_eq!(kept.made[2].2, ["harness.run", step]);
    assert_eq!(kept.made[3].2, ["harness.run", step]);
    assert!(kept.entered.is_empty());
}

#[tokio::test]
async fn a_run_has_no_other_spans_where_debug_is_disabled() {
    let spans = Spans { least: Some(Level::INFO), ..Spans::default() };
    let _subscribed = tracing::subscriber::set_default(spans.clone());
    let bench = only(|define| define.run(async |_, _| Ok(line("done"))).end());
    ended(bench.agent.run(Log::update(), ()).await.unwrap());
    let names: Vec<_> = spans.kept.lock().unwrap().made.iter().map(|it| it.0).collect();
    assert_eq!(names, ["harness.run"]);
}
