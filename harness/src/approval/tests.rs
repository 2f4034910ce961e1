use proptest::prelude::*;
use serde_json::{Value, json};

use super::answer::answer_schema;
use super::*;
use crate::llm::{EffectClass, ToolCall, ToolFailure, ToolOutcome, ToolSet, ToolSpec, tool};
use crate::question::mismatch;

fn send(effect: EffectClass) -> ToolSet {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is read")]
    struct Note {
        to: String,
        cents: Option<u32>,
    }
    let send = tool("send", "Sends a note", async |_: Note| Ok("sent")).effect(effect);
    ToolSet::builder().with(send).build().unwrap()
}

fn spec(tools: &ToolSet) -> &ToolSpec {
    &tools.specs()[0]
}

fn call(arguments: &Value) -> ToolCall {
    ToolCall::new("c1", "send", arguments.to_string())
}

fn decided(policy: &Policy, tools: &ToolSet, rules: &[Rule], arguments: &Value) -> Decision {
    policy.judge(tools, &call(arguments), rules).unwrap().decision
}

#[test]
fn the_class_decides_if_nothing_else_does() {
    let to_sam = json!({"to": "sam"});
    for (class, decision) in [
        (EffectClass::Read, Decision::Allow),
        (EffectClass::Write, Decision::Allow),
        (EffectClass::External, Decision::Ask),
        (EffectClass::Destructive, Decision::Ask),
    ] {
        assert_eq!(decided(&Policy::new(), &send(class), &[], &to_sam), decision);
        assert_eq!(decided(&Policy::ask_all(), &send(class), &[], &to_sam), Decision::Ask);
        assert_eq!(decided(&Policy::allow_all(), &send(class), &[], &to_sam), Decision::Allow);
        assert_eq!(decided(&Policy::deny_all(), &send(class), &[], &to_sam), Decision::Deny);
    }
}

#[test]
fn a_wrong_call_is_not_asked_about() {
    let tools = send(EffectClass::External);
    let kind = |call: &ToolCall| match Policy::new().judge(&tools, call, &[]) {
        Err(ToolOutcome::Failed { kind, content }) => (kind, content.text().unwrap()),
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(&ToolCall::new("c", "sent", "{}")).0, ToolFailure::UnknownTool);
    for wrong in ["[]", "\"sam\"", "{", "{}", r#"{"to": 1}"#, r#"{"to": "sam", "cents": -1}"#, ""] {
        let (kind, text) = kind(&ToolCall::new("c", "send", wrong));
        assert_eq!(kind, ToolFailure::BadArguments, "{wrong}");
        assert!(text.contains("have to match {"), "{text}");
    }
}

#[test]
fn a_rule_allows_the_tool_as_it_was() {
    let tools = send(EffectClass::External);
    let to_sam = Arguments::new().with("/to", Condition::equals("sam"));
    let rules = [Rule::allow(spec(&tools), to_sam)];
    let decide = |tools: &ToolSet, arguments| decided(&Policy::new(), tools, &rules, &arguments);
    assert_eq!(decide(&tools, json!({"to": "sam"})), Decision::Allow);
    assert_eq!(decide(&tools, json!({"to": "sam", "cents": 1})), Decision::Ask);
    assert_eq!(decide(&tools, json!({"to": "ann"})), Decision::Ask);
    // The same name and the same arguments.
    assert_eq!(decide(&send(EffectClass::Destructive), json!({"to": "sam"})), Decision::Ask);
    let revoked = [rules[0].clone().revoked()];
    assert_eq!(decided(&Policy::new(), &tools, &revoked, &json!({"to": "sam"})), Decision::Ask);
    // One that denies holds all the same.
    let denied = [Rule::deny(spec(&tools), Arguments::new())];
    let changed = send(EffectClass::Read);
    assert_eq!(decided(&Policy::new(), &changed, &denied, &json!({"to": "x"})), Decision::Deny);
}

