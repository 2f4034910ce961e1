//! Calls the model.

use std::sync::Arc;

use harness::context::Context;
use harness::llm::{
    Block, Edit, Llm, LlmErrorKind, Message, Reply, Request, ToolCall, ToolChoice, ToolOutcome,
    ToolSet, Transcript, Turn, user,
};
use harness::{Cx, ResultExt as _, StepError, StepResult, View};

use crate::loops::state::{Converses, ToolUse, kept, talk, update};

use super::settings::{Compaction, Settings};
use super::text::{self, Reading};

/// Calls the model, with tools or for the last time.
pub(super) async fn think<S: Converses, C: Context>(
    of: Arc<Settings<S, C>>,
    state: View<S>,
    cx: Cx<C>,
    with_tools: bool,
) -> StepResult<S> {
    let asking = Asking {
        model: (of.model)(&cx),
        tools: (of.tools)(&cx),
        system: of.system.as_ref().map(|system| system(&state)),
        with_tools,
        of: &of,
    };
    let mut shorter = Shorter::default();
    if let Some(compaction) = &of.compaction
        && kept(&*state).tokens.is_some_and(|tokens| tokens > compaction.above)
    {
        shorter.make(compaction, talk(&*state), &cx).await?;
    }
    let reply = loop {
        let reply = asking.ask(shorter.talk.as_ref().unwrap_or(talk(&*state)), &cx).await;
        match (reply, &of.compaction) {
            (Err(error), Some(compaction))
                if error.kind() == LlmErrorKind::ContextLength && shorter.talk.is_none() =>
            {
                shorter.make(compaction, talk(&*state), &cx).await?;
            }
            (reply, _) => break reply?,
        }
    };
    let tokens = reply.usage.total();
    let mut messages: Vec<Message> = shorter.edits.into_iter().map(Message::from).collect();
    messages.extend(asking.read(reply, &cx));
    Ok(update::<S>(messages, ToolUse::update().tokens(tokens)))
}

/// A transcript that was shortened.
#[derive(Default)]
struct Shorter {
    talk: Option<Transcript>,
    edits: Vec<Edit>,
}

impl Shorter {
    async fn make<C: Context>(
        &mut self,
        compaction: &Compaction<C>,
        talk: &Transcript,
        cx: &Cx<C>,
    ) -> Result<(), StepError> {
        let edits = (compaction.edits)(talk.clone(), cx.clone()).await?;
        let mut shorter = talk.clone();
        for edit in &edits {
            shorter.edit(edit.clone()).fatal()?;
        }
        (self.talk, self.edits) = (Some(shorter), edits);
        Ok(())
    }
}

struct Asking<'a, S, C: Context> {
    model: Arc<dyn Llm>,
    tools: ToolSet,
    system: Option<String>,
    with_tools: bool,
    of: &'a Settings<S, C>,
}

impl<S: Converses, C: Context> Asking<'_, S, C> {
    /// Whether the model calls tools by JSON in its text.
    fn in_text(&self) -> bool {
        !self.tools.is_empty() && self.of.in_text.unwrap_or_else(|| !self.model.caps().tools)
    }

    async fn ask(&self, talk: &Transcript, cx: &Cx<C>) -> Result<Reply, harness::llm::LlmError> {
        let in_text = self.in_text();
        let rendered = in_text.then(|| text::rendered(talk));
        let talk = rendered.as_ref().unwrap_or(talk);
        let sealed = talk.sealed().map_err(|open| {
            harness::llm::LlmError::new(LlmErrorKind::InvalidRequest).because(open)
        })?;
        let system = match in_text && self.with_tools {
            true => Some(text::instructions(self.system.as_deref(), &self.tools)),
            false => self.system.clone(),
        };
        let mut request = Request::new(sealed);
        let chooses = self.model.caps().tool_choice;
        // Tools stay known in the last request where they can, because the transcript has calls of them.
        if !in_text && !self.tools.is_empty() && (self.with_tools || chooses) {
            request = request.tools(&self.tools);
            if !self.with_tools {
                request = request.tool_choice(ToolChoice::None);
            }
        }
        if let Some(system) = &system {
            request = request.system(system);
        }
        if let Some(change) = &self.of.request {
            request = change(request);
        }
        let mut calling = cx.llm(&self.model);
        if let Some(limit) = self.of.within {
            calling = calling.within(limit);
        }
        if self.of.streamed {
            calling = calling.streamed();
        }
        calling.request(request).await
    }

    /// The messages of a reply.
    fn read(&self, mut reply: Reply, cx: &Cx<C>) -> Vec<Message> {
        if self.in_text() && reply.calls().next().is_none() {
            return self.read_text(reply, cx);
        }
        unique_ids(&mut reply.turn);
        let calls: Vec<ToolCall> = reply.calls().cloned().collect();
        let mut messages = vec![Message::from(reply)];
        if !self.with_tools {
            // It was asked to answer.
            messages.extend(
                calls
                    .into_iter()
                    .map(|call| Message::Outcome { call: call.id, outcome: ToolOutcome::Skipped }),
            );
        }
        messages
    }

    fn read_text(&self, mut reply: Reply, cx: &Cx<C>) -> Vec<Message> {
        match text::read(&reply.text().unwrap_or_default()) {
            Reading::Calls { before, calls } if self.with_tools => {
                let mut blocks: Vec<Block> = reply.turn.blocks;
                blocks.retain(|block| !matches!(block, Block::Text(_)));
                if !before.is_empty() {
                    blocks.push(Block::Text(before));
                }
                // A position is entered once in a session, so the ids are its own.
                let ids = (0..).map(|n| format!("call-{}-{n}", cx.position()));
                blocks.extend(calls.into_iter().zip(ids).map(|((name, arguments), id)| {
                    Block::from(ToolCall::new(id, name, arguments))
                }));
                reply.turn.blocks = blocks;
                vec![reply.into()]
            }
            Reading::Malformed(why) if self.with_tools => {
                let again = format!(
                    "The reply calls no tool, because it is malformed: {why}. Send the JSON object \
                     again, complete and without errors."
                );
                vec![reply.into(), user(again)]
            }
            _ => vec![reply.into()],
        }
    }
}

/// Gives each call of a turn an id of its own: an outcome belongs to one call.
fn unique_ids(turn: &mut Turn) {
    let mut seen: Vec<String> = Vec::new();
    for block in &mut turn.blocks {
        let Block::Call { call, .. } = block else { continue };
        let first = call.id.to_string();
        let mut id = first.clone();
        let mut n = 1;
        while seen.contains(&id) {
            n += 1;
            id = format!("{first}-{n}");
        }
        if n > 1 {
            call.id = id.clone().into();
        }
        seen.push(id);
    }
}
