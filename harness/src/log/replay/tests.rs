use serde_json::{Value, json};

use super::*;
use crate::id::Position;
use crate::log::saved::SavedFinishing;

fn entry(value: Value) -> Entry {
    Entry::decode(value.to_string().as_bytes()).unwrap()
}

fn at(kind: &str, body: Value) -> Entry {
    entry(json!({"t": 1, kind: body}))
}

/// A session after `open`, and after each of these entries.
fn replayed(entries: impl IntoIterator<Item = Value>) -> Saved {
    let mut saved = Saved::begin(entry(json!({"t": 1, "open": opened()}))).unwrap();
    for next in entries {
        let mut next = next;
        next["t"] = json!(1);
        saved.apply(entry(next)).unwrap();
    }
    saved
}

fn refused(saved: &Saved, kind: &str, body: Value) -> ReplayError {
    saved.clone().apply(at(kind, body)).unwrap_err()
}

fn opened() -> Value {
    json!({
        "v": 1, "agent": "a", "salt": "s",
        "graph": {"name": "l", "wiring": "w", "steps": {"act": "run", "mend": "run"}},
        "schema": {"version": 1, "fields": [
            {"name": "talk", "type": "Vec<String>", "reducer": "append"},
            {"name": "tags", "type": "HashSet<String>", "reducer": "union"},
        ]},
        "state": {"talk": [], "tags": ["x", "y"]},
    })
}

fn start() -> Value {
    json!({"run": {"run": "r1", "start": "act"}})
}

fn commit(next: &str, said: &str) -> Value {
    json!({"commit": {"n": next, "o": [{"push": {"p": ["talk"], "v": said}}]}})
}

fn failure(position: u64, attempts: u32) -> Value {
    json!({
        "kind": "error", "step": "act", "position": position, "attempts": attempts,
        "retryable": false, "message": "no", "causes": [], "at": 1,
    })
}

fn question(id: &str, key: Option<&str>) -> Value {
    json!({
        "id": id, "name": "ok", "question": id, "answer_schema": true, "step": "act",
        "position": 1, "key": key, "asked_at": 5,
    })
}

fn ask(questions: &[Value]) -> Value {
    json!({"ask": {"questions": questions}})
}

fn answer(id: &str) -> Value {
    json!({"resolve": {"id": id, "as": "answered", "value": 1, "digest": "d", "at": 9, "mail": 3}})
}

fn settle(how: Value) -> Value {
    json!({"settle": {"how": how}})
}

fn visits(saved: &Saved) -> Value {
    serde_json::to_value(&saved.cursor.visits).unwrap()
}

#[test]
fn a_session_begins_before_its_first_step() {
    let saved = replayed([]);
    assert_eq!((saved.phase, saved.turn), (Phase::Running, 0));
    assert_eq!((&*saved.cursor.step, saved.cursor.position), ("", Position(0)));
    for (kind, body) in [
        ("commit", json!({})),
        ("run", json!({"run": "r"})),
        ("settle", json!({"how": "stopped"})),
        ("effect", json!({"k": "k", "v": 1})),
    ] {
        let error = refused(&saved, kind, body);
        assert!(error.to_string().contains(&format!("found `{kind}`")), "{error}");
    }
    let error = Saved::begin(at("commit", json!({}))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the log cannot be followed: expected `open` or `snapshot` at its beginning, found `commit`"
    );
    assert!(refused(&saved, "open", opened()).to_string().contains("a second time"));
    assert!(refused(&saved, "timer", json!({})).is_newer());
}

