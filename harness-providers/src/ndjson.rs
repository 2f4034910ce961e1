//! Lines of JSON.

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use futures_util::StreamExt;
use harness::llm::{LlmError, ModelId};
use serde::de::IgnoredAny;
use std::pin::Pin;

use crate::failure::bad_reply;

/// The lines of a body, without blank ones. What follows the last end of a line counts if it is JSON:
/// otherwise the body has ended in the middle of it. The transport limits how long they are together.
pub(crate) fn lines(
    body: impl Stream<Item = Result<Bytes, LlmError>> + Send,
    model: ModelId,
) -> impl Stream<Item = Result<String, LlmError>> + Send {
    let state = Lines { body: Box::pin(body), rest: BytesMut::new(), seen: 0, ended: false };
    futures_util::stream::unfold((state, model), |(mut lines, model)| async move {
        loop {
            let line = match lines.next().await {
                None => return None,
                Some(Err(error)) => return Some((Err(error), (lines, model))),
                Some(Ok(line)) => line,
            };
            match std::str::from_utf8(&line).map(str::trim) {
                Ok("") => {}
                Ok(line) => return Some((Ok(line.to_owned()), (lines, model))),
                Err(_) => {
                    return Some((Err(bad_reply(&model, "a line is not UTF-8")), (lines, model)));
                }
            }
        }
    })
}

struct Lines<S> {
    body: Pin<Box<S>>,
    rest: BytesMut,
    /// How much of the rest has no end of a line.
    seen: usize,
    ended: bool,
}

impl<S: Stream<Item = Result<Bytes, LlmError>>> Lines<S> {
    async fn next(&mut self) -> Option<Result<BytesMut, LlmError>> {
        loop {
            if let Some(end) = self.rest[self.seen..].iter().position(|byte| *byte == b'\n') {
                let line = self.rest.split_to(self.seen + end + 1);
                self.seen = 0;
                return Some(Ok(line));
            }
            self.seen = self.rest.len();
            if self.ended {
                self.seen = 0;
                let rest = self.rest.split();
                let is_whole = serde_json::from_slice::<IgnoredAny>(&rest).is_ok();
                return is_whole.then_some(Ok(rest));
            }
            match self.body.next().await {
                None => self.ended = true,
                Some(Ok(bytes)) => self.rest.extend_from_slice(&bytes),
                Some(Err(error)) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::llm::LlmErrorKind;

    async fn read(parts: Vec<&[u8]>) -> Vec<Result<String, LlmErrorKind>> {
        let parts: Vec<_> =
            parts.into_iter().map(|part| Ok(Bytes::copy_from_slice(part))).collect();
        lines(futures_util::stream::iter(parts), ModelId::new("p", "m"))
            .map(|line| line.map_err(|error| error.kind()))
            .collect()
            .await
    }

    #[tokio::test]
    async fn lines_are_the_same_however_they_are_cut() {
        for ending in ["\n", "\r\n"] {
            let text = ["{\"a\": \"grüß 🦀\"}", "", "no JSON", "[1]"].join(ending);
            let expected =
                ["{\"a\": \"grüß 🦀\"}", "no JSON", "[1]"].map(|line| Ok(line.to_owned()));
            let bytes = text.as_bytes();
            assert_eq!(read(bytes.chunks(1).collect()).await, expected);
            for at in 0..=bytes.len() {
                let (first, second) = bytes.split_at(at);
                assert_eq!(read(vec![first, second]).await, expected, "cut at {at}");
            }
        }
        assert!(read(vec![b"\n\n"]).await.is_empty());
        assert_eq!(read(vec![b"{}\n{\"a\": \xf0\x9f"]).await, [Ok("{}".to_owned())]);
    }

    #[tokio::test]
    async fn a_line_that_is_not_utf_8_is_a_bad_reply() {
        assert_eq!(read(vec![b"\xff\n"]).await, [Err(LlmErrorKind::BadReply)]);
    }
}
