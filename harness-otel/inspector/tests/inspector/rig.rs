//! An inspector that serves, an agent with tools, and a client that sends what it is given.

use std::net::SocketAddr;
use std::sync::Arc;

use harness::approval::{Approval, Approve};
use harness::llm::scripted::say;
use harness::llm::{Block, Entry, Request, Scripted, ToolError};
use harness::loops::{Conversation, tool_loop};
use harness::prelude::*;
use harness::store::{MemoryStore, SessionStore};
use harness_inspector::Inspector;
use schemars::JsonSchema;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// What a server has answered.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The value of a hidden field.
    pub(crate) fn hidden(&self, name: &str) -> String {
        let (_, rest) = self.body.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

#[derive(Clone)]
pub(crate) struct Rig {
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) address: SocketAddr,
}

impl Rig {
    pub(crate) async fn new() -> Self {
        Self::over(Arc::new(MemoryStore::new()), |it| it.allow_answers()).await
    }

    pub(crate) async fn over(
        store: Arc<dyn SessionStore>,
        with: impl FnOnce(Inspector) -> Inspector,
    ) -> Self {
        let inspector = with(Inspector::new(Arc::clone(&store)));
        let serving = inspector.bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = serving.local_addr().unwrap();
        tokio::spawn(serving.serve());
        Self { store, address }
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.ask("GET", path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Got {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.ask("POST", path, &[], &body).await
    }

    /// One request. `headers` may replace the host.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Got {
        let mut stream = self.send(method, path, headers, body).await;
        let mut text = Vec::new();
        stream.read_to_end(&mut text).await.unwrap();
        let text = String::from_utf8(text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Got { status, head: head.to_owned(), body: body.to_owned() }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let host = self.address.to_string();
        let host = headers.iter().find(|(name, _)| *name == "host").map_or(&*host, |it| it.1);
        let mut head = format!(
            "{method} {path} HTTP/1.0\r\nhost: {host}\r\ncontent-length: {}\r\n\
             content-type: application/x-www-form-urlencoded\r\n",
            body.len()
        );
        for (name, value) in headers.iter().filter(|(name, _)| *name != "host") {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
        stream
    }

    /// The events of a session's page.
    pub(crate) async fn events(&self, session: &str) -> Events {
        let path = format!("/session/events?id={session}");
        Events(BufReader::new(self.send("GET", &path, &[], "").await))
    }
}

pub(crate) struct Events(BufReader<TcpStream>);

impl Events {
    /// The head that the next event says.
    pub(crate) async fn head(&mut self) -> u64 {
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).await.unwrap(), 0, "the stream has ended");
            if let Some(head) = line.trim().strip_prefix("data: ") {
                return head.parse().unwrap();
            }
        }
    }
}

/// What the model asks for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Refund {
    /// The number of the order.
    pub(crate) order: String,
    /// How much is paid back.
    pub(crate) cents: u64,
}

/// What a person is asked.
#[derive(Question, Clone, Debug, Serialize, Deserialize)]
#[question(answer = Approval)]
pub(crate) struct ApproveRefund {
    pub(crate) order: String,
    pub(crate) cents: u64,
}

/// An agent that pays money back once a person has approved it.
pub(crate) fn support(store: Arc<dyn SessionStore>) -> Agent<(), Conversation> {
    let refund = harness::llm::tool("refund", "Pays money back", |it: Refund| async move {
        Ok::<_, ToolError>(format!("paid {} cents for {}", it.cents, it.order))
    })
    .approve_with(|it: &Refund| ApproveRefund { order: it.order.clone(), cents: it.cents });
    let model =
        Scripted::from_fn(|request: Request<'_>| match request.transcript.entries().last() {
            Some(Entry::Assistant(turn)) => {
                let outcome = turn.blocks.iter().find_map(|block| match block {
                    Block::Call { outcome: Some(outcome), .. } => outcome.content().text(),
                    _ => None,
                });
                say(format!("Done: {}", outcome.unwrap_or_default()))
            }
            _ => say("I ask for it.").and_call("refund", json!({"order": "o-7", "cents": 1_250})),
        });
    let tools = ToolSet::builder().with(refund).build().unwrap();
    let harness = tool_loop::<Conversation>(model, tools).named("support").build().unwrap();
    harness.agent("support", ()).shared_store(store)
}

/// A session that waits for an approval.
pub(crate) async fn waiting(rig: &Rig, session: &str) -> Agent<(), Conversation> {
    let agent = support(Arc::clone(&rig.store));
    let input = Conversation::say("o-7 is <b>broken</b>");
    let outcome = agent.run(input, ()).session(session).await.unwrap();
    assert!(matches!(outcome, Outcome::Interrupted(_)), "{outcome:?}");
    agent
}
