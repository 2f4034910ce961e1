//! Nested loops with a state of their own: a part of the state of the loop around them.

use std::collections::HashSet;

use harness::compat::Difference;
use harness::prelude::*;
use harness::session::Replay;
use harness::state::{Ops, encode, fold};
use harness::store::{MemoryStore, ReadRequest, SessionStore as _};
use harness::{FailureKind, Seq, SessionId};
use serde_json::{Value, json};

mod essay {
    use std::collections::HashSet;

    use harness::prelude::*;
    use harness::{Define, declare::StepDef};

    #[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(crate) struct Essay {
        pub(crate) title: Option<String>,
        #[state(reduce = append)]
        pub(crate) text_lines: Vec<String>,
        #[state(reduce = add)]
        pub(crate) rounds: u32,
        #[state(reduce = union)]
        pub(crate) tags: HashSet<String>,
    }

    #[derive(Question, Serialize, Deserialize)]
    #[question(answer = bool)]
    pub(crate) struct Fine {
        pub(crate) lines: usize,
    }

    #[derive(Signal, Clone, Copy, Debug, PartialEq)]
    pub(crate) enum Verdict {
        Good,
        Bad,
    }

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    #[step(ends = Verdict)]
    pub(crate) enum Step {
        Write,
        Tag,
        Review,
    }

    async fn write(essay: View<Essay>, _: Cx<()>) -> StepResult<Essay> {
        let line = format!("line {}", essay.text_lines.len() + 1);
        Ok(Essay::update().text_lines([line]).rounds(1))
    }

    async fn tags(essay: View<Essay>, _: Cx<()>) -> Result<Vec<String>, StepError> {
        Ok(essay.text_lines.clone())
    }

    async fn tag(line: String, essay: View<Essay>, _: Cx<()>) -> StepResult<Essay> {
        Ok(Essay::update().tags([format!("{line} of {}", essay.rounds), "all".to_owned()]))
    }

    fn verdict(essay: &Essay) -> Verdict {
        if essay.title.is_some() { Verdict::Good } else { Verdict::Bad }
    }

    pub(crate) fn essay(define: Define<(), Essay, Step>, step: Step) -> StepDef<(), Essay, Step> {
        match step {
            Step::Write => define.run(write).then(Step::Tag),
            Step::Tag => define.each(tags).run(tag).merge().then(Step::Review),
            Step::Review => define
                .ask(|essay, _| async move { Ok(Fine { lines: essay.text_lines.len() }) })
                .answer(|_, _, said| async move {
                    let title = said.answer.then(|| "Fine".to_owned());
                    Ok(Essay::update().title(title))
                })
                .route(verdict, |verdict| match verdict {
                    Verdict::Good => end_with(verdict),
                    Verdict::Bad => end_with(verdict),
                }),
        }
    }
}

use essay::{Essay, Fine, Verdict};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Paper {
    name: String,
    #[state(nest)]
    body: Essay,
    #[state(nest)]
    appendix: Essay,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    #[step(nest)]
    Body(essay::Step),
    #[step(nest)]
    Appendix(essay::Step),
    Print,
}

async fn print(paper: View<Paper>, _: Cx<()>) -> StepResult<Paper> {
    let lines = paper.body.text_lines.len() + paper.appendix.text_lines.len();
    Ok(Paper::update().name(format!("{} ({lines})", paper.name)))
}

fn harness() -> Harness<(), Paper> {
    Harness::<(), Paper>::builder("papers")
        .start(Step::Body(essay::Step::Write))
        .steps(|define, step| match step {
            Step::Body(step) => define
                .part(|paper| &paper.body, |essay| Paper::update().body(essay))
                .nest(Step::Body, essay::essay, step)
                .route(|verdict| match verdict {
                    Verdict::Good => to(Step::Appendix(essay::Step::Write)),
                    Verdict::Bad => to(Step::Body(essay::Step::Write)),
                }),
            Step::Appendix(step) => define
                .part(|paper| &paper.appendix, |essay| Paper::update().appendix(essay))
                .nest(Step::Appendix, essay::essay, step)
                .route(|_| to(Step::Print)),
            Step::Print => define.run(print).end(),
        })
        .build()
        .unwrap()
}

