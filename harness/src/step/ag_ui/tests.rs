use serde_json::json;

use super::*;

fn interrupt() -> Interrupt {
    Interrupt {
        id: InterruptId::new("4-1f"),
        name: "approve_call".to_owned(),
        question: json!({ "tool": "delete", "message": "Delete all?" }),
        answer_schema: json!({ "type": "boolean" }),
        step: "Review/Ask".to_owned(),
        position: Position(4),
        item: None,
        key: Some("delete".to_owned()),
        asked_at: UtcMillis(1_795_266_492_250),
        expires_at: Some(UtcMillis(1_795_266_492_251)),
    }
}

/// The interrupt after JSON encoding and decoding.
fn sent(interrupt: &Interrupt) -> AgUiInterrupt {
    let text = serde_json::to_string(&interrupt.to_ag_ui()).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_question_encodes_in_the_protocol_s_format() {
    assert_eq!(
        serde_json::to_value(interrupt().to_ag_ui()).unwrap(),
        json!({
            "id": "4-1f",
            "reason": "confirmation",
            "message": "Delete all?",
            "responseSchema": { "type": "boolean" },
            "expiresAt": "2026-11-21T13:08:12.251Z",
            "metadata": { "harness": {
                "name": "approve_call",
                "question": { "tool": "delete", "message": "Delete all?" },
                "step": "Review/Ask",
                "position": 4,
                "key": "delete",
                "askedAt": 1_795_266_492_250_u64,
            } },
        })
    );
}

#[test]
fn questions_round_trip() {
    let plain = Interrupt {
        question: json!("who?"),
        answer_schema: json!({ "$schema": "s", "type": ["string", "null"] }),
        key: None,
        expires_at: None,
        ..interrupt()
    };
    assert_eq!(plain.to_ag_ui().reason, "input_required");
    assert_eq!(plain.to_ag_ui().message, None);
    let late = Interrupt { expires_at: Some(UtcMillis(u64::MAX)), ..interrupt() };
    assert_eq!(late.to_ag_ui().expires_at, None);
    for interrupt in [interrupt(), plain, late] {
        assert_eq!(Interrupt::from_ag_ui(&sent(&interrupt)), Ok(interrupt));
    }
}

#[test]
fn foreign_interrupts_are_errors() {
    let mut theirs = interrupt().to_ag_ui();
    theirs.expires_at = Some("tomorrow".to_owned());
    let message = |theirs: &AgUiInterrupt| Interrupt::from_ag_ui(theirs).unwrap_err().to_string();
    assert!(message(&theirs).contains("`4-1f`") && message(&theirs).contains("`tomorrow`"));
    theirs.metadata = Some(Map::from_iter([(REST.to_owned(), json!({ "name": "x" }))]));
    assert!(message(&theirs).contains("does not decode"));
    theirs.metadata = None;
    assert!(message(&theirs).contains("no metadata"));
}

#[test]
fn answers_and_cancelled_questions_are_split() {
    let list: Vec<AgUiResume> = serde_json::from_value(json!([
        { "interruptId": "1", "status": "resolved", "payload": { "approved": false },
          "metadata": { "by": "sam" } },
        { "interruptId": "2", "status": "cancelled", "payload": true },
        { "interruptId": "3", "status": "resolved" },
    ]))
    .unwrap();
    let AgUiAnswers { answers, cancelled } = Answers::from_ag_ui(list);
    assert_eq!(cancelled, [InterruptId::new("2")]);
    let taken: Vec<_> = answers
        .list
        .iter()
        .map(|answer| (answer.id.as_str(), answer.value.clone(), answer.by.as_deref()))
        .collect();
    assert_eq!(
        taken,
        [("1", Ok(json!({ "approved": false })), Some("sam")), ("3", Ok(Value::Null), None)]
    );
    let unknown = json!({ "interruptId": "1", "status": "maybe" });
    assert!(serde_json::from_value::<AgUiResume>(unknown).is_err());
}
