//! Restate servers of a measurement: one node, or three on this machine.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Fallible;

/// How long the nodes may take to start.
const LONGEST: Duration = Duration::from_secs(60);

/// Servers that stop when this is dropped.
pub(super) struct Nodes {
    pub(super) dir: tempfile::TempDir,
    pub(super) processes: Vec<Child>,
    ports: Vec<[u16; 3]>,
}

impl Nodes {
    /// Starts so many nodes of `HARNESS_RESTATE_BIN`, with replication 2 if there are several.
    pub(super) fn start(count: usize) -> Fallible<Self> {
        let program = std::env::var_os("HARNESS_RESTATE_BIN")
            .ok_or("`HARNESS_RESTATE_BIN` is not set: it says which server to measure")?;
        let dir = tempfile::tempdir()?;
        let ports = (0..count).map(|_| free()).collect::<Fallible<Vec<_>>>()?;
        let members: Vec<_> =
            ports.iter().map(|[.., own]| format!("\"http://127.0.0.1:{own}\"")).collect();
        let mut nodes = Self { dir, processes: Vec::new(), ports: ports.clone() };
        for (at, [ingress, admin, own]) in ports.into_iter().enumerate() {
            let (first, replication, members) = (at == 0, count.min(2), members.join(", "));
            let settings = format!(
                "node-name = \"n{at}\"\ncluster-name = \"measure\"\nbind-ip = \"127.0.0.1\"\n\
                 bind-port = {own}\nadvertised-address = \"http://127.0.0.1:{own}\"\n\
                 disable-telemetry = true\nrocksdb-total-memory-size = \"256.0 MiB\"\n\
                 auto-provision = {first}\ndefault-replication = {replication}\n\
                 [metadata-client]\naddresses = [{members}]\n[ingress]\nbind-port = {ingress}\n\
                 [admin]\nbind-port = {admin}\ndisable-web-ui = true\n"
            );
            let place = nodes.dir.path().join(at.to_string());
            std::fs::create_dir(&place)?;
            std::fs::write(place.join("restate.toml"), settings)?;
            let started = Command::new(&program)
                .args(["--no-logo", "--listen-mode", "tcp", "--config-file"])
                .arg(place.join("restate.toml"))
                .arg("--base-dir")
                .arg(place.join("data"))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            nodes.processes.push(started);
        }
        Ok(nodes)
    }

    /// The addresses of the ingress and of the admin interface of a node.
    pub(super) fn addresses(&self, node: usize) -> [String; 2] {
        let at = |port: u16| format!("http://127.0.0.1:{port}");
        self.ports
            .get(node)
            .map_or_else(Default::default, |[ingress, admin, _]| [at(*ingress), at(*admin)])
    }

    /// The files of all nodes, in bytes.
    pub(super) fn bytes(&self) -> Fallible<u64> {
        bytes(self.dir.path())
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn free() -> Fallible<[u16; 3]> {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0"));
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(listeners) {
        *port = listener?.local_addr()?.port();
    }
    Ok(ports)
}

/// What the files below a directory take on the disk.
#[cfg(unix)]
fn bytes(place: &Path) -> Fallible<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut sum = 0;
    for entry in std::fs::read_dir(place)? {
        let entry = entry?;
        sum += match entry.metadata() {
            Ok(it) if it.is_dir() => bytes(&entry.path())?,
            Ok(it) => it.blocks() * 512,
            // The server removes files.
            Err(_) => 0,
        };
    }
    Ok(sum)
}

#[cfg(not(unix))]
fn bytes(_: &Path) -> Fallible<u64> {
    Err("only systems with blocks say what a file takes".into())
}

/// Repeats until it does not fail.
pub(super) async fn retried<T>(mut what: impl AsyncFnMut() -> Fallible<T>) -> Fallible<T> {
    let begun = Instant::now();
    loop {
        match what().await {
            Err(_) if begun.elapsed() < LONGEST => {
                tokio::time::sleep(Duration::from_millis(100)).await
            }
            done => return done,
        }
    }
}