#[test]
fn a_turn_starts_over_and_positions_go_on() {
    let effects = [
        json!({"effect": {"k": "here", "v": 1}}),
        json!({"effect": {"k": "kept", "s": "session", "v": 2}}),
    ];
    let first = [start(), commit("act", "one")].into_iter().chain(effects);
    let ended = first.chain([
        json!({"u": {"i": 5}, "commit": {}}),
        json!({"settle": {"how": {"turn": {"as": "ended"}}, "active_ms": 70}}),
    ]);
    let saved = replayed(ended.clone());
    assert_eq!(saved.phase, Phase::Ended);
    assert_eq!((saved.cursor.steps, saved.cursor.position), (2, Position(2)));
    assert_eq!((saved.spent.usage.input, saved.active_ms), (Some(5), 70));
    assert!(saved.memory.effects.is_empty() && saved.settled.is_some());

    let again = json!({"u": {"i": 1}, "run": {
        "run": "r2", "start": "act", "input": "k2", "mail": 4,
        "ops": [{"push": {"p": ["talk"], "v": "two"}}], "trace": {"a": 1},
    }});
    let saved = replayed(ended.chain([again]));
    assert_eq!(saved.state["talk"], json!(["one", "two"]));
    assert_eq!((saved.phase, saved.turn, saved.mail), (Phase::Running, 2, InboxSeq(4)));
    assert_eq!(saved.input.as_deref(), Some("k2"));
    assert_eq!((saved.cursor.position, saved.cursor.last), (Position(3), Position(3)));
    assert_eq!((saved.cursor.steps, visits(&saved)), (0, json!({"act": 1})));
    // What comes with the input is the new turn's.
    assert_eq!((saved.spent.usage.input, saved.total.usage.input), (Some(1), Some(6)));
    assert_eq!((saved.active_ms, &saved.settled), (0, &None));
    assert_eq!(saved.session_effects.get("kept"), Some(&Mark::Done(json!(2))));
}

#[test]
fn a_commit_folds_counts_and_moves_on() {
    let saved = replayed([
        start(),
        json!({"attempt": {"n": 2, "failure": failure(1, 2), "retry_at": 9}}),
        json!({"effect": {"k": "k", "v": 1}}),
        ask(&[question("q", Some("k"))]),
        json!({"recover": {"run": "r2"}}),
        commit("mend", "hi"),
    ]);
    assert_eq!(saved.state["talk"], json!(["hi"]));
    assert_eq!((&*saved.cursor.step, saved.cursor.position), ("mend", Position(2)));
    assert_eq!((saved.cursor.steps, visits(&saved)), (1, json!({"act": 1, "mend": 1})));
    assert_eq!((saved.cursor.attempt, saved.cursor.retries, saved.recovered), (0, 0, 0));
    assert!(saved.questions.is_empty() && saved.memory.effects.is_empty());
    let error = refused(&saved, "commit", json!({"o": [{"push": {"p": ["talk", 7], "v": 1}}]}));
    assert_eq!(
        error.to_string(),
        "the log cannot be followed: an operation does not fit the state"
    );
}

#[test]
fn tries_of_a_step_are_counted() {
    let saved = replayed([
        start(),
        json!({"attempt": {"n": 1, "failure": failure(1, 1), "retry_at": 9}}),
        json!({"attempt": {"n": 2, "failure": failure(1, 2), "retry_at": 9}}),
    ]);
    assert_eq!((saved.cursor.attempt, saved.cursor.retries), (2, 2));
    let mut crashed = saved.clone();
    crashed.apply(at("recover", json!({"run": "r2"}))).unwrap();
    assert_eq!((crashed.cursor.attempt, crashed.cursor.retries, crashed.recovered), (3, 2, 1));
    assert_eq!(crashed.run, Some(serde_json::from_value(json!("r2")).unwrap()));

    // The last try, which nothing follows, is known from the failure.
    let mut failed = saved.clone();
    let how = json!({"turn": {"as": "failed", "failure": failure(1, 3)}});
    failed.apply(at("settle", json!({"how": how}))).unwrap();
    assert_eq!((failed.phase, failed.cursor.attempt), (Phase::Failed, 3));
    failed.apply(at("run", json!({"run": "r3"}))).unwrap();
    assert_eq!(
        (failed.phase, failed.cursor.attempt, failed.cursor.retries),
        (Phase::Running, 3, 0)
    );
    assert_eq!((failed.turn, &failed.settled), (1, &None));
}

