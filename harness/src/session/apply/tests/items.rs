//! Steps with items.

use serde_json::{Value, json};

use super::*;
use crate::clock::UtcMillis;
use crate::session::ItemResult;

fn planned(count: u8) -> Value {
    let items: Vec<u8> = (0..count).collect();
    json!({"planned": {"items": items}})
}

fn of_item(mut question: Value, item: u32) -> Value {
    question["item"] = json!(item);
    question
}

#[test]
fn items_are_planned_once_and_each_is_done_once() {
    let unplanned = replayed([start()]);
    for (kind, body) in [
        ("item", json!({"i": 0, "v": 1})),
        ("attempt", json!({"n": 1, "i": 0, "failure": failure(1, 1), "retry_at": 9})),
        ("intent", json!({"k": "k", "i": 0})),
        ("effect", json!({"k": "k", "i": 0, "v": 1})),
        ("ask", json!({"interrupts": [of_item(question("q", Some("k")), 0)]})),
    ] {
        let error = refused(&unplanned, kind, body).to_string();
        let expected = format!("`{kind}` names the item 0, which is done or was not planned");
        assert!(error.ends_with(&expected), "{error}");
    }
    let mut session = replayed([start(), planned(2)]);
    let twice = refused(&session, "planned", json!({"items": []}));
    assert!(twice.to_string().ends_with("it plans the items of a step twice"), "{twice}");
    let unknown = refused(&session, "item", json!({"i": 2, "v": 1}));
    assert!(unknown.to_string().contains("the item 2"), "{unknown}");
    session.apply(at("item", json!({"i": 1, "failure": failure(1, 1)}))).unwrap();
    let again = refused(&session, "item", json!({"i": 1, "v": 1}));
    assert!(again.to_string().contains("`item` names the item 1, which is done"), "{again}");
    let late = refused(&session, "effect", json!({"k": "k", "i": 1, "v": 1}));
    assert!(late.to_string().contains("the item 1"), "{late}");
    // An effect of the session is kept whatever becomes of the item.
    session.apply(at("effect", json!({"k": "k", "s": "session", "i": 1, "v": 1}))).unwrap();
    assert_eq!(session.session.items.unwrap().open().collect::<Vec<_>>(), [0]);
}

#[test]
fn what_is_known_of_an_item_is_its_own_and_ends_with_it() {
    let mut session = session_after([
        start(),
        planned(3),
        json!({"attempt": {"n": 1, "i": 0, "failure": failure(1, 1), "retry_at": 9}}),
        json!({"effect": {"k": "k", "i": 0, "v": "zero"}}),
        json!({"intent": {"k": "k", "i": 1}}),
        ask(&[
            of_item(question("q0", Some("k")), 0),
            of_item(question("p0", Some("p")), 0),
            of_item(question("q1", Some("k")), 1),
        ]),
    ]);
    assert_eq!((session.attempts(Some(0)), session.retries(Some(0))), (2, 0));
    assert_eq!((session.attempts(Some(1)), session.attempts(Some(2))), (1, 0));
    assert_eq!(session.attempts(None), 0, "the step itself did not ask");
    let effect =
        |session: &Session, item| session.effect(item, EffectScope::Position, "k").cloned();
    assert_eq!(effect(&session, Some(0)), Some(EffectRecord::Done(json!("zero"))));
    assert_eq!(effect(&session, Some(1)), Some(EffectRecord::Intent));
    assert_eq!((effect(&session, Some(2)), effect(&session, None)), (None, None));
    let id = |session: &Session, item| {
        session.asked(item, Some("k")).map(|asked| asked.interrupt.id.to_string())
    };
    assert_eq!(
        (id(&session, Some(0)), id(&session, Some(1))),
        (Some("q0".into()), Some("q1".into()))
    );
    assert_eq!((id(&session, Some(2)), id(&session, None)), (None, None));
    assert!(session.enterable_items(UtcMillis(0)).next().is_some(), "item 2 waits for nothing");

    session.apply(&at("item", json!({"i": 2, "v": 2}))).unwrap();
    assert!(session.enterable_items(UtcMillis(0)).next().is_none());
    session.apply(&at("run", json!({"run": "r2"}))).unwrap();
    assert_eq!((session.attempts(Some(0)), session.retries(Some(0))), (2, 0));
    session.apply(&at("item", json!({"i": 0, "v": 0}))).unwrap();
    let left: Vec<_> = session.interrupts.iter().map(|it| it.interrupt.id.to_string()).collect();
    assert_eq!((left, effect(&session, Some(0))), (vec!["q1".to_owned()], None));

    session.apply(&at("commit", json!({"n": "act"}))).unwrap();
    assert_eq!((&session.items, session.interrupts.iter().count()), (&None, 0));
}

#[test]
fn items_wait_while_the_last_steps_run() {
    let end = json!({"as": "failed", "failure": failure(1, 1)});
    let mut session = session_after([
        start(),
        planned(2),
        json!({"item": {"i": 0, "v": "kept"}}),
        json!({"finish": {"end": end, "n": "mend"}}),
    ]);
    assert_eq!(session.items, None);
    session.apply(&at("planned", json!({"items": []}))).unwrap();
    session.apply(&at("settle", json!({"end": end}))).unwrap();
    let items = session.items.unwrap();
    assert_eq!(items.done[&0], ItemResult::Done(json!("kept")));
    assert_eq!(items.open().collect::<Vec<_>>(), [1]);
}
