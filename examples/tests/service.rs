//! The `service` program, over HTTP: started, killed, and started again on the same store.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A service that is killed with this value.
struct Service {
    child: Child,
    address: String,
}

impl Service {
    fn start(database: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_service"))
            .args(["--listen", "127.0.0.1:0", "--store"])
            .arg(format!("sqlite:{}", database.display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").expect("an address");
        Self { address: address.to_owned(), child }
    }

    fn connect(&self, method: &str, path: &str, body: Option<&Value>) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let mut text = String::new();
        self.connect(method, path, body).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {text}")))
    }

    /// The events of a session; the stream is open when this returns.
    fn events(&self, session: &str) -> Events {
        let stream = self.connect("GET", &format!("/sessions/{session}/events"), None);
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the stream has ended");
        }
        Events(lines)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Events(BufReader<TcpStream>);

impl Events {
    /// The next event of this type, and the types of those before it.
    fn until(&mut self, last: &str) -> (Vec<String>, Value) {
        let mut types = Vec::new();
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the stream has ended: {types:?}");
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let event: Value = serde_json::from_str(data).unwrap();
            let kind = event["type"].as_str().unwrap().to_owned();
            if kind == last {
                return (types, event);
            }
            types.push(kind);
        }
    }
}

#[test]
fn a_notice_waits_over_a_kill_and_is_published_once() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("service.db");
    let first = Service::start(&database);
    let mut events = first.events("n-1");
    let input = json!({"text": "Closed  on Friday", "input": "1"});
    assert_eq!(first.ask("POST", "/sessions/n-1", Some(&input)).0, 202);
    let (types, finished) = events.until("RUN_FINISHED");
    assert_eq!(types, ["RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "STEP_STARTED"]);
    assert_eq!(finished["outcome"]["type"], "interrupt");
    let asked = &finished["outcome"]["interrupts"][0];
    assert_eq!(asked["message"], "Publish `Closed on Friday`?");
    assert_eq!(asked["responseSchema"]["type"], "boolean");
    drop(first);

    let second = Service::start(&database);
    // The input was applied, so that it starts nothing when it is sent again.
    assert_eq!(second.ask("POST", "/sessions/n-1", Some(&input)).0, 202);
    let (status, waiting) = second.ask("GET", "/waiting", None);
    assert_eq!((status, waiting.as_array().unwrap().len()), (200, 1));
    assert_eq!(waiting[0]["threadId"], "n-1");
    assert_eq!(waiting[0]["interrupt"]["id"], asked["id"]);

    let mut events = second.events("n-1");
    let answer = |payload: Value| json!([{"interruptId": asked["id"], "status": "resolved", "payload": payload}]);
    let path = "/sessions/n-1/resume";
    assert_eq!(second.ask("POST", path, Some(&answer(json!("yes")))).0, 409, "not a boolean");
    let cancelled = json!([{"interruptId": asked["id"], "status": "cancelled"}]);
    assert_eq!(second.ask("POST", path, Some(&cancelled)).0, 422);
    assert_eq!(second.ask("POST", path, Some(&answer(json!(true)))).0, 202);
    let (_, finished) = events.until("RUN_FINISHED");
    assert_eq!(finished["outcome"]["type"], "success");
    let (_, session) = second.ask("GET", "/sessions/n-1", None);
    assert_eq!(session["phase"], "ended");
    assert_eq!(session["state"]["published"], "Closed on Friday");
    assert_eq!(second.ask("GET", "/waiting", None).1, json!([]));
    assert_eq!(second.ask("GET", "/sessions/n-2", None).0, 404);
    assert_eq!(second.ask("POST", path, Some(&answer(json!(false)))).0, 409, "it is decided");
}
