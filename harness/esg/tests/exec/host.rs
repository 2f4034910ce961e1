use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use harness_esg::Executor;

use super::{run, worker};

const HOST: &str = "HARNESS_TEST_HOST";

/// The process that the test below kills. Does nothing when it runs as a test.
#[test]
fn a_host() {
    let Some(step) = std::env::var_os(HOST) else {
        return;
    };
    let mut python = worker(Duration::from_secs(1000));
    run(&mut python, "import os\npid = os.getpid()");
    println!("\nworker {}", python.value("pid").unwrap().repr);
    run(&mut python, step.to_str().unwrap());
    loop {
        std::thread::park();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_host_leaves_no_worker() {
    // Also removes what such a host leaves of scratch.
    let temporary = tempfile::tempdir().unwrap();
    for step in ["while True: pass", "x = 10 ** 10 ** 8", "import time\ntime.sleep(1000)", "pass"] {
        let mut host = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "host::a_host", "--nocapture"])
            .env(HOST, step)
            .env("TMPDIR", temporary.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(host.stdout.take().unwrap()).lines().map_while(Result::ok);
        let pid = lines.find_map(|line| line.strip_prefix("worker ").map(str::to_owned)).unwrap();
        host.kill().unwrap();
        host.wait().unwrap();
        let begun = Instant::now();
        // It may remain as a zombie.
        while std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.rsplit(") ").next().unwrap().starts_with('Z'))
        {
            assert!(begun.elapsed() < Duration::from_secs(20), "{step}: worker {pid} lives on");
            std::thread::yield_now();
        }
    }
}
