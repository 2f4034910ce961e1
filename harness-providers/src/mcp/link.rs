//! One connection to a server.

use super::error::McpErrorKind;
use super::progress::{Call, Reports};
use super::server::{Http, Limits, Server, Stdio, Transport};
use harness::llm::ToolCallId;
use harness::observe::trace;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam,
    ClientCapabilities, ClientConfig, ClientRequest, Implementation, JsonObject,
    PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId,
    RequestMetaObject, ServerResult, SubscriptionFilter, Tool,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, Peer, PeerRequestOptions, RoleClient,
    RunningService, ServiceError,
};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{DynamicTransportError, TokioChildProcess};
use rmcp::{ClientCacheConfig, ClientHandler, ClientLifecycleMode, ClientServiceExt};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The longest text of a server's error that a model is sent.
const LONGEST_ERROR: usize = 4096;

/// What programs need to start and to find their files. The rest of the environment may hold keys.
const NEEDED: &[&str] = &[
    "PATH",
    "HOME",
    "LOGNAME",
    "USER",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TZ",
    // On Windows.
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
];

/// Is called when the list of a server's tools has changed.
pub(super) type Changed = Arc<dyn Fn() + Send + Sync>;

/// Why a call has no result.
pub(super) enum Failed {
    /// It did not reach the tool.
    NotSent(McpErrorKind),
    /// The connection broke after it was sent.
    Lost,
    TimedOut(Duration),
    /// The server answered with an error: its text for the model.
    Answered(String),
}

/// One connection to a server.
pub(super) struct Link {
    peer: Peer<RoleClient>,
    service: Mutex<Option<RunningService<RoleClient, Handler>>>,
    reports: Arc<Reports>,
    /// Nothing more is sent on it.
    ended: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

/// Receives what the server sends by itself.
struct Handler {
    reports: Arc<Reports>,
    changed: Changed,
}

impl ClientHandler for Handler {
    async fn on_progress(
        &self,
        report: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.reports.report(report).await;
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        (self.changed)();
    }

    fn get_info(&self) -> ClientConfig {
        let about = Implementation::new("harness", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), about)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

impl Link {
    pub(super) async fn open(
        server: &Server,
        reports: Arc<Reports>,
        changed: Changed,
    ) -> Result<Self, McpErrorKind> {
        let limit = server.limits.connect;
        let handler = Handler { reports: Arc::clone(&reports), changed: Arc::clone(&changed) };
        let mode = lifecycle(server);
        let opening = async {
            match &server.transport {
                Transport::Stdio(stdio) => {
                    let child = spawn(stdio)?;
                    handler.serve_with_lifecycle(child, mode).await.map_err(|error| why(&error))
                }
                Transport::Http(http) => {
                    let transport = connect(http, limit)?;
                    handler.serve_with_lifecycle(transport, mode).await.map_err(|error| why(&error))
                }
            }
        };
        let service =
            timeout(limit, opening).await.map_err(|_| McpErrorKind::TimedOut { limit })??;
        let peer = service.peer().clone();
        // A list is asked for when it has changed, and then the old one is of no use.
        peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
        let ended = Arc::<AtomicBool>::default();
        let listening = listen(&peer, server.limits.list, changed, Arc::clone(&ended)).await;
        Ok(Self { peer, service: Mutex::new(Some(service)), reports, ended, listening })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.ended.load(Ordering::Acquire) && !self.peer.is_transport_closed()
    }

    /// The tools that the server lists, on all pages.
    pub(super) async fn list(&self, limits: Limits) -> Result<Vec<Tool>, McpErrorKind> {
        if self.peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
            return Ok(Vec::new());
        }
        let (mut tools, mut seen, mut cursor) = (Vec::new(), HashSet::new(), None);
        let too_many = McpErrorKind::TooManyTools { most: limits.tools };
        loop {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = timeout(limits.list, self.peer.list_tools(Some(params))).await;
            let page = page
                .map_err(|_| McpErrorKind::TimedOut { limit: limits.list })?
                .map_err(|error| list_error(&error))?;
            tools.extend(page.tools);
            if tools.len() > limits.tools {
                return Err(too_many);
            }
            cursor = page.next_cursor;
            match &cursor {
                None => return Ok(tools),
                // Pages may be empty, but none comes again.
                Some(next) if seen.len() <= limits.tools && seen.insert(next.clone()) => {}
                Some(_) => return Err(too_many),
            }
        }
    }

