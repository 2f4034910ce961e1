//! A model call as a stream of parts.

use super::context::Streaming;
use super::{Accumulator, CallCx, Delta, Llm, LlmError, LlmErrorKind, ModelId, Reply, Request};
use futures_core::Stream;
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// A model call whose reply arrives in parts. [`Llm::stream`](super::Llm::stream) creates it.
///
/// Polling it advances the call, and dropping it drops the call. After an error it ends.
///
/// ```
/// use harness::llm::{CallCx, Delta, Llm, Request, Scripted, Transcript, user};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let model = Scripted::new(["hello"]);
/// let talk = Transcript::from_iter([user("hi")]);
/// let mut stream = model.stream(Request::new(talk.sealed()?), &CallCx::detached());
/// while let Some(delta) = stream.next().await {
///     if let Delta::Text(text) = delta? {
///         print!("{text}");
///     }
/// }
/// let reply = stream.reply().await?;
/// assert_eq!(reply.text().as_deref(), Some("hello"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a stream does nothing until it is polled"]
pub struct ReplyStream<'a> {
    call: Option<BoxFuture<'a, Result<Reply, LlmError>>>,
    heard: Heard,
    reply: Option<Reply>,
    error: Option<LlmError>,
}

/// The parts that the call has emitted, and that are not read.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<(VecDeque<Delta>, bool)>>);

impl Heard {
    fn lock(&self) -> MutexGuard<'_, (VecDeque<Delta>, bool)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, delta: Delta) {
        let mut heard = self.lock();
        heard.0.push_back(delta);
        heard.1 = true;
    }

    fn next(&self) -> Option<Delta> {
        self.lock().0.pop_front()
    }

    fn is_silent(&self) -> bool {
        !self.lock().1
    }
}

impl<'a> ReplyStream<'a> {
    pub(super) fn of<L: Llm + ?Sized>(model: &'a L, request: Request<'a>, cx: &CallCx) -> Self {
        let streaming = Streaming::of(model);
        if cx.streaming() == Some(streaming) {
            // `complete` of the model calls its `stream`, which is made of `complete`.
            let error = LlmError::new(LlmErrorKind::Unsupported)
                .with_model(model.id())
                .with_detail("its `complete` calls its `stream`, which calls `complete`")
                .with_remedy("in `complete`, emit the parts with `CallCx::emit`");
            return Self { call: None, heard: Heard::default(), reply: None, error: Some(error) };
        }
        let heard = Heard::default();
        let (into, outer) = (heard.clone(), cx.clone());
        let cx = cx.clone().with_streaming(streaming).with_listener(move |delta| {
            outer.emit(delta);
            into.push(delta.clone());
        });
        let call = Box::pin(async move { model.complete(request, &cx).await });
        Self { call: Some(call), heard, reply: None, error: None }
    }

    /// The next part. `None` after the last one.
    ///
    /// # Errors
    ///
    /// The error of the call.
    pub async fn next(&mut self) -> Option<Result<Delta, LlmError>> {
        std::future::poll_fn(|task| Pin::new(&mut *self).poll_next(task)).await
    }

    /// Waits for the complete reply, and skips the parts that are not read.
    ///
    /// # Errors
    ///
    /// The error of the call. [`LlmErrorKind::Stream`] if the stream has returned it before.
    pub async fn reply(mut self) -> Result<Reply, LlmError> {
        while let Some(delta) = self.next().await {
            delta?;
        }
        let over =
            || LlmError::new(LlmErrorKind::Stream).with_detail("the stream has returned its error");
        self.reply.ok_or_else(over)
    }
}

impl Stream for ReplyStream<'_> {
    type Item = Result<Delta, LlmError>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // What was heard is read before the call advances, so the queue stays short.
        if let Some(delta) = self.heard.next() {
            return Poll::Ready(Some(Ok(delta)));
        }
        if let Some(call) = &mut self.call
            && let Poll::Ready(ended) = call.as_mut().poll(task)
        {
            self.call = None;
            match ended {
                Ok(reply) => {
                    if self.heard.is_silent() {
                        Delta::of(&reply).into_iter().for_each(|delta| self.heard.push(delta));
                    }
                    self.reply = Some(reply);
                }
                Err(error) => self.error = Some(error),
            }
        }
        if let Some(delta) = self.heard.next() {
            return Poll::Ready(Some(Ok(delta)));
        }
        match self.call {
            Some(_) => Poll::Pending,
            None => Poll::Ready(self.error.take().map(Err)),
        }
    }
}

impl fmt::Debug for ReplyStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyStream").field("ended", &self.call.is_none()).finish_non_exhaustive()
    }
}

