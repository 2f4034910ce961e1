//! Sessions on a [Restate](https://restate.dev) server: it keeps them, and it runs them, on the
//! processes of a service. If one of them dies, another one continues its sessions.
//!
//! A [`RestateService`] is such a process. The harness is the same as on any store: each session is a
//! virtual object with the id of its agent as its name, each turn is an invocation, and each
//! write of the session is journalled. While a session waits for an answer nothing runs. A
//! [`RestateStore`] starts, answers, stops and inspects sessions from anywhere.
//!
//! ```no_run
//! # use harness::prelude::*;
//! # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Doc { sent: bool }
//! # #[derive(Question, Serialize, Deserialize)] #[question(answer = bool)] struct Send { to: String }
//! # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Ask }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let harness = Harness::<(), Doc>::builder("d").start(Step::Ask).steps(|define, step| match step {
//! #     Step::Ask => define
//! #         .ask(|_doc, _cx| async move { Ok(Send { to: "all".into() }) })
//! #         .answer(|_doc, _cx, said| async move { Ok(Doc::update().sent(said.answer)) }).end(),
//! # }).build()?;
//! use harness::Sessions;
//! use harness_store::restate::{RestateService, RestateStore};
//!
//! let agent = harness.agent("notices", ());
//! let notices = RestateStore::new(agent.id(), "http://127.0.0.1:8080", "http://127.0.0.1:9070")?;
//!
//! // The process that works:
//! let service = RestateService::new().serve(&agent, |_session| async { Ok(()) });
//! let service = service.listen("127.0.0.1:9080".parse()?).await?;
//! tokio::spawn(service.run_until(tokio::signal::ctrl_c()));
//! notices.register("http://127.0.0.1:9080").await?;
//!
//! // Another process:
//! notices.start("notice-7", "input-1", &Doc::update()).await?;
//! let sessions = Sessions::new(notices.clone());
//! for waiting in sessions.pending_interrupts().await?.rows {
//!     notices.answer(waiting.session.as_str(), waiting.interrupt.id, true.into(), Some("sam")).await?;
//! }
//! # Ok(()) }
//! ```
//!
//! Without this crate, `curl $INGRESS/restate/call/notices/notice-7/start` with the body
//! `{"input_id": "input-1", "input": {}}` starts a turn, and `../resume` with
//! `{"answers": [{"interrupt": "..", "value": true, "by": "sam"}]}` answers.
//!
//! # What holds
//!
//! | promise of a store | on the engine |
//! |---|---|
//! | a step whose commit was acknowledged does not run again | the same |
//! | an effect happens once, or is [in doubt](harness::Cx::once) after a crash | the same |
//! | one run at a time works on a session | the same: further requests wait |
//! | answers decide once; a second one is refused | the same |
//! | timers and expiries | the engine invokes the session when it is due |
//! | a loop that does not fit is refused | the same; the session is tried again each minute while it is due |
//! | [`cx.call`](harness::Cx::call) runs another agent, once | the same: the child is an object of its own, and the parent waits without an invocation |
//! | its runtime slots are those of the call | no: a call of an agent that has some [is refused](harness::run::CallError::is_refused), unless [`calls`](RestateService::calls) says that it gets those that its service makes |
//! | any agent can be called | one that this service serves, or that `calls` names; others are refused |
//! | a stop or a cancel of the parent, or its failure, reaches its children | the same, once the parent has settled; a resume of the parent continues them. A parent that only waits for them is stopped by [`RestateStore::stop`] and `cancel`: for `Sessions::stop` it is at rest |
//! | the budget of the parent counts what a child spends at once | when the turn of the child is over |
//! | a child's agent is there | if no service serves one that `calls` names, the parent waits, and [`troubles`](RestateStore::troubles) names it, until one does |
//! | [`Sessions`](harness::Sessions) lists, inspects, answers, stops | the same; a turn is seen as of its last invocation, and a session from the end of its first one |
//! | `Sessions` deletes, prunes, edits, forks | no: they fail |
//! | history | from the last snapshot on |
//! | any size of a state | 30 MiB with its log since the last snapshot; more fails with an error that [is too large](RestateError::is_too_large) |
//! | a stop takes effect at the next boundary | in the process that the server asks; if it is another one than the one at work, when the invocation ends |
//! | events for observers | only in the process at work |
//! | any number of processes | behind one address: two addresses are two versions |
//!
//! An invocation that an operator *kills* on the server loses its journal: the session is as of the one
//! before. Effects since then happen again. An invocation that is *cancelled* keeps it.
//!
//! # Clusters
//!
//! Of three nodes with `default-replication = 2` any one may die: another one takes over what it led within
//! some seconds, and repeats what was at work and not journalled. Until then an inspection waits, for up to
//! half a minute; then it fails with [`RestateError::Unready`]. A [`RestateStore`] has one address, so put what
//! balances the load before the nodes. What a node has acknowledged is on two of them.
//!
//! # Versions
//!
//! A new version of a program is a service at an address of its own. Invocations at work stay with the
//! old one until they are over; sessions that wait are continued by the new one, if its loop fits. So
//! stop the old process when the server has no invocation of it. A program that takes the place of
//! another one at its address is safe, too: a replay runs no code of the loop, so nothing that a step
//! does differently contradicts the journal.
//!
//! # The server
//!
//! It is not part of this crate, and not open source: its licence (BSL 1.1) permits production use, but
//! not to offer Restate itself as a service; each version becomes Apache-2.0 after four years. Tests run
//! version 1.7.12. Its ports listen on all interfaces unless `bind-ip` is set, and its admin interface
//! has no authentication: keep it in a private network, and give the service an
//! [identity key](RestateService::identity_key).

mod calls;
mod client;
mod object;
mod record;
mod reply;
mod sdk;
mod service;
mod sessions;
mod store;

pub use client::RestateError;
pub use record::Settled;
pub use service::{RestateListener, RestateService, ServiceError};
pub use store::{Accepted, RestateStore, Trouble};