#[test]
fn effects_are_kept_by_scope() {
    let saved = replayed([
        start(),
        json!({"intent": {"k": "a"}}),
        json!({"intent": {"k": "b"}}),
        json!({"effect": {"k": "b", "v": null}}),
        json!({"intent": {"k": "a", "s": "session"}}),
    ]);
    assert_eq!(
        serde_json::to_value(&saved.memory).unwrap(),
        json!({"effects": {"a": "intent", "b": {"done": null}}})
    );
    assert_eq!(saved.session_effects.get("a"), Some(&Mark::Intent));
}

#[test]
fn a_question_takes_the_place_of_the_one_under_its_key() {
    let waits = [start(), ask(&[question("g", None), question("k1", Some("k"))])];
    let saved = replayed(waits.clone().into_iter().chain([
        answer("k1"),
        ask(&[question("k2", Some("k")), question("l", Some("l"))]),
        settle(json!("interrupted")),
    ]));
    let ids: Vec<String> =
        saved.open_questions().iter().map(|question| question.id.to_string()).collect();
    assert_eq!((ids, saved.phase), (vec!["g".into(), "k2".into(), "l".into()], Phase::Interrupted));
    assert_eq!((saved.facts().inbox, saved.facts().due), (InboxSeq(3), None));
    assert_eq!(saved.cursor.retries, 0);

    let saved = replayed(
        waits.into_iter().chain([json!({"resolve": {"id": "g", "as": "withdrawn"}}), answer("k1")]),
    );
    assert_eq!((saved.open().count(), saved.questions.len()), (0, 2));
    let unknown = refused(&saved, "resolve", json!({"id": "z", "as": "expired"}));
    assert!(unknown.to_string().contains("`z` that was not asked"), "{unknown}");
    let twice = refused(&saved, "resolve", json!({"id": "k1", "as": "expired"}));
    assert!(twice.to_string().contains("`k1` a second time"), "{twice}");
    let mut saved = saved;
    saved.apply(at("ask", json!({"questions": [question("m", Some("m"))]}))).unwrap();
    let kept: Vec<&str> = saved.questions.iter().map(|q| q.interrupt.id.as_str()).collect();
    assert_eq!(kept, ["k1", "m"], "withdrawn questions are dropped");
}

#[test]
fn an_interrupted_session_is_due_when_a_question_expires() {
    let mut late = question("late", Some("a"));
    late["expires_at"] = json!(90);
    let mut soon = question("soon", Some("b"));
    soon["expires_at"] = json!(40);
    let asked = [start(), ask(&[late, question("never", None), soon])];
    let saved = replayed(asked.clone());
    assert_eq!(saved.facts().due, None, "somebody is at it");
    let saved = replayed(asked.into_iter().chain([settle(json!("interrupted"))]));
    let facts = saved.facts();
    assert_eq!((facts.phase, facts.due.map(|due| due.0)), (Phase::Interrupted, Some(40)));
    assert_eq!((facts.agent.as_str(), facts.step.as_str()), ("a", "act"));
    assert_eq!(saved.open_questions()[2].expires.map(|at| at.0), Some(40));
    assert_eq!(saved.open_questions()[2].since.0, 5);
}

#[test]
fn an_error_step_knows_the_failure_until_it_is_left() {
    let divert = json!({"divert": {"failure": failure(1, 1), "n": "mend"}});
    let mut saved = replayed([start(), ask(&[question("g", None)]), divert]);
    assert_eq!((&*saved.cursor.step, saved.cursor.steps), ("mend", 1));
    assert_eq!(saved.cursor.failure.as_ref().map(|failure| &*failure.message), Some("no"));
    assert!(saved.questions.is_empty());
    saved.apply(at("commit", json!({"n": "act"}))).unwrap();
    assert_eq!(saved.cursor.failure, None);
}

