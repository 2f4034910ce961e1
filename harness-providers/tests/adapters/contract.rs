//! Every adapter keeps the contract of adapters.

use harness::testing::{AdapterContract, Report, Verdict, Wire};

/// Checks the adapter of a wire, and makes sure that only these clauses are skipped.
async fn keeps(wire: impl Wire, skipped: &[&str]) {
    let report: Report = AdapterContract::new(wire).run().await;
    report.assert();
    let left_out: Vec<_> = report
        .checked
        .iter()
        .filter(|checked| matches!(checked.verdict, Verdict::Skipped(_)))
        .map(|checked| checked.clause.as_str())
        .collect();
    assert_eq!(left_out, skipped, "{report}");
    assert_eq!(report.checked.len(), AdapterContract::clauses().count());
}

#[cfg(feature = "anthropic")]
#[tokio::test]
async fn anthropic() {
    keeps(crate::wires::anthropic::Messages, &["withheld-reply-is-a-reply"]).await;
}

#[cfg(feature = "openai-chat")]
#[tokio::test]
async fn openai_chat() {
    let skipped = ["opaque-blocks-go-back-to-their-model-only"];
    keeps(crate::wires::openai_chat::Completions { compatible: false }, &skipped).await;
}

#[cfg(feature = "openai-chat")]
#[tokio::test]
async fn openai_compatible() {
    let skipped = ["opaque-blocks-go-back-to-their-model-only"];
    keeps(crate::wires::openai_chat::Completions { compatible: true }, &skipped).await;
}

#[cfg(feature = "openai-responses")]
#[tokio::test]
async fn openai_responses() {
    keeps(crate::wires::openai_responses::Responses, &[]).await;
}

#[cfg(feature = "gemini")]
#[tokio::test]
async fn gemini() {
    let skipped = ["refusal-is-a-reply", "malformed-arguments-are-kept"];
    keeps(crate::wires::gemini::GenerateContent("gemini-2.5-flash"), &skipped).await;
    keeps(crate::wires::gemini::GenerateContent("gemini-3-pro-preview"), &skipped).await;
}

#[cfg(feature = "ollama")]
#[tokio::test]
async fn ollama() {
    let skipped = [
        "refusal-is-a-reply",
        "withheld-reply-is-a-reply",
        "malformed-arguments-are-kept",
        "opaque-blocks-go-back-to-their-model-only",
    ];
    keeps(crate::wires::ollama::Chat, &skipped).await;
}
