//! Nested loops that end with a signal.

use harness::graph::Rule;
use harness::observe::Recorder;
use harness::prelude::*;
use harness::store::MemoryStore;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Draft {
    #[state(reduce = append)]
    log: Vec<String>,
    marks: Vec<bool>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Sign;

async fn note(_: View<Draft>, cx: Cx<()>) -> StepResult<Draft> {
    Ok(Draft::update().log([cx.step().to_owned()]))
}

async fn mark(draft: View<Draft>, cx: Cx<()>) -> StepResult<Draft> {
    let rest = draft.marks.get(1..).unwrap_or_default();
    Ok(Draft::update().log([cx.step().to_owned()]).marks(rest.to_vec()))
}

/// Asks, and ends with what was said.
mod sign {
    use super::{Draft, Sign, note};
    use harness::prelude::*;
    use harness::{Define, declare::StepDef};

    #[derive(Signal, Clone, Copy, Debug, PartialEq)]
    pub(crate) enum Said {
        Yes,
        No,
    }

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    #[step(ends = Said)]
    pub(crate) enum Step {
        Ask,
        File,
    }

    fn said(draft: &Draft) -> Said {
        match draft.log.last().is_some_and(|said| said == "true") {
            true => Said::Yes,
            false => Said::No,
        }
    }

    pub(crate) fn sign(define: Define<(), Draft, Step>, step: Step) -> StepDef<(), Draft, Step> {
        match step {
            Step::Ask => define
                .ask(|_, _| async move { Ok(Sign) })
                .answer(
                    |_, _, said| async move { Ok(Draft::update().log([said.answer.to_string()])) },
                )
                .route(said, |said| match said {
                    Said::Yes => to(Step::File),
                    Said::No => end_with(Said::No),
                }),
            Step::File => define.run(note).end_with(Said::Yes),
        }
    }
}

/// Marks a draft; a good one must be signed, too.
mod review {
    use super::{Draft, mark, note, sign};
    use harness::prelude::*;
    use harness::{Define, declare::StepDef};

    #[derive(Signal, Clone, Copy, Debug, PartialEq)]
    pub(crate) enum Verdict {
        Good,
        Bad,
    }

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    #[step(ends = Verdict)]
    pub(crate) enum Step {
        Read,
        #[step(nest)]
        Sign(sign::Step),
        GiveUp,
    }

    fn judge(draft: &Draft) -> Verdict {
        if draft.marks.first() == Some(&true) { Verdict::Good } else { Verdict::Bad }
    }

    pub(crate) fn review(define: Define<(), Draft, Step>, step: Step) -> StepDef<(), Draft, Step> {
        match step {
            Step::Read => {
                define.run(mark).at_most(3, Step::GiveUp).route(judge, |verdict| match verdict {
                    Verdict::Good => to(Step::Sign(sign::Step::Ask)),
                    Verdict::Bad => end_with(verdict),
                })
            }
            Step::Sign(step) => {
                define.nest(Step::Sign, sign::sign, step).route(|said| match said {
                    sign::Said::Yes => end_with(Verdict::Good),
                    sign::Said::No => to(Step::GiveUp),
                })
            }
            Step::GiveUp => define.run(note).end_with(Verdict::Bad),
        }
    }
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Write,
    #[step(nest)]
    First(review::Step),
    #[step(nest)]
    Second(review::Step),
    Publish,
}

fn harness() -> Harness<(), Draft> {
    use review::Verdict;

    Harness::builder("drafts")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define.run(note).then(Step::First(review::Step::Read)),
            Step::First(step) => {
                define.nest(Step::First, review::review, step).route(|verdict| match verdict {
                    Verdict::Good => to(Step::Second(review::Step::Read)),
                    Verdict::Bad => to(Step::Write),
                })
            }
            Step::Second(step) => {
                define.nest(Step::Second, review::review, step).route(|verdict| match verdict {
                    Verdict::Good => to(Step::Publish),
                    Verdict::Bad => end(),
                })
            }
            Step::Publish => define.run(note).end(),
        })
        .build()
        .unwrap()
}

