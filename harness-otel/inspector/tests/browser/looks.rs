//! How the pages look, in windows of several sizes, light and dark; and how they change before a reader.

use std::sync::Arc;

use fantoccini::{Client, Locator};
use harness::prelude::*;
use harness::{Sessions, StepError};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::driver::{Driver, picture, text};
use super::rig::{Rig, waiting};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Order {
    number: String,
    lines: Vec<String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Fetch,
    Ship,
}

#[derive(Debug, thiserror::Error)]
#[error("the parcel has no label")]
struct NoLabel(#[source] std::io::Error);

/// An agent that waits in its first step until the gate is open, and fails in the second one.
fn shipping(rig: &Rig, gate: &watch::Sender<bool>) -> Agent<(), Order> {
    let gate = gate.clone();
    let fetch = move |_: View<Order>, _: Cx<()>| {
        let mut open = gate.subscribe();
        async move {
            open.wait_for(|open| *open).await.map_err(StepError::fatal)?;
            Ok(Order::update().lines(vec!["a lamp".to_owned(), "x".repeat(300)]))
        }
    };
    let ship = |_: View<Order>, _: Cx<()>| async move {
        Err(StepError::retryable(NoLabel(std::io::Error::other("the printer is out of paper"))))
    };
    Harness::<(), Order>::builder("shipping")
        .start(Step::Fetch)
        .steps(move |define, step| match step {
            Step::Fetch => define.run(fetch.clone()).then(Step::Ship),
            Step::Ship => {
                define.run(ship).retry(Retry::every(std::time::Duration::ZERO).times(2)).end()
            }
        })
        .build()
        .unwrap()
        .agent("shipping", ())
        .shared_store(Arc::clone(&rig.store))
}

/// The texts that a reader cannot distinguish well from what is behind them, with their contrast.
const FAINT: &str = r#"
const part = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
const color = (text) => {
    const parts = text.match(/[\d.]+/g).map(Number);
    return parts.length > 3 ? parts : [...parts, 1];
};
const behind = (element) => {
    for (let it = element; it; it = it.parentElement) {
        const found = color(getComputedStyle(it).backgroundColor);
        if (found[3] === 1) return found;
    }
    return [255, 255, 255, 1];
};
const has_text = (it) => [...it.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
const faint = [];
for (const it of document.body.querySelectorAll("*")) {
    if (it instanceof SVGElement || !has_text(it) || !it.checkVisibility()) continue;
    const style = getComputedStyle(it);
    const [one, other] = [light(color(style.color)), light(behind(it))].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (other + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.6 && style.fontWeight >= 700);
    if (contrast < (large ? 3 : 4.5)) faint.push(`${contrast.toFixed(2)} ${it.outerHTML.slice(0, 120)}`);
}
return faint;
"#;

const WIDE: &str =
    "return document.documentElement.scrollWidth > document.documentElement.clientWidth";

/// Elements that a keyboard reaches and that do not show it.
const NO_FOCUS: &str = r#"
const found = [];
for (const it of document.querySelectorAll("a[href],button,input:not([type=hidden]),select,textarea,summary")) {
    if (!it.checkVisibility()) continue;
    it.focus({ focusVisible: true });
    const style = getComputedStyle(it);
    if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) found.push(it.outerHTML.slice(0, 120));
}
return found;
"#;

/// What does not fit in a narrow window: controls that are partly outside of it, lists that scroll sideways, and
/// words of a table that are broken.
const OUTSIDE: &str = r#"
const width = document.documentElement.clientWidth;
const found = [];
for (const it of document.querySelectorAll("a[href],button,input:not([type=hidden]),select,textarea,summary,.said,.rows td")) {
    if (!it.checkVisibility() || it.matches(".skip") || it.closest("svg")) continue;
    const { left, right } = it.getBoundingClientRect();
    if (left < 0 || right > width) found.push(it.outerHTML.slice(0, 120));
}
for (const it of document.querySelectorAll(".scroll:has(>.rows)")) {
    if (it.scrollWidth > it.clientWidth) found.push("a list scrolls sideways");
}
return found;
"#;

/// What may be scrolled, and has no place for a keyboard to do so from.
const OUT_OF_REACH: &str = r#"
return [...document.querySelectorAll("pre,.scroll,.loop")].filter((it) =>
    it.checkVisibility() && it.tabIndex < 0 && (it.scrollWidth > it.clientWidth || it.scrollHeight > it.clientHeight)
    && !it.querySelector("a,button,input")).map((it) => it.outerHTML.slice(0, 120));
"#;

async fn ask(browser: &Client, script: &str) -> Value {
    browser.execute(script, vec![]).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_fit_and_their_text_can_be_read() {
    let Some(driver) = Driver::start() else { return };
    let rig = Rig::over(Arc::new(harness::store::MemoryStore::new()), |it| {
        it.allow_answers().suggest_name("ada")
    });
    let rig = rig.await;
    waiting(&rig, "t-1").await;
    let open = watch::Sender::new(true);
    let agent = shipping(&rig, &open);
    let input = Order::update().number("o-7");
    let failed = agent.run(input, ()).session("o-7").await.unwrap();
    assert!(matches!(failed, Outcome::Failed(_)), "{failed:?}");
    let shut = watch::Sender::new(false);
    let input = Order::update().number("o-8");
    let running = shipping(&rig, &shut).run(input, ()).session("o-8").start();
    let locked = Rig::over(Arc::clone(&rig.store), |it| it.token("s3cret")).await;
    let report = Sessions::shared(Arc::clone(&rig.store)).report("o-7").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    std::fs::write(&file, report.to_html()).unwrap();

    let home = format!("http://{}", rig.address);
    let pages = [
        ("list", format!("{home}/")),
        ("none", format!("{home}/?id=zzz")),
        ("waits", format!("{home}/waiting?waited=1h")),
        ("question", format!("{home}/session?id=t-1")),
        ("failed", format!("{home}/session?id=o-7")),
        ("running", format!("{home}/session?id=o-8")),
        ("difference", format!("{home}/session/state?id=o-7&seq=3")),
        ("edit", format!("{home}/session/edit?id=t-1&field=talk")),
        ("missing", format!("{home}/session?id=nothing")),
        ("login", format!("http://{}/login", locked.address)),
        ("report", format!("file://{}", file.display())),
    ];
    for (width, dark) in
        [(1_240, false), (1_240, true), (820, false), (500, true), (400, false), (400, true)]
    {
        let browser = driver.browser(width, dark).await;
        for (name, address) in &pages {
            browser.goto(address).await.unwrap();
            browser.wait().for_element(Locator::Css("h1")).await.unwrap();
            // A person who opens everything sees everything.
            ask(&browser, "document.querySelectorAll('details').forEach(it => it.open = true)")
                .await;
            let looks = if dark { "dark" } else { "light" };
            let name = format!("{name}-{width}-{looks}");
            assert_eq!(ask(&browser, WIDE).await, json!(false), "{name}");
            assert_eq!(ask(&browser, FAINT).await, json!([]), "{name}");
            assert_eq!(ask(&browser, OUTSIDE).await, json!([]), "{name}");
            assert_eq!(ask(&browser, OUT_OF_REACH).await, json!([]), "{name}");
            assert_eq!(ask(&browser, NO_FOCUS).await, json!([]), "{name}");
            ask(&browser, "document.activeElement.blur(); scrollTo(0, 0)").await;
            picture(&browser, &name).await;
        }
        browser.goto(&format!("{home}/session?id=o-8")).await.unwrap();
        let pulse =
            "return getComputedStyle(document.querySelector('.node.current rect')).animationName";
        assert_eq!(ask(&browser, pulse).await, json!("pulse"), "the current step of a run");
        browser.close().await.unwrap();
    }
    running.cancel();
    running.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_changes_leaves_a_reader_where_they_are() {
    let Some(driver) = Driver::start() else { return };
    let rig = Rig::new().await;
    let agent = waiting(&rig, "t-1").await;
    let browser = driver.browser(1_240, false).await;
    browser.goto(&format!("http://{}/session?id=t-1", rig.address)).await.unwrap();
    browser.wait().for_element(Locator::Css(".live.on")).await.unwrap();
    browser.find(Locator::Css("#e3 summary")).await.unwrap().click().await.unwrap();
    let mark = "const row = document.querySelector('#e2 a'); row.focus(); row.seen = true;
        getSelection().selectAllChildren(document.querySelector('#e2 .what span'));";
    ask(&browser, mark).await;
    let first = "const now = document.querySelector('[data-part=now]'); now.seen = true; return now.textContent";
    let one = "The session is interrupted at Act. One question waits for an answer.";
    assert_eq!(ask(&browser, first).await, json!(one));

    let sessions = Sessions::shared(Arc::clone(&rig.store));
    let asked = sessions.status("t-1").await.unwrap().questions[0].id.clone();
    let answers = Answers::json(asked, json!({"approve": {}}));
    agent.resume("t-1", answers, ()).await.unwrap().ended().unwrap();
    browser.wait().for_element(Locator::Css(".title .badge.ended")).await.unwrap();
    browser.wait().for_element(Locator::Css("#e8")).await.unwrap();
    let found = "return [document.activeElement.matches('#e2 a') && document.activeElement.seen,
        document.querySelector('#e3 details').open, String(getSelection())]";
    assert_eq!(ask(&browser, found).await, json!([true, true, "a turn begins at Think"]));
    assert!(text(&browser, ".timeline").await.contains("answered by"));
    // A screen reader says what changes within the element that it knows.
    let says = "const now = document.querySelector('[data-part=now]');
        return [now.seen, now.getAttribute('role'), now.textContent.trim()]";
    let ended = json!([true, "status", "The session is ended at Think."]);
    assert_eq!(ask(&browser, says).await, ended);
    // The rows are those that the server shows, once each and in order.
    let rows = "return [...document.querySelectorAll('.timeline > li[id]')].map(it => Number(it.id.slice(1)))";
    let head = sessions.status("t-1").await.unwrap().head.0;
    let all = json!((1..=head).collect::<Vec<_>>());
    for _ in 0..1_000 {
        if ask(&browser, rows).await == all {
            break;
        }
    }
    assert_eq!(ask(&browser, rows).await, all);
    browser.close().await.unwrap();
}
