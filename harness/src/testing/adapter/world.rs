//! What a clause has at hand.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use crate::llm::{
    CallCx, Delta, Llm, LlmError, Open, Reply, Request, StopReason, Tally, Transcript, Usage, user,
};

use super::server::{Play, Server, folded};
use super::wire::Wire;
pub(super) use crate::testing::stop::{Kept, Stop};

/// The credential of the adapter. No error may show it.
pub(super) const KEY: &str = "sk-canary-credential";
/// Part of every request. No error may show it.
pub(super) const PROMPT: &str = "the canary prompt";

/// How long a server waits for what must happen at once.
pub(super) const SOON: Duration = Duration::from_secs(5);

impl From<LlmError> for Stop {
    fn from(error: LlmError) -> Self {
        Self::Broken(format!("unexpected error: {error}"))
    }
}

impl From<Open> for Stop {
    fn from(error: Open) -> Self {
        Self::Broken(format!("a call has no outcome: {error}"))
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Skipped(format!("the server of the suite cannot run: {error}"))
    }
}

#[derive(Clone)]
pub(super) struct World {
    pub(super) wire: Arc<dyn Wire>,
}

/// A server with an adapter that sends to it.
pub(super) struct Setup {
    pub(super) server: Server,
    pub(super) model: Arc<dyn Llm>,
}

impl World {
    pub(super) async fn setup(&self, plays: impl IntoIterator<Item = Play>) -> Kept<Setup> {
        let server = Server::of(self.wire.clone(), plays).await?;
        let model = self.wire.adapter(server.url(), KEY);
        Ok(Setup { server, model })
    }

    /// The reply that the parts are, with what the vendor reports of its usage.
    pub(super) fn expected(&self, parts: &[Delta]) -> Kept<Reply> {
        let reply = folded(parts.to_vec());
        let mut reply = reply.ok_or_else(|| Stop::Broken("the parts are no reply".into()))?;
        reply.usage = self.wire.reported(reply.usage);
        Ok(reply)
    }

    pub(super) fn stops(&self, reason: &StopReason) -> Kept {
        match self.wire.has_stop(reason) {
            true => Ok(()),
            false => Err(Stop::Skipped(format!("the vendor does not report {reason:?}"))),
        }
    }
}

impl Setup {
    /// One call without a listener.
    pub(super) async fn complete(&self) -> Kept<Result<Reply, LlmError>> {
        self.complete_with(&CallCx::detached()).await
    }

    pub(super) async fn complete_with(&self, cx: &CallCx) -> Kept<Result<Reply, LlmError>> {
        let talk = talk();
        Ok(self.model.complete(Request::new(talk.sealed()?), cx).await)
    }

    /// One call with a listener, and the parts that it heard.
    pub(super) async fn stream(&self) -> Kept<(Vec<Delta>, Result<Reply, LlmError>)> {
        let talk = talk();
        let mut stream = self.model.stream(Request::new(talk.sealed()?), &CallCx::detached());
        let mut heard = Vec::new();
        while let Some(part) = stream.next().await {
            match part {
                Ok(part) => heard.push(part),
                Err(error) => return Ok((heard, Err(error))),
            }
        }
        Ok((heard, stream.reply().await))
    }
}

/// Runs a call until the server has its request, and drops it. The result if the call ends first.
pub(super) async fn dropped_in_flight<T>(
    server: &Server,
    call: impl Future<Output = T>,
) -> Option<T> {
    match select(pin!(call), pin!(server.arrival())).await {
        Either::Left((result, _)) => Some(result),
        Either::Right(_) => None,
    }
}

/// The transcript of most clauses.
pub(super) fn talk() -> Transcript {
    Transcript::from_iter([user(PROMPT)])
}

/// A reply of these texts.
pub(super) fn texts(texts: &[&str]) -> Vec<Delta> {
    let texts = texts.iter().map(|text| Delta::Text((*text).to_owned()));
    texts.chain(end(StopReason::End)).collect()
}

/// The last parts of a reply.
pub(super) fn end(reason: StopReason) -> [Delta; 2] {
    [Delta::Usage(Usage::tokens(11, 5)), Delta::Stop(reason)]
}

pub(super) fn start(index: u64, id: &str, name: &str) -> Delta {
    Delta::CallStart { index, id: id.into(), name: name.into() }
}

pub(super) fn fragment(index: u64, text: &str) -> Delta {
    Delta::CallArguments { index, fragment: text.into() }
}

/// A call in parts: each character of its arguments alone.
pub(super) fn call(index: u64, id: &str, name: &str, arguments: &str) -> Vec<Delta> {
    let mut parts = vec![start(index, id, name)];
    parts.extend(arguments.chars().map(|c| fragment(index, c.encode_utf8(&mut [0; 4]))));
    parts.push(Delta::CallEnd { index });
    parts
}

/// The text of these parts.
pub(super) fn text_of(parts: &[Delta]) -> String {
    let text = |part: &Delta| match part {
        Delta::Text(text) => Some(text.clone()),
        _ => None,
    };
    parts.iter().filter_map(text).collect()
}

/// A context with its meter.
pub(super) fn metered() -> (CallCx, Arc<Tally>) {
    let tally = Arc::new(Tally::default());
    (CallCx::detached().with_meter(tally.clone()), tally)
}