/// The steps of a run whose reviews are marked so, and which is answered so.
async fn path(marks: &[bool], answers: &[bool]) -> Vec<String> {
    let seen = Recorder::default();
    let store = MemoryStore::new();
    let input = Draft::update().marks([&[true], marks].concat());
    let agent = || harness().observe(seen.clone()).agent("a", ()).store(store.clone());
    let mut outcome = agent().run(input, ()).session("s").await.unwrap();
    for answer in answers {
        let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
        let answer = waiting.pending::<Sign>().unwrap().answer(*answer);
        // Another agent on the same store, as in another process.
        outcome = agent().resume("s", answer, ()).await.unwrap();
    }
    let mut path = seen.started();
    path.dedup();
    path.push(outcome.ended().unwrap().signal().unwrap_or("-").to_owned());
    path
}

#[tokio::test]
async fn the_outer_loop_routes_by_the_signal_that_the_inner_one_ends_with() {
    // Of two groups that nest one loop, each has its own routes.
    assert_eq!(
        path(&[true, true], &[true, true]).await,
        [
            "Write",
            "First/Read",
            "First/Sign/Ask",
            "First/Sign/File",
            "Second/Read",
            "Second/Sign/Ask",
            "Second/Sign/File",
            "Publish",
            "-",
        ]
    );
    // The route of a step in the inner loop has ended the turn.
    assert_eq!(
        path(&[false, true, false], &[true]).await,
        [
            "Write",
            "First/Read",
            "Write",
            "First/Read",
            "First/Sign/Ask",
            "First/Sign/File",
            "Second/Read",
            "Bad",
        ]
    );
    // A loop two levels down ends, and the loop between routes by its signal.
    assert_eq!(
        path(&[true, true, true], &[false, true, false]).await,
        [
            "Write",
            "First/Read",
            "First/Sign/Ask",
            "First/GiveUp",
            "Write",
            "First/Read",
            "First/Sign/Ask",
            "First/Sign/File",
            "Second/Read",
            "Second/Sign/Ask",
            "Second/GiveUp",
            "-",
        ]
    );
}

#[test]
fn edges_of_signals_are_drawn() {
    let drawn = harness().graph().to_mermaid();
    let edges: Vec<&str> =
        drawn.lines().map(str::trim).filter(|line| line.contains("--")).collect();
    // Of the first group: the signals of its steps, and the targets of the loop around it.
    for edge in [
        "s1 -- \"Good\" --> s2",
        "s1 -- \"Bad\" --> s0",
        "s2 -- \"Yes\" --> s3",
        "s2 -- \"No\" --> s4",
        "s3 --> s5",
        "s4 --> s0",
    ] {
        assert!(edges.contains(&edge), "{edge}\n{drawn}");
    }
    assert!(drawn.contains("subgraph g0[\"First\"]"), "{drawn}");
}

#[test]
fn a_step_that_only_an_unused_signal_leads_to_is_unreachable() {
    mod fine {
        use super::{Draft, note, review::Verdict};
        use harness::prelude::*;
        use harness::{Define, declare::StepDef};

        #[derive(StepId, Clone, Debug, PartialEq, Eq)]
        #[step(ends = Verdict)]
        pub(crate) enum Step {
            Read,
        }

        pub(crate) fn fine(
            define: Define<(), Draft, Step>,
            step: Step,
        ) -> StepDef<(), Draft, Step> {
            match step {
                Step::Read => define.run(note).end_with(Verdict::Good),
            }
        }
    }

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum Step {
        #[step(nest)]
        Review(fine::Step),
        Repair,
    }

    let error = Harness::<(), Draft>::builder("drafts")
        .start(Step::Review(fine::Step::Read))
        .steps(|define, step| match step {
            Step::Review(step) => {
                define.nest(Step::Review, fine::fine, step).route(|verdict| match verdict {
                    review::Verdict::Good => end(),
                    review::Verdict::Bad => to(Step::Repair),
                })
            }
            Step::Repair => define.run(note).end(),
        })
        .build()
        .unwrap_err();
    assert_eq!(error.violations()[0].rule, Rule::Unreachable);
    assert_eq!(error.violations()[0].steps, ["Repair"]);
}
