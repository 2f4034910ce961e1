use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::Context;
use crate::signal::Signal;
use crate::state::State;
use crate::step::{BoxFuture, Cx, Handler, StepResult, View};

/// Bodies and routes by name, for loops built at run time, for example from a file. Registering a
/// name again replaces its entry.
///
/// ```
/// use harness::prelude::*;
/// use harness::declare::Registry;
///
/// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// struct Page { text: String }
///
/// #[derive(Signal, Clone, Copy, Debug)]
/// enum Size { Small, Large }
///
/// async fn fetch(_: View<Page>, _: Cx<()>) -> StepResult<Page> {
///     Ok(Page::update().text("some words"))
/// }
///
/// /// Keeps the first characters of the text.
/// #[derive(Deserialize)]
/// struct Cut { to: usize }
///
/// #[async_trait]
/// impl Handler<(), Page> for Cut {
///     async fn run(&self, page: View<Page>, _: Cx<()>) -> StepResult<Page> {
///         Ok(Page::update().text(page.text.chars().take(self.to).collect::<String>()))
///     }
/// }
///
/// let registry = Registry::new()
///     .run("fetch", fetch)
///     .make("cut", |cut: Cut| cut)
///     .route("by_size", |page: &Page| if page.text.len() < 5 { Size::Small } else { Size::Large });
///
/// let harness = Harness::<(), Page>::dynamic("pages")
///     .start("load")
///     .step("load", |define| {
///         let pairs = [("Small", end()), ("Large", to("shorten"))];
///         define.named(&registry, "fetch").route_named(&registry, "by_size", pairs)
///     })
///     .step("shorten", |define| {
///         define.named_with(&registry, "cut", &serde_json::json!({"to": 4})).end()
///     })
///     .build()?;
/// # Ok::<(), harness::BuildError>(())
/// ```
pub struct Registry<C: Context, S: State> {
    pub(super) bodies: BTreeMap<String, Make<C, S>>,
    pub(super) routes: BTreeMap<String, NamedRoute<S>>,
}

/// A body, shared by every step that names it.
pub(super) type Body<C, S> = Arc<dyn Fn(View<S>, Cx<C>) -> BoxFuture<StepResult<S>> + Send + Sync>;

/// Makes a body from its parameters.
type Make<C, S> = Box<dyn Fn(&Value) -> Result<Body<C, S>, String> + Send + Sync>;

pub(super) struct NamedRoute<S> {
    pub(super) signals: &'static str,
    pub(super) all: Vec<&'static str>,
    pub(super) route: Arc<dyn Fn(&S) -> usize + Send + Sync>,
}

/// The result of looking up a name.
pub(super) enum Lookup<C: Context, S: State> {
    Found(Body<C, S>),
    Unknown,
    /// The parameters are invalid. Holds the reason.
    Refused(String),
}

impl<C: Context, S: State> Registry<C, S> {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self { bodies: BTreeMap::new(), routes: BTreeMap::new() }
    }

    /// Registers a function as a body, as [`define.run(..)`](crate::Define::run) takes it. It has
    /// no parameters.
    #[must_use = "it returns the registry with the body"]
    pub fn run<F, Fut>(self, name: impl Into<String>, body: F) -> Self
    where
        F: Fn(View<S>, Cx<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = StepResult<S>> + Send + 'static,
    {
        self.fixed(name.into(), Arc::new(move |state, cx| Box::pin(body(state, cx))))
    }

    /// Registers a handler as a body. It has no parameters.
    #[must_use = "it returns the registry with the body"]
    pub fn handler(self, name: impl Into<String>, handler: impl Handler<C, S>) -> Self {
        self.fixed(name.into(), body_of(handler))
    }

    /// Registers a body that is made from the parameters of each step that names it. Parameters
    /// that do not decode as `P` are a violation. A step without parameters passes an empty object.
    #[must_use = "it returns the registry with the body"]
    pub fn make<P: DeserializeOwned, H: Handler<C, S>>(
        mut self,
        name: impl Into<String>,
        make: impl Fn(P) -> H + Send + Sync + 'static,
    ) -> Self {
        let make = move |parameters: &Value| {
            let parameters = match parameters {
                Value::Null => Value::Object(serde_json::Map::new()),
                given => given.clone(),
            };
            match serde_json::from_value(parameters) {
                Ok(parameters) => Ok(body_of(make(parameters))),
                Err(error) => Err(error.to_string()),
            }
        };
        self.bodies.insert(name.into(), Box::new(make));
        self
    }

    /// Registers a route, as `.route(..)` of a step takes it.
    #[must_use = "it returns the registry with the route"]
    pub fn route<Sig: Signal>(
        mut self,
        name: impl Into<String>,
        route: impl Fn(&S) -> Sig + Send + Sync + 'static,
    ) -> Self {
        let all = Sig::ALL.iter().map(|signal| signal.name()).collect();
        let route = Arc::from(super::step::indexed(route));
        self.routes.insert(name.into(), NamedRoute { signals: Sig::NAME, all, route });
        self
    }

    fn fixed(mut self, name: String, body: Body<C, S>) -> Self {
        let make = move |parameters: &Value| match parameters {
            Value::Null => Ok(Arc::clone(&body)),
            Value::Object(none) if none.is_empty() => Ok(Arc::clone(&body)),
            _ => Err("it has no parameters".to_owned()),
        };
        self.bodies.insert(name, Box::new(make));
        self
    }

    pub(super) fn body(&self, name: &str, parameters: &Value) -> Lookup<C, S> {
        match self.bodies.get(name).map(|make| make(parameters)) {
            Some(Ok(body)) => Lookup::Found(body),
            Some(Err(why)) => Lookup::Refused(why),
            None => Lookup::Unknown,
        }
    }
}

fn body_of<C: Context, S: State>(handler: impl Handler<C, S>) -> Body<C, S> {
    let handler = Arc::new(handler);
    Arc::new(move |state, cx| {
        let handler = Arc::clone(&handler);
        Box::pin(async move { handler.run(state, cx).await })
    })
}

impl<C: Context, S: State> Default for Registry<C, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Context, S: State> fmt::Debug for Registry<C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("bodies", &self.bodies.keys())
            .field("routes", &self.routes.keys())
            .finish()
    }
}
