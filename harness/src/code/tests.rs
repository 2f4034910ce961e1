use harness_esg::patcher::Patcher as _;
use harness_esg::{Diagnosis, Patch, Program};
use serde_json::json;

use super::{LlmPatcher, NoPatch};
use crate::llm::Scripted;

const GOOD: &str = "The list is called rows.\n\nSTEP total\n<<<<<<< SEARCH\ntotal = sum(row)\n=======\n\
                    total = sum(rows)\n>>>>>>> REPLACE\n";

fn program() -> Program {
    let script = "# %% load\nrows = [3, 1]\n# %% secret\nkey = 'hidden'\n# %% total\n# sums\ntotal = sum(row)\n";
    Program::from_script(script).unwrap()
}

/// As if `total` had failed, which has to do with `load`.
fn diagnosis() -> Diagnosis {
    serde_json::from_value(json!({
        "kind": "missing_name",
        "failing": {"step": "total", "version": 2, "line": 2, "text": "total = sum(row)"},
        "ending": {"kind": "raised", "type": "NameError", "message": "name 'row' is not defined", "line": 2},
        "root": null,
        "evidence": [
            {"value": {"name": "rows", "by": "load", "execution": 1, "type_name": "list", "repr": "[3, 1]"}},
            {"near": {"missing": "row", "known": ["rows"]}},
        ],
        "affected": [],
        "fault": {"kind": "NameError", "message": "name 'row' is not defined", "frames": [{"line": 2}], "name": "row"},
    }))
    .unwrap()
}

async fn ask(model: &Scripted, program: &Program) -> Result<Patch, NoPatch> {
    let patcher = LlmPatcher::new(model.clone()).agent("fixer").run("r-7").call("c");
    match patcher.propose(&diagnosis(), program).await {
        Ok(patches) => Ok(patches.into_iter().next().expect("one patch")),
        Err(error) => {
            let source = std::error::Error::source(&error).expect("a source");
            Err(source.downcast_ref::<NoPatch>().unwrap_or_else(|| panic!("{source}")).clone())
        }
    }
}

/// A reply that replaces the failing line.
fn block(step: &str, search: &str, replace: &str) -> String {
    format!("STEP {step}\n<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n")
}

#[tokio::test]
async fn a_patch_says_where_it_comes_from_and_the_prompt_has_only_the_steps_involved() {
    let (model, mut program) = (Scripted::new([GOOD]), program());
    let patch = ask(&model, &program).await.unwrap();
    assert_eq!(patch.why, "The list is called rows.");
    let version = program.patch(&patch).unwrap()[0];
    let provenance = &program.version(version).unwrap().provenance;
    let said = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
    assert_eq!(said(&provenance.call).as_deref(), Some("c-1"));
    assert_eq!(said(&provenance.agent).as_deref(), Some("fixer"));
    assert_eq!(said(&provenance.run).as_deref(), Some("r-7"));
    assert_eq!(
        said(&provenance.diagnosis).as_deref(),
        Some("NameError: name 'row' is not defined (line 2)")
    );
    assert!(provenance.parent.is_some());
    let seen = &model.seen()[0];
    assert_eq!(seen.call.as_ref().map(|call| call.as_str()), Some("c-1"));
    let prompt = serde_json::to_string(&seen.transcript).unwrap();
    assert!(prompt.contains("sum(row)") && prompt.contains("rows = [3, 1]"), "{prompt}");
    assert!(prompt.contains("there is `rows`") && !prompt.contains("hidden"), "{prompt}");
}

#[tokio::test]
async fn a_reply_that_cannot_be_used_is_refused_with_the_reason() {
    let cases = [
        ("I would check the name of the list.".to_owned(), "no block"),
        (GOOD[..GOOD.len() - 20].to_owned(), "ends before `>>>>>>> REPLACE`"),
        ("STEP total\n<<<<<<< SEARCH\ntotal = ".to_owned(), "ends before `=======`"),
        (block("secret", "key = 'hidden'", "key = 1"), "not one of those shown"),
        (block("total", "total = len(row)", "total = 1"), "no line is `total = len(row)`"),
        (block("load", "total = sum(row)", "total = sum(rows)"), "is not there"),
        (block("total", "total = sum(row)", "total = sum(rows"), "does not parse"),
        (block("total", "total = sum(row)", "total = sum(row)"), "changes nothing"),
        (block("total", "total = sum(row)", "# total = sum(row)"), "comments out"),
        (
            block(
                "total",
                "total = sum(row)",
                "try:\n    total = sum(row)\nexcept NameError:\n    total = 0",
            ),
            "hides the failure",
        ),
    ];
    for (reply, why) in cases {
        let (model, program) = (Scripted::new([reply.as_str(), GOOD]), program());
        let patch = ask(&model, &program).await.unwrap_or_else(|none| panic!("{reply}: {none}"));
        assert_eq!(patch.provenance.call.as_deref(), Some("c-2"));
        let prompt = serde_json::to_value(&model.seen()[1].transcript).unwrap().to_string();
        assert!(prompt.contains(why), "{reply}: {prompt}");
    }
}

#[tokio::test]
async fn a_model_that_returns_nothing_usable_is_asked_a_bounded_number_of_times() {
    let model = Scripted::new(["no", "not this either", "never", GOOD]);
    let none = ask(&model, &program()).await.unwrap_err();
    assert_eq!((none.rounds, none.repeats, model.seen().len()), (3, false, 3));
    assert!(none.to_string().contains("in 3 rounds"), "{none}");
    // The same reply again, after the reason: it is not asked a third time.
    let wrong = block("total", "total = len(row)", "total = 1");
    let model = Scripted::new([wrong.as_str(), wrong.as_str(), GOOD]);
    let none = ask(&model, &program()).await.unwrap_err();
    assert_eq!((none.rounds, none.repeats, model.seen().len()), (2, true, 2));
}

#[tokio::test]
async fn the_same_failing_patch_is_not_taken_twice() {
    let mut program = program();
    let before = program.step("total").unwrap().version;
    let wrong = block("total", "total = sum(row)", "total = sum(rowz)");
    let model = Scripted::new([wrong.as_str(), wrong.as_str(), wrong.as_str(), GOOD]);
    let patch = ask(&model, &program).await.unwrap();
    program.patch(&patch).unwrap();
    // It did not help.
    program.rollback(before).unwrap();
    let none = ask(&model, &program).await.unwrap_err();
    assert!(none.repeats && none.why.contains("had exactly this source as v3"), "{none}");
    assert_eq!(model.seen().len(), 3);
}

#[tokio::test]
async fn a_step_that_is_to_stay_is_patched_neither_by_the_model_nor_by_rules() {
    let other = block("load", "rows = [3, 1]", "row = rows = [3, 1]");
    let (model, program) = (Scripted::new([GOOD, other.as_str()]), program());
    let patcher = LlmPatcher::new(model.clone()).after_rules().read_only(["total"]);
    let patches = patcher.propose(&diagnosis(), &program).await.unwrap();
    let changed: Vec<_> = patches[0].steps().map(|step| &**step).collect();
    assert_eq!((patches.len(), changed), (1, vec!["load"]));
    let prompt = serde_json::to_value(&model.seen()[1].transcript).unwrap().to_string();
    assert!(prompt.contains("step `total` must stay as it is"), "{prompt}");
}
