//! A receiver of OTLP in another process. `HARNESS_OTLP_PYTHON` names a Python with its packages;
//! `.ci/test` makes one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

const PYTHON: &str = "HARNESS_OTLP_PYTHON";
/// A test that waits for longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

fn python() -> String {
    std::env::var(PYTHON).unwrap_or_else(|_| {
        panic!("{PYTHON} is not set: run `.ci/test`, which makes the environment `otlp`")
    })
}

#[derive(Clone, Copy, Debug)]
pub enum Protocol {
    Http,
    Grpc,
}

pub struct Receiver {
    process: Child,
    input: ChildStdin,
    lines: mpsc::Receiver<Value>,
    pub ports: [u16; 2],
    /// The scheme and the host of its addresses.
    base: &'static str,
    /// The requests so far.
    pub requests: Vec<Value>,
}

impl Receiver {
    /// `[0, 0]` takes any ports.
    pub fn start(ports: [u16; 2]) -> Self {
        Self::with("http://127.0.0.1", ports, &[])
    }

    /// One with TLS, on any ports.
    pub fn secure(certificate: &Path, key: &Path) -> Self {
        Self::with("https://localhost", [0, 0], &[certificate, key])
    }

    fn with(base: &'static str, ports: [u16; 2], files: &[&Path]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/telemetry/receiver.py");
        let mut process = Command::new(python())
            .arg("-u")
            .arg(script)
            .args(ports.map(|port| port.to_string()))
            .args(files)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = mpsc::channel();
        let output = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = send.send(serde_json::from_str(&line).unwrap());
            }
        });
        let input = process.stdin.take().unwrap();
        let first: Value = lines.recv_timeout(PATIENCE).expect("the receiver starts");
        let port = |name: &str| u16::try_from(first[name].as_u64().unwrap()).unwrap();
        let ports = [port("http"), port("grpc")];
        Self { process, input, lines, ports, base, requests: Vec::new() }
    }

    pub fn endpoint(&self, protocol: Protocol) -> String {
        let port = match protocol {
            Protocol::Http => self.ports[0],
            Protocol::Grpc => self.ports[1],
        };
        format!("{}:{port}", self.base)
    }

    /// `hold` or `release`, once it is done.
    pub fn order(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
        loop {
            let next = self.lines.recv_timeout(PATIENCE).expect("the receiver obeys");
            if next["did"] == line {
                return;
            }
            self.requests.push(next);
        }
    }

    pub fn spans(&self) -> Vec<Value> {
        let spans = self.requests.iter().filter_map(|request| request["spans"].as_array());
        spans.flatten().cloned().collect()
    }

    /// Waits until it has so many spans.
    pub fn wait_for(&mut self, spans: usize) -> Vec<Value> {
        while self.spans().len() < spans {
            let next = self.lines.recv_timeout(PATIENCE);
            self.requests.push(next.expect("more spans are exported"));
        }
        self.spans()
    }

    /// Ends it. All requests that it has answered are in `requests`.
    pub fn end(self) -> Vec<Value> {
        let Self { mut process, input, lines, mut requests, .. } = self;
        drop(input);
        requests.extend(lines.iter());
        process.wait().unwrap();
        requests
    }

    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// The trees of the spans.
pub fn tree(spans: &[Value]) -> String {
    let known = |id: &Value| spans.iter().any(|span| span["id"] == *id);
    let mut out = String::new();
    for root in spans.iter().filter(|span| !known(&span["parent"])) {
        draw(spans, root, 0, &mut out);
    }
    out
}

fn draw(spans: &[Value], span: &Value, depth: usize, out: &mut String) {
    use std::fmt::Write as _;

    let pad = "  ".repeat(depth);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let _ = writeln!(
        out,
        "{pad}{} ({}) {} {}",
        text(&span["name"]),
        text(&span["kind"]),
        text(&span["status"]),
        text(&span["message"])
    );
    for link in span["links"].as_array().unwrap() {
        let to = spans.iter().find(|it| it["trace"] == link[0] && it["id"] == link[1]);
        let to = to.map_or("?".to_owned(), |it| text(&it["name"]));
        let other = if link[0] == span["trace"] { "the same" } else { "another" };
        let _ = writeln!(out, "{pad}  -> {to} in {other} trace {}", link[2]);
    }
    for child in spans.iter().filter(|it| it["parent"] == span["id"]) {
        assert_eq!(child["trace"], span["trace"]);
        draw(spans, child, depth + 1, out);
    }
}