fn fault(schema: &Value, answer: &Value) -> Option<String> {
    let by_schema = mismatch(schema, answer);
    let by_type = serde_json::from_value::<Approval>(answer.clone()).err();
    assert!(by_type.is_none() || by_schema.is_some(), "accepted, but does not decode: {answer}");
    by_schema
}

#[test]
fn nothing_is_approved_by_accident() {
    let tools = send(EffectClass::External);
    let denied = [Arguments::new().with("/to", Condition::equals("root"))];
    let schema = answer_schema(&spec(&tools).input_schema, &denied, &[Scope::Session]);
    for answer in [
        json!({"approve": {}}),
        json!({"approve": {"edited": {"to": "ann", "cents": 3}}}),
        json!({"approve": {"remember": {"scope": "session", "arguments": {"/to": "any"}}}}),
        json!({"approve": {"remember": {"scope": "session", "arguments": {
            "/to": {"equals": "a"}, "/cents": {"one_of": [1, 2]}, "/path": {"under": "/srv"},
        }}}}),
        json!({"reject": {}}),
        json!({"reject": {"message": "no"}}),
        json!({"steer": {"text": "ask the customer first"}}),
    ] {
        assert_eq!(fault(&schema, &answer), None, "{answer}");
    }
    for answer in [
        json!(""),
        json!(null),
        json!(true),
        json!({}),
        json!([]),
        json!("approve"),
        json!("y"),
        json!({"approve": null}),
        json!({"approve": true}),
        json!({"Approve": {}}),
        json!({"approved": true}),
        json!({"approve": {}, "reject": {}}),
        json!({"approve": {"edit": {"to": "ann"}}}),
        json!({"approve": {"edited": null}}),
        json!({"approve": {"edited": {}}}),
        json!({"approve": {"edited": "ann"}}),
        json!({"approve": {"edited": {"to": 1}}}),
        json!({"approve": {"edited": {"to": "root"}}}),
        json!({"approve": {"edited": {"to": "root", "cents": 1}}}),
        json!({"approve": {"remember": {"scope": "agent", "arguments": {}}}}),
        json!({"approve": {"remember": {"arguments": {}}}}),
        json!({"approve": {"remember": {"scope": "session", "arguments": {"/to": "some"}}}}),
        json!({"approve": {"remember": {"scope": "session", "arguments": {"/to": {"starts": "a"}}}}}),
        json!({"steer": {}}),
        json!({"steer": {"text": ""}}),
    ] {
        assert!(fault(&schema, &answer).is_some(), "{answer}");
    }
    let why = fault(&schema, &json!({"approve": {"edited": {"to": "root"}}})).unwrap();
    assert_eq!(
        why,
        "at `approve.edited`: rule 1 denies these arguments: {\"/to\":{\"equals\":\"root\"}}"
    );
}

#[test]
fn edited_arguments_match_a_schema_with_references_to_itself() {
    let tree = json!({
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "size": {"$ref": "#/$defs/size"}},
        "additionalProperties": false,
        "$defs": {"size": {"type": "integer"}},
    });
    let schema = answer_schema(&tree, &[], &[Scope::Session]);
    let edited = |tree: Value| fault(&schema, &json!({"approve": {"edited": tree}}));
    assert_eq!(edited(json!({"next": {"next": {"size": 1}}})), None);
    assert!(edited(json!({"next": {"next": {"size": "1"}}})).is_some());
    assert!(edited(json!({"next": {"approve": {}}})).is_some());
}

/// One of a few calls, so that conditions often meet them.
fn arguments() -> impl Strategy<Value = Value> {
    (0..3_u8, prop::option::of(0..2_u8)).prop_map(|(to, cents)| match cents {
        Some(cents) => json!({"to": to.to_string(), "cents": cents}),
        None => json!({"to": to.to_string()}),
    })
}

