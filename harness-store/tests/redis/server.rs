//! A server of its own, for tests that kill it or set it up in their own way.

#[cfg(feature = "redis-tls")]
#[path = "../shared/certificate.rs"]
#[allow(clippy::duplicate_mod)]
mod certificate;
#[path = "../shared/ports.rs"]
#[allow(clippy::duplicate_mod)]
mod ports;

use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

pub(crate) use ports::free_port;

/// A server that is started by the user of the test; `redis-server` is in the path.
pub(crate) struct Server {
    dir: tempfile::TempDir,
    program: String,
    port: u16,
    settings: Vec<String>,
    process: std::sync::Mutex<Child>,
}

/// What the store needs.
pub(crate) const SAFE: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];

impl Server {
    pub(crate) fn start(settings: &[&str]) -> Self {
        Self::start_program("redis-server", settings)
    }

    /// One of another program.
    pub(crate) fn start_program(program: &str, settings: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), program, settings)
    }

    /// One that takes encrypted connections at another port, which is returned with its certificate. It has
    /// signed this itself for the name `localhost`.
    #[cfg(feature = "redis-tls")]
    pub(crate) fn encrypted(settings: &[&str]) -> (Self, u16, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let [key, certificate] = ["server.key", "server.crt"].map(|name| dir.path().join(name));
        certificate::make(Command::new("openssl"), &key, &certificate);
        let certificate = std::fs::read(certificate).unwrap();
        let port = free_port();
        let port_text = port.to_string();
        let tls = ["--tls-port", &*port_text, "--tls-auth-clients", "no"];
        let files = ["--tls-key-file", "server.key", "--tls-cert-file", "server.crt"];
        let server = Self::start_in(dir, "redis-server", &[settings, &tls, &files].concat());
        (server, port, certificate)
    }

    fn start_in(dir: tempfile::TempDir, program: &str, settings: &[&str]) -> Self {
        let port = free_port();
        let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
        let process = spawn(program, dir.path(), port, &settings);
        let program = program.to_owned();
        let server = Self { dir, program, port, settings, process: process.into() };
        server.wait();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn raw(&self) -> redis::Connection {
        redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    /// Waits until it answers with something else than that it is starting.
    fn wait(&self) {
        loop {
            let connection = redis::Client::open(self.url()).unwrap().get_connection();
            if let Ok(mut connection) = connection
                && is_up(redis::cmd("PING").query::<String>(&mut connection))
            {
                return;
            }
            let mut process = self.process.lock().unwrap();
            if let Some(status) = process.try_wait().unwrap() {
                let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
                panic!("the server ends with {status}: {log}");
            }
            std::thread::yield_now();
        }
    }

    /// Kills it, as a signal does that it cannot handle.
    pub(crate) fn kill(&self) {
        let mut process = self.process.lock().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Starts it again with the same files.
    pub(crate) fn restart(&self) {
        let process = spawn(&self.program, self.dir.path(), self.port, &self.settings);
        *self.process.lock().unwrap() = process;
        self.wait();
    }

    /// Does nothing until it is to continue, as a machine that hangs.
    pub(crate) fn stand_still(&self, still: bool) {
        let process = rustix::process::Pid::from_child(&self.process.lock().unwrap());
        let signal = if still { Signal::STOP } else { Signal::CONT };
        rustix::process::kill_process(process, signal).unwrap();
    }

    /// Removes its files, while it does not run.
    pub(crate) fn empty(&self) {
        for entry in std::fs::read_dir(self.dir.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                std::fs::remove_dir_all(path).unwrap();
            } else {
                std::fs::remove_file(path).unwrap();
            }
        }
    }
}

/// Whether it answers as it does when it has started, perhaps that it wants a password.
fn is_up(answer: redis::RedisResult<String>) -> bool {
    answer.map_or_else(|error| error.code() == Some("NOAUTH"), |_| true)
}

fn spawn(program: &str, dir: &std::path::Path, port: u16, settings: &[String]) -> Child {
    Command::new(program)
        .args(["--bind", "127.0.0.1", "--save", "", "--logfile", "log", "--port"])
        .arg(port.to_string())
        .arg("--dir")
        .arg(dir)
        .args(settings)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("`{program}` does not start (see `.ci/test`): {error}"))
}

impl Drop for Server {
    fn drop(&mut self) {
        let process = self.process.get_mut().unwrap();
        let _ = process.kill();
        let _ = process.wait();
    }
}
