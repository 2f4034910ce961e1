//! Whatever is done to them, sessions in files are what sessions in memory are.

use harness::id::AgentId;
use harness::store::{
    Batch, Claimed, DueRequest, Filter, InboxSeq, Lease, MemoryStore, Message, NewEntry,
    OpenInterrupt, Phase, ReadFrom, ReadRequest, Remove, SessionStore, SessionSummary,
};
use harness::{InterruptId, Seq, UtcMillis};
use harness_store::{FileStore, FileStoreOptions, Sync};
use proptest::prelude::*;

use crate::support::{LONG, id, summary};

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Claim {
        session: u8,
    },
    ClaimDue,
    Renew {
        lease: usize,
    },
    Release {
        lease: usize,
        read: u8,
    },
    Append {
        lease: usize,
        off: i8,
        entries: Vec<(u8, bool)>,
        phase: Option<u8>,
        open: u8,
        close: u8,
    },
    Send {
        session: u8,
        messages: Vec<(u8, u8, Option<u8>)>,
    },
    Read {
        session: u8,
        from: u8,
        kind: u8,
        seen: u8,
        limit: u8,
    },
    List {
        interrupts: bool,
        phase: Option<u8>,
        limit: u8,
    },
    Remove {
        lease: usize,
        below: Option<u8>,
    },
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let lease = 0..6_usize;
    let session = 0..2_u8;
    prop_oneof![
        3 => session.clone().prop_map(|session| Op::Claim { session }),
        2 => Just(Op::ClaimDue),
        1 => lease.clone().prop_map(|lease| Op::Renew { lease }),
        1 => (lease.clone(), 0..4_u8).prop_map(|(lease, read)| Op::Release { lease, read }),
        12 => (
            lease.clone(),
            prop_oneof![9 => Just(0_i8), 1 => Just(-1), 1 => Just(1)],
            prop::collection::vec((any::<u8>(), prop::bool::weighted(0.2)), 0..4),
            // Most batches of a run have entries and no more.
            prop::option::weighted(0.5, 0..7_u8),
            prop_oneof![2 => Just(0_u8), 1 => 0..8_u8],
            prop_oneof![2 => Just(0_u8), 1 => 0..8_u8],
        ).prop_map(|(lease, off, entries, phase, open, close)| {
            Op::Append { lease, off, entries, phase, open, close }
        }),
        5 => (
            session.clone(),
            prop::collection::vec((0..6_u8, 0..2_u8, prop::option::of(0..4_u8)), 0..3),
        ).prop_map(|(session, messages)| Op::Send { session, messages }),
        5 => (session, 0..12_u8, 0..3_u8, 0..4_u8, any::<u8>())
            .prop_map(|(session, from, kind, seen, limit)| {
                Op::Read { session, from, kind, seen, limit }
            }),
        2 => (any::<bool>(), prop::option::of(0..7_u8), 0..3_u8)
            .prop_map(|(interrupts, phase, limit)| Op::List { interrupts, phase, limit }),
        2 => (lease, prop::option::weighted(0.8, 0..12_u8))
            .prop_map(|(lease, below)| Op::Remove { lease, below }),
    ]
}

fn phase(number: u8) -> Phase {
    [
        Phase::Running,
        Phase::Interrupted,
        Phase::Waiting,
        Phase::Ended,
        Phase::Stopped,
        Phase::Exhausted,
        Phase::Failed,
    ][usize::from(number) % 7]
}

fn interrupt(number: u8) -> OpenInterrupt {
    let expires = (number % 2 == 1).then_some(UtcMillis(1));
    OpenInterrupt { id: InterruptId::new(format!("q{number}")), since: UtcMillis(5), expires }
}

fn bits(set: u8) -> impl Iterator<Item = u8> {
    (0..4).filter(move |bit| set >> bit & 1 == 1)
}

/// Takes out what differs between any two stores: fences, and moments.
fn plain(text: String) -> String {
    let mut text = text;
    for name in ["until: UtcMillis(", "fence: Fence("] {
        let mut from = 0;
        while let Some(at) = text[from..].find(name) {
            let begin = from + at + name.len();
            let end = begin + text[begin..].find(')').unwrap();
            text.replace_range(begin..end, "");
            from = begin;
        }
    }
    text
}