fn conditions() -> impl Strategy<Value = Arguments> {
    let one = prop_oneof![
        (0..3_u8).prop_map(|to| Condition::equals(to.to_string())),
        Just(Condition::one_of(["0", "1"])),
        Just(Condition::Any),
    ];
    (prop::option::of(one.clone()), prop::option::of(one)).prop_map(|(to, cents)| {
        let mut all = Arguments::new();
        if let Some(to) = to {
            all = all.with("/to", to);
        }
        if let Some(cents) = cents {
            all = all.with("/cents", cents);
        }
        all
    })
}

fn calls(conditions: &Arguments) -> Calls {
    conditions.iter().fold(Calls::of("send"), |calls, (at, one)| calls.with(at, one.clone()))
}

proptest! {
    #[test]
    fn deny_is_before_ask_and_ask_before_allow(
        arguments in arguments(),
        conditions in prop::collection::vec((conditions(), 0..6_u8), 0..6),
    ) {
        let tools = send(EffectClass::External);
        let (mut policy, mut rules) = (Policy::new(), Vec::new());
        let [mut deny, mut ask, mut remembered, mut allow] = [false; 4];
        for (one, kind) in &conditions {
            let (catch, strict) = (one.catch(&arguments), one.allow(&arguments));
            match kind {
                0 => { policy = policy.deny(calls(one)); deny |= catch; }
                1 => { policy = policy.ask(calls(one)); ask |= catch; }
                2 => {
                    policy = policy.allow(calls(one));
                    // Without a condition, all calls of the tool.
                    allow |= strict || one.iter().next().is_none();
                }
                3 => { rules.push(Rule::deny(spec(&tools), one.clone())); deny |= catch; }
                4 => { rules.push(Rule::ask(spec(&tools), one.clone())); ask |= catch; }
                _ => { rules.push(Rule::allow(spec(&tools), one.clone())); remembered |= strict; }
            }
        }
        let expected = match (deny, ask, remembered || allow) {
            (true, ..) => Decision::Deny,
            (_, true, _) => Decision::Ask,
            (.., true) => Decision::Allow,
            _ => Decision::Ask,
        };
        prop_assert_eq!(decided(&policy, &tools, &rules, &arguments), expected);
        // The order in which rules were added changes nothing.
        rules.reverse();
        prop_assert_eq!(decided(&policy, &tools, &rules, &arguments), expected);
    }

    #[test]
    fn a_tool_with_a_question_is_allowed_only_by_a_rule(arguments in arguments()) {
        #[derive(crate::Question, serde::Serialize, serde::Deserialize)]
        #[question(answer = Approval)]
        struct Own;
        let own = tool("send", "Sends", async |_: Value| Ok("sent")).effect(EffectClass::Read);
        let tools = ToolSet::builder().with(own.approve_with(|_: &Value| Own)).build().unwrap();
        let policy = Policy::allow_all().allow(Calls::all());
        prop_assert_eq!(decided(&policy, &tools, &[], &arguments), Decision::Ask);
        let rules = [Rule::allow(spec(&tools), Arguments::exactly(&arguments))];
        prop_assert_eq!(decided(&policy, &tools, &rules, &arguments), Decision::Allow);
    }

    #[test]
    fn what_is_denied_is_refused_as_an_edit(edited in arguments(), one in conditions()) {
        let tools = send(EffectClass::External);
        let policy = Policy::new().deny(calls(&one));
        let Ok(ruling) = policy.judge(&tools, &call(&json!({"to": "9", "cents": 9})), &[]) else {
            return Err(TestCaseError::fail("the call is legal"));
        };
        prop_assume!(ruling.decision == Decision::Ask);
        let schema = answer_schema(&spec(&tools).input_schema, &ruling.denied, &[Scope::Session]);
        let answer = json!({"approve": {"edited": edited}});
        let denied = decided(&policy, &tools, &[], &edited) == Decision::Deny;
        prop_assert_eq!(mismatch(&schema, &answer).is_some(), denied);
    }
}
