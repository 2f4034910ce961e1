//! The violations that `build()` reports: typed data, locations, drawings.
#![allow(missing_docs, clippy::unwrap_used)]

use std::borrow::Cow;

use harness::graph::Rule;
use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Draft {
    text: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Polish,
    Publish,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Verdict {
    Good,
    Poor,
}

async fn work(_: View<Draft>, _: Cx<()>) -> StepResult<Draft> {
    Ok(Draft::update())
}

fn judge(draft: &Draft) -> Verdict {
    if draft.text.is_empty() { Verdict::Poor } else { Verdict::Good }
}

/// A valid loop.
fn drafts() -> Harness<(), Draft> {
    Harness::builder("drafts")
        .start(Step::Write)
        .on_error(Step::Publish)
        .finally(Step::Publish)
        .steps(|define, step| match step {
            Step::Write => define.run(work).on_error(Step::Polish).at_most(3, Step::Publish).route(
                judge,
                |verdict| match verdict {
                    Verdict::Good => to(Step::Polish),
                    Verdict::Poor => end(),
                },
            ),
            Step::Polish => define.run(work).then(Step::Write),
            Step::Publish => define.run(work).end(),
        })
        .build()
        .unwrap()
}

#[test]
fn violations_are_data_with_the_line_of_their_declaration() {
    let polish = line!() + 5;
    let error = Harness::<(), Draft>::builder("drafts")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define.run(work).end(),
            Step::Polish => define.run(work).on_error(Step::Polish).then(Step::Polish),
            Step::Publish => define.run(work).end(),
        })
        .build()
        .unwrap_err();
    let seen: Vec<(Rule, &str, u32)> = error
        .violations()
        .iter()
        .map(|violation| (violation.rule, &*violation.steps[0], violation.declared.line))
        .collect();
    assert_eq!(
        seen,
        [
            (Rule::Unreachable, "Polish", polish),
            (Rule::Unreachable, "Publish", polish + 1),
            (Rule::EndlessCycle, "Polish", polish),
            (Rule::ErrorCycle, "Polish", polish),
        ],
    );
    assert!(error.violations().iter().all(|violation| violation.declared.file == file!()));
}

#[test]
fn the_alternate_form_of_an_error_draws_the_loop() {
    let error = Harness::<(), Draft>::builder("drafts")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define.run(work).end(),
            Step::Polish => define.run(work).then(Step::Publish),
            Step::Publish => define.run(work).end(),
        })
        .build()
        .unwrap_err();
    let plain = error.to_string();
    assert!(plain.starts_with("the loop `drafts` breaks 2 rules:\n  - step `Polish` cannot be"));
    assert!(plain.contains(&format!("(declared at {}:", file!())), "{plain}");
    assert_eq!(format!("{error:#}"), format!("{plain}\n\n{}", error.graph().to_mermaid()));
    assert_eq!(format!("{error:?}"), format!("{error:#}"));
}

#[test]
fn a_loop_is_drawn_with_every_kind_of_edge() {
    let drafts = drafts();
    let drawn = drafts.graph().to_mermaid();
    assert_eq!(
        drawn,
        "\
flowchart TD
    start([\"drafts\"]) --> s0
    s0[\"Write\"]
    s0 -- \"Good\" --> s1
    s0 -- \"Poor\" --> finish
    s0 -- \"after 3\" --> s2
    s0 -. \"error\" .-> s1
    s1[\"Polish\"]
    s1 --> s0
    s2[\"Publish\"]
    s2 --> finish
    finish(((end)))
    failed[/any error/] -.-> s2
    finish -. \"finally\" .-> s2
"
    );
    assert_eq!(format!("{drafts:?}"), drawn);
    assert_eq!(format!("{:?}", drafts.graph()), drawn);
    assert_eq!(drafts.graph().to_string(), drawn);
}

/// A hand-written step enum with configurable names and numbers.
#[derive(Clone, Debug, PartialEq)]
struct ByHand<const STEPS: usize, const SHIFT: usize>(usize);

impl<const STEPS: usize, const SHIFT: usize> StepId for ByHand<STEPS, SHIFT> {
    type End = ();

    const NAME: &'static str = "ByHand";

    fn all() -> Vec<Self> {
        (0..STEPS).map(Self).collect()
    }

    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("say \"hi\" #1\n--> s9")
    }

    fn index(&self) -> usize {
        self.0 + SHIFT
    }
}

#[test]
fn hostile_names_are_escaped_in_labels() {
    let harness = Harness::<(), Draft>::builder("\"]\nclick s0 \"javascript:x\"")
        .start(ByHand::<1, 0>(0))
        .steps(|define, _| define.run(work).end())
        .build()
        .unwrap();
    assert_eq!(
        harness.graph().to_mermaid(),
        "\
flowchart TD
    start([\"#quot;] click s0 #quot;javascript#58;x#quot;\"]) --> s0
    s0[\"say #quot;hi#quot; #35;1 --> s9\"]
    s0 --> finish
    finish(((end)))
"
    );
}

#[test]
fn wrongly_numbered_steps_are_a_violation() {
    fn found<const STEPS: usize, const SHIFT: usize>(start: usize) -> harness::BuildError {
        Harness::<(), Draft>::builder("wrong")
            .start(ByHand::<STEPS, SHIFT>(start))
            .steps(|define, _| define.run(work).end())
            .build()
            .unwrap_err()
    }
    let cases = [
        (found::<2, 1>(0), "the one listed at 0 is numbered 1"),
        (found::<1, 0>(7), "an edge leads to number 7 of 1"),
        (found::<0, 0>(0), "an edge leads to number 0 of 0"),
    ];
    for (error, but) in cases {
        let [only] = error.violations() else { panic!("{error}") };
        assert_eq!(only.rule, Rule::StepIds);
        let words = format!(
            "`ByHand::index()` must number the steps in the order of `ByHand::all()`, from 0, but \
             {but} (derive `StepId`) (declared at {})",
            only.declared
        );
        assert_eq!(only.to_string(), words);
        assert!(!format!("{error:#}").is_empty());
    }
}

/// A signal with an index out of range.
#[derive(Clone, Copy, Debug)]
struct Lies;

impl Signal for Lies {
    const NAME: &'static str = "Lies";
    const ALL: &'static [Self] = &[Self];

    fn name(self) -> &'static str {
        "Lies"
    }

    fn index(self) -> usize {
        7
    }
}

#[tokio::test]
async fn a_signal_with_a_wrong_index_fails_only_its_run() {
    let harness = Harness::<(), Draft>::builder("lies")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define.run(work).route(|_| Lies, |_| to(Step::Polish)),
            Step::Polish => define.run(work).then(Step::Publish),
            Step::Publish => define.run(work).end(),
        })
        .build()
        .unwrap();
    let outcome = harness.agent("lies", ()).run(Draft::update(), ()).await.unwrap();
    let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failed.failure.kind, harness::FailureKind::RoutePanic);
    assert!(
        failed.failure.message.contains("signal index 7 is out of range for `Lies` (it has 1)"),
        "{failed:?}"
    );
}
