//! The inspector in a real browser, which clicks through it: `support` starts and waits, a person
//! approves in the page, and the page shows how it ends. Screenshots are written to `target/inspector`.
//!
//! Needs `chromium` and `chromedriver`. Without them it is skipped, unless `HARNESS_CHECK` is set.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

#[cfg(feature = "code")]
#[path = "inspector/coded.rs"]
mod coded;
#[path = "browser/driver.rs"]
mod driver;
#[path = "browser/looks.rs"]
mod looks;
#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "inspector/rig.rs"]
mod rig;

use std::sync::Arc;

use driver::{Driver, picture, text};
use fantoccini::Locator;
use harness::worker::Worker;
use harness_store::SqliteStoreOptions;
use rig::{Rig, support, waiting};
use serde_json::json;

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
    let done = text(&browser, "#e11 .what").await;
    assert!(done.ends_with("of item 0: ok: paid 500 cents for o-7"), "{done}");
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

/// Without a mouse: what has the focus, by a script, and keys to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_given_with_the_keyboard_alone() {
    const TAB: &str = "\u{E004}";
    let Some(driver) = Driver::start() else { return };
    let rig = Rig::over(Arc::new(harness::store::MemoryStore::new()), |it| {
        it.allow_answers().suggest_name("ada")
    });
    let rig = rig.await;
    waiting(&rig, "t-1").await;
    let browser = driver.browser(1_240, false).await;
    browser.goto(&format!("http://{}/session?id=t-1", rig.address)).await.unwrap();
    browser.wait().for_element(Locator::Css(".live.on")).await.unwrap();
    let press = async |key: &str| {
        browser.active_element().await.unwrap().send_keys(key).await.unwrap();
    };
    let has_focus = async |css: &str| {
        let script = "return document.activeElement.matches(arguments[0])";
        browser.execute(script, vec![json!(css)]).await.unwrap() == json!(true)
    };
    press(TAB).await;
    assert!(has_focus(".skip").await, "the first key leads past what all pages have");
    press("\n").await;
    assert!(has_focus("#main").await);
    for wanted in [".ask input[name='a?'][value='0']", ".ask button"] {
        let mut tabs = 0;
        while !has_focus(wanted).await {
            tabs += 1;
            assert!(tabs < 60, "the keyboard does not reach {wanted}");
            press(TAB).await;
        }
        press(if wanted.ends_with("button") { "\n" } else { " " }).await;
    }
    let said = text(&browser, ".notice.good").await;
    assert!(said.contains("The answer is recorded"), "{said}");
    let nameless =
        "return [...document.querySelectorAll('input:not([type=hidden]), select, textarea')]
        .filter(it => !it.labels.length && !it.ariaLabel).map(it => it.outerHTML)";
    for page in ["", "waiting", "session?id=t-1"] {
        browser.goto(&format!("http://{}/{page}", rig.address)).await.unwrap();
        let found = browser.execute(nameless, vec![]).await.unwrap();
        assert_eq!(found, json!([]), "a screen reader has no name for them");
        let headings = "return document.querySelectorAll('h1').length";
        assert_eq!(browser.execute(headings, vec![]).await.unwrap(), json!(1));
    }
    browser.close().await.unwrap();
}

#[cfg(feature = "code")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_rolls_a_code_step_back_in_the_page() {
    let Some(driver) = Driver::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rows.txt");
    std::fs::write(&file, "3 1").unwrap();
    let rig = Rig::over(Arc::new(harness::store::MemoryStore::new()), |it| {
        it.allow_answers().suggest_name("ada")
    });
    let rig = rig.await;
    coded::session(&rig, &coded::bench(), &file).await;
    let home = format!("http://{}/", rig.address);
    let wide = "return document.documentElement.scrollWidth > document.documentElement.clientWidth";

    let browser = driver.browser(1_240, false).await;
    browser.goto(&format!("{home}session?id=s")).await.unwrap();
    assert_eq!(text(&browser, "#h-program-0").await, "Execution state graph code");
    browser.wait().for_element(Locator::Css(".live.on")).await.unwrap();
    picture(&browser, "program").await;
    let link = Locator::XPath("//a[starts-with(., 'Roll back to v4')]");
    browser.find(link).await.unwrap().click().await.unwrap();
    assert_eq!(text(&browser, "h1").await, "Version v4 of total");
    let why = browser.find(Locator::Css("#why")).await.unwrap();
    why.send_keys("it counted one too many").await.unwrap();
    picture(&browser, "version").await;
    browser.find(Locator::Css("form.operate button")).await.unwrap().click().await.unwrap();
    let said = text(&browser, ".notice.good").await;
    assert!(said.contains("present one again"), "{said}");
    let shown = text(&browser, ".program").await;
    assert!(shown.contains("Replay 3 ran 2, kept 1.") && shown.contains("may run, 2 of 3 steps"));
    assert_eq!(browser.execute(wide, vec![]).await.unwrap(), json!(false));
    picture(&browser, "rolled-back").await;
    browser.close().await.unwrap();

    for (name, width, dark) in [("program-dark", 1_240, true), ("program-narrow", 500, false)] {
        let browser = driver.browser(width, dark).await;
        browser.goto(&format!("{home}session?id=s")).await.unwrap();
        browser.wait().for_element(Locator::Css(".live.on")).await.unwrap();
        assert_eq!(browser.execute(wide, vec![]).await.unwrap(), json!(false), "{name}");
        picture(&browser, name).await;
        browser.close().await.unwrap();
    }
}