fn input() -> <Paper as State>::Update {
    // Updates of a part compose, as those of every reducer do.
    Paper::update()
        .name("On loops".to_owned())
        .body(Essay::update().text_lines(["intro".to_owned()]))
        .body(Essay::update().rounds(1))
}

fn check(paper: &Paper) {
    assert_eq!(paper.name, "On loops (4)");
    assert_eq!(paper.body.text_lines, ["intro", "line 2", "line 3"]);
    assert_eq!((paper.body.rounds, paper.body.title.as_deref()), (3, Some("Fine")));
    assert_eq!(paper.appendix.text_lines, ["line 1"]);
    assert_eq!((paper.appendix.rounds, paper.appendix.title.as_deref()), (1, None));
    let tags = ["line 1 of 1", "all"].map(str::to_owned);
    assert_eq!(paper.appendix.tags, HashSet::from(tags));
    assert_eq!(paper.body.tags.len(), 1 + 2 + 3);
}

async fn log(store: &MemoryStore) -> Vec<(Seq, Vec<u8>)> {
    let id = SessionId::new("s").unwrap();
    let page = store.read(&id, ReadRequest::from(Seq(0)).limit(u64::MAX)).await.unwrap().unwrap();
    page.entries.iter().map(|entry| (entry.seq, entry.bytes.clone())).collect()
}

#[tokio::test]
async fn a_nested_loop_reads_and_changes_its_part() {
    let agent = harness().agent("a", ());
    let mut outcome = agent.run(input(), ()).await.unwrap();
    for (answer, lines) in [(false, 2), (true, 3), (false, 1)] {
        let Outcome::Interrupted(waiting) = &outcome else { panic!("{outcome:?}") };
        let ask = waiting.pending::<Fine>().unwrap();
        assert_eq!(ask.question.lines, lines);
        outcome = agent.resume(&outcome, ask.answer(answer), ()).await.unwrap();
    }
    check(&outcome.ended().unwrap().state);
}

#[tokio::test]
async fn its_sessions_resume_from_a_store_inside_of_it() {
    let store = MemoryStore::new();
    let agent = || harness().agent("a", ()).store(store.clone());
    let mut outcome = agent().run(input(), ()).session("s").await.unwrap();
    for answer in [false, true, false] {
        let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
        let answer = waiting.pending::<Fine>().unwrap().answer(answer);
        outcome = agent().resume("s", answer, ()).await.unwrap();
    }
    let paper = outcome.ended().unwrap().state;
    check(&paper);

    // The log has the operations of the part below its field, in the form that it always had.
    let log = log(&store).await;
    let text: Vec<String> =
        log.iter().map(|(_, bytes)| String::from_utf8(bytes.clone()).unwrap()).collect();
    let pushes = r#"{"push":{"p":["body","textLines"],"v":"line 2"}}"#;
    assert!(text.iter().any(|entry| entry.contains(pushes)), "{text:#?}");
    let mut replay = Replay::default();
    for (seq, bytes) in &log {
        replay.push(*seq, bytes).unwrap();
    }
    // Members of a set may come in any order.
    let live = encode(&paper).unwrap();
    assert_eq!(Paper::schema().difference(replay.state().unwrap(), &live), None);
}

#[test]
fn its_steps_are_drawn_as_those_of_any_group() {
    let drawn = harness().graph().to_mermaid();
    assert!(drawn.contains("subgraph g0[\"Body\"]"), "{drawn}");
    assert!(drawn.contains("s1[[\"Tag\"]]"), "{drawn}");
    assert!(drawn.contains("s2 -- \"Bad\" --> s0"), "{drawn}");
    assert!(drawn.contains("s2 -- \"Good\" --> s3"), "{drawn}");
}

