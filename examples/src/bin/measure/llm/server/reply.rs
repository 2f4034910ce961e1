//! The reply: 2,000 bytes of text, in one piece or as a stream of 100 parts.

use serde_json::{Value, json};

const PARTS: usize = 100;
const PART: &str = "a word and a number ";

/// Whether a request asks for a stream.
pub(super) fn is_streamed(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|body| body["stream"] == true)
}

fn message(content: Value) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "content": content, "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 400},
    })
}

/// All of it.
pub(super) fn whole() -> String {
    message(json!([{"type": "text", "text": PART.repeat(PARTS)}])).to_string()
}

/// The events of the first half and of the rest.
pub(super) fn halves() -> [Vec<String>; 2] {
    let event =
        |json: Value| format!("event: {}\ndata: {json}\n\n", json["type"].as_str().unwrap_or(""));
    let part = |_| {
        let delta = json!({"type": "text_delta", "text": PART});
        event(json!({"type": "content_block_delta", "index": 0, "delta": delta}))
    };
    let mut start = message(json!([]));
    start["stop_reason"] = Value::Null;
    let block = json!({"type": "text", "text": ""});
    let mut first = vec![
        event(json!({"type": "message_start", "message": start})),
        event(json!({"type": "content_block_start", "index": 0, "content_block": block})),
    ];
    first.extend((0..PARTS / 2).map(part));
    let mut rest: Vec<String> = (PARTS / 2..PARTS).map(part).collect();
    rest.extend([
        event(json!({"type": "content_block_stop", "index": 0})),
        event(json!({
            "type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": {"output_tokens": 400},
        })),
        event(json!({"type": "message_stop"})),
    ]);
    [first, rest]
}
