//! The inspector in a real browser, which clicks through it: `support` starts and waits, a person
//! approves in the page, and the page shows how it ends. Screenshots are written to `target/inspector`.
//!
//! Needs `chromium` and `chromedriver`. Without them it is skipped, unless `HARNESS_CHECK` is set.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "inspector/rig.rs"]
mod rig;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use fantoccini::{Client, ClientBuilder, Locator};
use harness::worker::Worker;
use harness_store::SqliteStoreOptions;
use hyper_util::client::legacy::connect::HttpConnector;
use rig::{Rig, support, waiting};
use serde_json::json;

/// A driver of browsers, which ends with this value.
struct Driver {
    child: Child,
    url: String,
}

impl Driver {
    fn start() -> Option<Self> {
        let child = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(error) if std::env::var_os("HARNESS_CHECK").is_none() => {
                eprintln!("skipped: chromedriver does not start: {error}");
                return None;
            }
            Err(error) => panic!("chromedriver does not start: {error}"),
        };
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            let rest = line.split_once("started successfully on port ")?.1;
            rest.trim_end_matches('.').parse::<u16>().ok()
        });
        let url = format!("http://127.0.0.1:{}", port.unwrap());
        Some(Self { child, url })
    }

    async fn browser(&self, width: u32, dark: bool) -> Client {
        let mut args =
            vec!["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
        let size = format!("--window-size={width},1000");
        args.push(&size);
        if dark {
            args.push("--blink-settings=preferredColorScheme=0");
        }
        let options = json!({"goog:chromeOptions": {"args": args}});
        let options = options.as_object().unwrap().clone();
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(options).connect(&self.url).await.unwrap()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pictures() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let folder = target.unwrap_or_else(beside).join("inspector");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A picture of the whole page.
async fn picture(browser: &Client, name: &str) {
    let height = browser.execute("return document.documentElement.scrollHeight", vec![]).await;
    let height = height.unwrap().as_u64().unwrap().clamp(600, 4_000);
    let (width, _) = browser.get_window_size().await.unwrap();
    browser
        .set_window_size(u32::try_from(width).unwrap(), u32::try_from(height).unwrap() + 140)
        .await
        .unwrap();
    let png = browser.screenshot().await.unwrap();
    std::fs::write(pictures().join(format!("{name}.png")), png).unwrap();
    browser.set_window_size(u32::try_from(width).unwrap(), 1_000).await.unwrap();
}

async fn text(browser: &Client, css: &str) -> String {
    browser.wait().for_element(Locator::Css(css)).await.unwrap().text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_approves_a_refund_in_the_page_and_sees_it_paid() {
    let Some(driver) = Driver::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStoreOptions::new().open(dir.path().join("s.db")).await.unwrap();
    let rig = Rig::over(Arc::new(store), |it| it.allow_answers().suggest_name("ada")).await;
    for ticket in ["t-1", "t-2", "t-3"] {
        waiting(&rig, ticket).await;
    }
    let agent = support(Arc::clone(&rig.store));
    let worker = Worker::new().serve(&agent, |_session| async { Ok(()) }).start().unwrap();

    let browser = driver.browser(1_240, false).await;
    let home = format!("http://{}/", rig.address);
    browser.goto(&home).await.unwrap();
    assert_eq!(text(&browser, "h1").await, "Sessions");
    picture(&browser, "sessions").await;
    browser.find(Locator::LinkText("Waiting for a person")).await.unwrap().click().await.unwrap();
    assert_eq!(text(&browser, "h1").await, "Waiting for a person");
    picture(&browser, "waiting").await;
    browser.find(Locator::LinkText("t-1")).await.unwrap().click().await.unwrap();
    assert_eq!(text(&browser, "h1").await, "t-1");
    assert_eq!(text(&browser, ".title .badge").await, "interrupted");
    browser.wait().for_element(Locator::Css(".live.on")).await.unwrap();

    // Edit and approve: the form suggests the arguments that were asked about.
    browser.find(Locator::Css("input[name='a?'][value='0']")).await.unwrap().click().await.unwrap();
    let edit = Locator::Css("input[name='a/0/approve/edited?']");
    browser.find(edit).await.unwrap().click().await.unwrap();
    let cents = Locator::Css("input[name='a/0/approve/edited/cents']");
    let cents = browser.find(cents).await.unwrap();
    assert_eq!(cents.prop("value").await.unwrap().as_deref(), Some("1250"));
    cents.clear().await.unwrap();
    cents.send_keys("500").await.unwrap();
    picture(&browser, "form").await;
    browser.find(Locator::Css(".ask button")).await.unwrap().click().await.unwrap();

    // The page follows: a worker applies the answer, and the turn ends.
    browser.wait().for_element(Locator::Css(".title .badge.ended")).await.unwrap();
    browser
        .wait()
        .for_element(Locator::XPath("//p[contains(., 'paid 500 cents for o-7')]"))
        .await
        .unwrap();
    assert!(browser.find(Locator::Css(".ask")).await.is_err(), "nothing waits");
    picture(&browser, "ended").await;
    browser.find(Locator::Css("#e2 a")).await.unwrap().click().await.unwrap();
    assert_eq!(text(&browser, "h1").await, "After entry 2");
    picture(&browser, "state").await;

    // A second window sees what happens without a click.
    browser.goto(&format!("{home}session?id=t-2")).await.unwrap();
    browser.wait().for_element(Locator::Css(".live.on")).await.unwrap();
    let sessions = harness::Sessions::shared(Arc::clone(&rig.store));
    let asked = sessions.status("t-2").await.unwrap().questions[0].id.clone();
    let no = harness::Answers::json(asked, json!({"reject": {"message": "never paid"}})).by("sam");
    sessions.answer_json("t-2", no).await.unwrap();
    browser.wait().for_element(Locator::Css(".title .badge.ended")).await.unwrap();

    // Nothing on a page was refused by its policy, and nothing scrolls sideways.
    let wide = "return document.documentElement.scrollWidth > document.documentElement.clientWidth";
    assert_eq!(browser.execute(wide, vec![]).await.unwrap(), json!(false));
    browser.close().await.unwrap();

    for (name, width, dark) in [("dark", 1_240, true), ("narrow", 500, false)] {
        let browser = driver.browser(width, dark).await;
        browser.goto(&format!("{home}session?id=t-3")).await.unwrap();
        browser.wait().for_element(Locator::Css(".live.on")).await.unwrap();
        assert_eq!(browser.execute(wide, vec![]).await.unwrap(), json!(false), "{name}");
        picture(&browser, name).await;
        browser.close().await.unwrap();
    }
    worker.drain().await;
}
