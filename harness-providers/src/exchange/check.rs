//! What the tests of the decoders share.

use super::Decode;
use crate::bill::Bill;
use crate::price::Prices;
use bytes::Bytes;
use futures_core::Stream;
use futures_util::stream;
use harness::llm::{CallCx, Delta, LlmError, ModelId, Reply};

/// The ends of lines of server-sent events.
pub(crate) const SSE: [&str; 3] = ["\n", "\r\n", "\r"];

/// The ends of lines of JSON.
#[cfg(feature = "ollama")]
pub(crate) const LINES: [&str; 2] = ["\n", "\r\n"];

type Body = stream::Iter<std::vec::IntoIter<Result<Bytes, LlmError>>>;

/// The reply of a body that arrives in these parts.
pub(crate) async fn streamed<S: Stream<Item = Result<String, LlmError>> + Send>(
    frames: impl FnOnce(Body, ModelId) -> S,
    asked: ModelId,
    decoder: impl Decode,
    parts: Vec<&[u8]>,
) -> Result<Reply, LlmError> {
    let parts: Vec<_> = parts.into_iter().map(|part| Ok(Bytes::copy_from_slice(part))).collect();
    let (cx, prices) = (CallCx::detached(), Prices::new());
    let mut bill = Bill::new(&cx, &prices, asked.model());
    let events = frames(stream::iter(parts), asked.clone());
    super::reply(asked.clone(), events, decoder, &cx, &mut bill).await
}

/// Splits a body at each byte, and into all of them.
pub(crate) async fn same_however_cut(
    body: &str,
    endings: &[&str],
    expected: &Reply,
    streamed: impl AsyncFn(Vec<&[u8]>) -> Result<Reply, LlmError>,
) {
    for ending in endings {
        let body = body.replace('\n', ending);
        let bytes = body.as_bytes();
        assert_eq!(streamed(vec![bytes]).await.unwrap(), *expected, "{ending:?}");
        assert_eq!(streamed(bytes.chunks(1).collect()).await.unwrap(), *expected, "{ending:?}");
        for at in 0..=bytes.len() {
            let (first, second) = bytes.split_at(at);
            let reply = streamed(vec![first, second]).await;
            assert_eq!(reply.unwrap(), *expected, "cut at {at}, {ending:?}");
        }
    }
}

/// The reply of a body in one piece.
pub(crate) fn whole(asked: ModelId, parts: Vec<Delta>, cx: &CallCx) -> Result<Reply, LlmError> {
    let prices = Prices::new();
    let mut bill = Bill::new(cx, &prices, asked.model());
    super::whole(asked.clone(), parts, &mut bill)
}
