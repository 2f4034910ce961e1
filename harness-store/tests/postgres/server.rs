//! A server of its own, for tests that kill it.

#[cfg(feature = "postgres-tls")]
#[path = "../shared/certificate.rs"]
#[allow(clippy::duplicate_mod)]
mod certificate;
#[path = "../shared/ports.rs"]
#[allow(clippy::duplicate_mod)]
mod ports;

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ports::free_port;

/// Where the programs of the server are, as `.ci/test` has it; otherwise as `pg_config` says.
fn programs() -> PathBuf {
    if let Some(dir) = std::env::var_os("HARNESS_POSTGRES_BIN") {
        return dir.into();
    }
    let found = Command::new("pg_config").arg("--bindir").output();
    let found = found.expect("`pg_config`, or `HARNESS_POSTGRES_BIN`, says where PostgreSQL is");
    String::from_utf8(found.stdout).unwrap().trim().into()
}

/// A program of PostgreSQL.
fn command(program: &str) -> Command {
    as_server(Command::new(programs().join(program)))
}

/// Runs as a user that the server accepts: it refuses to run as root.
fn as_server(mut command: Command) -> Command {
    if rustix::process::geteuid().is_root() {
        let number = |kind: &str| -> u32 {
            let said = Command::new("id").args([kind, "postgres"]).output().unwrap().stdout;
            String::from_utf8(said).unwrap().trim().parse().expect("a user `postgres`")
        };
        command.uid(number("-u")).gid(number("-g"));
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    command
}

pub(crate) struct Server {
    dir: tempfile::TempDir,
    port: u16,
}

impl Server {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let data = dir.path().join("data");
        let made = command("initdb")
            .args(["-A", "trust", "-U", "harness", "-E", "UTF8", "--locale=C", "-D"])
            .arg(&data)
            .status();
        assert!(made.unwrap().success());
        let port = free_port();
        let server = Self { dir, port };
        server.restart();
        server
    }

    /// One that takes encrypted connections, too, and its certificate, which it has signed itself for
    /// the name `localhost`.
    #[cfg(feature = "postgres-tls")]
    pub(crate) fn encrypted() -> (Self, Vec<u8>) {
        let server = Self::start();
        let [key, certificate] = ["server.key", "server.crt"].map(|name| server.data().join(name));
        certificate::make(as_server(Command::new("openssl")), &key, &certificate);
        let mut settings = std::fs::OpenOptions::new()
            .append(true)
            .open(server.data().join("postgresql.conf"))
            .unwrap();
        std::io::Write::write_all(&mut settings, b"ssl = on\n").unwrap();
        server.stop();
        server.restart();
        (server, std::fs::read(certificate).unwrap())
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn url(&self) -> String {
        self.url_by("harness@127.0.0.1")
    }

    /// The URL with another user or name of this machine.
    pub(crate) fn url_by(&self, user_and_host: &str) -> String {
        format!("postgres://{user_and_host}:{}/postgres", self.port)
    }

    /// Starts it, and waits until it answers.
    pub(crate) fn restart(&self) {
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={} -c unix_socket_directories=",
            self.port
        );
        let log = self.dir.path().join("log");
        let started = command("pg_ctl")
            .args(["-w", "-t", "60", "-o", &options, "-l"])
            .arg(&log)
            .arg("-D")
            .arg(self.data())
            .arg("start")
            .status();
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        assert!(started.unwrap().success(), "{}", said());
    }

    fn stop(&self) {
        let mut stop = command("pg_ctl");
        let _ = stop.args(["-w", "-m", "immediate", "-D"]).arg(self.data()).arg("stop").status();
    }

    /// Kills all its processes at once.
    pub(crate) fn kill(&self) {
        let text = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let first: i32 = text.lines().next().unwrap().parse().unwrap();
        let mut all = children(first);
        all.insert(0, first);
        for process in &all {
            let id = rustix::process::Pid::from_raw(*process).unwrap();
            // It may have ended since.
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        }
        // A new server finds the shared memory of an old one as long as a process has it.
        while all.iter().any(|process| is_there(*process)) {
            std::thread::yield_now();
        }
        // A process that nothing waits for keeps its number, and would count as a server.
        std::fs::remove_file(self.data().join("postmaster.pid")).unwrap();
    }
}

fn status(process: i32) -> Option<(char, i32)> {
    let text = std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat"));
    let text = text.ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn is_there(process: i32) -> bool {
    status(process).is_some_and(|(state, _)| state != 'Z')
}

fn children(of: i32) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").unwrap();
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|process| status(*process).is_some_and(|(_, parent)| parent == of))
        .collect()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
