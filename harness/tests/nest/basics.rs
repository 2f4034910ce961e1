//! Loops that are nested twice, and at any depth.

use harness::graph::Rule;
use harness::observe::{EventKind, Recorder};
use harness::prelude::*;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Draft {
    #[state(reduce = append)]
    log: Vec<String>,
}

async fn note(_: View<Draft>, cx: Cx<()>) -> StepResult<Draft> {
    Ok(Draft::update().log([cx.step().to_owned()]))
}

async fn fail(_: View<Draft>, _: Cx<()>) -> StepResult<Draft> {
    Err(StepError::fatal("torn"))
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Sign;

mod sign {
    use super::{Draft, Sign, note};
    use harness::prelude::*;
    use harness::{Define, declare::StepDef};

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    pub(crate) enum Step {
        Ask,
        File,
    }

    pub(crate) fn sign(define: Define<(), Draft, Step>, step: Step) -> StepDef<(), Draft, Step> {
        match step {
            Step::Ask => define
                .ask(|_, _| async move { Ok(Sign) })
                .answer(|_, _, _| async move { Ok(Draft::update().log(["signed".to_owned()])) })
                .then(Step::File),
            Step::File => define.run(note).end(),
        }
    }
}

mod review {
    use super::{Draft, fail, note, sign};
    use harness::prelude::*;
    use harness::{Define, declare::StepDef};

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    pub(crate) enum Step {
        Read,
        #[step(nest)]
        Sign(sign::Step),
        Repair,
        Again,
    }

    #[derive(Signal, Clone, Copy, Debug)]
    pub(crate) enum Verdict {
        Sign,
        Drop,
    }

    pub(crate) fn review(define: Define<(), Draft, Step>, step: Step) -> StepDef<(), Draft, Step> {
        match step {
            Step::Read => define.run(fail).on_error(Step::Repair).at_most(5, Step::Again).end(),
            Step::Sign(step) => define.nest(Step::Sign, sign::sign, step).end(),
            Step::Repair => define.run(note).then(Step::Again),
            Step::Again => define.decide(
                |draft: &Draft| if draft.log.len() < 4 { Verdict::Sign } else { Verdict::Drop },
                |verdict| match verdict {
                    Verdict::Sign => to(Step::Sign(sign::Step::Ask)),
                    Verdict::Drop => end(),
                },
            ),
        }
    }
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Write,
    #[step(nest)]
    First(review::Step),
    Between,
    #[step(nest)]
    Second(review::Step),
    Publish,
}

fn harness() -> Harness<(), Draft> {
    Harness::builder("drafts")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define.run(note).then(Step::First(review::Step::Read)),
            Step::First(step) => define.nest(Step::First, review::review, step).then(Step::Between),
            Step::Between => define.run(note).then(Step::Second(review::Step::Read)),
            Step::Second(step) => {
                define.nest(Step::Second, review::review, step).then(Step::Publish)
            }
            Step::Publish => define.run(note).end(),
        })
        .build()
        .unwrap()
}

#[test]
fn a_step_enum_has_its_own_and_the_nested_steps() {
    let all = Step::all();
    assert_eq!(all.len(), 13);
    for (at, step) in all.iter().enumerate() {
        assert_eq!(step.index(), at, "{step:?}");
    }
    let deep = Step::Second(review::Step::Sign(sign::Step::File));
    assert_eq!((deep.index(), &*deep.name()), (9, "Second/Sign/File"));
    assert_eq!(harness().graph().steps().nth(9), Some("Second/Sign/File"));
}

#[tokio::test]
async fn a_loop_nested_twice_runs_asks_and_fails_under_both_names() {
    let seen = Recorder::default();
    let agent = harness().observe(seen.clone()).agent("a", ());
    let outcome = agent.run(Draft::update(), ()).await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let asked = seen.events().into_iter().find_map(|event| match event.kind {
        EventKind::Asked { .. } => Some(event.step_as::<Step>()),
        _ => None,
    });
    assert_eq!(asked.unwrap(), Some(Step::First(review::Step::Sign(sign::Step::Ask))));
    let answers = waiting.pending::<Sign>().unwrap().answer(true);
    let ended = agent.resume(&waiting, answers, ()).await.unwrap().ended().unwrap();
    assert_eq!(
        ended.state.log,
        [
            "Write",
            "First/Repair",
            "signed",
            "First/Sign/File",
            "Between",
            "Second/Repair",
            "Publish"
        ]
    );
    assert_eq!(
        seen.started(),
        [
            "Write",
            "First/Read",
            "First/Repair",
            "First/Again",
            "First/Sign/Ask",
            "First/Sign/Ask",
            "First/Sign/File",
            "Between",
            "Second/Read",
            "Second/Repair",
            "Second/Again",
            "Publish"
        ]
    );
}

#[test]
fn nested_loops_are_drawn_as_groups() {
    let drawn = harness().graph().to_mermaid();
    let first = "    subgraph g0[\"First\"]
        s1[\"Read\"]
        subgraph g1[\"Sign\"]
            s2{{\"Ask\"}}
            s3[\"File\"]
        end
        s4[\"Repair\"]
        s5{\"Again\"}
    end
    s1 --> s6
    s1 -- \"after 5\" --> s5
    s1 -. \"error\" .-> s4
    s2 --> s3
    s3 --> s6
    s4 --> s5
    s5 -- \"Sign\" --> s2
    s5 -- \"Drop\" --> s6
    s6[\"Between\"]
";
    assert!(drawn.contains(first), "{drawn}");
    assert!(drawn.contains("s8 --> s9") || drawn.contains("s10 --> s12"), "{drawn}");
}

#[test]
fn violations_name_nested_steps() {
    let error = Harness::<(), Draft>::builder("drafts")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define.run(note).end(),
            Step::First(step) => define.nest(Step::First, review::review, step).end(),
            Step::Between => define.off("not now"),
            Step::Second(step) => {
                define.nest(Step::Second, |define, _| define.off("too"), step).end()
            }
            Step::Publish => define.off("not now"),
        })
        .build()
        .unwrap_err();
    let lost: Vec<&str> = error
        .violations()
        .iter()
        .filter(|violation| violation.rule == Rule::Unreachable)
        .map(|violation| &*violation.steps[0])
        .collect();
    assert_eq!(
        lost,
        ["First/Read", "First/Sign/Ask", "First/Sign/File", "First/Repair", "First/Again"]
    );
}

mod renamed {
    use harness::prelude::*;

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    pub(crate) enum Inner {
        #[step(alias = "Scan", alias = "Look")]
        Read,
        Mark,
    }

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    pub(crate) enum Step {
        #[step(alias = "Compose")]
        Write,
        #[step(nest, alias = "Check")]
        Review(Inner),
        Publish,
    }
}

#[test]
fn aliases_are_prefixed_by_the_names_of_the_group() {
    use renamed::{Inner, Step};

    assert_eq!(Step::Write.aliases(), ["Compose"]);
    assert_eq!(
        Step::Review(Inner::Read).aliases(),
        ["Review/Scan", "Review/Look", "Check/Read", "Check/Scan", "Check/Look"]
    );
    assert_eq!(Step::Review(Inner::Mark).aliases(), ["Check/Mark"]);
    assert!(Step::Publish.aliases().is_empty());
}
