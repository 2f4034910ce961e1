//! How to reach a server.

use super::progress::Progress;
use crate::Secret;
use harness::llm::EffectClass;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A server that runs as a child process and speaks over its standard input and output.
///
/// Of the environment it gets only `PATH`, `HOME` and a few others that programs need to start, unless
/// [`inherit_env`](Self::inherit_env) says more.
///
/// ```
/// use harness_providers::mcp::Stdio;
///
/// let files = Stdio::new("npx").args(["-y", "@example/files", "/srv/data"]).env("TOKEN", "t-123");
/// assert!(!format!("{files:?}").contains("t-123"));
/// ```
#[derive(Clone)]
pub struct Stdio {
    pub(super) command: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(String, Secret)>,
    pub(super) inherit: bool,
    pub(super) dir: Option<PathBuf>,
    pub(super) errors: bool,
}

impl Stdio {
    /// Creates it from a command, which is looked up in `PATH`.
    pub fn new(command: impl Into<OsString>) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            inherit: false,
            dir: None,
            errors: false,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Gives the server the whole environment of this process, with every key in it.
    #[must_use]
    pub fn inherit_env(mut self) -> Self {
        self.inherit = true;
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Lets the server write to the standard error of this process. By default that is dropped.
    #[must_use]
    pub fn show_errors(mut self) -> Self {
        self.errors = true;
        self
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let env: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        // An argument may be a key.
        f.debug_struct("Stdio")
            .field("command", &self.command)
            .field("args", &self.args.len())
            .field("env", &env)
            .finish_non_exhaustive()
    }
}

/// A server that is reached by streamable HTTP.
///
/// ```
/// use harness_providers::mcp::Http;
///
/// let search = Http::new("https://mcp.example.com/mcp").header("authorization", "Bearer t-123");
/// assert!(!format!("{search:?}").contains("t-123"));
/// ```
#[derive(Clone)]
pub struct Http {
    pub(super) url: String,
    pub(super) headers: Vec<(String, Secret)>,
    pub(super) client: Option<reqwest::Client>,
}

impl Http {
    /// Creates it from a URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: Vec::new(), client: None }
    }

    /// Adds a header to every request. It is not sent to where a redirect leads, because redirects are
    /// not followed.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends requests with this client, for a proxy or certificates of your own. Its rules for
    /// redirects apply.
    #[must_use]
    pub fn client(mut self, client: reqwest::Client) -> Self {
        self.client = Some(client);
        self
    }
}

/// Shows no URL, which may hold a key.
impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Http").field("headers", &headers).finish_non_exhaustive()
    }
}

/// What limits a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Until the server is started and has answered.
    pub connect: Duration,
    /// Until it has answered with a page of its list of tools.
    pub list: Duration,
    /// Between two signs of life during a call: its start, progress, its result.
    pub idle: Duration,
    /// A call, however much progress it reports.
    pub call: Duration,
    /// The most bytes of a result. The rest is cut.
    pub result_bytes: usize,
    /// The most tools.
    pub tools: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            list: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            call: Duration::from_secs(600),
            result_bytes: 1024 * 1024,
            tools: 1000,
        }
    }
}

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)+) => {
        impl Limits {
            $($(#[$doc])*
            #[must_use]
            pub fn $name(mut self, limit: $type) -> Self {
                self.$name = limit;
                self
            })+
        }
    };
}

limits! {
    /// Sets the limit of starting a server.
    connect: Duration;
    /// Sets the limit of a page of the list.
    list: Duration;
    /// Sets the limit between two signs of life during a call.
    idle: Duration;
    /// Sets the limit of a call.
    call: Duration;
    /// Sets the most bytes of a result.
    result_bytes: usize;
    /// Sets the most tools.
    tools: usize;
}

