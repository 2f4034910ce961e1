use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use serde_json::Value;

use crate::context::Context;
use crate::graph::Kind;
use crate::state::{State, Stored};
use crate::step::{
    Action, Cx, EachBody, Failure, ItemBody, ItemEnd, KeyBody, StepError, StepResult, View,
    decoded, item_body, key_body, merged, plan_body,
};

use super::About;
use super::draft::At;
use super::step::{NeedsThenEndOrRoute, OfStep};

/// How many items are at work at a time, unless a step says otherwise.
const CONCURRENCY: usize = 8;

/// A step whose items are declared, but not what is done for each: it needs `.run(..)`.
#[must_use = "a step with items needs a body: `.run(..)`"]
pub struct NeedsItemBody<C: Context, S: State, St, I> {
    plan: Plan<C, S>,
    key: Option<KeyBody>,
    concurrency: usize,
    at: At,
    types: About<(St, I)>,
}

type Plan<C, S> = Box<
    dyn Fn(View<S>, Cx<C>) -> crate::step::BoxFuture<Result<Vec<Value>, StepError>> + Send + Sync,
>;

impl<C, S, St, I> NeedsItemBody<C, S, St, I>
where
    C: Context,
    S: State,
    I: Stored + Send + 'static,
{
    pub(super) fn new<F, Fut>(items: F, at: &'static Location<'static>) -> Self
    where
        F: Fn(View<S>, Cx<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<I>, StepError>> + Send + 'static,
    {
        let plan = plan_body(items);
        Self { plan, key: None, concurrency: CONCURRENCY, at, types: PhantomData }
    }

    /// How many items are at work at a time: at least 1, and 8 without this. An item that waits for
    /// an answer, or for its next try, is not at work.
    pub fn concurrency(mut self, items: usize) -> Self {
        self.concurrency = items.max(1);
        self
    }

    /// What an item is called in the [events](crate::observe::Event::item_key) and spans of a run: the
    /// name of a file, the id of an order. Observers may pass it on, so it holds nothing secret. Its
    /// first 256 characters are kept.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Files { names: Vec<String>, bytes: u64 }
    /// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Measure }
    /// # let harness = Harness::<(), Files>::builder("files").start(Step::Measure).steps(|define, step| match step {
    /// Step::Measure => define
    ///     .each(|files: View<Files>, _cx| async move { Ok(files.names.clone()) })
    ///     .key(|name| name.clone())
    ///     .run(|name, _files, _cx| async move { Ok(name.len() as u64) })
    ///     .fold(|_files, sizes| Ok(Files::update().bytes(sizes.iter().sum())))
    ///     .end(),
    /// # }).build();
    /// # assert!(harness.is_ok());
    /// ```
    pub fn key(mut self, key: impl Fn(&I) -> String + Send + Sync + 'static) -> Self {
        self.key = Some(key_body(key));
        self
    }

    /// What is done for each item. It gets the item, a view of the state as it was when the step was
    /// entered, and a [`Cx`] whose questions, effects and events are the item's own.
    pub fn run<T, F, Fut>(self, body: F) -> NeedsFold<C, S, St, T>
    where
        T: Stored + Send + 'static,
        F: Fn(I, View<S>, Cx<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, StepError>> + Send + 'static,
    {
        let Self { plan, key, concurrency, at, .. } = self;
        NeedsFold { plan, run: item_body(body), key, concurrency, at, types: PhantomData }
    }
}

/// A step whose items and body are declared, but not what their results change: it needs
/// `.fold(..)`, or `.merge()` if each result is an update.
#[must_use = "the results of items need `.fold(..)` or `.merge()`"]
pub struct NeedsFold<C: Context, S: State, St, T> {
    plan: Plan<C, S>,
    run: ItemBody<C, S>,
    key: Option<KeyBody>,
    concurrency: usize,
    at: At,
    types: About<(St, T)>,
}

impl<C: Context, S: State, St, T: Stored + 'static> NeedsFold<C, S, St, T> {
    /// Makes an update of the results, which are in the order of the items. If an item failed for
    /// good, the step fails instead, once the other items are done.
    pub fn fold<F>(self, fold: F) -> NeedsThenEndOrRoute<C, S, St, OfStep>
    where
        F: Fn(View<S>, Vec<T>) -> StepResult<S> + Send + Sync + 'static,
    {
        self.exit(false, move |view, ends| {
            let values = ends.into_iter().filter_map(Result::ok).enumerate();
            let results: Result<Vec<T>, _> = values.map(|(at, value)| decoded(value, at)).collect();
            Ok(vec![fold(view, results?)?])
        })
    }

    /// Makes an update of the results and failures, which are in the order of the items: an item
    /// that failed for good does not fail the step.
    pub fn fold_all<F>(self, fold: F) -> NeedsThenEndOrRoute<C, S, St, OfStep>
    where
        F: Fn(View<S>, Vec<Result<T, Arc<Failure>>>) -> StepResult<S> + Send + Sync + 'static,
    {
        self.exit(true, move |view, ends| {
            let ends = ends.into_iter().enumerate().map(|(at, end)| match end {
                Ok(value) => decoded(value, at).map(Ok),
                Err(failure) => Ok(Err(failure)),
            });
            let results: Result<Vec<_>, StepError> = ends.collect();
            Ok(vec![fold(view, results?)?])
        })
    }

    fn exit<F>(self, collects: bool, fold: F) -> NeedsThenEndOrRoute<C, S, St, OfStep>
    where
        F: Fn(View<S>, Vec<ItemEnd>) -> Result<Vec<S::Update>, StepError> + Send + Sync + 'static,
    {
        let Self { plan, run, key, concurrency, at, .. } = self;
        let each = EachBody { plan, run, fold: Box::new(fold), key, concurrency, collects };
        NeedsThenEndOrRoute::new(Kind::Each, Action::Each(each), at)
    }
}

impl<C: Context, S: State<Update = T>, St, T: Stored + 'static> NeedsFold<C, S, St, T> {
    /// Folds the updates that the items returned, in the order of the items. Two items that set one
    /// field without a reducer fail the step with
    /// [`FailureKind::ItemConflict`](crate::FailureKind::ItemConflict), which names the field.
    pub fn merge(self) -> NeedsThenEndOrRoute<C, S, St, OfStep> {
        self.exit(false, |_, ends| merged::<S>(ends))
    }
}

impl<C: Context, S: State, St, I> fmt::Debug for NeedsItemBody<C, S, St, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NeedsItemBody(declared at {})", self.at)
    }
}

impl<C: Context, S: State, St, T> fmt::Debug for NeedsFold<C, S, St, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NeedsFold(declared at {})", self.at)
    }
}
