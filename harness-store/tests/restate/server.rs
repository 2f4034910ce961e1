//! Servers of their own, for tests that kill them: one, or a cluster of three.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::place::Addresses;
use crate::ports::free_port;

/// A node, which has its own files.
pub(crate) struct Server {
    dir: tempfile::TempDir,
    ports: Ports,
    process: Child,
}

/// Ports of the ingress, of the admin interface, and for other nodes.
#[derive(Clone, Copy)]
struct Ports {
    ingress: u16,
    admin: u16,
    own: u16,
}

impl Ports {
    fn free() -> Self {
        Self { ingress: free_port(), admin: free_port(), own: free_port() }
    }
}

const SETTINGS: &str = r#"
cluster-name = "tests"
bind-ip = "127.0.0.1"
disable-telemetry = true
rocksdb-total-memory-size = "256.0 MiB"
"#;

impl Server {
    pub(crate) fn start() -> Self {
        let server = Self::spawn("one", Ports::free(), "");
        server.wait();
        server
    }

    fn spawn(name: &str, ports: Ports, settings: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let Ports { ingress, admin, own } = ports;
        let all = format!(
            "node-name = \"{name}\"\nbind-port = {own}\n{SETTINGS}{settings}\n\
             [ingress]\nbind-port = {ingress}\n[admin]\nbind-port = {admin}\ndisable-web-ui = true\n"
        );
        std::fs::write(dir.path().join("restate.toml"), all).unwrap();
        let process = spawn(dir.path());
        Self { dir, ports, process }
    }

    pub(crate) fn addresses(&self) -> Addresses {
        let at = |port| format!("http://127.0.0.1:{port}");
        Addresses { ingress: at(self.ports.ingress), admin: at(self.ports.admin) }
    }

    /// Waits until it takes requests.
    fn wait(&self) {
        let healthy = |port, path| {
            request(port, "GET", path).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
        };
        let until = Instant::now() + Duration::from_secs(60);
        while !(healthy(self.ports.admin, "/health")
            && healthy(self.ports.ingress, "/restate/health"))
        {
            let log = || std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "the server does not start: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills it, as a signal does that it cannot handle.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again with the same files.
    pub(crate) fn restart(&mut self) {
        self.process = spawn(self.dir.path());
        self.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Three nodes, each of whose data is on two of them: any one of them may be missing.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Server>,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let ports: [_; 3] = std::array::from_fn(|_| Ports::free());
        let members: Vec<_> =
            ports.iter().map(|it| format!("\"http://127.0.0.1:{}\"", it.own)).collect();
        let node = |(at, ports): (usize, Ports)| {
            let (first, own, members) = (at == 0, ports.own, members.join(", "));
            // Of the few partitions each has a leader, which takes time to elect.
            let settings = format!(
                "advertised-address = \"http://127.0.0.1:{own}\"\n\
                 auto-provision = {first}\ndefault-replication = 2\ndefault-num-partitions = 4\n\
                 [metadata-client]\naddresses = [{members}]\n"
            );
            Server::spawn(&format!("n{}", at + 1), ports, &settings)
        };
        let cluster = Self { nodes: ports.into_iter().enumerate().map(node).collect() };
        cluster.nodes.iter().for_each(Server::wait);
        cluster
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

fn spawn(dir: &std::path::Path) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(dir.join("log")).unwrap();
    let program = std::env::var("HARNESS_RESTATE_BIN").expect("`HARNESS_RESTATE_BIN` is not set");
    Command::new(program)
        .args(["--no-logo", "--listen-mode", "tcp"])
        .arg("--config-file")
        .arg(dir.join("restate.toml"))
        .arg("--base-dir")
        .arg(dir.join("data"))
        .stdout(log.try_clone().unwrap())
        .stderr(Stdio::from(log))
        .spawn()
        .unwrap()
}