/// An MCP server, and how its tools are used.
///
/// ```
/// use harness::llm::EffectClass;
/// use harness_providers::mcp::{Limits, Server, Stdio};
/// use std::time::Duration;
///
/// let files = Server::stdio("files", Stdio::new("files-server"))
///     .effect("read_file", EffectClass::Read)
///     .limits(Limits::default().call(Duration::from_secs(120)));
/// # let _ = files;
/// ```
#[derive(Clone)]
pub struct Server {
    pub(super) name: String,
    pub(super) transport: Transport,
    pub(super) limits: Limits,
    pub(super) trusted: bool,
    pub(super) effects: BTreeMap<String, EffectClass>,
    pub(super) initialize: bool,
    pub(super) on_progress: Option<OnProgress>,
    pub(super) meta: Option<MetaOf>,
}

#[derive(Clone)]
pub(super) enum Transport {
    Stdio(Stdio),
    Http(Http),
}

pub(super) type OnProgress = Arc<dyn Fn(&Progress) + Send + Sync>;
pub(super) type MetaOf = Arc<dyn Fn() -> Map<String, Value> + Send + Sync>;

impl Server {
    /// A server in a child process. The name is part of the names of its tools: 1 to 24 of `a-z`, `A-Z`,
    /// `0-9` and `-`, beginning with one of `a-z` and `A-Z`.
    pub fn stdio(name: impl Into<String>, stdio: Stdio) -> Self {
        Self::new(name.into(), Transport::Stdio(stdio))
    }

    /// A server behind a URL. For the name see [`stdio`](Self::stdio).
    pub fn http(name: impl Into<String>, http: Http) -> Self {
        Self::new(name.into(), Transport::Http(http))
    }

    fn new(name: String, transport: Transport) -> Self {
        Self {
            name,
            transport,
            limits: Limits::default(),
            trusted: false,
            effects: BTreeMap::new(),
            initialize: false,
            on_progress: None,
            meta: None,
        }
    }

    /// Sets what limits it.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets what a tool does to the world, by its name at the server. This wins over every hint.
    #[must_use]
    pub fn effect(mut self, tool: impl Into<String>, effect: EffectClass) -> Self {
        self.effects.insert(tool.into(), effect);
        self
    }

    /// Believes the server when it says that a tool is harmless.
    ///
    /// | the server says | not trusted | trusted |
    /// |---|---|---|
    /// | `destructiveHint: true` | `Destructive` | `Destructive` |
    /// | `readOnlyHint: true` | `External` | `Read` |
    /// | `destructiveHint: false`, `idempotentHint: true`, `openWorldHint: false` | `External` | `Write` |
    /// | everything else, or nothing | `External` | `External` |
    #[must_use]
    pub fn trust_hints(mut self) -> Self {
        self.trusted = true;
        self
    }

    /// Begins with `initialize`, as versions before 2026-07-28 do, instead of asking for the newer way
    /// first. For an old server that does not answer requests it does not know.
    #[must_use]
    pub fn initialize_only(mut self) -> Self {
        self.initialize = true;
        self
    }

    /// Gets the progress of calls. It is called on a task of the connection, so it must not block.
    #[must_use]
    pub fn on_progress(mut self, listener: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(listener));
        self
    }

    /// Adds fields to the `_meta` of each call, such as `traceparent`, computed when the call is made.
    ///
    /// ```
    /// use harness_providers::mcp::{Http, Server};
    /// use serde_json::{Map, json};
    ///
    /// let server = Server::http("search", Http::new("https://mcp.example.com/mcp")).meta(|| {
    ///     let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    ///     Map::from_iter([("traceparent".to_owned(), json!(trace))])
    /// });
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn meta(mut self, fields: impl Fn() -> Map<String, Value> + Send + Sync + 'static) -> Self {
        self.meta = Some(Arc::new(fields));
        self
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Server");
        shown.field("name", &self.name);
        match &self.transport {
            Transport::Stdio(stdio) => shown.field("transport", stdio),
            Transport::Http(http) => shown.field("transport", http),
        };
        shown.field("limits", &self.limits).field("effects", &self.effects).finish_non_exhaustive()
    }
}
