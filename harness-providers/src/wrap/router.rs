//! A model for each request.

use harness::async_trait;
use harness::llm::{
    CallCx, Caps, Content, Effort, Entry, Llm, LlmError, LlmErrorKind, ModelId, Part, Reply,
    Request, ToolChoice, Turn,
};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Picks a model for each request: with a function, or the first that can do what it needs.
///
/// ```
/// use harness::llm::Scripted;
/// use harness_providers::wrap::Router;
///
/// # let (small, large) = (Scripted::new(["a"]), Scripted::new(["b"]));
/// let by_length = Router::new(|request| match request.transcript.len() {
///     0..20 => "small",
///     _ => "large",
/// })
/// .with("small", small.clone())
/// .with("large", large.clone());
///
/// // The first model that reads images, calls tools or follows a schema, if the request has them.
/// let by_caps = Router::by_caps().with("small", small).with("large", large);
/// # let _ = (by_length, by_caps);
/// ```
///
/// [`Reply::model`] names the model that replied; the [id](Llm::id) is that of the first.
#[derive(Clone)]
pub struct Router {
    models: Vec<(String, Arc<dyn Llm>)>,
    pick: Pick,
}

#[derive(Clone)]
enum Pick {
    Caps,
    Function(Arc<dyn Fn(Request<'_>) -> Cow<'static, str> + Send + Sync>),
}

impl Router {
    /// Creates a router without models. `pick` returns the name of the model for a request.
    pub fn new<N: Into<Cow<'static, str>>>(
        pick: impl Fn(Request<'_>) -> N + Send + Sync + 'static,
    ) -> Self {
        let pick = Pick::Function(Arc::new(move |request| pick(request).into()));
        Self { models: Vec::new(), pick }
    }

    /// Creates a router without models, which picks the first model whose [`Caps`] have what a request
    /// needs.
    pub fn by_caps() -> Self {
        Self { models: Vec::new(), pick: Pick::Caps }
    }

    /// Adds a model.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, model: impl Llm) -> Self {
        self.models.push((name.into(), Arc::new(model)));
        self
    }

    fn picked(&self, request: Request<'_>) -> Result<&Arc<dyn Llm>, LlmError> {
        match &self.pick {
            Pick::Function(pick) => {
                let name = pick(request);
                let named = self.models.iter().find(|(known, _)| *known == name);
                named.map(|(_, model)| model).ok_or_else(|| {
                    let known: Vec<_> =
                        self.models.iter().map(|(name, _)| format!("`{name}`")).collect();
                    LlmError::new(LlmErrorKind::InvalidRequest)
                        .with_detail(format!(
                            "the router has no model `{name}`, but {}",
                            known.join(", ")
                        ))
                        .with_remedy("add it with `Router::with`")
                })
            }
            Pick::Caps => {
                let needed = needs(request);
                let able = self.models.iter().find(|(_, m)| m.caps().missing(needed).is_empty());
                able.map(|(_, model)| model).ok_or_else(|| {
                    let lacks: Vec<_> = self
                        .models
                        .iter()
                        .map(|(name, m)| {
                            format!("`{name}` lacks {}", m.caps().missing(needed).join(", "))
                        })
                        .collect();
                    LlmError::new(LlmErrorKind::Unsupported).with_detail(format!(
                        "no model of the router can do it: {}",
                        lacks.join("; ")
                    ))
                })
            }
        }
    }
}

/// What a model has to be able to do for a request.
fn needs(request: Request<'_>) -> Caps {
    let mut needed = Caps::default()
        .tools(!request.tools.is_empty())
        .tool_choice(
            !request.tools.is_empty()
                && matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Tool(_)),
        )
        .structured_output(request.schema.is_some())
        .reasoning(request.effort.is_some_and(|effort| effort != Effort::Off));
    let mut read = |content: &Content| {
        for part in content.iter() {
            needed.images |= matches!(part, Part::Image(_));
            needed.documents |= matches!(part, Part::Document(_));
        }
    };
    for entry in request.transcript.entries() {
        match entry {
            Entry::User(content) => read(content),
            Entry::Assistant(turn) => outcomes(turn).for_each(|content| read(&content)),
            _ => {}
        }
    }
    needed
}

fn outcomes(turn: &Turn) -> impl Iterator<Item = Cow<'_, Content>> {
    turn.blocks.iter().filter_map(|block| match block {
        harness::llm::Block::Call { outcome: Some(outcome), .. } => Some(outcome.content()),
        _ => None,
    })
}

#[async_trait]
impl Llm for Router {
    fn id(&self) -> ModelId {
        self.models.first().map_or_else(|| ModelId::new("router", ""), |(_, model)| model.id())
    }

    /// With a function, what all of the models can do; by caps, what one of them can do.
    fn caps(&self) -> Caps {
        let all = self.models.iter().map(|(_, model)| model.caps());
        match self.pick {
            Pick::Caps => all.reduce(Caps::or),
            Pick::Function(_) => all.reduce(Caps::and),
        }
        .unwrap_or_default()
    }

    /// # Errors
    ///
    /// [`LlmErrorKind::InvalidRequest`] if there is no model of the name, and
    /// [`LlmErrorKind::Unsupported`] if none can do what the request needs. Nothing was sent then.
    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        self.picked(request)?.complete(request, cx).await
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.models.iter().map(|(name, _)| name).collect();
        f.debug_struct("Router").field("models", &names).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
