//! The only file that uses what the SDK exports for its macros and hides from its documentation: a
//! virtual object whose name is known at run time. The version of the SDK is pinned for it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use harness::engine::{ChildStop, Delivery, Engine, EngineError, Work};
use harness::session::ParentSession;
use restate_sdk::context::RequestTarget;
use restate_sdk::context::RunFuture as _;
use restate_sdk::discovery::{
    Handler, HandlerName, HandlerType, InputPayload, OutputPayload, Service as Manifest,
    ServiceName, ServiceType,
};
use restate_sdk::endpoint::{ContextInternal, Error};
use restate_sdk::errors::{HandlerError, TerminalError};
use restate_sdk::serde::Json;
use restate_sdk::service::macro_support::{ServiceBoxFuture, service_definition};
use restate_sdk::service::{Service, ServiceDefinition};
use serde_json::Value;

use super::record::Signal;

/// The bytes of one value that the server accepts, with room for what is around it. Its own limit is
/// 32 MiB, and what exceeds that makes an invocation fail without end.
pub(super) const MAX_BYTES: usize = 30 << 20;

/// The code of a result that is too large.
pub(super) const TOO_LARGE: u16 = 413;

/// What a handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Starts a turn with an input.
    Start,
    /// Resumes a session, with answers or without.
    Resume,
    /// Takes messages into the inbox.
    Receive,
    /// Does what the session is due for.
    Wake,
    /// Continues a turn that has used up its invocation.
    Continue,
    /// Ends a turn between two of its invocations.
    Stop,
    /// Stops the run that is at work in this process.
    Signal,
    /// Runs a session that a step of another one starts.
    Child,
    /// Takes a child whose turn is over.
    Over,
}

const TASKS: [(Task, &str); 9] = [
    (Task::Start, "start"),
    (Task::Resume, "resume"),
    (Task::Receive, "receive"),
    (Task::Wake, "wake"),
    (Task::Continue, "continue"),
    (Task::Stop, "stop"),
    (Task::Signal, "signal"),
    (Task::Child, "child"),
    (Task::Over, "over"),
];

impl Task {
    pub(super) fn name(self) -> &'static str {
        TASKS.iter().find(|(task, _)| *task == self).map_or("", |(_, name)| name)
    }
}

/// A virtual object.
pub(super) trait Object: Send + Sync + 'static {
    /// Handles a request.
    fn handle(self: Arc<Self>, call: Call) -> BoxFuture<'static, Result<Value, HandlerError>>;
}

/// One invocation.
pub(super) struct Call {
    context: ContextInternal,
    pub(super) task: Task,
    /// The key of the object.
    pub(super) key: String,
    /// The id of the invocation, which its replays share.
    pub(super) id: String,
    pub(super) body: Vec<u8>,
}

impl Call {
    /// The value that the object has under a name.
    pub(super) async fn get(&self, name: &str) -> Result<Option<Vec<u8>>, TerminalError> {
        self.context.get::<Vec<u8>>(name).await
    }

    /// Sets a value of the object.
    pub(super) fn set(&self, name: &str, value: Vec<u8>) -> Result<(), TerminalError> {
        if value.len() > MAX_BYTES {
            return Err(too_large("the session", value.len()));
        }
        self.context.set(name, value);
        Ok(())
    }

    /// Invokes the same object, after the invocations that wait for it.
    pub(super) fn send(&self, task: Task, body: Value, delay: Option<Duration>) {
        let target = RequestTarget::object(self.context.service_name(), &self.key, task.name());
        let request = self.context.request::<_, ()>(target, Json(body));
        match delay {
            Some(delay) => request.send_after(delay),
            None => request.send(),
        };
    }
}

impl Call {
    /// Stops the run of a child, and its turn if that is between two invocations.
    pub(super) fn stop_child(&self, child: &ChildStop) {
        for task in [Task::Signal, Task::Stop] {
            let (agent, session) = (child.agent.as_str(), child.session.as_str());
            let target = RequestTarget::object(agent, session, task.name());
            let body = Json(Signal { cancel: child.cancel });
            self.context.request::<_, ()>(target, body).send();
        }
    }
}

#[harness::async_trait]
impl Engine for Call {
    async fn run(&self, number: u64, work: Work) -> Result<Vec<u8>, EngineError> {
        let journalled = self.context.run(move || async move {
            let result = work.await;
            match result.len() > MAX_BYTES {
                true => {
                    Err(HandlerError::from(too_large("one write of the session", result.len())))
                }
                false => Ok(result),
            }
        });
        journalled.name(number.to_string()).await.map_err(|error| GivenUp(error).into())
    }

