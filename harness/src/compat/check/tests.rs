use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::session::{Change, Entry, Recorded, StepKind};

/// The state as it was saved: a field of which has gone since, or come.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = append)]
    talk: Vec<String>,
    turns: u32,
}

#[derive(State, Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Wider {
    #[state(reduce = append)]
    talk: Vec<String>,
    turns: u32,
    limit: u32,
    note: Option<String>,
}

impl Default for Wider {
    fn default() -> Self {
        Self { talk: vec!["never".to_owned()], turns: 9, limit: 7, note: Some("new".to_owned()) }
    }
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Narrow {
    turns: u64,
}

fn panics(_: &mut u32, _: u32) {
    panic!("a reducer ran");
}

/// The same fields, folded in by no run.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Swapped {
    talk: Vec<String>,
    #[state(reduce = panics)]
    turns: u32,
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[state(version = 2, migrate = from_v1)]
struct V2 {
    lines: Vec<String>,
}

fn from_v1(old: Chat) -> Result<V2, String> {
    match old.turns {
        0 => Err("a talk without turns".to_owned()),
        _ => Ok(V2 { lines: old.talk }),
    }
}

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[state(version = 3, migrate = from_v2)]
struct V3 {
    lines: u32,
}

fn from_v2(old: V2) -> Result<V3, String> {
    Ok(V3 { lines: old.lines.len() as u32 })
}

fn entry(kind: &str, body: Value) -> Entry {
    Entry::decode(json!({"t": 1, kind: body}).to_string().as_bytes()).unwrap()
}

fn print(wiring: &str, steps: &[(&str, StepKind)]) -> Fingerprint {
    let steps = steps.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
    Fingerprint { name: "loop".to_owned(), wiring: wiring.to_owned(), steps }
}

fn known() -> Fingerprint {
    print("w", &[("act", StepKind::Run), ("ask", StepKind::Gate)])
}

fn saved_as<S: State>(state: Value) -> Recorded {
    let opened = json!({
        "v": 1, "agent": "a", "salt": "5a17", "graph": known(), "schema": S::schema(),
        "state": state,
    });
    let mut recorded = Recorded::begin(entry("open", opened)).unwrap();
    recorded.apply(entry("run", json!({"run": "r", "start": "act"}))).unwrap();
    recorded
}

fn saved() -> Recorded {
    saved_as::<Chat>(json!({"talk": ["hi"], "turns": 3}))
}

#[derive(Default)]
struct Now {
    graph: Option<Fingerprint>,
    aliases: BTreeMap<String, String>,
    answers: BTreeMap<String, Value>,
    compatibility: Compatibility,
}

impl Now {
    fn graph(graph: Fingerprint) -> Self {
        Self { graph: Some(graph), ..Self::default() }
    }

    fn alias(mut self, old: &str, new: &str) -> Self {
        self.aliases.insert(old.to_owned(), new.to_owned());
        self
    }

