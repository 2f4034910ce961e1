//! The `support` and `inspector` programs, each a process of its own, and a person with a browser between
//! them.
//!
//! Needs `chromium` and `chromedriver`. Without them it is skipped, unless `HARNESS_CHECK` is set.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
#![cfg(unix)]

#[allow(dead_code, reason = "the tests of the inspector use the rest")]
#[path = "../../harness-otel/inspector/tests/browser/driver.rs"]
mod driver;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use driver::{Driver, picture, text};
use fantoccini::Locator;

/// A program that is killed with this value.
struct Program {
    child: Child,
    /// The first line that it has printed.
    line: String,
}

impl Program {
    fn start(program: &str, args: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(args)
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, line: line.trim().to_owned() }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn support(shop: &Path, args: &[&str]) -> Program {
    let shop = shop.to_str().unwrap();
    Program::start(env!("CARGO_BIN_EXE_support"), &[args, &["--store", shop]].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_waits_is_approved_in_the_page_and_ends() {
    let Some(driver) = Driver::start() else { return };
    let shop = tempfile::tempdir().unwrap();
    let started = support(shop.path(), &["start", "t-1", "o-7 is broken"]);
    assert_eq!(started.line, "1 refunds wait for an approval");
    let store = format!("file:{}", shop.path().join("store").display());
    let args = ["--store", &store, "--listen", "127.0.0.1:0", "--allow-answers", "--by", "ada"];
    let inspector = Program::start(env!("CARGO_BIN_EXE_inspector"), &args);
    let home = inspector.line.strip_prefix("listening on ").expect("an address");

    let browser = driver.browser(1_240, false).await;
    browser.goto(&format!("{home}/waiting")).await.unwrap();
    browser.find(Locator::LinkText("t-1")).await.unwrap().click().await.unwrap();
    browser.wait().for_element(Locator::Css(".live.on")).await.unwrap();
    assert_eq!(text(&browser, ".title .badge").await, "interrupted");
    picture(&browser, "support-waits").await;
    browser.find(Locator::Css("input[name='a?'][value='0']")).await.unwrap().click().await.unwrap();
    browser.find(Locator::Css(".ask button")).await.unwrap().click().await.unwrap();
    let said = text(&browser, ".notice.good").await;
    assert!(said.starts_with("The answer is recorded"), "{said}");
    let payments = || std::fs::read_to_string(shop.path().join("payments.txt")).unwrap_or_default();
    assert_eq!(payments(), "", "no process of the agent works");

    // Another process of the agent continues the ticket, and the page follows it.
    let work = support(shop.path(), &["work"]);
    assert_eq!(work.line, "waiting for answers");
    browser.wait().for_element(Locator::Css(".title .badge.ended")).await.unwrap();
    assert_eq!(payments().lines().count(), 1);
    assert!(payments().starts_with("o-7 "), "{}", payments());
    assert!(browser.find(Locator::Css(".ask")).await.is_err(), "nothing waits");
    picture(&browser, "support-ended").await;
    browser.close().await.unwrap();
}
