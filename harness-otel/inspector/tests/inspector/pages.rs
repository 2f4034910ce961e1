//! What pages show.

use std::sync::Arc;
use std::time::Duration;

use harness::prelude::*;
use harness::store::MemoryStore;
use harness::testing::{Call, Faulty};

use super::rig::{Rig, waiting};

const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' autofocus onfocus=alert(1) x='",
    "</textarea></pre><script>alert(1)</script>",
    "\u{202e}evil\u{1b}[2J",
];

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Text {
    text: String,
    map: std::collections::BTreeMap<String, String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Ask,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = String)]
struct Say {
    text: String,
    arguments: String,
}

#[tokio::test]
async fn hostile_text_is_text_on_every_page() {
    let harness = Harness::<(), Text>::builder("<i>")
        .start(Step::Ask)
        .steps(|define, step| match step {
            Step::Ask => define
                .ask(|text: View<Text>, _| async move {
                    Ok(Say { text: text.text.clone(), arguments: text.text.clone() })
                })
                .answer(|_, _, _| async move { Ok(Text::update()) })
                .end(),
        })
        .build()
        .unwrap();
    for hostile in HOSTILE {
        let rig = Rig::new().await;
        let agent = harness.agent(*hostile, ()).shared_store(Arc::clone(&rig.store));
        let map = [((*hostile).to_owned(), (*hostile).to_owned())].into();
        let input = Text::update().text(*hostile).map(map);
        // Control characters are in no id.
        let id = if hostile.contains('\u{1b}') { "plain" } else { *hostile };
        agent.run(input, ()).session(id).await.unwrap();
        let query = |pairs: &[(&str, &str)]| {
            form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
        };
        let paths = [
            "/".to_owned(),
            "/waiting".to_owned(),
            format!("/?{}", query(&[("id", hostile), ("agent", hostile), ("phase", hostile)])),
            format!("/session?{}", query(&[("id", id)])),
            format!("/session?{}", query(&[("id", id), ("done", hostile)])),
            format!("/session/state?{}", query(&[("id", id), ("seq", "2")])),
            format!("/session/report?{}", query(&[("id", id)])),
            format!("/session?{}", query(&[("id", hostile)])),
        ];
        for path in paths {
            let got = rig.get(&path).await;
            let body = got.body.replace("<script src=\"/live.js\" defer></script>", "");
            for markup in ["<script", "<img", "<i>"] {
                assert!(!body.contains(markup), "{path}: {markup}: {body}");
            }
            assert!(!body.contains(['\u{202e}', '\u{1b}']), "{path}");
        }
        let page = rig.get(&format!("/session?{}", query(&[("id", id)]))).await;
        assert_eq!(page.status, 200, "{}", page.body);
    }
}

#[tokio::test]
async fn a_session_shows_its_loop_its_conversation_and_its_form() {
    let rig = Rig::new().await;
    waiting(&rig, "t-1").await;
    let page = rig.get("/session?id=t-1").await.body;
    for part in [
        "<svg role=\"img\"",
        "<title id=\"loop-title\">",
        "Conversation <code>talk</code>",
        "o-7 is &lt;b&gt;broken",
        "Calls <code>refund</code>",
        "Waits for a person: approve_refund",
        "<dt>order</dt><dd><bdi>o-7</bdi></dd>",
        "Items of Act",
        "refund {&quot;cents&quot;:1250",
        "<a href=\"#h-timeline\">Timeline</a>",
        "<legend>Answer</legend>",
        "How much is paid back.",
        "<label for=",
        "/session/state?id=t-1&amp;seq=2",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let state = rig.get("/session/state?id=t-1&seq=2").await.body;
    assert!(state.contains("talk[0]") && state.contains("Entry before"), "{state}");
    assert!(state.contains("name=\"seq\" min=\"1\" max="), "any entry can be chosen: {state}");
    assert_eq!(rig.get("/session/state?id=t-1&seq=999").await.status, 404);
    assert_eq!(rig.get("/session?id=none").await.status, 404);
    assert_eq!(rig.get("/session").await.status, 400);
    let waits = rig.get("/waiting").await.body;
    assert!(waits.contains("approve_refund") && waits.contains("just now"), "{waits}");
}

#[tokio::test]
async fn what_waits_is_searched_by_how_long_it_waits() {
    let rig = Rig::new().await;
    for nth in 0..55 {
        waiting(&rig, &format!("old-{nth:02}")).await;
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(2 * 3_600)).await;
    tokio::time::resume();
    waiting(&rig, "new").await;
    let rows = |page: &str| page.matches("/session?id=").count();
    let all = rig.get("/waiting").await.body;
    assert_eq!(rows(&all), 50);
    assert!(all.contains("id=new") && all.contains("2 h ago"), "{all}");
    let old = rig.get("/waiting?waited=1h&agent=support").await.body;
    assert_eq!(rows(&old), 50, "{old}");
    assert!(!old.contains("id=new") && old.contains("<option value=\"1h\" selected>"), "{old}");
    let next = old.split_once("rel=\"next\" href=\"").unwrap().1.split('"').next().unwrap();
    let rest = rig.get(&next.replace("&amp;", "&")).await.body;
    assert_eq!(rows(&rest), 5, "{rest}");
    assert!(!rest.contains("rel=\"next\"") && rest.contains("approve_refund"), "{rest}");
    for none in ["/waiting?waited=1d", "/waiting?waited=1h&agent=other"] {
        let page = rig.get(none).await.body;
        assert!(page.contains("Nothing that waits matches."), "{none}: {page}");
    }
}

#[tokio::test]
async fn a_large_state_has_a_small_page() {
    let rig = Rig::new().await;
    let harness = Harness::<(), Text>::builder("large")
        .start(Step::Ask)
        .steps(|define, step| match step {
            Step::Ask => define.run(|_, _| async move { Ok(Text::update()) }).end(),
        })
        .build()
        .unwrap();
    let agent = harness.agent("large", ()).shared_store(Arc::clone(&rig.store));
    agent.run(Text::update().text("x".repeat(10 << 20)), ()).session("s").await.unwrap();
    for path in ["/session?id=s", "/session/state?id=s&seq=2", "/session/report?id=s"] {
        let got = rig.get(path).await;
        assert_eq!(got.status, 200, "{path}");
        assert!(got.body.len() < 1 << 20, "{path}: {} bytes", got.body.len());
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_a_page_that_says_so() {
    let store = Arc::new(Faulty::new(MemoryStore::new()));
    let rig = Rig::over(store.clone(), |it| it.allow_answers()).await;
    waiting(&rig, "t-1").await;
    store.faults().before(Call::List, |_| true);
    store.faults().before(Call::Read, |_| true);
    for path in ["/", "/waiting", "/session?id=t-1", "/session/state?id=t-1&seq=1"] {
        let got = rig.get(path).await;
        assert_eq!((got.status, got.header("retry-after")), (503, Some("1")), "{path}");
        assert!(got.body.contains("The store does not answer"), "{}", got.body);
    }
    store.faults().clear();
    assert_eq!(rig.get("/session?id=t-1").await.status, 200);
}
