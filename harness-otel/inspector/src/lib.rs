//! The sessions of [`harness`](https://docs.rs/harness) in a browser: which there are, where each of
//! them is, what waits for a person, and how it came to this. Over any store, for agents that this
//! program does not know.
//!
//! ```no_run
//! use harness::store::MemoryStore;
//! use harness_inspector::Inspector;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = std::sync::Arc::new(MemoryStore::new());
//! let served = Inspector::new(store).allow_answers().bind("127.0.0.1:8090".parse()?).await?;
//! println!("http://{}", served.local_addr()?);
//! served.serve().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The pages are HTML that the server renders. They work without scripts; with them, the page of a
//! session follows it live. Nothing is loaded from elsewhere.
//!
//! # Who may see and do what
//!
//! An inspector only reads, unless it [allows answers](Inspector::allow_answers). It listens on an
//! address of this machine alone, unless it has a [token](Inspector::token), which every browser has to
//! give once. A request is refused
//!
//! - if its `Host` is a name other than `localhost` and those [given](Inspector::host), so that no page
//!   of another site reaches it by a name that resolves to this machine;
//! - if it writes and does not come from a form of the inspector: it has to carry the token of the
//!   forms, and neither its `Origin` nor its `Sec-Fetch-Site` may be of another site.
//!
//! With the feature `code`, the page of a session whose state has a program of code steps shows its execution
//! state graph: what ran, what is kept, what is stale and why, the edges, and the versions with what they
//! changed. A version can be returned to where answers are allowed. This needs no Python.
//!
//! Everything that a session holds is shown as text, and the policy of the pages lets no script run but
//! the inspector's own file.

mod act;
#[cfg(feature = "code")]
mod code;
mod edit;
mod form;
mod guard;
mod list;
mod live;
mod page;
mod problem;
mod query;
mod read;
mod session;
mod state;
mod waiting;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use harness::Sessions;
use harness::store::SessionStore;
use tokio::net::TcpListener;
use uuid::Uuid;

/// The sessions of a store in a browser. See the [crate].
#[derive(Clone)]
pub struct Inspector {
    store: Arc<dyn SessionStore>,
    answers: bool,
    token: Option<String>,
    hosts: Vec<String>,
    name: String,
}

impl Inspector {
    /// The sessions in `store`, to read.
    pub fn new(store: Arc<dyn SessionStore>) -> Self {
        Self { store, answers: false, token: None, hosts: Vec::new(), name: String::new() }
    }

    /// Allows a user to answer questions, to stop, fork and edit sessions, to queue inputs for them, and to
    /// return code steps to earlier versions. The agents' own programs do the work that follows.
    #[must_use]
    pub fn allow_answers(mut self) -> Self {
        self.answers = true;
        self
    }

    /// Requires a token, as `Authorization: Bearer` or once in a form.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// A name of this machine under which browsers reach the inspector.
    #[must_use]
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.hosts.push(name.into());
        self
    }

    /// The name that forms suggest as the author of an answer.
    #[must_use]
    pub fn suggest_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Listens on an address; port 0 takes a free one.
    ///
    /// # Errors
    /// Other machines reach the address, and the inspector has no token; its token is empty; the address
    /// cannot be listened on.
    pub async fn bind(self, address: SocketAddr) -> Result<Serving, BindError> {
        if !address.ip().is_loopback() && self.token.as_ref().is_none_or(String::is_empty) {
            return Err(BindError::NeedsToken(address));
        }
        if self.token.as_ref().is_some_and(String::is_empty) {
            return Err(BindError::EmptyToken);
        }
        let listener = TcpListener::bind(address)
            .await
            .map_err(|cause| BindError::Listen { address, cause })?;
        Ok(Serving { listener, router: self.router() })
    }

    /// The routes of the inspector, at the root of a server of the program's own, which has to
    /// see to it that only those who may reach them do.
    pub fn router(self) -> Router {
        let shared = Arc::new(Shared {
            sessions: Sessions::shared(Arc::clone(&self.store)),
            store: self.store,
            answers: self.answers,
            token: self.token,
            hosts: self.hosts,
            name: self.name,
            form_token: Uuid::new_v4().simple().to_string(),
            cookie: Uuid::new_v4().simple().to_string(),
        });
        let router = Router::new();
        #[cfg(feature = "code")]
        let router = router
            .route("/session/version", get(code::show))
            .route("/session/version/back", post(code::roll_back));
        router
            .route("/", get(list::sessions))
            .route("/waiting", get(waiting::waiting))
            .route("/session", get(session::show))
            .route("/session/events", get(live::events))
            .route("/session/state", get(state::show))
            .route("/session/report", get(session::report))
            .route("/session/answer", post(act::answer))
            .route("/session/stop", post(act::stop))
            .route("/session/fork", post(act::fork))
            .route("/session/edit", get(edit::show).post(edit::edit))
            .route("/session/input", post(act::input))
            .route("/login", get(guard::login_page).post(guard::login))
            .route("/style.css", get(page::style))
            .route("/live.js", get(page::script))
            .fallback(problem::no_such_page)
            .layer(axum::middleware::from_fn_with_state(Arc::clone(&shared), guard::guard))
            .with_state(shared)
    }
}

impl std::fmt::Debug for Inspector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inspector").field("answers", &self.answers).finish_non_exhaustive()
    }
}

/// An inspector that listens.
#[derive(Debug)]
pub struct Serving {
    listener: TcpListener,
    router: Router,
}

impl Serving {
    /// Where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves, until the future is dropped.
    ///
    /// # Errors
    /// The listener fails.
    pub async fn serve(self) -> io::Result<()> {
        axum::serve(self.listener, self.router).await
    }
}

/// Why an inspector does not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Other machines reach the address.
    #[error(
        "other machines reach {0}, and the inspector has no token (give it one, or listen on 127.0.0.1)"
    )]
    NeedsToken(SocketAddr),
    /// The token is empty, as a variable is that was not set.
    #[error("the token of the inspector is empty (set one, or start it without)")]
    EmptyToken,
    /// The address cannot be listened on.
    #[error("failed to listen on {address}: {cause}")]
    #[non_exhaustive]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        cause: io::Error,
    },
}

/// What every handler has.
struct Shared {
    sessions: Sessions,
    store: Arc<dyn SessionStore>,
    answers: bool,
    token: Option<String>,
    hosts: Vec<String>,
    name: String,
    /// What every form of this process carries: no page of another site can read it.
    form_token: String,
    /// What a browser carries that has given the token.
    cookie: String,
}
