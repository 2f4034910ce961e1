//! Adapters that are wrong in one thing each, and the clause that finds each of them out.

mod adapter;

use crate::wires::openai_chat::Completions;
use crate::wires::openai_responses::Responses;
use adapter::Wrong;
use harness::llm::{Delta, Llm, LlmErrorKind, Reply, StopReason, Usage};
use harness::testing::{AdapterContract, Verdict, Wire, WireRequest};
use harness_providers::{OpenAiChat, reqwest};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// What an adapter does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    Nothing,
    AddsToTheReply,
    BreaksAreNoReplies,
    BreaksCharacters,
    ChargesNothing,
    ChargesTwice,
    ChargesWhatIsNotSent,
    DropsImages,
    DropsReasoningTokens,
    DropsTheSchema,
    DropsTheSeed,
    DropsTheSystemPrompt,
    DropsUsage,
    EmitsAtTheEnd,
    EmptyIsAnError,
    ErrorsAreUnavailable,
    ErrorsInsideAreStreams,
    FilterIsAnEnd,
    FollowsRedirects,
    ForgetsOpaque,
    ForgetsTheWait,
    IgnoresTheDeadline,
    IgnoresTheEffort,
    IgnoresTheToolChoice,
    KeepsOneCall,
    LimitIsAnEnd,
    ParsesArguments,
    RefusalIsAnError,
    RefusesLargeIndexes,
    RefusesMarks,
    RefusesChoiceAlone,
    RefusesReasoningAlone,
    RepeatsIds,
    RunsOnWhenDropped,
    SendsOpaqueToAll,
    SendsOutcomesAsOk,
    SendsReasoningAsText,
    SendsTwice,
    ServersAreFinal,
    SharesUsage,
    ShowsTheKey,
    SkipsText,
    TakesAnyBody,
    TakesAnySize,
    TakesHalfReplies,
    TakesOptionsOfOthers,
    TrimsText,
}

use Bug::*;

/// Each with the clause that names it.
const FOUND_BY: &[(Bug, &str)] = &[
    (DropsUsage, "reply-in-one-piece"),
    (SkipsText, "reply-in-parts"),
    (AddsToTheReply, "what-is-heard-is-the-reply"),
    (BreaksCharacters, "reply-in-single-bytes"),
    (TrimsText, "text-is-kept-to-the-character"),
    (EmptyIsAnError, "reply-can-be-empty"),
    (LimitIsAnEnd, "reply-that-reaches-its-limit-says-so"),
    (RefusalIsAnError, "refusal-is-a-reply"),
    (FilterIsAnEnd, "withheld-reply-is-a-reply"),
    (TakesAnySize, "reply-that-is-too-large-is-refused"),
    (TakesAnyBody, "body-that-is-no-reply-is-a-bad-reply"),
    (EmitsAtTheEnd, "parts-are-heard-as-they-arrive"),
    (TakesHalfReplies, "reply-that-ends-early-is-a-stream-error"),
    (BreaksAreNoReplies, "connection-that-breaks-is-a-stream-error"),
    (ErrorsInsideAreStreams, "error-inside-a-reply-has-its-kind"),
    (RunsOnWhenDropped, "dropped-call-closes-its-connection"),
    (IgnoresTheDeadline, "silent-server-is-left-at-the-deadline"),
    (IgnoresTheDeadline, "reply-that-pauses-is-left-at-the-deadline"),
    (RepeatsIds, "calls-in-one-piece"),
    (KeepsOneCall, "calls-interleave"),
    (RefusesLargeIndexes, "call-can-have-any-index"),
    (ParsesArguments, "malformed-arguments-are-kept"),
    (SendsOutcomesAsOk, "calls-go-back-with-their-outcomes"),
    (IgnoresTheToolChoice, "tool-choice-is-sent-or-refused"),
    (SendsTwice, "transcript-is-sent-in-order"),
    (DropsTheSystemPrompt, "transcript-is-sent-in-order"),
    (DropsTheSeed, "setting-is-sent-or-refused"),
    (DropsTheSchema, "setting-is-sent-or-refused"),
    (IgnoresTheEffort, "effort-is-sent-or-refused"),
    (DropsImages, "images-and-documents-are-sent-or-refused"),
    (RefusesMarks, "cache-marks-change-no-reply"),
    (TakesOptionsOfOthers, "options-go-to-their-protocol-only"),
    (SendsOpaqueToAll, "opaque-blocks-go-back-to-their-model-only"),
    (ForgetsOpaque, "opaque-blocks-go-back-to-their-model-only"),
    (SendsReasoningAsText, "reasoning-without-proof-is-no-text"),
    (RefusesChoiceAlone, "tool-choice-without-tools-has-no-effect"),
    (RefusesReasoningAlone, "turn-that-says-nothing-can-be-followed"),
    (ErrorsAreUnavailable, "errors-have-their-kind"),
    (ForgetsTheWait, "rate-limit-gives-the-wait-that-is-asked-for"),
    (ServersAreFinal, "errors-of-servers-can-be-retried"),
    (ShowsTheKey, "errors-show-no-secrets"),
    (ChargesWhatIsNotSent, "server-that-is-not-there-is-unavailable"),
    (FollowsRedirects, "redirects-are-not-followed"),
    (DropsReasoningTokens, "every-kind-of-usage-is-reported"),
    (ChargesTwice, "reply-is-charged-once"),
    (ChargesNothing, "failure-is-charged-once"),
    (ChargesNothing, "dropped-call-is-charged-once"),
    (SharesUsage, "concurrent-calls-keep-their-usage-apart"),
];

