//! A step that runs its body for each of several items.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::sync::Arc;

use serde_json::Value;

use crate::context::Context;
use crate::state::{Field, State, Stored, of_json, to_json};

use super::body::BoxFuture;
use super::{Cx, Failure, FailureKind, StepError, View};

/// What came of an item, with its type erased: its result as JSON, or why it failed.
pub(crate) type ItemEnd = Result<Value, Arc<Failure>>;

/// A step that has items, with the types of the items and of their results erased.
pub(crate) struct EachBody<C: Context, S: State> {
    /// Computes the items.
    pub(crate) plan: PlanBody<C, S>,
    /// Works on one of them.
    pub(crate) run: ItemBody<C, S>,
    /// Makes updates of what came of all of them, in the order of the items.
    pub(crate) fold: FoldBody<S>,
    /// What an item is called, if the step says it.
    pub(crate) key: Option<KeyBody>,
    /// How many items are at work at a time.
    pub(crate) concurrency: usize,
    /// Whether the fold gets the failures too, instead of the step failing.
    pub(crate) collects: bool,
}

type PlanBody<C, S> =
    Box<dyn Fn(View<S>, Cx<C>) -> BoxFuture<Result<Vec<Value>, StepError>> + Send + Sync>;
pub(crate) type ItemBody<C, S> =
    Arc<dyn Fn(Value, View<S>, Cx<C>) -> BoxFuture<Result<Value, StepError>> + Send + Sync>;
/// `None` if the item does not decode.
pub(crate) type KeyBody = Arc<dyn Fn(&Value) -> Option<String> + Send + Sync>;
pub(crate) type FoldBody<S> = Box<
    dyn Fn(View<S>, Vec<ItemEnd>) -> Result<Vec<<S as State>::Update>, StepError> + Send + Sync,
>;

/// Computes items, as JSON.
pub(crate) fn plan_body<C, S, I, F, Fut>(items: F) -> PlanBody<C, S>
where
    C: Context,
    S: State,
    I: Stored + Send + 'static,
    F: Fn(View<S>, Cx<C>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<I>, StepError>> + Send + 'static,
{
    Box::new(move |state, cx| {
        let items = items(state, cx);
        Box::pin(async move {
            let items = items.await?;
            items.iter().enumerate().map(|(at, item)| encoded(item, "item", at)).collect()
        })
    })
}

/// Works on an item that is given as JSON; its result is JSON, too.
pub(crate) fn item_body<C, S, I, T, F, Fut>(body: F) -> ItemBody<C, S>
where
    C: Context,
    S: State,
    I: Stored + Send + 'static,
    T: Stored + Send + 'static,
    F: Fn(I, View<S>, Cx<C>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, StepError>> + Send + 'static,
{
    let body = Arc::new(body);
    Arc::new(move |item, state, cx| {
        let body = Arc::clone(&body);
        Box::pin(async move {
            let at = cx.item().unwrap_or_default() as usize;
            let item = of_json::<I, _>(item).map_err(|error| {
                let why = format!("failed to decode the recorded item {at}: {error}");
                StepError::of(FailureKind::Encode, false, why)
            })?;
            encoded(&body(item, state, cx).await?, "result of item", at)
        })
    })
}

/// What an item that is given as JSON is called.
pub(crate) fn key_body<I: Stored + 'static>(
    key: impl Fn(&I) -> String + Send + Sync + 'static,
) -> KeyBody {
    Arc::new(move |item| Some(key(&of_json::<I, _>(item.clone()).ok()?)))
}

fn encoded<T: Stored>(value: &T, what: &str, at: usize) -> Result<Value, StepError> {
    to_json(value).map_err(|error| {
        StepError::of(FailureKind::Encode, false, format!("the {what} {at}: {error}"))
    })
}

/// Decodes the results of items for a fold.
///
/// # Errors
/// A recorded result of another type.
pub(crate) fn decoded<T: Stored>(value: Value, at: usize) -> Result<T, StepError> {
    of_json(value).map_err(|error| {
        let why = format!("failed to decode the recorded result of item {at}: {error}");
        StepError::of(FailureKind::Encode, false, why)
    })
}

/// The results of items that are updates of the state. A field without a reducer is set by at most
/// one of them.
///
/// # Errors
/// Two items set one field that has no reducer, or a recorded update does not decode.
pub(crate) fn merged<S: State>(ends: Vec<ItemEnd>) -> Result<Vec<S::Update>, StepError> {
    let schema = S::schema();
    let mut setters: HashMap<String, usize> = HashMap::new();
    let mut updates = Vec::with_capacity(ends.len());
    for (at, end) in ends.into_iter().enumerate() {
        let Ok(value) = end else { continue };
        let mut set = BTreeSet::new();
        replaced(schema.fields(), &value, "", &mut set);
        for field in set {
            if let Some(first) = setters.insert(field.clone(), at) {
                let message = format!(
                    "the items {first} and {at} both set `{field}`, which has no reducer (give the \
                     field a reducer, or use `.fold(..)`)"
                );
                return Err(StepError::of(FailureKind::ItemConflict, false, message));
            }
        }
        updates.push(decoded(value, at)?);
    }
    Ok(updates)
}

/// The fields without a reducer that an update sets, and those of the states nested in it.
fn replaced(fields: &[Field], update: &Value, above: &str, set: &mut BTreeSet<String>) {
    for field in fields {
        let Some(change) = update.get(field.name()) else { continue };
        let name = format!("{above}{}", field.name());
        match (field.reducer(), change) {
            ("replace", _) => {
                set.insert(name);
            }
            ("nest", Value::Array(updates)) => {
                for update in updates {
                    replaced(field.fields(), update, &format!("{name}."), set);
                }
            }
            _ => {}
        }
    }
}