#[test]
fn after_the_last_steps_a_failed_turn_goes_back_to_where_it_failed() {
    let ending = json!({"as": "failed", "failure": failure(2, 2)});
    let finishing = replayed([
        start(),
        commit("act", "one"),
        json!({"effect": {"k": "k", "v": 1}}),
        ask(&[question("q", Some("q"))]),
        json!({"finish": {"ending": ending, "n": "mend", "active_ms": 8}}),
        json!({"effect": {"k": "late", "v": 1}}),
        json!({"recover": {"run": "r2"}}),
    ]);
    assert_eq!((&*finishing.cursor.step, finishing.cursor.position), ("mend", Position(3)));
    assert_eq!((finishing.cursor.steps, finishing.active_ms), (1, 8));
    assert!(finishing.cursor.failure.is_some() && finishing.questions.is_empty());
    let kept = finishing.cursor.finishing.as_ref();
    assert!(matches!(kept, Some(SavedFinishing { ending: HowEnded::Failed { .. }, since: 1 })));

    // A stop in between goes on with the last steps.
    let mut stopped = finishing.clone();
    stopped.apply(at("settle", json!({"how": "stopped"}))).unwrap();
    assert!(stopped.parked.is_some() && stopped.cursor.finishing.is_some());
    assert_eq!((&*stopped.cursor.step, stopped.phase), ("mend", Phase::Stopped));

    let mut settled = finishing;
    settled.apply(at("commit", json!({}))).unwrap();
    settled.apply(at("settle", json!({"how": {"turn": ending}}))).unwrap();
    assert_eq!((&*settled.cursor.step, settled.phase), ("act", Phase::Failed));
    assert_eq!((settled.cursor.position, settled.cursor.last), (Position(2), Position(3)));
    assert_eq!((settled.cursor.attempt, settled.cursor.steps, settled.recovered), (2, 1, 0));
    assert_eq!((visits(&settled), &settled.parked), (json!({"act": 2}), &None));
    assert_eq!(settled.memory.effects.keys().collect::<Vec<_>>(), ["k"]);
    assert_eq!((settled.open().count(), &settled.cursor.finishing), (1, &None));
    settled.apply(at("run", json!({"run": "r3"}))).unwrap();
    settled.apply(at("commit", json!({"n": "act"}))).unwrap();
    assert_eq!(settled.cursor.position, Position(4), "no position is given twice");
}

#[test]
fn after_the_last_steps_an_ended_turn_stays_at_its_end() {
    let saved = replayed([
        start(),
        json!({"commit": {}}),
        json!({"finish": {"ending": {"as": "ended"}, "n": "mend"}}),
        json!({"commit": {}}),
        settle(json!({"turn": {"as": "ended"}})),
    ]);
    assert_eq!((saved.phase, &*saved.cursor.step), (Phase::Ended, "mend"));
    assert_eq!((&saved.cursor.finishing, &saved.parked), (&None, &None));
    assert_eq!(saved.cursor.steps, 2);
}

#[test]
fn every_way_to_settle_has_its_phase() {
    for (how, phase) in [
        (json!({"turn": {"as": "ended"}}), Phase::Ended),
        (json!({"turn": {"as": "exhausted", "limit": "steps"}}), Phase::Exhausted),
        (json!({"turn": {"as": "failed", "failure": failure(1, 1)}}), Phase::Failed),
        (json!("interrupted"), Phase::Interrupted),
        (json!("stopped"), Phase::Stopped),
        (json!("cancelled"), Phase::Stopped),
    ] {
        assert_eq!(replayed([start(), settle(how)]).facts().phase, phase);
    }
}

