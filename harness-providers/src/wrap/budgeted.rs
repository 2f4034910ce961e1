//! A budget of a model.

use super::locked;
use super::observe::metered;
use harness::async_trait;
use harness::llm::{
    Advice, CallCx, Caps, Llm, LlmError, LlmErrorKind, ModelId, Reply, Request, Spend,
};
use std::sync::{Arc, Mutex};

/// Calls a model until its tokens or its cost reach a limit, over all calls of this value.
///
/// ```
/// use harness::llm::Scripted;
/// use harness_providers::wrap::Budgeted;
///
/// # let model = Scripted::new(["a"]);
/// // A million tokens or five dollars.
/// let model = Budgeted::new(model).tokens(1_000_000).cost_micros(5_000_000);
/// assert_eq!(model.spent().cost_micros, None);
/// ```
///
/// The usage of a call is known when it ends, so the call that reaches the limit, and calls that are under way
/// then, are completed. Later ones fail and nothing is sent. A limit on cost needs the
/// [prices](crate::Prices) of the model: after an exchange whose cost is unknown, calls fail too.
///
/// A run has a budget of its own. This one is for a model that several runs share.
#[derive(Debug)]
pub struct Budgeted<L> {
    model: L,
    tokens: Option<u64>,
    cost_micros: Option<u64>,
    spent: Arc<Mutex<Spent>>,
}

#[derive(Debug, Default)]
struct Spent {
    spend: Spend,
    /// Whether there was an exchange with usage and without a cost.
    unpriced: bool,
}

impl<L: Llm> Budgeted<L> {
    /// Creates a model without limits.
    pub fn new(model: L) -> Self {
        Self { model, tokens: None, cost_micros: None, spent: Arc::default() }
    }

    /// Sets the limit of input and output tokens.
    #[must_use]
    pub fn tokens(mut self, limit: u64) -> Self {
        self.tokens = Some(limit);
        self
    }

    /// Sets the limit of the cost, in millionths of a US dollar.
    #[must_use]
    pub fn cost_micros(mut self, limit: u64) -> Self {
        self.cost_micros = Some(limit);
        self
    }

    /// What all calls have spent so far.
    pub fn spent(&self) -> Spend {
        locked(&self.spent).spend
    }

    /// Why no call can be made, with the remedy.
    fn used_up(&self) -> Option<(String, &'static str)> {
        const RAISE: &str = "raise the limit of `Budgeted`, or use another model";
        let spent = locked(&self.spent);
        let tokens = spent.spend.usage.total().unwrap_or(0);
        if let Some(limit) = self.tokens.filter(|limit| tokens >= *limit) {
            return Some((format!("{tokens} of {limit} tokens are spent"), RAISE));
        }
        let limit = self.cost_micros?;
        let cost = spent.spend.cost_micros.unwrap_or(0);
        if cost >= limit {
            let detail = format!("{cost} of {limit} millionths of a dollar are spent");
            return Some((detail, RAISE));
        }
        let remedy = "set the prices of the model, or limit its tokens";
        spent.unpriced.then(|| ("the cost of an earlier call is unknown".to_owned(), remedy))
    }
}

#[async_trait]
impl<L: Llm> Llm for Budgeted<L> {
    fn id(&self) -> ModelId {
        self.model.id()
    }

    fn caps(&self) -> Caps {
        self.model.caps()
    }

    /// # Errors
    ///
    /// [`LlmErrorKind::Budget`] if a limit is reached. Another model may be asked then.
    async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
        if let Some((detail, remedy)) = self.used_up() {
            return Err(LlmError::new(LlmErrorKind::Budget)
                .with_model(self.id())
                .with_detail(detail)
                .with_remedy(remedy)
                .with_advice(Advice::give_up().elsewhere(true)));
        }
        let spent = Arc::clone(&self.spent);
        let count = move |spend: &Spend| {
            let mut spent = locked(&spent);
            spent.spend += *spend;
            let used = spend.usage.total().is_some_and(|tokens| tokens > 0);
            spent.unpriced |= used && spend.cost_micros.is_none();
        };
        metered(&self.model, request, cx, count).await
    }
}

#[cfg(test)]
mod tests;