    fn check<S: State>(&self, recorded: &Recorded) -> Result<Compatible<S>, Incompatible> {
        let graph = &Arc::new(self.graph.clone().unwrap_or_else(known));
        let schema = &Arc::new(S::schema());
        let Self { aliases, answers, compatibility, .. } = self;
        let compatibility = *compatibility;
        check(recorded, &TargetVersion { graph, schema, aliases, answers, compatibility })
    }
}

fn differences<S: State>(now: &Now, saved: &Recorded) -> Vec<Difference> {
    let error = now.check::<S>(saved).map(|_| ()).unwrap_err();
    assert!(!error.to_string().is_empty());
    error.differences().to_vec()
}

#[test]
fn the_same_loop_takes_over_without_a_word() {
    for compatibility in [Compatibility::Compatible, Compatibility::Strict] {
        let compatible = Now { compatibility, ..Now::default() }.check::<Chat>(&saved()).unwrap();
        assert_eq!(compatible.state, Chat { talk: vec!["hi".to_owned()], turns: 3 });
        assert_eq!(compatible.adopted, None);
    }
}

#[test]
fn a_field_that_is_new_has_its_default_in_the_log_too() {
    let compatible = Now::default().check::<Wider>(&saved()).unwrap();
    let expected = Wider { talk: vec!["hi".to_owned()], turns: 3, ..Wider::default() };
    assert_eq!(compatible.state, expected);
    let adopted = compatible.adopted.unwrap();
    assert_eq!(
        (adopted.schema, adopted.graph, adopted.renamed.len()),
        (Some(Arc::new(Wider::schema())), None, 0)
    );
    assert_eq!(adopted.state, Some(json!({"talk": ["hi"], "turns": 3, "limit": 7, "note": "new"})));
    // What is stored as null is there.
    let stored = json!({"talk": [], "turns": 0, "limit": 0, "note": null});
    let state: Wider = decode_state(&stored).unwrap();
    assert_eq!((state.note, state.talk), (None, Vec::<String>::new()));
}

#[test]
fn fields_that_are_gone_or_changed_are_all_listed() {
    assert_eq!(
        differences::<Narrow>(&Now::default(), &saved()),
        [
            Difference::FieldRemoved { field: "talk".to_owned() },
            Difference::FieldTypeChanged {
                field: "turns".to_owned(),
                saved: "u32".to_owned(),
                now: "u64".to_owned()
            },
        ]
    );
    let now = Now::graph(print("x", &[("ask", StepKind::Gate), ("acts", StepKind::Run)]));
    let error = now.check::<Narrow>(&saved()).unwrap_err();
    assert_eq!((error.differences().len(), error.is_step(), error.is_state()), (3, true, true));
    assert_eq!(
        error.to_string(),
        "the session is incompatible with this version of the loop: its step `act` is gone (if \
         `acts` is its new name, declare the old name as an alias); field `talk` of the state is \
         gone (give the state a new version, and a migration); field `turns` of the state was \
         `u32` and is `u64` (give the state a new version, and a migration)"
    );
}

#[test]
fn a_reducer_may_change_and_none_runs() {
    let compatible = Now::default().check::<Swapped>(&saved()).unwrap();
    assert_eq!(compatible.state.turns, 3);
    let adopted = compatible.adopted.unwrap();
    assert_eq!((adopted.schema, adopted.state), (Some(Arc::new(Swapped::schema())), None));
    let strict = Now { compatibility: Compatibility::Strict, ..Now::default() };
    assert_eq!(
        differences::<Swapped>(&strict, &saved()),
        ["talk", "turns"].map(|field| Difference::ReducerChanged { field: field.to_owned() })
    );
}

#[test]
fn a_migration_reads_the_version_before_and_no_other() {
    let compatible = Now::default().check::<V2>(&saved()).unwrap();
    assert_eq!(compatible.state.lines, ["hi"]);
    let adopted = compatible.adopted.unwrap();
    assert_eq!(
        (&adopted.state, &adopted.schema),
        (&Some(json!({"lines": ["hi"]})), &Some(Arc::new(V2::schema())))
    );

    let mut migrated = saved();
    migrated.apply(Entry::now(Change::Adopted(Box::new(adopted)))).unwrap();
    // The log continues in the new form, and the next version reads that one.
    let ops = json!([{"push": {"p": ["lines"], "v": "two"}}]);
    migrated.apply(entry("commit", json!({"n": "act", "o": ops}))).unwrap();
    assert_eq!(Now::default().check::<V2>(&migrated).unwrap().adopted, None);
    assert_eq!(Now::default().check::<V3>(&migrated).unwrap().state.lines, 2);

    let unknown = |saved, now| vec![Difference::VersionUnknown { saved, now }];
    assert_eq!(differences::<V3>(&Now::default(), &saved()), unknown(1, 3));
    assert_eq!(differences::<Chat>(&Now::default(), &migrated), unknown(2, 1));
    let strict = Now { compatibility: Compatibility::Strict, ..Now::default() };
    assert_eq!(
        differences::<V2>(&strict, &saved()),
        [Difference::VersionChanged { saved: 1, now: 2 }]
    );
    assert_eq!(differences::<V3>(&strict, &saved()), unknown(1, 3));
}

/// As `V3`, with a way from every version before.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[state(version = 3, migrate = count_lines, migrate = from_v1)]
struct Chained {
    lines: usize,
}

fn count_lines(old: V2) -> Result<Chained, String> {
    Ok(Chained { lines: old.lines.len() })
}

#[test]
fn a_chain_of_migrations_reads_every_version() {
    let compatible = Now::default().check::<Chained>(&saved()).unwrap();
    assert_eq!(compatible.state.lines, 1);
    let adopted = compatible.adopted.unwrap();
    assert_eq!(
        (&adopted.state, &adopted.schema),
        (&Some(json!({"lines": 1})), &Some(Arc::new(Chained::schema())))
    );
    let second = saved_as::<V2>(json!({"lines": ["a", "b"]}));
    assert_eq!(Now::default().check::<Chained>(&second).unwrap().state.lines, 2);
}

#[test]
fn a_tail_of_the_old_version_is_folded_as_it_stands() {
    let mut tail = saved();
    let ops = json!([{"push": {"p": ["talk"], "v": "tail"}}, {"set": {"p": ["turns"], "v": 4}}]);
    tail.apply(entry("commit", json!({"n": "ask", "o": ops}))).unwrap();
    assert_eq!(Now::default().check::<V2>(&tail).unwrap().state.lines, ["hi", "tail"]);
}

#[test]
fn a_state_that_does_not_read_is_no_state() {
    use std::error::Error as _;

    let broken = saved_as::<Chat>(json!({"talk": [1], "turns": 3}));
    let error = Now::default().check::<Chat>(&broken).unwrap_err();
    assert_eq!(error.differences(), [Difference::StateUnreadable]);
    assert!(error.source().is_some() && error.is_state());
    let refused = saved_as::<Chat>(json!({"talk": [], "turns": 0}));
    let error = Now::default().check::<V2>(&refused).unwrap_err();
    assert_eq!(error.differences(), [Difference::StateUnreadable]);
    let cause = error.source().unwrap().to_string();
    assert_eq!(cause, "`migrate` refused the stored state: a talk without turns");
    assert!(decode_state::<Chat>(&json!(null)).is_err());
}

#[test]
fn the_step_at_rest_must_be_there_and_of_its_kind() {
    let gone = Now::graph(print("x", &[("other", StepKind::Run)]));
    assert_eq!(
        differences::<Chat>(&gone, &saved()),
        [Difference::StepGone { step: "act".to_owned(), near: None }]
    );
    for now in [StepKind::Gate, StepKind::Decide, StepKind::Off] {
        assert_eq!(
            differences::<Chat>(&Now::graph(print("x", &[("act", now)])), &saved()),
            [Difference::StepKindChanged { step: "act".to_owned(), saved: StepKind::Run, now }]
        );
    }
    // Other steps may come and go.
    let now = Now::graph(print("x", &[("act", StepKind::Run), ("new", StepKind::Gate)]));
    let adopted = now.check::<Chat>(&saved()).unwrap().adopted.unwrap();
    assert_eq!((adopted.graph.as_deref(), adopted.state), (now.graph.as_ref(), None));
    let strict = Now { compatibility: Compatibility::Strict, ..now };
    assert_eq!(differences::<Chat>(&strict, &saved()), [Difference::WiringChanged]);

    // A turn that is over rests nowhere.
    let mut ended = saved();
    ended.apply(entry("commit", json!({}))).unwrap();
    ended.apply(entry("settle", json!({"end": {"as": "ended"}}))).unwrap();
    assert!(gone.check::<Chat>(&ended).is_ok());
}

#[test]
fn a_step_may_have_another_name() {
    let now = Now::graph(print("x", &[("do", StepKind::Run)])).alias("act", "do");
    let mut before = saved();
    let adopted = now.check::<Chat>(&before).unwrap().adopted.unwrap();
    assert_eq!(json!(adopted.renamed), json!({"act": "do"}));
    before.apply(Entry::now(Change::Adopted(Box::new(adopted)))).unwrap();
    assert_eq!(&*before.session.cursor.step, "do");
    assert_eq!(json!(before.session.cursor.visits), json!({"do": 1}));
    assert_eq!(now.check::<Chat>(&before).unwrap().adopted, None);

    let other = Now::graph(print("x", &[("do", StepKind::Gate)])).alias("act", "do");
    assert_eq!(
        differences::<Chat>(&other, &saved()),
        [Difference::StepKindChanged {
            step: "act".to_owned(),
            saved: StepKind::Run,
            now: StepKind::Gate
        }]
    );
    // A step that is there needs no other name, and an alias may lead nowhere.
    let both = Now::graph(known()).alias("act", "ask");
    assert_eq!(both.check::<Chat>(&saved()).unwrap().adopted, None);
    let nowhere = Now::graph(print("x", &[])).alias("act", "do");
    assert_eq!(differences::<Chat>(&nowhere, &saved()).len(), 1);
}

#[test]
fn the_place_to_come_back_to_counts_too() {
    let mut finishing = saved();
    let end = json!({"as": "exhausted", "limit": "steps"});
    finishing.apply(entry("finish", json!({"end": end, "n": "ask"}))).unwrap();
    let now = Now::graph(print("x", &[("ask", StepKind::Gate)]));
    assert_eq!(
        differences::<Chat>(&now, &finishing),
        [Difference::StepGone { step: "act".to_owned(), near: None }]
    );
    let now = Now::graph(print("x", &[("ask", StepKind::Gate), ("do", StepKind::Run)]));
    let adopted = now.alias("act", "do").check::<Chat>(&finishing).unwrap().adopted.unwrap();
    assert_eq!(json!(adopted.renamed), json!({"act": "do"}));
    finishing.apply(Entry::now(Change::Adopted(Box::new(adopted)))).unwrap();
    let parked = finishing.session.parked.map(|parked| parked.cursor.step);
    assert_eq!((&*finishing.session.cursor.step, parked.as_deref()), ("ask", Some("do")));
}

#[test]
fn an_answer_must_still_fit_its_question() {
    let question = json!({
        "id": "q", "name": "ok", "question": {}, "answer_schema": {"type": "boolean"},
        "step": "act", "position": 1, "key": null, "asked_at": 1,
    });
    let mut asked = saved();
    asked.apply(entry("ask", json!({"interrupts": [question]}))).unwrap();
    let schema = |schema| {
        let answers = BTreeMap::from([("ok".to_owned(), schema)]);
        Now { answers, ..Now::default() }
    };
    let same = schema(json!({"type": "boolean"}));
    let other = schema(json!({"type": "string"}));
    let changed = [Difference::AnswerSchemaChanged { question: "ok".to_owned() }];
    assert!(same.check::<Chat>(&asked).is_ok());
    assert!(Now::default().check::<Chat>(&asked).is_ok(), "of inline questions nothing is known");
    assert_eq!(differences::<Chat>(&other, &asked), changed);

    let answer = json!({"id": "q", "as": "answered", "value": true, "digest": "d", "at": 1});
    let mut answered = asked.clone();
    answered.apply(entry("resolve", answer)).unwrap();
    assert_eq!(differences::<Chat>(&other, &answered), changed, "it is still to be read");
    let mut expired = asked.clone();
    expired.apply(entry("resolve", json!({"id": "q", "as": "expired"}))).unwrap();
    assert!(other.check::<Chat>(&expired).is_ok());
}
