//! What every store must decide alike, as pure functions for authors of stores.
//!
//! A store reads what a function asks for, inside the transaction or under the lock that makes the
//! method atomic, calls the function, and writes what it says. The stores of this project do the
//! same.
//!
//! | method | decision | function |
//! |---|---|---|
//! | `claim` | is the lease free? | [`is_held`] |
//! | `claim` | of two claim records, which wins? | [`claim_wins`] |
//! | `claim_due` | from when on is the session due? | [`due_from`] |
//! | `renew`, `release`, `append`, `remove` | is the lease still held? | [`check_lease`] |
//! | `release` | has the holder read all messages? | [`released`] |
//! | `append` | is the batch a repetition? | [`is_repetition`] |
//! | `append` | is it appended, or why not? | [`judge_append`] |
//! | `send` | are the messages new, repeated, in conflict, too late? | [`judge_messages`] |
//! | `read` | at which entry does the page begin? | [`first_entry`] |
//! | `remove` | which entry is the first to keep? | [`first_kept`] |
//! | `list` | in which order? | [`list_key`] |

use std::collections::HashMap;

use crate::clock::UtcMillis;
use crate::id::{Fence, InterruptId, Seq, SessionId};

use super::batch::Batch;
use super::error::StoreError;
use super::lease::{Lease, Released, Token};
use super::message::{InboxSeq, Message, Sent};
use super::request::ReadFrom;
use super::summary::{OpenInterrupt, Phase, SessionSummary};

/// Whether a lease is held at `now`: it was claimed or renewed until `until`, was not released
/// (`None`), and its holder is not known to be dead.
///
/// ```
/// use harness::store::rules::is_held;
///
/// assert!(is_held(Some(5), 4, true));
/// assert!(!is_held(Some(5), 5, true), "expired");
/// assert!(!is_held(Some(5), 4, false), "the holder is dead");
/// assert!(!is_held(None, 4, true), "released");
/// ```
pub fn is_held<T: PartialOrd>(until: Option<T>, now: T, alive: bool) -> bool {
    alive && until.is_some_and(|until| now < until)
}

/// Whether a claim record takes the lease from the claim before it, for stores that decide by the
/// order of records: the first record with a fence wins, and a later one with the same or a lower
/// fence is void. A claim writes its record with the fence after the last one.
#[must_use]
pub fn claim_wins(fence: Fence, last: Option<Fence>) -> bool {
    last.is_none_or(|last| fence > last)
}

/// From when on a session is due while its lease is free: [always](UtcMillis) (0) if its run has not
/// settled or its inbox has a message that was not read, else when its summary says; `None` if only
/// a message can make it due. `read` is the greatest number that a release gave, and `inbox` the last
/// message.
///
/// It changes with a summary, a message and a release. A store that orders sessions by it finds those
/// that are due without looking at others.
///
/// ```
/// use harness::UtcMillis;
/// use harness::id::AgentId;
/// use harness::store::rules::due_from;
/// use harness::store::{InboxSeq, Phase, SessionSummary};
///
/// let summary = |phase| SessionSummary::new(AgentId::new("a"), phase, "S");
/// let (none, one) = (InboxSeq(0), InboxSeq(1));
/// assert_eq!(due_from(&summary(Phase::Running), none, none), Some(UtcMillis(0)));
/// assert_eq!(due_from(&summary(Phase::Ended), none, none), None);
/// assert_eq!(due_from(&summary(Phase::Ended), none, one), Some(UtcMillis(0)));
/// assert_eq!(due_from(&summary(Phase::Failed), one, one), None, "it was read, and left");
/// ```
#[must_use]
pub fn due_from(summary: &SessionSummary, read: InboxSeq, inbox: InboxSeq) -> Option<UtcMillis> {
    let unread = inbox > read.max(summary.inbox);
    match unread || summary.phase == Phase::Running {
        true => Some(UtcMillis(0)),
        false => summary.due,
    }
}