#[test]
fn operations_of_a_part_replay() {
    let mut paper = Paper::default();
    let mut replayed = encode(&paper).unwrap();
    for update in [
        Paper::update().body(Essay::update().title("One".to_owned()).tags(["a".to_owned()])),
        Paper::update().body(Essay::update().text_lines(["x".to_owned()]).rounds(2)),
        Paper::update().appendix(Essay::update().rounds(1)).name("n".to_owned()),
    ] {
        let mut ops = Ops::on();
        paper.apply(update, &mut ops);
        fold(&mut replayed, &ops.finish().unwrap()).unwrap();
        assert_eq!(replayed, encode(&paper).unwrap());
    }
    // An update of a part is stored as its calls came, for inputs that wait and results of items.
    let stored = json!({"body": [{"rounds": 1}]});
    let update = Paper::update().body(Essay::update().rounds(1));
    assert_eq!(encode(&update).unwrap(), stored);
    let mut ops = Ops::on();
    paper.apply(serde_json::from_value(stored).unwrap(), &mut ops);
    assert_eq!(ops.finish().unwrap()[0].path().to_string(), "body.rounds");
}

#[test]
fn the_schema_has_the_fields_of_the_part() {
    let schema = Paper::schema();
    let body = &schema.fields()[1];
    assert_eq!((body.name(), body.reducer()), ("body", "nest"));
    let names: Vec<&str> = body.fields().iter().map(harness::state::Field::name).collect();
    assert_eq!(names, ["title", "textLines", "rounds", "tags"]);
    // A part differs where one of its fields does, but for the order of a set.
    let state = |tags: Value, rounds: u32| json!({"body": {"tags": tags, "rounds": rounds}});
    let one = state(json!(["a", "b"]), 1);
    assert_eq!(schema.difference(&one, &state(json!(["b", "a"]), 1)), None);
    assert_eq!(schema.difference(&one, &state(json!(["b", "a"]), 2)), Some("body"));
    assert_eq!(schema.difference(&one, &json!({"body": null})), Some("body"));
    assert_eq!(schema.difference(&json!({"body": 1}), &json!({"body": 2})), Some("body"));
    let stored = serde_json::to_value(&schema).unwrap();
    assert_eq!(
        stored["fields"][0],
        json!({"name": "name", "type": "String", "reducer": "replace"})
    );
}

/// The versions of a loop whose part has grown, or has changed a field.
mod versions {
    use harness::prelude::*;

    macro_rules! version {
        ($name:ident { $($field:ident: $type:ty),* }) => {
            pub(crate) mod $name {
                use super::*;

                #[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
                pub(crate) struct Part { $(pub(crate) $field: $type),* }

                #[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
                pub(crate) struct Doc {
                    #[state(nest)]
                    pub(crate) part: Part,
                }

                pub(crate) fn harness() -> Harness<(), Doc> {
                    Harness::dynamic("docs")
                        .start("fail")
                        .step("fail", |define| {
                            define
                                .run(|_, _| async move {
                                    match Part::default() != Part::default() {
                                        true => Ok(Doc::update()),
                                        false => Err(StepError::fatal("not now")),
                                    }
                                })
                                .end()
                        })
                        .build()
                        .unwrap()
                }
            }
        };
    }

    version!(old { text: String });
    version!(grown { text: String, more: Vec<u8> });
    version!(changed { text: Vec<String> });
}

#[tokio::test]
async fn a_part_that_has_grown_is_filled_with_defaults() {
    use versions::{changed, grown, old};

    let store = MemoryStore::new();
    let part = old::Part::update().text("words".to_owned());
    let agent = old::harness().agent("a", ()).store(store.clone());
    let failed = agent.run(old::Doc::update().part(part), ()).session("s").await.unwrap();
    assert!(matches!(failed, Outcome::Failed(_)), "{failed:?}");

    let agent = changed::harness().agent("a", ()).store(store.clone());
    let refused = agent.resume("s", Answers::none(), ()).await.unwrap_err();
    let incompatible = refused.incompatible().unwrap();
    let field = Difference::FieldTypeChanged {
        field: "part.text".to_owned(),
        saved: "String".to_owned(),
        now: "Vec<String>".to_owned(),
    };
    assert_eq!(incompatible.differences(), [field]);

    let agent = grown::harness().agent("a", ()).store(store);
    let outcome = agent.resume("s", Answers::none(), ()).await.unwrap();
    let part = &outcome.state().unwrap().part;
    assert_eq!((part.text.as_str(), part.more.len()), ("words", 0));
}

