//! Values that get lost on the way through JSON elsewhere.

use std::collections::BTreeMap;

use harness::prelude::*;
use harness::session::Change;
use harness::{FailureKind, Seq};
use serde_json::{Value, to_value};

use crate::rig::{open, sessions};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
enum Shape {
    #[default]
    None,
    Unit,
    New(Box<Shape>),
    Tuple(u8, Option<u8>),
    Struct {
        inner: Vec<Shape>,
        gone: Option<Option<u8>>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Pair {
    a: u8,
    b: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Deep(Vec<Deep>);

impl Deep {
    fn new(depth: usize) -> Self {
        (0..depth).fold(Self::default(), |deep, _| Self(vec![deep]))
    }
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Odd {
    #[state(reduce = append)]
    lines: Vec<String>,
    cleared: Option<String>,
    floats: Vec<f64>,
    narrow: f32,
    by_number: BTreeMap<i64, String>,
    by_flag: BTreeMap<bool, u8>,
    by_char: BTreeMap<char, u8>,
    by_pair: BTreeMap<Pair, u8>,
    most: u64,
    least: i64,
    wide: u128,
    wide_signed: i128,
    shape: Shape,
    unit: (),
    empty: Vec<u8>,
    empty_map: BTreeMap<String, u8>,
    text: String,
    deep: Deep,
    pad: String,
}

type MakeUpdate = fn() -> <Odd as State>::Update;

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    First,
    Second,
    Ask,
    Last,
    Mend,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = Option<bool>)]
struct Well;

/// The second step makes the change; a failure goes to `Mend` if `mended` says so.
fn odd(second: MakeUpdate, mended: bool) -> Harness<(), Odd> {
    let builder = Harness::<(), Odd>::builder("odd").start(Step::First);
    let builder = if mended { builder.on_error(Step::Mend) } else { builder };
    builder
        .steps(|define, step| match step {
            Step::First => define
                .run(|_, _| async move {
                    let update = Odd::update().lines(["first".to_owned()]);
                    Ok(update.cleared(Some("there".to_owned())))
                })
                .then(Step::Second),
            Step::Second => define.run(move |_, _| async move { Ok(second()) }).then(Step::Ask),
            Step::Ask => define
                .ask(|_, _| async move { Ok(Well) })
                .answer(|_, _, _| async move { Ok(Odd::update()) })
                .then(Step::Last),
            Step::Last => define
                .run(|_, _| async move { Ok(Odd::update().lines(["last".to_owned()])) })
                .then(Step::Mend),
            Step::Mend => define
                .run(|_, cx: Cx<()>| async move {
                    let kind = cx.failure().map(|failure| format!("{:?}", failure.kind));
                    Ok(Odd::update().lines(kind.into_iter().collect::<Vec<_>>()))
                })
                .end(),
        })
        .build()
        .unwrap()
}

fn floats() -> Vec<f64> {
    vec![
        -0.0,
        0.0,
        5e-324,
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::MIN,
        0.1 + 0.2,
        1.0 / 3.0,
        1e21,
        1e-7,
        9_007_199_254_740_993.0,
        f64::EPSILON,
        123_456_789.123_456_79,
    ]
}

/// Every character that JSON escapes, and those that break lines of other formats.
fn text() -> String {
    let mut text: String = (0..=0xff_u8).map(char::from).collect();
    text.push_str("\u{2028}\u{2029}\u{feff}\u{fffd}\u{ffff}\u{10ffff}😀\\u0000\\n\"");
    text
}

fn exact() -> <Odd as State>::Update {
    Odd::update()
        .cleared(None)
        .floats(floats())
        .narrow(0.1)
        .by_number(
            [(i64::MIN, text()), (-1, String::new()), (0, "0".into()), (i64::MAX, "m".into())]
                .into(),
        )
        .by_flag([(true, 1), (false, 0)].into())
        .by_char([('"', 1), ('\n', 2), ('\0', 3)].into())
        .most(u64::MAX)
        .least(i64::MIN)
        .wide(u128::from(u64::MAX))
        .wide_signed(i128::from(i64::MIN))
        .shape(Shape::Struct {
            inner: vec![Shape::Unit, Shape::New(Box::new(Shape::Tuple(1, None))), Shape::None],
            gone: None,
        })
        .unit(())
        .empty(Vec::new())
        .empty_map(BTreeMap::new())
        .text(text())
        .deep(Deep::new(90))
}

fn bits(floats: &[f64]) -> Vec<u64> {
    floats.iter().map(|float| float.to_bits()).collect()
}

#[tokio::test]
async fn every_value_comes_back_as_it_went() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let agent = odd(exact, false).agent("a", ()).store(store);
    let outcome = agent.run(Odd::update(), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    let live = (*waiting.state).clone();
    assert_eq!((&live.cleared, live.by_number.len()), (&None, 4));
    drop((waiting, agent));

    let store = open(dir.path()).await;
    let look = sessions(&store);
    let agent = odd(exact, false).agent("a", ()).store(store);
    let head = look.status("s").await.unwrap().head;
    let stored = agent.state_at("s", head).await.unwrap();
    assert_eq!(stored, live);
    assert_eq!(bits(&stored.floats), bits(&floats()));
    assert_eq!(stored.narrow.to_bits(), 0.1_f32.to_bits());
    let json = look.state("s").await.unwrap();
    assert_eq!((&json["most"], &json["least"]), (&u64::MAX.into(), &i64::MIN.into()));
    assert_eq!(json["cleared"], Value::Null);

    let outcome = agent.resume("s", Answers::none(), ()).await.unwrap();
    let Outcome::Interrupted(waiting) = outcome else { panic!("{outcome:?}") };
    assert_eq!(*waiting.state, live);
    assert_eq!(bits(&waiting.state.floats), bits(&floats()));
    let answer = waiting.pending::<Well>().unwrap().answer(None);
    let ended = agent.resume("s", answer, ()).await.unwrap().ended().unwrap();
    assert_eq!(ended.state, Odd { lines: vec!["first".into(), "last".into()], ..live });
}

const REFUSED: [(&str, MakeUpdate); 10] = [
    ("NaN", || Odd::update().floats(vec![0.5, f64::NAN])),
    ("infinity", || Odd::update().floats(vec![f64::INFINITY])),
    ("minus infinity", || Odd::update().floats(vec![f64::NEG_INFINITY])),
    ("a narrow NaN", || Odd::update().narrow(f32::NAN)),
    ("a key that is a struct", || Odd::update().by_pair([(Pair { a: 1, b: 2 }, 3)].into())),
    ("more than 64 bits", || Odd::update().wide(u128::from(u64::MAX) + 1)),
    ("less than 64 bits", || Odd::update().wide_signed(i128::from(i64::MIN) - 1)),
    ("too deep", || Odd::update().deep(Deep::new(500))),
    ("a little too deep", || Odd::update().deep(Deep::new(111))),
    ("too long", || Odd::update().text("x".repeat(65 << 20))),
];

#[tokio::test]
async fn what_would_not_come_back_is_refused_before_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    for (name, change) in REFUSED {
        let change: MakeUpdate = change;
        let agent = odd(change, false).agent("a", ()).store(store.clone());
        let outcome = agent.run(Odd::update(), ()).session(name).await.unwrap();
        let Outcome::Failed(failed) = outcome else { panic!("{name}: {outcome:?}") };
        assert_eq!(failed.failure.kind, FailureKind::Encode, "{name}: {:#}", failed.failure);
        // The state before is kept, in memory as in the log.
        let state = failed.state.as_deref().unwrap();
        assert_eq!((&*state.lines, &*state.text), (&["first".to_owned()][..], ""), "{name}");
        assert_eq!(to_value(state).unwrap(), sessions(&store).state(name).await.unwrap());
        // The program is mended, and the session continues.
        let mended: MakeUpdate = || Odd::update().lines(["second".to_owned()]);
        let agent = odd(mended, false).agent("a", ()).store(open(dir.path()).await);
        drop(failed);
        let outcome = agent.resume(name, Answers::none(), ()).await.unwrap();
        assert_eq!(outcome.state().unwrap().lines, ["first", "second"], "{name}");
    }
}

#[tokio::test]
async fn what_would_not_come_back_takes_the_error_route() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    for (name, change) in REFUSED {
        let agent = odd(change, true).agent("a", ()).store(store.clone());
        let outcome = agent.run(Odd::update(), ()).session(name).await.unwrap();
        let ended = outcome.ended().unwrap();
        assert_eq!(ended.state.lines, ["first", "Encode"], "{name}");
        assert_eq!(to_value(&ended.state).unwrap(), sessions(&store).state(name).await.unwrap());
    }
}