    /// Calls a tool once. If the future is dropped, the server is notified.
    pub(super) async fn call(
        &self,
        server: &Server,
        tool: &str,
        arguments: JsonObject,
        id: &ToolCallId,
    ) -> Result<CallToolResult, Failed> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let mut options = PeerRequestOptions::with_timeout(server.limits.idle)
            .reset_timeout_on_progress()
            .with_max_total_timeout(server.limits.call);
        let traced = trace::current().into_iter().map(|(name, value)| (name, value.into()));
        let mut meta: serde_json::Map<String, serde_json::Value> = traced.collect();
        if let Some(fields) = &server.meta {
            meta.extend(fields());
        }
        if !meta.is_empty() {
            options = options.with_meta(RequestMetaObject::from(meta));
        }
        let handle = {
            let _sending = self.reports.sending.lock().await;
            let sent = self.peer.send_request_with_option(request, options).await;
            let handle = sent.map_err(|_| Failed::NotSent(McpErrorKind::Ended))?;
            let (server, tool) = (server.name.clone(), tool.to_owned());
            self.reports
                .begin(handle.progress_token.clone(), Call { server, tool, id: id.clone() });
            handle
        };
        let mut running = Running {
            link: self,
            request: Some(handle.id.clone()),
            token: handle.progress_token.clone(),
        };
        let answer = handle.await_response().await;
        running.request = None;
        drop(running);
        match answer {
            Ok(ServerResult::CallToolResult(result)) => Ok(result),
            Ok(ServerResult::InputRequiredResult(_)) => Err(Failed::Answered(
                "the tool asks a person for input, which is not supported".to_owned(),
            )),
            Ok(ServerResult::CreateTaskResult(_)) => Err(Failed::Lost),
            // An answer without content.
            Ok(ServerResult::EmptyResult(_)) => Ok(CallToolResult::success(Vec::new())),
            Ok(_) => Err(Failed::Lost),
            Err(ServiceError::McpError(error)) => Err(Failed::Answered(cut(&error.message))),
            Err(ServiceError::Timeout { timeout }) => Err(Failed::TimedOut(timeout)),
            Err(ServiceError::TransportSend(error)) => Err(unsent(&error)),
            Err(_) => Err(Failed::Lost),
        }
    }

    /// Ends the connection, and waits until its process has ended.
    pub(super) async fn close(&self) {
        self.ended.store(true, Ordering::Release);
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(service) = service {
            _ = service.cancel().await;
        }
    }

    /// Ends the connection, and does not wait.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(service);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            listening.abort();
        }
    }
}

/// A call that its server works on.
struct Running<'a> {
    link: &'a Link,
    /// Until there is an answer.
    request: Option<RequestId>,
    token: ProgressToken,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.link.reports.end(&self.token);
        let (Some(request), Ok(runtime)) = (self.request.take(), Handle::try_current()) else {
            return;
        };
        let peer = self.link.peer.clone();
        let reason = Some("the caller does not wait for the result".to_owned());
        runtime.spawn(async move {
            _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(request), reason)).await;
        });
    }
}

fn lifecycle(server: &Server) -> ClientLifecycleMode {
    match server.initialize {
        true => ClientLifecycleMode::Initialize,
        false => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    }
}

