//! What the suite has to know of a vendor.

use std::sync::Arc;

use serde_json::Value;

use crate::llm::{Delta, Llm, LlmErrorKind, Reply, StopReason, Usage};

/// How a vendor's server speaks, in the way of an adapter that is to be checked.
///
/// [`AdapterContract`](super::AdapterContract) and [`WireServer`](super::WireServer) speak through it. It is
/// the adapter read backwards: where the adapter decodes the vendor's bytes into the parts of a
/// reply, the wire writes parts as those bytes, by the vendor's published reference and not by the
/// adapter's code.
pub trait Wire: Send + Sync + 'static {
    /// The adapter, which sends its requests to `url` with the credential `key`.
    fn adapter(&self, url: &str, key: &str) -> Arc<dyn Llm>;

    /// The name of the protocol, for opaque blocks and options.
    fn protocol(&self) -> &'static str;

    /// The body of a reply in one piece.
    fn whole(&self, reply: &Reply) -> String;

    /// The body of a reply in parts, in pieces that a server writes one by one. The reply is
    /// complete with the last piece, and not before.
    ///
    /// Calls interleave. A wire that has whole calls only writes each where it ends.
    fn frames(&self, parts: &[Delta]) -> Vec<String>;

    /// What a request gets that the vendor rejects: status and body. `None` if the vendor accepts
    /// it.
    fn rejects(&self, request: &WireRequest) -> Option<(u16, String)>;

    /// How the vendor reports an error: status and body, with `message` in its text. `None` if it
    /// has no such error.
    fn error(&self, kind: LlmErrorKind, message: &str) -> Option<(u16, String)>;

    /// How the vendor reports an error inside a reply in parts. `None` if it does not.
    fn error_frame(&self, kind: LlmErrorKind, message: &str) -> Option<String> {
        let _ = (kind, message);
        None
    }

    /// Whether a request asks for a reply in parts.
    fn streams(&self, request: &WireRequest) -> bool {
        request.body["stream"] == true
    }

    /// The content type of a reply in parts.
    fn media_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// Whether the vendor reports this reason to stop.
    fn has_stop(&self, reason: &StopReason) -> bool {
        let _ = reason;
        true
    }

    /// The kinds of usage that the vendor reports, of these.
    fn reported(&self, usage: Usage) -> Usage {
        usage
    }

    /// Whether the arguments of a call are text, which can be malformed.
    fn has_text_arguments(&self) -> bool {
        true
    }

    /// The data of an opaque block as the adapter stores it, with `mark` in a part that goes back.
    /// `None` if the protocol has no opaque blocks.
    fn opaque(&self, mark: &str) -> Option<Value> {
        let _ = mark;
        None
    }
}

/// A request that the server has received.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WireRequest {
    /// The path with its query.
    pub path: String,
    /// The headers. Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}

impl WireRequest {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(header, _)| header == name);
        found.next().map(|(_, value)| value.as_str())
    }
}

/// A wire behind a pointer is a wire.
impl Wire for Box<dyn Wire> {
    fn adapter(&self, url: &str, key: &str) -> Arc<dyn Llm> {
        (**self).adapter(url, key)
    }

    fn protocol(&self) -> &'static str {
        (**self).protocol()
    }

    fn whole(&self, reply: &Reply) -> String {
        (**self).whole(reply)
    }

    fn frames(&self, parts: &[Delta]) -> Vec<String> {
        (**self).frames(parts)
    }

    fn rejects(&self, request: &WireRequest) -> Option<(u16, String)> {
        (**self).rejects(request)
    }

    fn error(&self, kind: LlmErrorKind, message: &str) -> Option<(u16, String)> {
        (**self).error(kind, message)
    }

    fn error_frame(&self, kind: LlmErrorKind, message: &str) -> Option<String> {
        (**self).error_frame(kind, message)
    }

    fn streams(&self, request: &WireRequest) -> bool {
        (**self).streams(request)
    }

    fn media_type(&self) -> &'static str {
        (**self).media_type()
    }

    fn has_stop(&self, reason: &StopReason) -> bool {
        (**self).has_stop(reason)
    }

    fn reported(&self, usage: Usage) -> Usage {
        (**self).reported(usage)
    }

    fn has_text_arguments(&self) -> bool {
        (**self).has_text_arguments()
    }

    fn opaque(&self, mark: &str) -> Option<Value> {
        (**self).opaque(mark)
    }
}