/// Does it, and says what came of it.
pub(crate) async fn perform(store: &dyn SessionStore, op: &Op, leases: &mut Vec<Lease>) -> String {
    let pick = |leases: &[Lease], number: usize| {
        (!leases.is_empty()).then(|| leases[leases.len() - 1 - number % leases.len()].clone())
    };
    match op {
        Op::Claim { session } => {
            let claimed = store.claim(&id(&session.to_string()), LONG).await;
            plain(match claimed {
                Ok(claimed) => {
                    leases.push(claimed.lease);
                    format!("{:?} {:?} {:?}", claimed.head, claimed.inbox, claimed.summary)
                }
                Err(error) => format!("{error:?}"),
            })
        }
        Op::ClaimDue => {
            // All of them, because each store has an order of its own among those that are due at once.
            let request = DueRequest::new([AgentId::new("a")]).limit(100);
            let due = store.claim_due(&request, LONG).await.unwrap();
            let (mut claimed, failed) = (due.claimed, due.failed);
            claimed.sort_by(|one, other| one.lease.session.cmp(&other.lease.session));
            let said = claimed.iter().map(|claimed| {
                let Claimed { lease, head, inbox, summary, .. } = claimed;
                format!("{} {head:?} {inbox:?} {summary:?}", lease.session)
            });
            let said = said.collect::<Vec<_>>();
            leases.extend(claimed.into_iter().map(|claimed| claimed.lease));
            plain(format!("{said:?} {failed:?}"))
        }
        Op::Renew { lease } => match pick(leases, *lease) {
            Some(lease) => format!("{:?}", store.renew(&lease, LONG).await),
            None => String::new(),
        },
        Op::Release { lease, read } => match pick(leases, *lease) {
            Some(lease) => {
                // Only what was sent can have been read.
                let all = ReadRequest::from_snapshot().limit(1);
                let found = store.read(&lease.session, all).await.ok().flatten();
                let last = found.map_or(InboxSeq(0), |page| page.inbox);
                let read = InboxSeq(u64::from(*read)).min(last);
                format!("{:?}", store.release(&lease, read).await)
            }
            None => String::new(),
        },
        Op::Append { lease, off, entries, phase: rests, open, close } => {
            let Some(lease) = pick(leases, *lease) else { return String::new() };
            let head = match store
                .read(
                    &lease.session,
                    ReadRequest::from_snapshot().with_messages_after(InboxSeq(0)).limit(1),
                )
                .await
            {
                Ok(Some(page)) => page.head.0,
                _ => 0,
            };
            let texts: Vec<Vec<u8>> =
                entries.iter().map(|(byte, _)| vec![*byte; usize::from(*byte % 9)]).collect();
            let entries: Vec<NewEntry<'_>> = texts
                .iter()
                .zip(entries)
                .map(|(bytes, (_, snapshot))| NewEntry { bytes, snapshot: *snapshot })
                .collect();
            let summary: Option<SessionSummary> = rests.map(|number| summary(phase(number)));
            let open: Vec<_> = bits(*open).map(interrupt).collect();
            let close: Vec<_> = bits(*close).map(|number| interrupt(number).id).collect();
            let batch = Batch {
                after: Seq(head.saturating_add_signed(i64::from(*off))),
                at: UtcMillis(1_000 + head),
                entries: &entries,
                summary: summary.as_ref(),
                open: &open,
                close: &close,
                flush: true,
            };
            format!("{:?}", store.append(&lease, batch).await)
        }
        Op::Send { session, messages } => {
            let messages: Vec<Message> = messages
                .iter()
                .map(|(key, text, about)| Message {
                    key: key.to_string(),
                    digest: text.to_string(),
                    interrupt: about.map(|number| interrupt(number).id),
                    expiry: *key == 5,
                    body: vec![*text * 200; 3],
                })
                .collect();
            format!("{:?}", store.send(&id(&session.to_string()), &messages).await)
        }
        Op::Read { session, from, kind, seen, limit } => {
            let seq = Seq(u64::from(*from));
            let from = [ReadFrom::Seq(seq), ReadFrom::SnapshotBelow(seq), ReadFrom::Snapshot]
                [usize::from(*kind)];
            let (seen, limit) = (InboxSeq(u64::from(*seen)), u64::from(*limit));
            let session = id(&session.to_string());
            plain(format!(
                "{:?}",
                store
                    .read(
                        &session,
                        ReadRequest::entries(from).with_messages_after(seen).limit(limit)
                    )
                    .await
            ))
        }
        Op::List { interrupts, phase: only, limit } => {
            let mut filter = if *interrupts { Filter::interrupts() } else { Filter::sessions() };
            if let Some(number) = only {
                filter = filter.phase(phase(*number));
            }
            let first = store.list(&filter, None, u32::from(*limit)).await.unwrap();
            let second = store.list(&filter, first.next.as_deref(), 100).await.unwrap();
            format!("{first:?} {second:?}")
        }
        Op::Remove { lease, below } => match pick(leases, *lease) {
            Some(lease) => {
                let what = below.map_or(Remove::All, |below| Remove::Below(Seq(u64::from(below))));
                format!("{:?}", store.remove(&lease, what).await)
            }
            None => String::new(),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").map_or(200, |cases| cases.parse().unwrap()),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn sessions_in_files_are_what_sessions_in_memory_are(
        ops in prop::collection::vec((op(), 0..3_usize), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let memory = MemoryStore::new();
            let options = FileStoreOptions::new().sync(Sync::Never);
            let mut files: Vec<FileStore> = Vec::new();
            for open in [512, 512, 1] {
                files.push(options.clone().open_files(open).open(dir.path()).await.unwrap());
            }
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for (place, (op, handle)) in ops.iter().enumerate() {
                let expected = perform(&memory, op, &mut theirs).await;
                let found = perform(&files[*handle], op, &mut ours).await;
                assert_eq!(found, expected, "operation {place}: {op:?}");
            }
        });
    }
}
