//! Whatever is done to them, sessions in files are what sessions in memory are.

use harness::store::{
    Batch, Claim, Facts, Filter, From, Lease, Letter, Mail, MemoryStore, NewEntry, OpenQuestion,
    Phase, Remove, SessionStore,
};
use harness::{InterruptId, Seq, UtcMillis};
use harness_store::{FileStore, FileStoreOptions, Sync};
use proptest::prelude::*;

use crate::support::{LONG, facts, id};

#[derive(Clone, Debug)]
enum Op {
    Claim {
        session: u8,
    },
    Renew {
        lease: usize,
        release: bool,
    },
    Append {
        lease: usize,
        off: i8,
        entries: Vec<(u8, bool)>,
        phase: Option<u8>,
        ask: u8,
        close: u8,
    },
    Post {
        session: u8,
        letters: Vec<(u8, u8, Option<u8>)>,
    },
    Read {
        session: u8,
        from: u8,
        kind: u8,
        mail: u8,
        limit: u8,
    },
    List {
        questions: bool,
        phase: Option<u8>,
        limit: u8,
    },
    Remove {
        lease: usize,
        below: Option<u8>,
    },
    Due,
}

fn op() -> impl Strategy<Value = Op> {
    let lease = 0..6_usize;
    let session = 0..2_u8;
    prop_oneof![
        3 => session.clone().prop_map(|session| Op::Claim { session }),
        2 => (lease.clone(), any::<bool>())
            .prop_map(|(lease, release)| Op::Renew { lease, release }),
        12 => (
            lease.clone(),
            prop_oneof![9 => Just(0_i8), 1 => Just(-1), 1 => Just(1)],
            prop::collection::vec((any::<u8>(), prop::bool::weighted(0.2)), 0..4),
            prop::option::weighted(0.7, 0..7_u8),
            0..8_u8,
            0..8_u8,
        ).prop_map(|(lease, off, entries, phase, ask, close)| {
            Op::Append { lease, off, entries, phase, ask, close }
        }),
        5 => (
            session.clone(),
            prop::collection::vec((0..6_u8, 0..2_u8, prop::option::of(0..4_u8)), 0..3),
        ).prop_map(|(session, letters)| Op::Post { session, letters }),
        5 => (session, 0..12_u8, 0..3_u8, 0..4_u8, any::<u8>())
            .prop_map(|(session, from, kind, mail, limit)| {
                Op::Read { session, from, kind, mail, limit }
            }),
        2 => (any::<bool>(), prop::option::of(0..7_u8), 0..3_u8)
            .prop_map(|(questions, phase, limit)| Op::List { questions, phase, limit }),
        2 => (lease, prop::option::weighted(0.8, 0..12_u8))
            .prop_map(|(lease, below)| Op::Remove { lease, below }),
        1 => Just(Op::Due),
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

fn question(number: u8) -> OpenQuestion {
    let expires = (number % 2 == 1).then_some(UtcMillis(1));
    OpenQuestion { id: InterruptId::new(format!("q{number}")), since: UtcMillis(5), expires }
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
async fn perform(store: &dyn SessionStore, op: &Op, leases: &mut Vec<Lease>) -> String {
    let pick = |leases: &[Lease], number: usize| {
        (!leases.is_empty()).then(|| leases[leases.len() - 1 - number % leases.len()].clone())
    };
    match op {
        Op::Claim { session } => {
            let claimed = store.claim(Claim::One(&id(&session.to_string())), LONG).await;
            plain(match claimed {
                Ok(claimed) => {
                    let claimed = claimed.unwrap();
                    leases.push(claimed.lease);
                    format!("{:?} {:?} {:?}", claimed.head, claimed.mail, claimed.facts)
                }
                Err(error) => format!("{error:?}"),
            })
        }
        Op::Renew { lease, release } => match pick(leases, *lease) {
            Some(lease) => {
                let ttl = if *release { std::time::Duration::ZERO } else { LONG };
                format!("{:?}", store.renew(&lease, ttl).await)
            }
            None => String::new(),
        },
        Op::Append { lease, off, entries, phase: rests, ask, close } => {
            let Some(lease) = pick(leases, *lease) else { return String::new() };
            let head = match store.read(&lease.session, From::Snapshot, Mail(0), 1).await {
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
            let facts: Option<Facts> = rests.map(|number| facts(phase(number)));
            let ask: Vec<_> = bits(*ask).map(question).collect();
            let close: Vec<_> = bits(*close).map(|number| question(number).id).collect();
            let batch = Batch {
                after: Seq(head.saturating_add_signed(i64::from(*off))),
                at: UtcMillis(1_000 + head),
                entries: &entries,
                facts: facts.as_ref(),
                ask: &ask,
                close: &close,
                flush: true,
            };
            format!("{:?}", store.append(&lease, batch).await)
        }
        Op::Post { session, letters } => {
            let letters: Vec<Letter> = letters
                .iter()
                .map(|(key, text, about)| Letter {
                    key: key.to_string(),
                    digest: text.to_string(),
                    question: about.map(|number| question(number).id),
                    expiry: *key == 5,
                    body: vec![*text * 200; 3],
                })
                .collect();
            format!("{:?}", store.post(&id(&session.to_string()), &letters).await)
        }
        Op::Read { session, from, kind, mail, limit } => {
            let seq = Seq(u64::from(*from));
            let from =
                [From::Seq(seq), From::SnapshotBelow(seq), From::Snapshot][usize::from(*kind)];
            let (mail, limit) = (Mail(u64::from(*mail)), u64::from(*limit));
            let session = id(&session.to_string());
            plain(format!("{:?}", store.read(&session, from, mail, limit).await))
        }
        Op::List { questions, phase: only, limit } => {
            let mut filter = if *questions { Filter::questions() } else { Filter::sessions() };
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
        Op::Due => {
            let agents = [facts(Phase::Running).agent];
            let due = Claim::Due { agents: &agents, wait: std::time::Duration::ZERO };
            let mut claimed = Vec::new();
            // Which comes first is for the store to say.
            while let Some(one) = store.claim(due, LONG).await.unwrap() {
                claimed.push(one);
            }
            claimed.sort_by(|one, other| one.lease.session.cmp(&other.lease.session));
            let said: Vec<_> = claimed
                .iter()
                .map(|one| {
                    format!("{} {:?} {:?} {:?}", one.lease.session, one.head, one.mail, one.facts)
                })
                .collect();
            leases.extend(claimed.into_iter().map(|one| one.lease));
            format!("{said:?}")
        }
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