fn spawn(stdio: &Stdio) -> Result<TokioChildProcess, McpErrorKind> {
    let mut command = tokio::process::Command::new(&stdio.command);
    command.args(&stdio.args).kill_on_drop(true);
    if !stdio.inherit {
        command.env_clear();
        let needed = NEEDED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.envs(needed);
    }
    command.envs(stdio.env.iter().map(|(name, value)| (name, value.expose())));
    if let Some(dir) = &stdio.dir {
        command.current_dir(dir);
    }
    // An interrupt from the terminal is for this process, which then ends its servers in order.
    #[cfg(unix)]
    command.process_group(0);
    let errors = match stdio.errors {
        true => std::process::Stdio::inherit(),
        false => std::process::Stdio::null(),
    };
    let spawned = TokioChildProcess::builder(command).stderr(errors).spawn();
    spawned.map(|(child, _)| child).map_err(|error| McpErrorKind::Spawn { kind: error.kind() })
}

fn connect(
    http: &Http,
    limit: Duration,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, McpErrorKind> {
    let url = Url::parse(&http.url).map_err(|_| McpErrorKind::BadUrl)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(McpErrorKind::BadUrl);
    }
    let mut headers = HashMap::new();
    for (name, value) in &http.headers {
        let bad = || McpErrorKind::BadHeader { name: name.clone() };
        let header = HeaderName::try_from(name).map_err(|_| bad())?;
        let mut value = HeaderValue::try_from(value.expose()).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    let client = match &http.client {
        Some(client) => client.clone(),
        None => reqwest::Client::builder()
            .connect_timeout(limit)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|_| McpErrorKind::Unreachable)?,
    };
    let config = StreamableHttpClientTransportConfig::with_uri(http.url.as_str())
        .custom_headers(headers)
        // The SDK would send calls again on the new session.
        .reinit_on_expired_session(false);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Listens for changes of the list, where the protocol wants a request for it.
async fn listen(
    peer: &Peer<RoleClient>,
    limit: Duration,
    changed: Changed,
    ended: Arc<AtomicBool>,
) -> Option<JoinHandle<()>> {
    let info = peer.peer_info()?;
    let announces = info.capabilities.tools.as_ref()?.list_changed == Some(true);
    if info.protocol_version.has_initialize() || !announces {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    // A server that cannot be listened to is used with the list that it has.
    let mut changes = timeout(limit, peer.listen(filter)).await.ok()?.ok()?;
    Some(tokio::spawn(async move {
        while let Ok(Some(_)) = changes.next().await {
            changed();
        }
        // The server may have restarted and changed: the next call connects and lists again.
        ended.store(true, Ordering::Release);
    }))
}

fn why(error: &ClientInitializeError) -> McpErrorKind {
    match error {
        ClientInitializeError::TransportError { error, .. } => match unsent(error) {
            Failed::NotSent(kind) => kind,
            _ => McpErrorKind::Ended,
        },
        ClientInitializeError::ConnectionClosed(_) => McpErrorKind::Ended,
        ClientInitializeError::JsonRpcError(error) => McpErrorKind::Rejected { code: error.code.0 },
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => why(fallback),
        _ => McpErrorKind::Protocol,
    }
}

fn list_error(error: &ServiceError) -> McpErrorKind {
    match error {
        ServiceError::McpError(error) => McpErrorKind::Rejected { code: error.code.0 },
        ServiceError::TransportSend(error) => match unsent(error) {
            Failed::NotSent(kind) => kind,
            _ => McpErrorKind::Ended,
        },
        ServiceError::UnexpectedResponse => McpErrorKind::Protocol,
        _ => McpErrorKind::Ended,
    }
}

/// Whether a request that could not be sent can still have reached the server.
fn unsent(error: &DynamicTransportError) -> Failed {
    use StreamableHttpError as E;
    match error.error.downcast_ref::<E<reqwest::Error>>() {
        Some(E::Client(error)) if error.is_connect() => Failed::NotSent(McpErrorKind::Unreachable),
        // The server has refused the request before it looked at it.
        Some(E::SessionExpired) => Failed::NotSent(McpErrorKind::Ended),
        Some(E::AuthRequired(_) | E::InsufficientScope(_)) => {
            Failed::NotSent(McpErrorKind::Unauthorized)
        }
        Some(E::ReservedHeaderConflict(name)) => {
            Failed::NotSent(McpErrorKind::BadHeader { name: name.clone() })
        }
        _ => Failed::Lost,
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_ERROR) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}..", &text[..end]),
    }
}
