//! Steps that configuration switches off.
#![allow(missing_docs, clippy::unwrap_used)]

use harness::graph::Rule;
use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Draft {
    text: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Translate,
    Publish,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    Translate,
    Publish,
}

async fn work(_: View<Draft>, _: Cx<()>) -> StepResult<Draft> {
    Ok(Draft::update())
}

#[tokio::test]
async fn a_step_that_is_off_need_not_be_reached_and_is_drawn_grey() {
    let harness = Harness::<(), Draft>::builder("drafts")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define.run(work).then(Step::Publish),
            Step::Translate => define.off("no language"),
            Step::Publish => define.run(work).end(),
        })
        .build()
        .unwrap();
    let drawn = harness.graph().to_mermaid();
    assert_eq!(
        drawn,
        "\
flowchart TD
    start([\"drafts\"]) --> s0
    s0[\"Write\"]
    s0 --> s2
    s1[\"Translate\"]
    style s1 fill:#eee,color:#999,stroke-dasharray:5 5
    s2[\"Publish\"]
    s2 --> finish
    finish(((end)))
"
    );
    harness.agent("a", ()).run(Draft::update(), ()).await.unwrap().ended().unwrap();
}

#[test]
fn every_edge_to_a_step_that_is_off_is_a_violation_that_says_why() {
    let on_error = line!() + 3;
    let error = Harness::<(), Draft>::builder("drafts")
        .start(Step::Translate)
        .on_error(Step::Translate)
        .finally(Step::Translate)
        .steps(|define, step| match step {
            Step::Write => define.run(work).at_most(2, Step::Translate).route(
                |_| Next::Translate,
                |next| match next {
                    Next::Translate => to(Step::Translate),
                    Next::Publish => to(Step::Publish),
                },
            ),
            Step::Translate => define.off("no \n language"),
            Step::Publish => define.run(work).on_error(Step::Translate).then(Step::Write),
        })
        .build()
        .unwrap_err();
    let off: Vec<String> = error
        .violations()
        .iter()
        .filter(|violation| violation.rule == Rule::Off)
        .map(|violation| violation.to_string().split(" leads").next().unwrap().to_owned())
        .collect();
    assert_eq!(
        off,
        [
            "the start",
            "step `Write`",
            "step `Write`",
            "step `Publish`",
            "`on_error` of the loop",
            "`finally` of the loop"
        ]
    );
    let words = "`on_error` of the loop leads to step `Translate`, which is off: no \\n language \
                 (lead elsewhere, or switch it on) (declared at harness/tests/off.rs:";
    assert!(error.to_string().contains(&format!("{words}{on_error}:")), "{error}");
}