/// Whether a lease is still held. `last` is the token of the session's last claim; `None` if there
/// is none, or if it was released.
///
/// # Errors
/// [`StoreError::Fenced`] if it is not.
pub fn check_lease(lease: &Lease, last: Option<Token>) -> Result<(), StoreError> {
    match last {
        Some(token) if token == lease.token => Ok(()),
        _ => Err(StoreError::Fenced { session: lease.session.clone() }),
    }
}

/// The answer to a release: the holder has read the inbox as far as `read`, and `last` is its last
/// message.
///
/// `last` must be read when the lease is already free for others, or atomically with that: a message
/// that comes in between would be overlooked by the holder and by its sender.
pub fn released(read: InboxSeq, last: InboxSeq) -> Released {
    if last > read { Released::MoreMessages } else { Released::Idle }
}

/// Whether a batch is the same as one in the log, which was written under the same token. A batch
/// with entries is known by its place and its entries; one without is known by its changes, and is
/// compared only with the last batch of its token.
#[must_use]
pub fn is_repetition(sent: &Batch<'_>, stored: &Batch<'_>) -> bool {
    sent.after == stored.after
        && sent.entries == stored.entries
        && (!sent.entries.is_empty()
            || (sent.summary == stored.summary
                && sent.open == stored.open
                && sent.close == stored.close))
}

/// What [`judge_append`] has to know of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outline {
    /// The head that the writer assumes.
    pub after: Seq,
    /// How many entries the batch has.
    pub entries: u64,
    /// Whether it has a summary.
    pub summary: bool,
    /// Whether it opens or closes interrupts.
    pub interrupts: bool,
}

impl From<&Batch<'_>> for Outline {
    fn from(batch: &Batch<'_>) -> Self {
        Self {
            after: batch.after,
            entries: batch.entries.len() as u64,
            summary: batch.summary.is_some(),
            interrupts: !batch.open.is_empty() || !batch.close.is_empty(),
        }
    }
}

/// What to do with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Append {
    /// Append it.
    New,
    /// Change nothing, and answer success with this head: it was appended before, or is empty.
    Done(Seq),
}

/// Whether a batch is appended. `head` is the last entry of the log, `None` if the session does not
/// exist yet; `repetition` says whether the log has the [same batch](is_repetition) under the
/// lease's token; `lease` [checks the lease](check_lease).
///
/// # Errors
/// In this order, and only if the batch is no repetition: what `lease` answers,
/// [`StoreError::Conflict`], and [`StoreError::Unavailable`] if the first batch of a session lacks an
/// entry or a summary.
pub fn judge_append(
    session: &SessionId,
    batch: Outline,
    head: Option<Seq>,
    repetition: bool,
    lease: impl FnOnce() -> Result<(), StoreError>,
) -> Result<Append, StoreError> {
    if repetition {
        return Ok(Append::Done(Seq(batch.after.0 + batch.entries)));
    }
    lease()?;
    let end = head.unwrap_or_default();
    if batch.after != end {
        return Err(StoreError::Conflict {
            session: session.clone(),
            after: batch.after,
            head: end,
        });
    }
    if batch.entries == 0 && !batch.summary && !batch.interrupts {
        return Ok(Append::Done(end));
    }
    if head.is_none() && (batch.entries == 0 || !batch.summary) {
        return Err(StoreError::Unavailable {
            what: format!("the first batch of session `{session}` lacks an entry or a summary"),
            ambiguous: false,
            source: None,
        });
    }
    Ok(Append::New)
}