#[tokio::test]
async fn items_that_set_one_field_of_a_part_conflict() {
    async fn items(_: View<Paper>, _: Cx<()>) -> Result<Vec<u32>, StepError> {
        Ok(vec![1, 2])
    }
    async fn set(item: u32, _: View<Paper>, _: Cx<()>) -> StepResult<Paper> {
        let of_body = Essay::update().rounds(item);
        let of_body = if item == 1 { of_body.title("One".to_owned()) } else { of_body };
        Ok(Paper::update().body(of_body))
    }
    async fn both(item: u32, _: View<Paper>, _: Cx<()>) -> StepResult<Paper> {
        Ok(Paper::update().body(Essay::update().title(item.to_string())))
    }
    let run = |conflicts: bool| async move {
        let harness = Harness::<(), Paper>::dynamic("items")
            .start("set")
            .step("set", |define| {
                let each = define.each(items);
                match conflicts {
                    true => each.run(both).merge().end(),
                    false => each.run(set).merge().end(),
                }
            })
            .build()
            .unwrap();
        harness.agent("a", ()).run(Paper::update(), ()).await.unwrap()
    };
    assert_eq!(run(false).await.ended().unwrap().state.body.rounds, 3);
    let outcome = run(true).await;
    let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failed.failure.kind, FailureKind::ItemConflict);
    assert!(failed.failure.message.contains("both set `body.title`"), "{}", failed.failure);
}

#[tokio::test]
async fn a_part_of_a_part_is_a_part() {
    #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    struct Shelf {
        #[state(nest)]
        paper: Paper,
    }

    mod inner {
        use super::{Essay, Paper, essay};
        use harness::prelude::*;
        use harness::{Define, declare::StepDef};

        #[derive(StepId, Clone, Debug, PartialEq, Eq)]
        #[step(ends = essay::Verdict)]
        pub(crate) enum Step {
            #[step(nest)]
            Body(essay::Step),
        }

        pub(crate) fn inner(
            define: Define<(), Paper, Step>,
            step: Step,
        ) -> StepDef<(), Paper, Step> {
            let read: fn(&Paper) -> &Essay = |paper| &paper.body;
            match step {
                Step::Body(step) => define
                    .part(read, |essay| Paper::update().body(essay))
                    .nest(Step::Body, essay::essay, step)
                    .route(end_with),
            }
        }
    }

    #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    enum Outer {
        #[step(nest)]
        Paper(inner::Step),
    }

    let harness = Harness::<(), Shelf>::builder("shelf")
        .start(Outer::Paper(inner::Step::Body(essay::Step::Write)))
        .steps(|define, step| match step {
            Outer::Paper(step) => define
                .part(|shelf| &shelf.paper, |paper| Shelf::update().paper(paper))
                .nest(Outer::Paper, inner::inner, step)
                .route(|_| end()),
        })
        .build()
        .unwrap();
    let agent = harness.agent("a", ()).store(MemoryStore::new());
    let outcome = agent.run(Shelf::update(), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = &outcome else { panic!("{outcome:?}") };
    assert_eq!(waiting.questions[0].step, "Paper/Body/Review");
    let answer = waiting.pending::<Fine>().unwrap().answer(true);
    let ended = agent.resume(&outcome, answer, ()).await.unwrap().ended().unwrap();
    assert_eq!(ended.state.paper.body.title.as_deref(), Some("Fine"));
    assert_eq!(ended.state.paper.body.text_lines, ["line 1"]);
}
