//! Each derive compared with a hand-written implementation.
#![allow(missing_docs, clippy::unwrap_used)]

use std::borrow::Cow;
use std::fmt::Debug;

use harness::context::{Slot, When};
use harness::state::{Append, Has, Migration, Ops, Schema, encode, fold};
use harness::{Context, Question, Signal, State, StepId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

/// The stored form of an older version.
#[derive(Deserialize)]
struct Old {
    line: String,
}

#[path = "derive_is_sugar/by_hand.rs"]
mod by_hand;
#[path = "derive_is_sugar/derived.rs"]
mod derived;
#[path = "derive_is_sugar/whole_loop.rs"]
mod whole_loop;

/// The observable behaviour of a state type, which must be equal for both.
fn observe<S>(updates: Vec<S::Update>) -> Vec<String>
where
    S: State<Update: Serialize> + Debug + Serialize,
{
    let mut seen = vec![format!("{:?} {}", S::schema(), S::VERSION)];
    let mut state = S::default();
    for update in updates {
        let mut folded = encode(&state).unwrap();
        seen.push(format!("{update:?} {}", serde_json::to_value(&update).unwrap()));
        let mut ops = Ops::on();
        state.apply(update, &mut ops);
        let ops = ops.finish().unwrap();
        fold(&mut folded, &ops).unwrap();
        assert_eq!(folded, encode(&state).unwrap());
        seen.push(format!("{state:?} {ops:?}"));
    }
    for stored in [json!({"line": "x"}), json!({"line": ""}), json!(1)] {
        seen.push(match S::migration().unwrap().run(stored) {
            Ok(state) => format!("{state:?}"),
            Err(error) => error.to_string(),
        });
    }
    seen
}

fn decoded<T: DeserializeOwned + Debug>(stored: &Value) -> Result<T, String> {
    serde_json::from_value(stored.clone()).map_err(|error| error.to_string())
}

#[test]
fn state() {
    macro_rules! observed {
        ($chat:ty) => {{
            let update = <$chat>::update;
            let mut updates = vec![
                update(),
                update().lines(["a".to_owned()]).lines(vec!["b".to_owned()]),
                update().turns(1).turns(2).answer(Some("yes".to_owned())),
                update().answer(Some(String::new())).answer(None).r#type("x"),
            ];
            let mut refused = Vec::new();
            for stored in [
                json!({}),
                json!({"answer": null}),
                json!({"lines": [], "type": "t"}),
                json!({"lines": null}),
                json!({"line": []}),
                json!({"turns": -1}),
            ] {
                match decoded(&stored) {
                    Ok(update) => updates.push(update),
                    Err(error) => refused.push(error),
                }
            }
            let mut seen = observe::<$chat>(updates);
            seen.extend(refused);
            seen
        }};
    }
    let derived = observed!(derived::Chat);
    assert_eq!(derived, observed!(by_hand::Chat));
    assert_eq!(derived.len(), 1 + 2 * 7 + 3 + 3);
}

/// The effects of a step that uses only the parts of a state.
fn changed<S>() -> String
where
    S: Has<Vec<String>, Change = Vec<String>>
        + Has<u32, Change = u32>
        + Has<Option<String>, Change = Option<String>>
        + Has<String, Change = String>,
{
    let mut state = S::default();
    for _ in 0..2 {
        let update = <S as Has<Vec<String>>>::change(S::update(), vec!["a".to_owned()]);
        let update = <S as Has<u32>>::change(update, 2);
        let update = <S as Has<Option<String>>>::change(update, Some("yes".to_owned()));
        let update = <S as Has<String>>::change(update, "t".to_owned());
        state.apply(update, &mut Ops::off());
    }
    let (lines, turns): (&Vec<String>, &u32) = (state.part(), state.part());
    let (answer, kind): (&Option<String>, &String) = (state.part(), state.part());
    format!("{lines:?} {turns} {answer:?} {kind}")
}

#[test]
fn parts() {
    let derived = changed::<derived::Chat>();
    assert_eq!(derived, changed::<by_hand::Chat>());
    assert_eq!(derived, r#"["a", "a"] 4 Some("yes") t"#);
}

#[test]
fn context() {
    let fixed = derived::Ctx::fixed().size(3).tools(vec![1]).build();
    let runtime = derived::Ctx::runtime().model("m".into()).build();
    let derived = derived::Ctx::assemble(fixed.clone(), (), runtime);
    let by_hand = by_hand::Ctx::assemble((vec![1], 3), (), "m".into());
    assert_eq!(format!("{derived:?}"), format!("{by_hand:?}"));
    assert_eq!(derived::Ctx::slots(), by_hand::Ctx::slots());
    assert_eq!(<() as Context>::slots(), &[]);
}

#[test]
fn signal() {
    fn seen<S: Signal + Debug>() -> Vec<String> {
        let all = S::ALL.iter().map(|one| format!("{one:?} {} {}", one.name(), one.index()));
        all.chain([S::NAME.to_owned()]).collect()
    }
    assert_eq!(seen::<derived::Next>(), seen::<by_hand::Next>());
}

#[test]
fn step_id() {
    fn seen<S: StepId>() -> Vec<String> {
        let all = S::all();
        let all = all.iter().map(|one| format!("{one:?} {} {}", one.name(), one.index()));
        all.chain([S::NAME.to_owned()]).collect()
    }
    assert_eq!(seen::<derived::Step>(), seen::<by_hand::Step>());
}

#[test]
fn question() {
    fn seen<Q>(question: Q) -> (String, &'static str, Value)
    where
        Q: Question<Answer: schemars::JsonSchema> + Serialize,
    {
        let schema = schemars::schema_for!(Q::Answer).to_value();
        (serde_json::to_string(&question).unwrap(), Q::NAME, schema)
    }
    let tool = "rm".to_owned();
    assert_eq!(
        seen(derived::ApproveCall { tool: tool.clone() }),
        seen(by_hand::ApproveCall { tool })
    );
    assert_eq!(seen(derived::Named::One).1, "named");
}