/// Which messages of a call are added to the inbox, in order: those whose keys are free; none if all
/// were sent before. `stored` finds the message under a key, `open` finds an open interrupt, and
/// `now` is the time of the store's clock.
///
/// # Errors
/// [`Sent::Taken`] and [`Sent::TooLate`], which are the answer of the call; nothing is added then.
pub fn judge_messages<'a>(
    messages: &'a [Message],
    stored: impl Fn(&str) -> Option<&'a Message>,
    open: impl Fn(&InterruptId) -> Option<&'a OpenInterrupt>,
    now: UtcMillis,
) -> Result<Vec<&'a Message>, Sent> {
    let mut new: Vec<&Message> = Vec::new();
    let mut own: HashMap<&str, &Message> = HashMap::new();
    for message in messages {
        match stored(&message.key).or_else(|| own.get(&*message.key).copied()) {
            Some(first) if first.digest == message.digest => {}
            Some(first) => {
                return Err(Sent::Taken { key: message.key.clone(), first: first.clone() });
            }
            None => {
                own.insert(&message.key, message);
                new.push(message);
            }
        }
    }
    let late = new.iter().find(|message| {
        message.interrupt.as_ref().is_some_and(|id| !is_in_time(message, open(id), now))
    });
    match late {
        Some(late) => Err(Sent::TooLate { key: late.key.clone() }),
        None => Ok(new),
    }
}

/// Whether a message comes in time for its interrupt: an answer before it expires, the report of its
/// expiry after.
fn is_in_time(message: &Message, open: Option<&OpenInterrupt>, now: UtcMillis) -> bool {
    open.is_some_and(|open| {
        let expired = open.expires.is_some_and(|expires| expires <= now);
        expired == message.expiry
    })
}

/// The first entry of a page. `first` is the first entry kept, and `snapshot` finds the last snapshot
/// at or below a seq, `None` if there is none.
///
/// # Errors
/// [`StoreError::Pruned`] if that entry was pruned.
pub fn first_entry(
    session: &SessionId,
    from: ReadFrom,
    first: Seq,
    head: Seq,
    snapshot: impl FnOnce(Seq) -> Option<Seq>,
) -> Result<Seq, StoreError> {
    match from {
        ReadFrom::Seq(seq) | ReadFrom::SnapshotBelow(seq) if seq < first && first > Seq(1) => {
            Err(StoreError::Pruned { session: session.clone(), first })
        }
        ReadFrom::Seq(seq) => Ok(seq.max(Seq(1))),
        ReadFrom::Snapshot => Ok(snapshot(head).unwrap_or(first)),
        ReadFrom::SnapshotBelow(seq) => Ok(snapshot(seq).unwrap_or(first)),
    }
}

/// The first entry that stays when the entries below `below` are removed; `None` if nothing is
/// removed. `first` is the first entry kept so far.
#[must_use]
pub fn first_kept(below: Seq, first: Seq, last_snapshot: Option<Seq>) -> Option<Seq> {
    last_snapshot.map(|snapshot| below.min(snapshot)).filter(|kept| *kept > first)
}

/// The [key](super::Row::key) of a row: the session's id; in a list of interrupts followed by a zero byte,
/// which orders a session before those whose ids begin with its own, and by the interrupt's id. Zero
/// bytes of a session's id are written as the two bytes 0 and 255.
#[must_use]
pub fn list_key(session: &SessionId, interrupt: Option<&InterruptId>) -> Vec<u8> {
    let mut key = Vec::with_capacity(session.as_str().len());
    for byte in session.as_str().bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(255);
        }
    }
    if let Some(interrupt) = interrupt {
        key.extend([0, 1]);
        key.extend(interrupt.as_str().bytes());
    }
    key
}