#[test]
fn who_goes_on_without_a_trace_keeps_the_turns() {
    let traced = json!({"run": {"run": "r", "start": "act", "trace": {"a": 1}}});
    let saved = replayed([traced.clone(), json!({"run": {"run": "r2"}})]);
    assert_eq!(json!(saved.trace), json!({"a": 1}));
    let saved = replayed([traced, json!({"run": {"run": "r2", "start": "act"}})]);
    assert_eq!(saved.trace, None);
}

#[test]
fn another_version_takes_the_session_over() {
    let parts = [
        start(),
        commit("mend", "x"),
        json!({"finish": {"ending": {"as": "exhausted", "limit": "wall"}, "n": "act"}}),
    ];
    let mut saved = replayed(parts);
    saved
        .apply(at(
            "adopt",
            json!({
                "graph": {"name": "l", "wiring": "w2", "steps": {"do": "run"}},
                "schema": {"version": 2, "fields": []}, "state": null,
                "step": "do", "renamed": {"act": "do", "mend": "fix"},
            }),
        ))
        .unwrap();
    assert_eq!((saved.state, saved.schema.version()), (Value::Null, 2));
    assert_eq!(&*saved.cursor.step, "do");
    let parked = saved.parked.unwrap().cursor;
    assert_eq!(&*parked.step, "fix");
    assert_eq!(json!(parked.visits), json!({"do": 1, "fix": 1}));
    assert_eq!(saved.graph.wiring, "w2");
}

#[test]
fn a_snapshot_must_be_what_came_before() {
    let saved = replayed([start(), commit("act", "hi")]);
    let body = || serde_json::to_value(&saved).unwrap();
    let mut same = saved.clone();
    same.apply(entry(json!({"t": 1, "u": {"i": 3}, "snapshot": body()}))).unwrap();
    let began = Saved::begin(entry(json!({"t": 1, "u": {"i": 3}, "snapshot": body()}))).unwrap();
    assert_eq!((same.spent.usage.input, &same), (Some(3), &began));

    // The members of a set have no order; the snapshot's holds from then on.
    let mut turned = body();
    turned["state"]["tags"] = json!(["y", "x"]);
    let mut other = saved.clone();
    other.apply(at("snapshot", turned)).unwrap();
    assert_eq!(other.state["tags"], json!(["y", "x"]));

    for (path, field) in [
        ("/state/talk", "talk"),
        ("/state", "talk"),
        ("/cursor/steps", "cursor"),
        ("/turn", "turn"),
        ("/agent", "agent"),
    ] {
        let mut changed = body();
        *changed.pointer_mut(path).unwrap() = match field {
            "agent" => json!("b"),
            "talk" => json!({}),
            _ => match path {
                "/cursor/steps" | "/turn" => json!(77),
                _ => json!(null),
            },
        };
        let error = refused(&saved, "snapshot", changed);
        assert_eq!(error.not_replayable(), Some(field), "{path}: {error}");
    }
}

#[test]
fn a_fork_begins_with_what_it_was_forked_from() {
    let mut from = opened();
    from["from"] = json!({"session": "s", "seq": 9});
    let fork = Saved::begin(at("open", from)).unwrap();
    let source = replayed([start(), commit("mend", "hi")]);
    let mut taken = Saved { from: fork.from.clone(), ..source };
    let snapshot = at("snapshot", serde_json::to_value(&taken).unwrap());
    let mut forked = fork.clone();
    forked.apply(snapshot.clone()).unwrap();
    assert_eq!(forked, taken);
    // A second snapshot has to add up, as everywhere.
    let mut moved = forked.clone();
    moved.apply(at("commit", json!({"n": "act"}))).unwrap();
    let error = moved.apply(snapshot).unwrap_err();
    assert_eq!(error.not_replayable(), Some("cursor"));
    // Nor may it be of another session.
    taken.salt = serde_json::from_value(json!("other")).unwrap();
    let error = refused(&fork, "snapshot", serde_json::to_value(&taken).unwrap());
    assert_eq!(error.not_replayable(), Some("salt"));
}
