//! The execution state graph of a session.

use std::sync::Arc;

use harness::code::Code;
use harness::inspect::report::{CodeStatus, programs};
use harness::{Sessions, esg};

use super::coded::{Work, agent, bench, session, turn};
use super::rig::Rig;

/// What the field says of each step.
async fn statuses(rig: &Rig) -> Vec<(CodeStatus, String)> {
    let state = Sessions::shared(Arc::clone(&rig.store)).state("s").await.unwrap();
    let program = programs(&state).remove(0);
    let said = |step: &harness::inspect::report::CodeStep| {
        (step.status, step.execution.as_ref().map_or("", |it| text(it)).to_owned())
    };
    program.steps.iter().map(said).collect()
}

fn text(execution: &esg::Execution) -> &str {
    std::str::from_utf8(&execution.stdout.bytes).unwrap()
}

async fn states(rig: &Rig) -> Vec<CodeStatus> {
    statuses(rig).await.into_iter().map(|(status, _)| status).collect()
}

fn back<'f>(token: &'f str, version: &'f str, head: &'f str) -> Vec<(&'f str, &'f str)> {
    vec![
        ("token", token),
        ("id", "s"),
        ("field", "code"),
        ("head", head),
        ("version", version),
        ("why", "it counted one too many"),
        ("by", "ada"),
    ]
}

#[tokio::test]
async fn a_program_is_shown_and_rolled_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rows.txt");
    std::fs::write(&file, "3 1").unwrap();
    let (rig, bench) = (Rig::new().await, bench());
    let agent = session(&rig, &bench, &file).await;
    // The inspector is on another machine: it has no such file, and asks for none.
    std::fs::remove_file(&file).unwrap();

    let page = rig.get("/session?id=s").await;
    assert_eq!(page.status, 200, "{}", page.body);
    for shown in [
        "Execution state graph",
        "Replay 3 ran 2, kept 1",
        "Nothing would run again",
        "it ran in replay 1",
        "patched by &lt;b&gt;fixer&lt;/b&gt;",
        "fixed total",
        "fixed show",
        "- total = sum(row)",
        "+ total = sum(rows)",
        "# &lt;script&gt;alert(1)",
        "&lt;img src=x&gt; 6",
        ">flow<",
        ">runs<",
    ] {
        assert!(page.body.contains(shown), "{shown}: {}", page.body);
    }
    assert!(!page.body.contains("<script>alert") && !page.body.contains("<img"), "{}", page.body);
    let report = rig.get("/session/report?id=s&form=md").await.body;
    assert!(report.contains("## Execution state graph `code`"), "{report}");
    assert!(report.contains("| `show` | `total` | `total` | flow | runs |"), "{report}");
    // As it was after the first turn, before the patch.
    let sessions = Sessions::shared(Arc::clone(&rig.store));
    let first = sessions.history("s", harness::Seq(1), 100).await.unwrap();
    let commit = first.entries.iter().find(|(_, it)| it.change.name() == "commit").unwrap().0;
    let before = rig.get(&format!("/session/state?id=s&seq={commit}")).await.body;
    assert!(before.contains("NameError") && !before.contains("fixer"), "{before}");

    // v3 is the patch, and v4 the edit that never ran.
    assert!(page.body.contains("version=4\">Roll back to v4"), "{}", page.body);
    let version = rig.get("/session/version?id=s&program=0&version=4").await;
    assert_eq!(version.status, 200);
    for shown in ["Version v4 of total", "its code was edited", "it may read `total`"] {
        assert!(version.body.contains(shown), "{shown}: {}", version.body);
    }
    let (token, head) = (version.hidden("token"), version.hidden("head"));
    let got = rig.post("/session/version/back", &back(&token, "4", &head)).await;
    assert_eq!(got.status, 303, "{}", got.body);
    let shown = rig.get("/session?id=s").await.body;
    assert!(shown.contains("ada edited the state: it counted one too many"), "{shown}");
    assert!(shown.contains("To v4 by ada"), "{shown}");
    let (kept, stale) = (CodeStatus::Kept, CodeStatus::Stale);
    assert_eq!(states(&rig).await, [kept, stale, stale]);

    // The next run of the program executes what it affects.
    std::fs::write(&file, "3 1").unwrap();
    turn(&agent, &bench, Work::update()).await;
    assert_eq!(states(&rig).await, [kept, CodeStatus::Ran, CodeStatus::Ran]);
    assert_eq!(statuses(&rig).await[2].1, "<img src=x> 5\n");

    // What ran before counts again.
    let version = rig.get("/session/version?id=s&program=0&version=3").await;
    assert!(version.body.contains("Nothing would run again"), "{}", version.body);
    let (token, head) = (version.hidden("token"), version.hidden("head"));
    let got = rig.post("/session/version/back", &back(&token, "3", &head)).await;
    assert_eq!(got.status, 303, "{}", got.body);
    let now = statuses(&rig).await;
    assert_eq!((now[1].0, &*now[2].1), (kept, "<img src=x> 4\n"), "{now:?}");
}