/// The part of a [row's key](super::Row::key) that names its session.
#[must_use]
pub fn session_part(key: &[u8]) -> &[u8] {
    let mut place = 0;
    while place < key.len() {
        match (key.get(place), key.get(place + 1)) {
            (Some(0), Some(255)) => place += 2,
            (Some(0), _) => break,
            _ => place += 1,
        }
    }
    key.get(..place).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::store::NewEntry;

    const NOW: UtcMillis = UtcMillis(100);

    fn answer(key: &str, digest: &str, interrupt: &str) -> Message {
        Message { interrupt: Some(interrupt.into()), ..Message::new(key, digest, "") }
    }

    fn judge(messages: &[Message]) -> Result<Vec<String>, Sent> {
        let kept = Message::new("k", "first", "");
        let open = [("open", None), ("past", Some(NOW)), ("later", Some(UtcMillis(101)))];
        let open = open
            .map(|(id, expires)| OpenInterrupt { expires, ..OpenInterrupt::new(id, UtcMillis(1)) });
        let find = |id: &InterruptId| open.iter().find(|open| open.id == *id);
        let stored = |key: &str| (key == kept.key).then_some(&kept);
        let new = judge_messages(messages, stored, find, NOW)?;
        Ok(new.into_iter().map(|message| message.key.clone()).collect())
    }

    #[test]
    fn messages_are_new_repeated_taken_or_too_late() {
        let taken = |first| Sent::Taken { key: "k".into(), first };
        let late = |key: &str| Err(Sent::TooLate { key: key.into() });
        assert_eq!(judge(&[]).unwrap(), [""; 0]);
        let repeated = [Message::new("k", "first", "x"), Message::new("a", "1", "")];
        assert_eq!(judge(&repeated).unwrap(), ["a"]);
        assert_eq!(judge(&[repeated[1].clone(), repeated[1].clone()]).unwrap(), ["a"]);
        let conflict = [answer("a", "1", "closed"), Message::new("k", "other", "")];
        assert_eq!(judge(&conflict), Err(taken(Message::new("k", "first", ""))));
        let within = [Message::new("b", "1", ""), Message::new("b", "2", "")];
        let first = within[0].clone();
        assert_eq!(judge(&within), Err(Sent::Taken { key: "b".into(), first }));
        assert_eq!(judge(&[answer("a", "1", "open"), answer("b", "1", "later")]).unwrap().len(), 2);
        for id in ["closed", "past"] {
            assert_eq!(judge(&[answer(id, "1", id)]), late(id));
        }
        let expiry = |id: &str| Message { expiry: true, ..answer(id, "expired", id) };
        assert_eq!(judge(&[expiry("past")]).unwrap(), ["past"]);
        for id in ["open", "later", "closed"] {
            assert_eq!(judge(&[expiry(id)]), late(id));
        }
    }

    #[test]
    fn an_append_is_judged_in_the_order_of_the_contract() {
        let id = SessionId::new("s").unwrap();
        let batch = |after, entries| Outline {
            after: Seq(after),
            entries,
            summary: true,
            interrupts: false,
        };
        let lost = || Err(StoreError::Fenced { session: id.clone() });
        let (head, held) = (Some(Seq(3)), || Ok(()));
        let done = judge_append(&id, batch(1, 2), head, true, lost).unwrap();
        assert_eq!(done, Append::Done(Seq(3)), "a repetition is checked before the lease");
        let fenced = judge_append(&id, batch(1, 2), head, false, lost);
        assert!(matches!(fenced, Err(StoreError::Fenced { .. })), "the lease before the head");
        let conflict = judge_append(&id, batch(1, 2), head, false, held);
        assert!(matches!(conflict, Err(StoreError::Conflict { head: Seq(3), .. })));
        assert_eq!(judge_append(&id, batch(3, 0), head, false, held).unwrap(), Append::New);
        let nothing = Outline { summary: false, ..batch(3, 0) };
        let done = judge_append(&id, nothing, head, false, held).unwrap();
        assert_eq!(done, Append::Done(Seq(3)));
        for first in [batch(0, 0), Outline { summary: false, ..batch(0, 1) }] {
            assert!(judge_append(&id, first, None, false, held).is_err());
        }
        assert_eq!(judge_append(&id, batch(0, 1), None, false, held).unwrap(), Append::New);
    }

    #[test]
    fn a_repetition_has_the_same_place_and_entries_or_the_same_changes() {
        let entries = |bytes| [NewEntry { bytes, snapshot: false }];
        let (one, other) = (entries(b"1"), entries(b"2"));
        let closed: [InterruptId; 1] = ["i".into()];
        let batch = Batch { after: Seq(1), entries: &one, ..Batch::default() };
        assert!(is_repetition(&batch, &Batch { close: &closed, ..batch }));
        assert!(!is_repetition(&batch, &Batch { after: Seq(2), ..batch }));
        assert!(!is_repetition(&batch, &Batch { entries: &other, ..batch }));
        let empty = Batch { entries: &[], ..batch };
        assert!(is_repetition(&empty, &empty));
        assert!(!is_repetition(&empty, &Batch { close: &closed, ..empty }));
    }

    #[test]
    fn the_first_claim_record_with_a_fence_wins() {
        assert!(claim_wins(Fence(1), None) && claim_wins(Fence(2), Some(Fence(1))));
        assert!(!claim_wins(Fence(2), Some(Fence(2))) && !claim_wins(Fence(1), Some(Fence(2))));
    }

    #[test]
    fn pages_begin_and_prunings_end_at_snapshots() {
        let id = SessionId::new("s").unwrap();
        let begin = |from, first| {
            let snapshot = |at: Seq| (at >= Seq(4)).then_some(Seq(4));
            first_entry(&id, from, Seq(first), Seq(9), snapshot).ok()
        };
        assert_eq!(begin(ReadFrom::Seq(Seq(0)), 1), Some(Seq(1)));
        assert_eq!(begin(ReadFrom::Seq(Seq(2)), 3), None);
        assert_eq!(begin(ReadFrom::Snapshot, 3), Some(Seq(4)));
        assert_eq!(begin(ReadFrom::SnapshotBelow(Seq(3)), 3), Some(Seq(3)));
        assert_eq!(begin(ReadFrom::SnapshotBelow(Seq(2)), 3), None);
        assert_eq!(first_kept(Seq(9), Seq(1), Some(Seq(4))), Some(Seq(4)));
        assert_eq!(first_kept(Seq(2), Seq(1), Some(Seq(4))), Some(Seq(2)));
        assert_eq!(first_kept(Seq(3), Seq(3), Some(Seq(4))), None);
        assert_eq!(first_kept(Seq(9), Seq(1), None), None);
    }

    #[test]
    fn the_keys_of_a_session_stay_together() {
        let key = |id: &str, interrupt: Option<&str>| {
            let interrupt = interrupt.map(InterruptId::from);
            list_key(&SessionId::new(id).unwrap(), interrupt.as_ref())
        };
        let keys = [key("a", Some("1")), key("a", Some("2")), key("a!", None), key("a!", Some(""))];
        assert!(keys.is_sorted());
        assert_eq!(session_part(&keys[1]), b"a");
        assert_eq!(session_part(b"a\0\xffb\0\x01q"), b"a\0\xffb");
    }

    #[test]
    fn a_session_is_due_for_a_crash_a_message_or_its_time() {
        use Phase::{Ended, Exhausted, Failed, Interrupted, Running, Stopped, Waiting};
        let due_at = |phase, due: Option<u64>, counted, read, inbox| {
            let mut summary = SessionSummary::new(crate::id::AgentId::new("a"), phase, "S");
            (summary.due, summary.inbox) = (due.map(UtcMillis), InboxSeq(counted));
            due_from(&summary, InboxSeq(read), InboxSeq(inbox)).map(|at| at.0)
        };
        for phase in [Ended, Exhausted, Failed, Interrupted, Stopped, Waiting] {
            assert_eq!(due_at(phase, None, 0, 0, 0), None, "{phase:?}");
            assert_eq!(due_at(phase, Some(7), 0, 0, 0), Some(7), "{phase:?}: its time");
            assert_eq!(due_at(phase, Some(7), 2, 0, 3), Some(0), "{phase:?}: a message");
            // Both say how far the inbox was read, and neither takes back what the other says.
            assert_eq!(due_at(phase, None, 3, 1, 3), None, "{phase:?}: counted as read");
            assert_eq!(due_at(phase, Some(7), 1, 3, 3), Some(7), "{phase:?}: released as read");
        }
        assert_eq!(
            due_at(Running, Some(7), 3, 3, 3),
            Some(0),
            "its run has ended without settling"
        );
    }

    #[test]
    fn a_release_reports_messages_that_were_not_read() {
        assert_eq!(released(InboxSeq(2), InboxSeq(2)), Released::Idle);
        assert_eq!(released(InboxSeq(2), InboxSeq(3)), Released::MoreMessages);
    }
}