/// The wire of an adapter with a bug.
struct WrongWire {
    bug: Bug,
    right: Box<dyn Wire>,
}

impl WrongWire {
    fn new(bug: Bug) -> Self {
        let right: Box<dyn Wire> = match bug {
            SendsOpaqueToAll | ForgetsOpaque => Box::new(Responses),
            _ => Box::new(Completions { compatible: false }),
        };
        Self { bug, right }
    }
}

impl Wire for WrongWire {
    fn adapter(&self, url: &str, key: &str) -> Arc<dyn Llm> {
        let right = match self.bug {
            FollowsRedirects => {
                let client = reqwest::Client::new();
                Arc::new(OpenAiChat::new("gpt-x", key).base_url(url).client(client))
            }
            _ => self.right.adapter(url, key),
        };
        let (key, last) = (key.to_owned(), Mutex::new(Usage::default()));
        Arc::new(Wrong { bug: self.bug, right, key, last })
    }

    fn protocol(&self) -> &'static str {
        self.right.protocol()
    }

    fn whole(&self, reply: &Reply) -> String {
        self.right.whole(reply)
    }

    fn frames(&self, parts: &[Delta]) -> Vec<String> {
        self.right.frames(parts)
    }

    fn rejects(&self, request: &WireRequest) -> Option<(u16, String)> {
        self.right.rejects(request)
    }

    fn error(&self, kind: LlmErrorKind, message: &str) -> Option<(u16, String)> {
        self.right.error(kind, message)
    }

    fn error_frame(&self, kind: LlmErrorKind, message: &str) -> Option<String> {
        self.right.error_frame(kind, message)
    }

    fn has_stop(&self, reason: &StopReason) -> bool {
        self.right.has_stop(reason)
    }

    fn opaque(&self, mark: &str) -> Option<Value> {
        self.right.opaque(mark)
    }
}

async fn checked(bug: Bug, clause: &'static str) -> Verdict {
    let report = AdapterContract::new(WrongWire::new(bug)).only([clause]).run().await;
    let [checked] = report.checked.as_slice() else { panic!("{report}") };
    checked.verdict.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_wrong_adapter_is_found_out_by_the_clause_that_names_it() {
    let mut tasks = tokio::task::JoinSet::new();
    for (bug, clause) in FOUND_BY {
        tasks.spawn(async move { (*bug, *clause, checked(*bug, clause).await) });
    }
    let mut missed = Vec::new();
    while let Some(done) = tasks.join_next().await {
        match done.unwrap() {
            (bug, clause, Verdict::Broken(why)) => println!("{bug:?}: {clause}: {why}"),
            (bug, clause, other) => {
                missed.push(format!("{bug:?} is not found out by `{clause}`: {other:?}"));
            }
        }
    }
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

#[test]
fn every_clause_finds_a_wrong_adapter_out() {
    let found: BTreeSet<_> = FOUND_BY.iter().map(|(_, clause)| *clause).collect();
    let all: BTreeSet<_> = AdapterContract::clauses().collect();
    assert_eq!(found, all);
}

/// What finds the wrong ones out is the bug, and not what is around every adapter here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adapter_without_a_bug_keeps_every_clause() {
    AdapterContract::new(WrongWire::new(Nothing)).check().await;
}

#[tokio::test]
async fn a_name_that_no_clause_has_is_a_failure() {
    let contract = || AdapterContract::new(WrongWire::new(Nothing));
    let report = contract().only(["reply-in-one-peace"]).run().await;
    assert_eq!(report.broken().collect::<Vec<_>>(), ["reply-in-one-peace"]);
    let report = contract().only(["reply-can-be-empty"]).skip("nothing", "slip").run().await;
    assert_eq!(report.broken().collect::<Vec<_>>(), ["nothing"]);
}

#[test]
fn clauses_have_names_of_their_own() {
    let names: Vec<_> = AdapterContract::clauses().collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    let kebab = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    assert!(names.iter().all(|name| kebab(name)), "{names:?}");
}
