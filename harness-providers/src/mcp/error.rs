//! Why a server cannot be used.

use std::io;
use std::time::Duration;

/// An MCP server cannot be used. The message has no header, no argument, no variable of the
/// environment and no text of the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MCP server `{server}`: {kind}")]
pub struct McpError {
    server: String,
    kind: McpErrorKind,
}

impl McpError {
    pub(super) fn new(server: &str, kind: McpErrorKind) -> Self {
        Self { server: server.to_owned(), kind }
    }

    /// The name of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The cause.
    pub fn kind(&self) -> &McpErrorKind {
        &self.kind
    }
}

/// Why an MCP server cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpErrorKind {
    /// The name is not legal.
    #[error(
        "the name is not legal (use 1 to 24 of `a-z`, `A-Z`, `0-9` and `-`, the first of them no digit and no `-`)"
    )]
    BadName,
    /// Two servers of a client have this name.
    #[error("two servers have this name (rename one)")]
    SameName,
    /// The URL is none, or its scheme is neither `http` nor `https`.
    #[error("its URL is not valid (use an absolute `http` or `https` URL)")]
    BadUrl,
    /// A header cannot be sent.
    #[error("the header `{name}` cannot be sent (check its name and its value)")]
    BadHeader {
        /// The name of the header.
        name: String,
    },
    /// The command cannot be started.
    #[error("its command cannot be started: {kind} (check the command and `PATH`)")]
    Spawn {
        /// Why the system does not start it.
        kind: io::ErrorKind,
    },
    /// There is no connection. Nothing was sent.
    #[error("there is no connection to it (check that it runs)")]
    Unreachable,
    /// The server wants other credentials.
    #[error("it does not accept the credentials (check the headers)")]
    Unauthorized,
    /// It ended or closed the connection before it answered.
    #[error("it ended before it answered (run its command by hand, or show its errors)")]
    Ended,
    /// It answered with an error.
    #[error("it answered with error {code}")]
    Rejected {
        /// The code of the JSON-RPC error.
        code: i32,
    },
    /// It does not speak the protocol, or no version of it that is known here.
    #[error("it does not speak a known version of MCP (check the command or the URL)")]
    Protocol,
    /// It did not answer in time.
    #[error("it did not answer within {limit:?}")]
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// It lists more tools or pages than the limit, or a page again.
    #[error("it lists more than {most} tools, or its pages do not end (raise `Limits::tools`)")]
    TooManyTools {
        /// The limit.
        most: usize,
    },
    /// The client was dropped or closed.
    #[error("its client is closed (keep the `Client` for as long as its tools are called)")]
    Closed,
}
