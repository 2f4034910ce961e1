mod items;

use serde_json::{Value, json};

use super::*;
use crate::id::Position;
use crate::session::{EffectRecord, Recorded, open_in_store};
use crate::store::{InboxSeq, OpenInterrupt, SessionSummary};

fn entry(value: Value) -> Entry {
    Entry::decode(value.to_string().as_bytes()).unwrap()
}

fn at(kind: &str, body: Value) -> Entry {
    entry(json!({"t": 1, kind: body}))
}

/// A session after `open`, and after each of these entries.
fn replayed(entries: impl IntoIterator<Item = Value>) -> Recorded {
    let mut recorded = Recorded::begin(entry(json!({"t": 1, "open": opened()}))).unwrap();
    for next in entries {
        let mut next = next;
        next["t"] = json!(1);
        recorded.apply(entry(next)).unwrap();
    }
    recorded
}

fn session_after(entries: impl IntoIterator<Item = Value>) -> Session {
    *replayed(entries).session
}

fn refused(recorded: &Recorded, kind: &str, body: Value) -> ReplayError {
    recorded.clone().apply(at(kind, body)).unwrap_err()
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

fn ask(interrupts: &[Value]) -> Value {
    json!({"ask": {"interrupts": interrupts}})
}

fn answer(id: &str) -> Value {
    json!({"resolve": {"id": id, "as": "answered", "value": 1, "digest": "d", "at": 9, "inbox": 3}})
}

fn settle(end: Value) -> Value {
    json!({"settle": {"end": end}})
}

fn snapshot(Recorded { session, state }: &Recorded) -> Value {
    json!({"session": session, "state": state})
}

fn visits(session: &Session) -> Value {
    serde_json::to_value(&session.cursor.visits).unwrap()
}

fn summary(session: &Session) -> SessionSummary {
    session.summary(&session.cursor.step)
}

/// The open interrupts, as a store lists them.
fn waiting(session: &Session) -> Vec<OpenInterrupt> {
    session.open_interrupts().map(open_in_store).collect()
}

#[test]
fn a_session_begins_before_its_first_step() {
    let recorded = replayed([]);
    assert_eq!((recorded.session.phase, recorded.session.turn), (Phase::Ended, 0));
    assert_eq!(
        (&*recorded.session.cursor.step, recorded.session.cursor.position),
        ("", Position(0))
    );
    for (kind, body) in [
        ("commit", json!({})),
        ("run", json!({"run": "r"})),
        ("settle", json!({"end": {"as": "stopped"}})),
        ("effect", json!({"k": "k", "v": 1})),
    ] {
        let error = refused(&recorded, kind, body);
        assert!(error.to_string().contains(&format!("found `{kind}`")), "{error}");
    }
    let error = Recorded::begin(at("commit", json!({}))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "failed to replay the log: expected `open` or `snapshot` at its beginning, found `commit`"
    );
    assert!(refused(&recorded, "open", opened()).to_string().contains("a second time"));
    assert!(refused(&recorded, "notified", json!({})).is_newer());
}

#[test]
fn a_turn_starts_over_and_positions_count_on() {
    let effects = [
        json!({"effect": {"k": "here", "v": 1}}),
        json!({"effect": {"k": "kept", "s": "session", "v": 2}}),
    ];
    let first = [start(), commit("act", "one")].into_iter().chain(effects);
    let ended = first.chain([
        json!({"u": {"i": 5}, "commit": {}}),
        json!({"settle": {"end": {"as": "ended"}, "active_ms": 70}}),
    ]);
    let recorded = replayed(ended.clone());
    assert_eq!(recorded.session.phase, Phase::Ended);
    assert_eq!((recorded.session.cursor.steps, recorded.session.cursor.position), (2, Position(2)));
    assert_eq!((recorded.session.spent.usage.input, recorded.session.active_ms), (Some(5), 70));
    assert!(recorded.session.effects.is_empty() && recorded.session.settled.is_some());

    let again = json!({"u": {"i": 1}, "run": {
        "run": "r2", "start": "act", "input": "k2", "inbox": 4,
        "ops": [{"push": {"p": ["talk"], "v": "two"}}], "trace": {"a": 1},
    }});
    let recorded = replayed(ended.chain([again]));
    assert_eq!(recorded.state["talk"], json!(["one", "two"]));
    assert_eq!(
        (recorded.session.phase, recorded.session.turn, recorded.session.inbox),
        (Phase::Running, 2, InboxSeq(4))
    );
    assert_eq!(recorded.session.input.as_deref(), Some("k2"));
    assert_eq!(
        (recorded.session.cursor.position, recorded.session.cursor.last),
        (Position(3), Position(3))
    );
    assert_eq!((recorded.session.cursor.steps, visits(&recorded.session)), (0, json!({"act": 1})));
    // What comes with the input is the new turn's.
    assert_eq!(
        (recorded.session.spent.usage.input, recorded.session.total.usage.input),
        (Some(1), Some(6))
    );
    assert_eq!((recorded.session.active_ms, &recorded.session.settled), (0, &None));
    assert_eq!(recorded.session.session_effects.get("kept"), Some(&EffectRecord::Done(json!(2))));
}

#[test]
fn a_commit_folds_counts_and_moves_on() {
    let recorded = replayed([
        start(),
        json!({"attempt": {"n": 2, "failure": failure(1, 2), "retry_at": 9}}),
        json!({"effect": {"k": "k", "v": 1}}),
        ask(&[question("q", Some("k"))]),
        json!({"recover": {"run": "r2"}}),
        commit("mend", "hi"),
    ]);
    assert_eq!(recorded.state["talk"], json!(["hi"]));
    assert_eq!(
        (&*recorded.session.cursor.step, recorded.session.cursor.position),
        ("mend", Position(2))
    );
    assert_eq!(
        (recorded.session.cursor.steps, visits(&recorded.session)),
        (1, json!({"act": 1, "mend": 1}))
    );
    assert_eq!(
        (
            recorded.session.cursor.attempt,
            recorded.session.cursor.retries,
            recorded.session.recovered
        ),
        (0, 0, 0)
    );
    assert!(recorded.session.interrupts.is_empty() && recorded.session.effects.is_empty());
    let error = refused(&recorded, "commit", json!({"o": [{"push": {"p": ["talk", 7], "v": 1}}]}));
    assert_eq!(error.to_string(), "failed to replay the log: an operation does not fit the state");
}

#[test]
fn attempts_of_a_step_are_counted() {
    let session = session_after([
        start(),
        json!({"attempt": {"n": 1, "failure": failure(1, 1), "retry_at": 9}}),
        json!({"attempt": {"n": 2, "failure": failure(1, 2), "retry_at": 9}}),
    ]);
    assert_eq!((session.cursor.attempt, session.cursor.retries), (2, 2));
    let mut crashed = session.clone();
    crashed.apply(&at("recover", json!({"run": "r2"}))).unwrap();
    assert_eq!((crashed.cursor.attempt, crashed.cursor.retries, crashed.recovered), (3, 2, 1));
    assert_eq!(crashed.run, Some(serde_json::from_value(json!("r2")).unwrap()));

    // The last try, which nothing follows, is known from the failure.
    let mut failed = session.clone();
    let end = json!({"as": "failed", "failure": failure(1, 3)});
    failed.apply(&at("settle", json!({"end": end}))).unwrap();
    assert_eq!((failed.phase, failed.cursor.attempt), (Phase::Failed, 3));
    failed.apply(&at("run", json!({"run": "r3"}))).unwrap();
    assert_eq!(
        (failed.phase, failed.cursor.attempt, failed.cursor.retries),
        (Phase::Running, 3, 0)
    );
    assert_eq!((failed.turn, &failed.settled), (1, &None));
}

#[test]
fn effects_are_kept_by_scope() {
    let session = session_after([
        start(),
        json!({"intent": {"k": "a"}}),
        json!({"intent": {"k": "b"}}),
        json!({"effect": {"k": "b", "v": null}}),
        json!({"intent": {"k": "a", "s": "session"}}),
    ]);
    assert_eq!(json!(session.effects), json!({"a": "intent", "b": {"done": null}}));
    assert_eq!(session.session_effects.get("a"), Some(&EffectRecord::Intent));
}

#[test]
fn an_effect_that_did_not_happen_is_not_in_doubt_and_one_that_did_stays() {
    let session = session_after([
        start(),
        json!({"intent": {"k": "a"}}),
        json!({"intent": {"k": "a", "s": "session"}}),
        json!({"effect": {"k": "b", "v": 1}}),
        json!({"not_done": {"k": "a"}}),
        json!({"not_done": {"k": "b"}}),
        json!({"not_done": {"k": "never"}}),
    ]);
    assert_eq!(json!(session.effects), json!({"b": {"done": 1}}));
    assert_eq!(session.session_effects.get("a"), Some(&EffectRecord::Intent));
}

#[test]
fn a_question_takes_the_place_of_the_one_under_its_key() {
    let waits = [start(), ask(&[question("g", None), question("k1", Some("k"))])];
    let recorded = replayed(waits.clone().into_iter().chain([
        answer("k1"),
        ask(&[question("k2", Some("k")), question("l", Some("l"))]),
        settle(json!({"as": "interrupted"})),
    ]));
    let ids: Vec<String> =
        waiting(&recorded.session).iter().map(|question| question.id.to_string()).collect();
    assert_eq!(
        (ids, recorded.session.phase),
        (vec!["g".into(), "k2".into(), "l".into()], Phase::Interrupted)
    );
    assert_eq!(
        (summary(&recorded.session).inbox, summary(&recorded.session).due),
        (InboxSeq(3), None)
    );
    assert_eq!(recorded.session.cursor.retries, 0);

    let recorded = replayed(
        waits.into_iter().chain([json!({"resolve": {"id": "g", "as": "withdrawn"}}), answer("k1")]),
    );
    assert_eq!(
        (recorded.session.open_interrupts().count(), recorded.session.interrupts.iter().count()),
        (0, 2)
    );
    let unknown = refused(&recorded, "resolve", json!({"id": "z", "as": "expired"}));
    assert!(unknown.to_string().contains("`z` that was not asked"), "{unknown}");
    let twice = refused(&recorded, "resolve", json!({"id": "k1", "as": "expired"}));
    assert!(twice.to_string().contains("`k1` a second time"), "{twice}");
    let mut recorded = recorded;
    recorded.apply(at("ask", json!({"interrupts": [question("m", Some("m"))]}))).unwrap();
    let kept: Vec<&str> =
        recorded.session.interrupts.iter().map(|q| q.interrupt.id.as_str()).collect();
    assert_eq!(kept, ["k1", "m"], "withdrawn questions are dropped");
}

#[test]
fn an_interrupted_session_is_due_when_a_question_expires() {
    let mut late = question("late", Some("a"));
    late["expires_at"] = json!(90);
    let mut soon = question("soon", Some("b"));
    soon["expires_at"] = json!(40);
    let asked = [start(), ask(&[late, question("never", None), soon])];
    let session = session_after(asked.clone());
    assert_eq!(summary(&session).due, None, "a run is at work");
    let session = session_after(asked.into_iter().chain([settle(json!({"as": "interrupted"}))]));
    let facts = summary(&session);
    assert_eq!((facts.phase, facts.due.map(|due| due.0)), (Phase::Interrupted, Some(40)));
    assert_eq!((facts.agent.as_str(), facts.step.as_str()), ("a", "act"));
    assert_eq!(waiting(&session)[2].expires.map(|at| at.0), Some(40));
    assert_eq!(waiting(&session)[2].since.0, 5);
}

#[test]
fn an_error_step_knows_the_failure_until_it_is_left() {
    let divert = json!({"divert": {"failure": failure(1, 1), "n": "mend"}});
    let mut session = session_after([start(), ask(&[question("g", None)]), divert]);
    assert_eq!((&*session.cursor.step, session.cursor.steps), ("mend", 1));
    assert_eq!(session.cursor.failure.as_ref().map(|failure| &*failure.message), Some("no"));
    assert!(session.interrupts.is_empty());
    session.apply(&at("commit", json!({"n": "act"}))).unwrap();
    assert_eq!(session.cursor.failure, None);
}

#[test]
fn after_the_last_steps_a_failed_turn_goes_back_to_where_it_failed() {
    let end = json!({"as": "failed", "failure": failure(2, 2)});
    let finishing = session_after([
        start(),
        commit("act", "one"),
        json!({"effect": {"k": "k", "v": 1}}),
        ask(&[question("q", Some("q"))]),
        json!({"finish": {"end": end, "n": "mend", "active_ms": 8}}),
        json!({"effect": {"k": "late", "v": 1}}),
        json!({"recover": {"run": "r2"}}),
    ]);
    assert_eq!((&*finishing.cursor.step, finishing.cursor.position), ("mend", Position(3)));
    assert_eq!((finishing.cursor.steps, finishing.active_ms), (1, 8));
    assert!(finishing.cursor.failure.is_some() && finishing.interrupts.is_empty());
    let kept = finishing.cursor.finishing.as_ref();
    assert!(matches!(kept, Some(Kept { end: End::Failed { .. }, since: 1 })));

    // A stop in between resumes with the last steps.
    let mut stopped = finishing.clone();
    stopped.apply(&at("settle", json!({"end": {"as": "stopped"}}))).unwrap();
    assert!(stopped.parked.is_some() && stopped.cursor.finishing.is_some());
    assert_eq!((&*stopped.cursor.step, stopped.phase), ("mend", Phase::Stopped));

    let mut settled = finishing;
    settled.apply(&at("commit", json!({}))).unwrap();
    settled.apply(&at("settle", json!({"end": end}))).unwrap();
    assert_eq!((&*settled.cursor.step, settled.phase), ("act", Phase::Failed));
    assert_eq!((settled.cursor.position, settled.cursor.last), (Position(2), Position(3)));
    assert_eq!((settled.cursor.attempt, settled.cursor.steps, settled.recovered), (2, 1, 0));
    assert_eq!((visits(&settled), &settled.parked), (json!({"act": 2}), &None));
    assert_eq!(json!(settled.effects), json!({"k": {"done": 1}}));
    assert_eq!((settled.open_interrupts().count(), &settled.cursor.finishing), (1, &None));
    settled.apply(&at("run", json!({"run": "r3"}))).unwrap();
    settled.apply(&at("commit", json!({"n": "act"}))).unwrap();
    assert_eq!(settled.cursor.position, Position(4), "no position is given twice");
}

#[test]
fn after_the_last_steps_an_ended_turn_stays_at_its_end() {
    let session = session_after([
        start(),
        json!({"commit": {}}),
        json!({"finish": {"end": {"as": "ended"}, "n": "mend"}}),
        json!({"commit": {}}),
        settle(json!({"as": "ended"})),
    ]);
    assert_eq!((session.phase, &*session.cursor.step), (Phase::Ended, "mend"));
    assert_eq!((&session.cursor.finishing, &session.parked), (&None, &None));
    assert_eq!(session.cursor.steps, 2);
}

#[test]
fn every_way_to_settle_has_its_phase() {
    for (end, phase) in [
        (json!({"as": "ended"}), Phase::Ended),
        (json!({"as": "exhausted", "limit": "steps"}), Phase::Exhausted),
        (json!({"as": "failed", "failure": failure(1, 1)}), Phase::Failed),
        (json!({"as": "interrupted"}), Phase::Interrupted),
        (json!({"as": "stopped"}), Phase::Stopped),
        (json!({"as": "cancelled"}), Phase::Stopped),
    ] {
        assert_eq!(summary(&session_after([start(), settle(end)])).phase, phase);
    }
}

#[test]
fn a_resumed_run_without_a_trace_keeps_the_turns() {
    let traced = json!({"run": {"run": "r", "start": "act", "trace": {"a": 1}}});
    let session = session_after([traced.clone(), json!({"run": {"run": "r2"}})]);
    assert_eq!(json!(session.trace), json!({"a": 1}));
    let session = session_after([traced, json!({"run": {"run": "r2", "start": "act"}})]);
    assert_eq!(session.trace, None);
}

#[test]
fn another_version_takes_the_session_over() {
    let parts = [
        start(),
        commit("mend", "x"),
        json!({"finish": {"end": {"as": "exhausted", "limit": "wall"}, "n": "act"}}),
    ];
    let mut recorded = replayed(parts);
    recorded
        .apply(at(
            "adopt",
            json!({
                "graph": {"name": "l", "wiring": "w2", "steps": {"do": "run", "fix": "run"}},
                "schema": {"version": 2, "fields": []}, "state": null,
                "renamed": {"act": "do", "mend": "fix"},
            }),
        ))
        .unwrap();
    assert_eq!((&recorded.state, recorded.session.schema.version()), (&Value::Null, 2));
    assert_eq!(&*recorded.session.cursor.step, "do");
    assert_eq!(visits(&recorded.session), json!({"do": 2, "fix": 1}));
    let parked = recorded.session.parked.clone().unwrap().cursor;
    assert_eq!(&*parked.step, "fix");
    assert_eq!(json!(parked.visits), json!({"do": 1, "fix": 1}));
    assert_eq!(recorded.session.graph.wiring, "w2");
    // Steps that the loop no longer has are not counted.
    let graph = json!({"name": "l", "wiring": "w3", "steps": {"fix": "run"}});
    recorded.apply(at("adopt", json!({"graph": graph}))).unwrap();
    assert_eq!(visits(&recorded.session), json!({"fix": 1}));
    assert_eq!(json!(recorded.session.parked.unwrap().cursor.visits), json!({"fix": 1}));
}

#[test]
fn a_snapshot_must_be_what_came_before() {
    let recorded = replayed([start(), commit("act", "hi")]);
    let body = || snapshot(&recorded);
    let mut same = recorded.clone();
    same.apply(entry(json!({"t": 1, "u": {"i": 3}, "snapshot": body()}))).unwrap();
    let began = Recorded::begin(entry(json!({"t": 1, "u": {"i": 3}, "snapshot": body()}))).unwrap();
    assert_eq!((same.session.spent.usage.input, &same), (Some(3), &began));

    // The members of a set have no order; the snapshot's holds from then on.
    let mut turned = body();
    turned["state"]["tags"] = json!(["y", "x"]);
    let mut other = recorded.clone();
    other.apply(at("snapshot", turned)).unwrap();
    assert_eq!(other.state["tags"], json!(["y", "x"]));

    for (path, field) in [
        ("/state/talk", "talk"),
        ("/state", "talk"),
        ("/session/cursor/steps", "cursor"),
        ("/session/turn", "turn"),
        ("/session/agent", "agent"),
    ] {
        let mut changed = body();
        *changed.pointer_mut(path).unwrap() = match field {
            "agent" => json!("b"),
            "talk" => json!({}),
            _ => match path {
                "/session/cursor/steps" | "/session/turn" => json!(77),
                _ => json!(null),
            },
        };
        let error = refused(&recorded, "snapshot", changed);
        assert_eq!(error.not_replayable(), Some(field), "{path}: {error}");
    }
}

#[test]
fn a_fork_begins_with_what_it_was_forked_from() {
    let mut from = opened();
    from["from"] = json!({"session": "s", "seq": 9});
    let fork = Recorded::begin(at("open", from)).unwrap();
    let source = replayed([start(), commit("mend", "hi")]);
    let mut taken = source;
    taken.session.from = fork.session.from.clone();
    let first = at("snapshot", snapshot(&taken));
    let mut forked = fork.clone();
    forked.apply(first.clone()).unwrap();
    assert_eq!(forked, taken);
    // A second snapshot must be what the entries before it replay to, as everywhere.
    let mut moved = forked.clone();
    moved.apply(at("commit", json!({"n": "act"}))).unwrap();
    let error = moved.apply(first).unwrap_err();
    assert_eq!(error.not_replayable(), Some("cursor"));
    // Nor may it be of another session.
    taken.session.salt = serde_json::from_value(json!("other")).unwrap();
    let error = refused(&fork, "snapshot", snapshot(&taken));
    assert_eq!(error.not_replayable(), Some("salt"));
}

#[test]
fn an_attempt_that_asked_is_over() {
    let mut session = session_after([
        start(),
        json!({"attempt": {"n": 1, "failure": failure(1, 1), "retry_at": 9}}),
        ask(&[question("a", Some("a")), question("b", Some("b"))]),
    ]);
    assert_eq!((session.cursor.attempt, session.cursor.retries), (2, 0));
    session.apply(&at("settle", json!({"end": {"as": "interrupted"}, "attempt": 2}))).unwrap();
    assert_eq!(session.cursor.attempt, 2);
    session.apply(&at("settle", json!({"end": {"as": "stopped"}, "attempt": 5}))).unwrap();
    assert_eq!(session.cursor.attempt, 5, "attempts that no entry says of are counted");
}