impl Reply {
    /// Folds a stream of parts into the reply of the model `asked`, and emits each part to the
    /// listener of `cx`: [`Llm::complete`](super::Llm::complete) for an adapter that streams.
    ///
    /// # Errors
    ///
    /// The first error of the stream, and those of [`Accumulator`].
    pub async fn collect(
        asked: ModelId,
        deltas: impl Stream<Item = Result<Delta, LlmError>> + Send,
        cx: &CallCx,
    ) -> Result<Self, LlmError> {
        let mut deltas = pin!(deltas);
        let mut parts = Accumulator::new(asked);
        while let Some(delta) = std::future::poll_fn(|task| deltas.as_mut().poll_next(task)).await {
            let delta = delta?;
            cx.emit(&delta);
            parts.push(delta)?;
        }
        parts.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::{ModelId, Scripted, StopReason, Transcript, user};

    /// Emits parts, and waits between them.
    struct Slow;

    #[async_trait::async_trait]
    impl Llm for Slow {
        fn id(&self) -> ModelId {
            ModelId::new("test", "slow")
        }

        async fn complete(&self, _: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
            let parts = ["a", "b", "c"].map(|text| Delta::Text(text.into()));
            let parts = parts.into_iter().chain([Delta::Stop(StopReason::End)]);
            let deltas = futures_util::stream::unfold(parts, |mut parts| async move {
                tokio::task::yield_now().await;
                Some((Ok(parts.next()?), parts))
            });
            Reply::collect(self.id(), deltas, cx).await
        }
    }

    /// Calls its own `stream`, which does not exist.
    struct Confused;

    #[async_trait::async_trait]
    impl Llm for Confused {
        fn id(&self) -> ModelId {
            ModelId::new("test", "confused")
        }

        async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
            self.stream(request, cx).reply().await
        }
    }

    /// Is another model, with the streaming of the other.
    struct Wrapper<L>(L);

    #[async_trait::async_trait]
    impl<L: Llm> Llm for Wrapper<L> {
        fn id(&self) -> ModelId {
            self.0.id()
        }

        async fn complete(&self, request: Request<'_>, cx: &CallCx) -> Result<Reply, LlmError> {
            self.0.stream(request, cx).reply().await
        }
    }

    async fn parts(model: &dyn Llm) -> (Vec<Delta>, Result<Reply, LlmError>) {
        let talk = Transcript::from_iter([user("hi")]);
        let request = Request::new(talk.sealed().unwrap());
        let mut stream = model.stream(request, &CallCx::detached());
        let mut parts = Vec::new();
        while let Some(delta) = stream.next().await {
            match delta {
                Ok(delta) => parts.push(delta),
                Err(error) => return (parts, Err(error)),
            }
        }
        (parts, stream.reply().await)
    }

    #[tokio::test]
    async fn parts_arrive_as_they_are_emitted_through_pointers_and_wrappers() {
        let models: [Box<dyn Llm>; 3] =
            [Box::new(Slow), Box::new(Wrapper(Slow)), Box::new(Wrapper(Wrapper(Arc::new(Slow))))];
        for model in models {
            let (parts, reply) = parts(&model).await;
            assert_eq!(parts.len(), 4);
            assert_eq!(parts[1], Delta::Text("b".into()));
            assert_eq!(reply.unwrap().text().as_deref(), Some("abc"));
        }
    }

    #[tokio::test]
    async fn a_reply_is_read_in_parts_as_they_come() {
        let talk = Transcript::from_iter([user("hi")]);
        let mut stream = Slow.stream(Request::new(talk.sealed().unwrap()), &CallCx::detached());
        assert_eq!(stream.next().await.unwrap().unwrap(), Delta::Text("a".into()));
        assert!(stream.call.is_some(), "the call is not over");
    }

    #[tokio::test]
    async fn a_model_that_does_not_stream_has_its_reply_in_parts() {
        let (parts, reply) = parts(&Wrapper(Scripted::new(["hello"]))).await;
        assert_eq!(parts[0], Delta::Text("hello".into()));
        assert_eq!(reply.unwrap().text().as_deref(), Some("hello"));
    }

    #[tokio::test]
    async fn a_model_made_of_its_own_stream_fails_and_does_not_recurse() {
        let (parts, reply) = parts(&Confused).await;
        assert!(parts.is_empty());
        insta::assert_snapshot!(
            reply.unwrap_err(),
            @"model `test/confused` does not support the request: its `complete` calls its `stream`, which calls `complete` (in `complete`, emit the parts with `CallCx::emit`)"
        );
        let talk = Transcript::from_iter([user("hi")]);
        let request = Request::new(talk.sealed().unwrap());
        let error = Confused.complete(request, &CallCx::detached()).await.unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::Unsupported);
    }

    #[tokio::test]
    async fn an_error_ends_the_stream() {
        let model = Scripted::new([LlmError::new(LlmErrorKind::Overloaded)]);
        let talk = Transcript::from_iter([user("hi")]);
        let mut stream = model.stream(Request::new(talk.sealed().unwrap()), &CallCx::detached());
        assert!(stream.next().await.unwrap().is_err());
        assert!(stream.next().await.is_none());
        assert_eq!(stream.reply().await.unwrap_err().kind(), LlmErrorKind::Stream);
    }
}