    fn delivers(&self) -> bool {
        true
    }

    async fn deliver(&self, delivery: Delivery) -> Result<(), EngineError> {
        let (task, agent, session, body) = match &delivery {
            Delivery::Start(it) => (Task::Child, &it.agent, &it.session, serde_json::to_vec(it)?),
            Delivery::Stop(stop) => {
                self.stop_child(stop);
                return Ok(());
            }
            Delivery::Over(over) => {
                let ParentSession { agent, session, .. } = &over.parent;
                (Task::Over, agent, session, serde_json::to_vec(over)?)
            }
            _ => return Err("this version of `harness-store` does not know the delivery".into()),
        };
        if body.len() > MAX_BYTES {
            return Err(GivenUp(too_large("what another session gets", body.len())).into());
        }
        let target = RequestTarget::object(agent.as_str(), session.as_str(), task.name());
        self.context.request::<_, ()>(target, body).send();
        Ok(())
    }
}

/// The engine gave an invocation up.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct GivenUp(pub(super) TerminalError);

fn too_large(what: &str, bytes: usize) -> TerminalError {
    TerminalError::new_with_code(
        TOO_LARGE,
        format!(
            "{what} has {bytes} bytes, and the engine takes {MAX_BYTES} at once (keep large data \
             outside of the state, and its place in it)"
        ),
    )
}

struct Dispatcher(Arc<dyn Object>);

impl Service for Dispatcher {
    type Future = ServiceBoxFuture;

    fn handle(&self, context: ContextInternal) -> Self::Future {
        let object = Arc::clone(&self.0);
        Box::pin(async move {
            let name = context.handler_name();
            let Some((task, _)) = TASKS.iter().find(|(_, known)| *known == name) else {
                return Err(Error::unknown_handler(context.service_name(), name));
            };
            let (body, metadata) = context.input::<Vec<u8>>().await;
            let (key, id) = (metadata.key, metadata.invocation_id);
            let call = Call { context: context.clone(), task: *task, key, id, body };
            context.handle_handler_result(object.handle(call).await.map(Json));
            context.end();
            Ok(())
        })
    }
}

/// How the server treats the invocations of an object.
#[derive(Clone, Debug)]
pub(super) struct Treatment {
    /// How long a step may take.
    pub(super) longest_step: Duration,
    /// How long the journal of an invocation that is over is kept.
    pub(super) retention: Duration,
}

/// An object of this name; `None` if the name cannot be one.
pub(super) fn definition(
    name: &str,
    object: Arc<dyn Object>,
    treatment: &Treatment,
) -> Option<ServiceDefinition> {
    let handlers: Option<Vec<_>> =
        TASKS.into_iter().map(|(task, name)| handler(task, name)).collect();
    let retention = u64::try_from(treatment.retention.as_millis()).ok();
    let manifest = Manifest {
        ty: ServiceType::VirtualObject,
        name: ServiceName::try_from(name).ok()?,
        handlers: handlers?,
        documentation: None,
        metadata: Default::default(),
        // A step that takes longer than this is dropped and repeated, again and again.
        abort_timeout: u64::try_from(treatment.longest_step.as_millis()).ok(),
        inactivity_timeout: None,
        journal_retention: retention,
        idempotency_retention: retention,
        enable_lazy_state: None,
        ingress_private: None,
        retry_policy_initial_interval: None,
        retry_policy_max_interval: None,
        retry_policy_max_attempts: None,
        retry_policy_exponentiation_factor: None,
        retry_policy_on_max_attempts: None,
    };
    Some(service_definition(Dispatcher(object), manifest))
}

fn handler(task: Task, name: &str) -> Option<Handler> {
    let ty = match task {
        Task::Signal => HandlerType::Shared,
        _ => HandlerType::Exclusive,
    };
    let input = InputPayload {
        content_type: Some("application/json".into()),
        json_schema: None,
        required: Some(false),
    };
    Some(Handler {
        name: HandlerName::try_from(name).ok()?,
        ty: Some(ty),
        input: Some(input),
        output: Some(OutputPayload::from_metadata::<Json<Value>>()),
        documentation: None,
        metadata: Default::default(),
        abort_timeout: None,
        inactivity_timeout: None,
        journal_retention: None,
        idempotency_retention: None,
        workflow_completion_retention: None,
        enable_lazy_state: None,
        ingress_private: None,
        retry_policy_initial_interval: None,
        retry_policy_max_interval: None,
        retry_policy_max_attempts: None,
        retry_policy_exponentiation_factor: None,
        retry_policy_on_max_attempts: None,
    })
}
