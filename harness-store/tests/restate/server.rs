//! A server of its own, for tests that kill it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::place::Addresses;

pub(crate) struct Server {
    dir: tempfile::TempDir,
    ports: [u16; 3],
    process: Child,
}

const SETTINGS: &str = r#"
bind-ip = "127.0.0.1"
disable-telemetry = true
rocksdb-total-memory-size = "256.0 MiB"
[admin]
disable-web-ui = true
"#;

impl Server {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("restate.toml"), SETTINGS).unwrap();
        let listeners: [_; 3] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = listeners.map(|it| it.local_addr().unwrap().port());
        let process = spawn(dir.path(), ports);
        let server = Self { dir, ports, process };
        server.wait();
        server
    }

    pub(crate) fn addresses(&self) -> Addresses {
        let at = |port| format!("http://127.0.0.1:{port}");
        Addresses { ingress: at(self.ports[0]), admin: at(self.ports[1]) }
    }

    /// Waits until it takes requests.
    fn wait(&self) {
        let healthy = |port, path| {
            request(port, "GET", path).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
        };
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !(healthy(self.ports[1], "/health") && healthy(self.ports[0], "/restate/health")) {
            let log = || std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(std::time::Instant::now() < until, "the server does not start: {}", log());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Kills it, as a signal does that it cannot handle.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again with the same files.
    pub(crate) fn restart(&mut self) {
        self.process = spawn(self.dir.path(), self.ports);
        self.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn request(port: u16, method: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let head = format!("{method} {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Cancels an invocation, as an operator does.
pub(crate) fn cancel(server: &Addresses, invocation: &str) {
    let (_, port) = server.admin.rsplit_once(':').unwrap();
    let path = format!("/invocations/{invocation}/cancel");
    let answer = request(port.parse().unwrap(), "PATCH", &path).unwrap();
    assert!(answer.starts_with("HTTP/1.1 202") || answer.starts_with("HTTP/1.1 200"), "{answer}");
}

fn spawn(dir: &std::path::Path, [ingress, admin, own]: [u16; 3]) -> Child {
    let log = std::fs::File::create(dir.join("log")).unwrap();
    let program = std::env::var("HARNESS_RESTATE_BIN").expect("`HARNESS_RESTATE_BIN` is not set");
    Command::new(program)
        .args([
            "--no-logo",
            "--listen-mode",
            "tcp",
            "--node-name",
            "one",
            "--cluster-name",
            "tests",
        ])
        .arg("--config-file")
        .arg(dir.join("restate.toml"))
        .arg("--base-dir")
        .arg(dir.join("data"))
        .env("RESTATE_INGRESS__BIND_PORT", ingress.to_string())
        .env("RESTATE_ADMIN__BIND_PORT", admin.to_string())
        .env("RESTATE_BIND_PORT", own.to_string())
        .stdout(log.try_clone().unwrap())
        .stderr(Stdio::from(log))
        .spawn()
        .unwrap()
}