#[tokio::test]
async fn an_input_that_would_not_come_back_begins_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    for (name, change) in REFUSED {
        let agent = odd(exact, false).agent("a", ()).store(store.clone());
        let error = agent.run(change(), ()).session(name).await.unwrap_err();
        assert!(
            error.to_string().contains("failed to encode the state that the session begins with"),
            "{error}"
        );
        assert!(sessions(&store).status(name).await.unwrap_err().is_not_found());
        agent.run(Odd::update(), ()).session(name).await.unwrap();
    }
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Loop {
    Step,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Go {
    On,
    Out,
}

/// At a snapshot, what was written must replay to what is: also where a field is set and cleared
/// again.
#[tokio::test]
async fn a_field_that_is_set_and_cleared_goes_through_snapshots() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let harness = Harness::<(), Odd>::builder("loop")
        .start(Loop::Step)
        .steps(|define, Loop::Step| {
            define
                .run(|odd: View<Odd>, _| async move {
                    let value = odd.lines.len().is_multiple_of(2).then(|| "there".to_owned());
                    let update = Odd::update().lines(["x".to_owned()]);
                    Ok(update.cleared(value).pad(odd.lines.len().to_string().repeat(20_000)))
                })
                .route(
                    |odd: &Odd| if odd.lines.len() < 60 { Go::On } else { Go::Out },
                    |go| match go {
                        Go::On => to(Loop::Step),
                        Go::Out => end(),
                    },
                )
        })
        .build()
        .unwrap();
    let agent = harness.agent("a", ()).store(store.clone());
    let ended = agent.run(Odd::update(), ()).session("s").await.unwrap().ended().unwrap();
    let look = sessions(&open(dir.path()).await);
    let entries = look.history("s", Seq(0), 10_000).await.unwrap().entries;
    let snapshots: Vec<Seq> = entries
        .iter()
        .filter(|(_, entry)| matches!(entry.change, Change::Snapshot(_)))
        .map(|(seq, _)| *seq)
        .collect();
    assert!(snapshots.len() >= 2, "{snapshots:?}");
    // The state at a snapshot is the one right before it.
    for seq in snapshots {
        let before = agent.state_at("s", Seq(seq.0 - 1)).await.unwrap();
        assert_eq!(before, agent.state_at("s", seq).await.unwrap());
    }
    let last = look.status("s").await.unwrap().head;
    assert_eq!(agent.state_at("s", last).await.unwrap(), ended.state);
}
