use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use super::super::{Ending, Executor};
use super::{pid, run, runs, step, until, worker, works_afresh};

#[test]
fn dropped_workers_leave_no_process_and_no_file() {
    for _ in 0..100 {
        let mut python = worker();
        let (pid, scratch) = (pid(&mut python), python.scratch());
        assert!(runs(pid) && scratch.is_dir());
        drop(python);
        assert!(!runs(pid));
        assert!(!scratch.exists() && !scratch.parent().unwrap().exists());
    }
}

#[test]
fn what_a_step_started_ends_with_the_worker() {
    let mut python = worker();
    let source = "import os, time\nchild = os.fork()\nif child == 0:\n    time.sleep(1000)";
    assert!(!run(&mut python, source).lost);
    let child = python.value("child").unwrap().json.unwrap().as_u64().unwrap();
    assert!(runs(child));
    drop(python);
    until("the child's end", || !runs(child));
}

#[test]
fn what_a_step_hides_in_scratch_goes_too() {
    let mut python = worker();
    let scratch = python.scratch();
    let source = "import os\nos.makedirs('a/b')\nopen('a/b/c', 'w').close()\nos.chmod('a/b', 0)\n\
                  os.symlink('/etc', 'link')\nos.chmod('a', 0)";
    assert_eq!(run(&mut python, source).ending, Ending::Ok);
    python.fresh().unwrap();
    works_afresh(&mut python);
    // A step that replaces its directory by a link affects only itself.
    let source = "import os\nhere = os.getcwd()\nos.chdir('/')\nos.rmdir(here)\n\
                  os.symlink('/etc', here)";
    assert_eq!(run(&mut python, source).ending, Ending::Ok);
    python.fresh().unwrap();
    works_afresh(&mut python);
    assert!(std::path::Path::new("/etc").is_dir());
    drop(python);
    assert!(!scratch.exists());
}

#[test]
fn a_worker_may_be_killed_at_any_moment() {
    let mut python = worker();
    let handle = python.kill_handle();
    for _ in 0..30 {
        let (send, receive) = mpsc::channel::<()>();
        let killer = {
            let handle = handle.clone();
            thread::spawn(move || {
                receive.recv().ok();
                handle.kill();
            })
        };
        send.send(()).unwrap();
        // Before, during or after the step: it is killed, or the next call reports the kill.
        match python.run(&step("x = 1")) {
            Ok(ran) => assert!(
                ran.lost == (ran.ending == Ending::Crashed { signal: Some(9), code: None })
                    && (ran.lost || ran.ending == Ending::Ok),
                "{:?}",
                ran.ending
            ),
            Err(error) => assert!(error.lost(), "{error}"),
        }
        killer.join().unwrap();
        if let Err(error) = python.value("x") {
            assert!(error.lost() || error.to_string().contains("not live"), "{error}");
        }
        python.fresh().unwrap();
    }
    works_afresh(&mut python);
}

#[test]
fn a_step_that_loops_is_killed_through_the_handle() {
    let mut python = worker();
    let handle = python.kill_handle();
    let begun = python.scratch().join("begun");
    let killer = thread::spawn(move || {
        until("the step", || begun.exists());
        handle.kill();
    });
    let ran = run(&mut python, "open('begun', 'w').close()\nwhile True: pass");
    assert_eq!(ran.ending, Ending::Crashed { signal: Some(9), code: None });
    assert!(ran.lost);
    killer.join().unwrap();
    works_afresh(&mut python);
}

#[test]
fn a_worker_that_dies_between_steps_blames_no_step() {
    let mut python = worker();
    run(&mut python, "mark = 1");
    let pid = pid(&mut python);
    python.kill_handle().kill();
    until("the worker's end", || !runs(pid));
    let error = python.run(&step("pass")).unwrap_err();
    let said = error.to_string();
    assert!(error.lost() && said.contains("exited while no step ran"), "{said}");
    assert!(said.contains("signal: 9"), "{said}");
    works_afresh(&mut python);
}

const HOST: &str = "HARNESS_TEST_HOST";

/// The process that the test below kills. Does nothing when it runs as a test.
#[test]
fn a_host() {
    if std::env::var_os(HOST).is_none() {
        return;
    }
    let mut python = worker();
    println!("\nworker {}", pid(&mut python));
    #[cfg(target_os = "linux")]
    println!("worker {}", super::spares::spare(&python.scratch()));
    if std::env::var_os(HOST).is_some_and(|how| how == "busy") {
        run(&mut python, "print(10 ** 10 ** 8)");
    }
    loop {
        thread::park();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_host_leaves_no_worker() {
    // Also removes what such a host leaves of scratch.
    let temporary = tempfile::tempdir().unwrap();
    for how in ["busy", "idle"] {
        let mut host = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "exec::tests::lifetime::a_host", "--nocapture"])
            .env(HOST, how)
            .env("TMPDIR", temporary.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(host.stdout.take().unwrap()).lines().map_while(Result::ok);
        // The one that runs steps, and the one that waits.
        let workers = [(); 2].map(|()| {
            let worker = lines.find_map(|line| line.strip_prefix("worker ").map(str::to_owned));
            worker.expect("the host's word").parse().unwrap()
        });
        assert!(workers.iter().all(|worker| runs(*worker)));
        host.kill().unwrap();
        host.wait().unwrap();
        until("the workers' end", || !workers.iter().any(|worker| runs(*worker)));
    }
}