#[tokio::test]
async fn a_rollback_that_is_forged_stale_or_wrong_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rows.txt");
    std::fs::write(&file, "3 1").unwrap();
    let (rig, bench) = (Rig::new().await, bench());
    session(&rig, &bench, &file).await;
    let page = rig.get("/session/version?id=s&program=0&version=3").await;
    let (token, head) = (page.hidden("token"), page.hidden("head"));
    let sessions = Sessions::shared(Arc::clone(&rig.store));
    let path = "/session/version/back";
    for (fields, status, said) in [
        (back("0", "3", &head), 403, "Refused"),
        (back(&token, "3", "1"), 409, "has changed since entry 1"),
        (back(&token, "5", &head), 422, "v5 is the present version of `total`"),
        (back(&token, "9", &head), 422, "has no version v9"),
        (back(&token, "x", &head), 400, "is not a number"),
    ] {
        let got = rig.post(path, &fields).await;
        assert_eq!(got.status, status, "{said}: {}", got.body);
        assert!(got.body.contains(said), "{said}: {}", got.body);
    }
    let without = |name: &str| {
        let mut fields = back(&token, "3", &head);
        fields.iter_mut().filter(|(found, _)| *found == name).for_each(|field| field.1 = " ");
        fields
    };
    for name in ["why", "by", "field"] {
        assert_eq!(rig.post(path, &without(name)).await.status, 400, "{name}");
    }
    let mut other = back(&token, "3", &head);
    other[2].1 = "note";
    assert_eq!(rig.post(path, &other).await.status, 422, "it is no program");
    for (program, version) in [("0", "9"), ("1", "3")] {
        let path = format!("/session/version?id=s&program={program}&version={version}");
        assert_eq!(rig.get(&path).await.status, 404);
    }

    let reading = Rig::over(Arc::clone(&rig.store), |it| it).await;
    let page = reading.get("/session/version?id=s&program=0&version=3").await;
    assert!(page.status == 200 && !page.body.contains("<form method=\"post\""), "{}", page.body);
    let own = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(back(&token, "3", &head))
        .finish();
    assert_eq!(reading.ask("POST", path, &[], &own).await.status, 403);
    assert_eq!(rig.ask("POST", path, &[("sec-fetch-site", "cross-site")], &own).await.status, 403);
    assert_eq!(sessions.status("s").await.unwrap().head.to_string(), head, "nothing was written");
}

#[tokio::test]
async fn edges_of_each_kind_are_drawn_and_listed() {
    const SCRIPT: &str = "# %% load\nrows = [3, 1]\n# %% name\nsame = rows\n# %% grow\nsame.append(2)\n\
        # %% show\ndef show():\n    return total\n# %% total\ntotal = sum(rows)\n# %% print\nprint(show())\n\
        # %% again\nrows = []\n";
    let (rig, bench) = (Rig::new().await, bench());
    let program = esg::Program::from_script(SCRIPT).unwrap();
    turn(&agent(&rig), &bench, Work::update().code(Code::added(&program))).await;
    let page = rig.get("/session?id=s").await.body;
    for (class, reader, producer, what, kind) in [
        ("flow", "total", "grow", "rows", "flow"),
        ("late", "print", "total", "total", "late-bound"),
        ("alias", "grow", "load", "rows", "alias"),
        ("order", "again", "total", "rows", "order"),
    ] {
        // One is that of the legend.
        let drawn = page.matches(&format!("class=\"edge {class}\"")).count();
        assert!(drawn > 1, "{class}: {page}");
        let cell = |text: &str| format!("<td class=\"wrap\">{text}</td>");
        let (reader, producer) = (cell(reader), cell(producer));
        let what = cell(&format!("<code>{what}</code>"));
        let listed = format!("{reader}{producer}{what}<td>{kind}</td>");
        assert!(page.contains(&listed), "{listed}: {page}");
    }
}
