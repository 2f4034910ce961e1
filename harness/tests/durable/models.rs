//! Replies that are recorded, and transcripts that are edited: what survives a process that dies, at
//! every append.

use std::sync::Arc;

use harness::llm::scripted::say;
use harness::llm::{Edit, Llm, Scripted, Usage};
use harness::prelude::*;
use harness::store::MemoryStore;

use super::rig::{Act, On, Rig, folded, log, run_or_crash, runtime};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = transcript)]
    talk: Transcript,
}

#[derive(Context)]
struct Ctx {
    #[slot(runtime)]
    model: Arc<dyn Llm>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Send {
    text: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Draft,
    Compact,
}

/// A question with the words of a model.
async fn draft(chat: View<Chat>, cx: Cx<Ctx>) -> StepResult<Chat> {
    let drafts = cx.llm(&cx.model).recorded("draft");
    let text = drafts.complete(&chat.talk, &ToolSet::default()).await?.text().unwrap_or_default();
    let sent = cx.ask("send", Send { text: text.clone() }).await?;
    Ok(Chat::update().talk([user(format!("{text} {sent}"))]))
}

async fn compact(chat: View<Chat>, _: Cx<Ctx>) -> StepResult<Chat> {
    let edits = [Edit::pin(0), Edit::summarize(0..2, "all before"), Edit::pin(1)];
    let mut talk = chat.talk.clone();
    for edit in &edits {
        talk.edit(edit.clone())?;
    }
    Ok(Chat::update().talk(edits.map(Into::into)))
}

fn agent(store: Rig) -> Agent<Ctx, Chat> {
    Harness::<Ctx, Chat>::builder("drafts")
        .start(Step::Draft)
        .steps(|define, step| match step {
            Step::Draft => define.run(draft).then(Step::Compact),
            Step::Compact => define.run(compact).end(),
        })
        .build()
        .unwrap()
        .agent("d", ())
        .store(store)
}

/// What a log holds: the drafts that are recorded, the questions, and whether the turn has ended.
fn stored(memory: &MemoryStore) -> (Vec<String>, Vec<(String, String)>, bool) {
    let log = runtime().block_on(log(memory, "s"));
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let drafts = log.iter().filter(|entry| entry["effect"]["k"] == "draft");
    let drafts = drafts.map(|entry| text(&entry["effect"]["v"]["turn"]["blocks"][0]["text"]));
    let asked = log.iter().filter_map(|entry| entry["ask"]["interrupts"].as_array()).flatten();
    let asked = asked.map(|it| (text(&it["id"]), text(&it["question"]["text"])));
    let ended = log.iter().any(|entry| entry["settle"]["end"]["as"] == "ended");
    (drafts.collect(), asked.collect(), ended)
}

#[test]
fn a_recorded_reply_is_the_same_after_a_death_at_any_append() {
    let mut crashes = 0;
    for act in [Act::HangBefore, Act::HangAfter] {
        for n in 1..12_u64 {
            let memory = MemoryStore::new();
            let mut called_after_record = 0;
            let mut appends = 0;
            for process in 0..10 {
                let (drafts, asked, ended) = stored(&memory);
                if ended {
                    break;
                }
                // Each process has a model that drafts another text.
                let model =
                    Scripted::new([say(format!("draft {process}")).usage(Usage::tokens(1, 2))]);
                // The one that makes the `n`th append of the turn dies.
                let rig = match n.checked_sub(appends) {
                    Some(left @ 1..) => Rig::nth(&memory, On::Append, left, act.clone()),
                    _ => Rig::new(memory.clone()),
                };
                let agent = agent(rig.clone());
                let slots = Ctx::runtime().model(Arc::new(model.clone())).build();
                let request = match asked.first() {
                    _ if !runtime().block_on(log(&memory, "s")).is_empty() => {
                        let answers = asked.first().map_or(Answers::none(), |(id, _)| {
                            Answers::json(id.as_str(), true.into())
                        });
                        agent.resume("s", answers, slots)
                    }
                    _ => agent.run(Chat::update().talk([user("go")]), slots).session("s"),
                };
                crashes += u32::from(run_or_crash(&rig, |_| request).is_none());
                appends += rig.count(On::Append);
                called_after_record += usize::from(!drafts.is_empty()) * model.seen().len();
            }
            let (drafts, asked, ended) = stored(&memory);
            assert!(ended, "append {n}");
            assert_eq!((drafts.len(), asked.len(), called_after_record), (1, 1, 0), "append {n}");
            assert_eq!(asked[0].1, drafts[0], "append {n}");
            let state = runtime().block_on(folded(&memory, "s"));
            let chat: Chat = serde_json::from_value(state).unwrap();
            let expected = Transcript::from_iter([
                user("go"),
                Edit::pin(0).into(),
                user("all before"),
                Edit::pin(1).into(),
            ]);
            assert_eq!(chat.talk, expected, "append {n}");
        }
    }
    assert!(crashes >= 10, "{crashes}");
}
