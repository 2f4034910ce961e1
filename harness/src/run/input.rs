//! What the inbox means to a run that has settled: answers, the next input.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::context::Context;
use crate::inbox::{
    Body, Input, SentFrom, Unread, note_applied, note_skipped, read_inbox, resolutions,
    waiting_inputs,
};
use crate::journal::When;
use crate::observe::Cause;
use crate::session::{Change, Digest, End, InputKey, RunStarted, check_ops};
use crate::state::{Op, Ops, State, of_json};
use crate::store::{InboxSeq, Released};
use crate::text::words;

use super::begin::{Answered, Begin};
use super::driver::Driver;
use super::error::Kind;

/// Reduces an input into a state, and returns what the reducers did.
pub(crate) fn reduce<S: State>(state: &mut S, input: S::Update) -> Result<Vec<Op>, Kind> {
    let mut ops = Ops::on();
    catch_unwind(AssertUnwindSafe(|| state.apply(input, &mut ops)))
        .map_err(|panic| Kind::InputPanicked(words(&*panic)))?;
    let ops = ops.finish().map_err(|error| match error.is_refused() {
        true => Kind::InputRefused(error.to_string()),
        false => Kind::InputNotEncodable(error.to_string()),
    })?;
    check_ops(&ops).map_err(|error| Kind::InputNotEncodable(error.to_string()))?;
    Ok(ops)
}

/// The state after an input of the inbox, and what the reducers did.
///
/// # Errors
/// It does not decode, or the reducers refuse it: it is skipped.
pub(crate) fn fold_input<S: State>(state: &S, input: Input) -> Result<(S, Vec<Op>), String> {
    // What serde says may quote the input.
    let update = of_json::<S::Update, _>(input.update)
        .map_err(|_| "it is not an update of that program's state".to_owned())?;
    let mut state = state.clone();
    let ops = reduce(&mut state, update).map_err(|error| error.to_string())?;
    Ok((state, ops))
}

impl<C: Context, S: State> Driver<C, S> {
    /// After the run has settled: releases the session, unless the inbox resumes it. Says whether it
    /// does.
    pub(super) async fn resumes_from_inbox(&mut self, end: &End) -> bool {
        let core = Arc::clone(&self.core);
        let Some(journal) = &core.journal else { return false };
        loop {
            let Ok(unread) = journal.unread().await else { break };
            if (self.look_back || !unread.is_empty()) && self.apply_messages(end, unread).await {
                return true;
            }
            // A process that sent a message while this run held the session relies on the run to
            // apply it.
            if journal.release().await == Released::Idle
                || !journal.reclaim(Arc::new(core.stop.clone())).await
            {
                break;
            }
        }
        false
    }

    /// Applies messages. Says whether the session has something to do now.
    async fn apply_messages(&mut self, end: &End, unread: Vec<Unread>) -> bool {
        let last = unread.last().map_or(InboxSeq(0), |message| message.seq);
        let resumes = match end {
            End::Interrupted | End::Waiting { .. } => {
                let calls = self.awaits_any(&unread);
                self.apply_resolutions(unread, true).await
                    || (calls && self.look_at_children(last).await)
            }
            End::Ended { .. } => match self.apply_input(unread).await {
                Some(begun) => begun,
                // Whether an input waits is not known.
                None => return false,
            },
            _ => false,
        };
        if !resumes && let Some(journal) = &self.core.journal {
            journal.pass_over(last, self.core.summary());
        }
        resumes
    }

    /// Whether the turn of a child that the session waits for is over, as a message says.
    fn awaits_any(&self, unread: &[Unread]) -> bool {
        self.core.session(|session| {
            session.awaited_children().any(|child| {
                let of_it = |body: &Body| matches!(body, Body::Child { session } if *session == child.at.session);
                unread.iter().any(|message| message.body.as_ref().is_some_and(of_it))
            })
        })
    }

    /// Resumes the turn, because a child has settled: up to this message the inbox was read.
    async fn look_at_children(&mut self, inbox: InboxSeq) -> bool {
        let run = RunStarted { inbox, ..RunStarted::resumed(self.core.ids.run.clone()) };
        let recorded = self.core.record(Change::RunStarted(Box::new(run)));
        if self.write(recorded, When::Kept).await.is_some() {
            return false;
        }
        self.begin = Begin::again(Cause::Child, Vec::new());
        self.look_back = true;
        true
    }

    /// Records how messages resolve interrupts; of a run that has `settled`, as a run that resumes
    /// it. Says whether any was resolved.
    pub(super) async fn apply_resolutions(&mut self, unread: Vec<Unread>, settled: bool) -> bool {
        let mut resolved = resolutions(unread);
        self.core.session(|session| {
            let open: HashSet<_> = session.open_interrupts().map(|it| &it.id).collect();
            resolved.retain(|resolved| open.contains(&resolved.id));
        });
        if resolved.is_empty() {
            return false;
        }
        let answered = self.core.session(|session| Answered::of(session, &resolved));
        let mut changes: Vec<Change<usize>> = Vec::new();
        if settled {
            let run = RunStarted::resumed(self.core.ids.run.clone());
            changes.push(Change::RunStarted(Box::new(run)));
        }
        changes.extend(resolved.into_iter().map(|it| Change::Resolved(Box::new(it))));
        let recorded = changes.into_iter().try_for_each(|change| self.core.record(change));
        if self.write(recorded, When::Now).await.is_some() {
            return false;
        }
        if settled {
            self.begin = Begin::again(Cause::Answer, answered);
            self.look_back = true;
        } else {
            self.core.publish_answered(answered);
        }
        true
    }

    /// Begins the next turn with the first input that waits. `None` if it is not known whether one
    /// does.
    async fn apply_input(&mut self, unread: Vec<Unread>) -> Option<bool> {
        let core = Arc::clone(&self.core);
        let (store, session) = core.journal.as_ref()?.place();
        // Inputs that came before the turn could apply them were passed over.
        let messages = match self.look_back {
            true => read_inbox(&**store, session).await.ok()?,
            false => unread,
        };
        let (current, digest) =
            core.session(|session| (session.input.clone(), session.input_digest.clone()));
        for (key, seq, input) in waiting_inputs(messages, current.as_deref()) {
            if let Some(current) = &current {
                note_applied(&**store, session, current, digest.as_ref()).await.ok()?;
            }
            let named = InputKey { digest: Digest::of(&input.update), key };
            let from = input.from.clone();
            match fold_input(&*self.state, input) {
                Ok((state, ops)) => {
                    if self.begin_turn(named, seq, state, ops, from).await {
                        return Some(true);
                    }
                }
                Err(why) => note_skipped(&**store, session, &named.key, &why).await.ok()?,
            }
        }
        Some(false)
    }

    /// Begins the next turn with an input from the inbox.
    async fn begin_turn(
        &mut self,
        named: InputKey,
        inbox: InboxSeq,
        state: S,
        ops: Vec<Op>,
        from: SentFrom,
    ) -> bool {
        let start = self.program.graph.wiring.start;
        let turn = RunStarted::turn(self.core.ids.run.clone(), start, ops, Some(named), inbox);
        // It is the same run, to which later ones refer.
        let trace = self.core.session(|session| session.trace.clone());
        let run = RunStarted { trace, ..turn };
        let recorded = self.core.record(Change::RunStarted(Box::new(run)));
        if self.write(recorded, When::Kept).await.is_some() {
            return false;
        }
        self.state = Arc::new(state);
        self.begin = Begin { resumed: true, ..Begin::of_input(from) };
        true
    }
}
