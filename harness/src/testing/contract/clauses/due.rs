//! Sessions that have something to do, found without a look at the others.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::clock::UtcMillis;
use crate::id::{AgentId, SessionId};
use crate::store::{DueRequest, InboxSeq, Lease, Phase, Remove, StoreError};

use super::super::world::{Broken, Kept, LONG, World, message};
use super::clauses;

clauses! {
    "claim-due-finds-a-run-that-has-not-settled" => crashed,
    "claim-due-takes-a-lease" => leases,
    "claim-due-leaves-held-sessions-alone" => held,
    "claim-due-finds-a-lease-that-has-expired" => expired,
    "claim-due-waits-for-the-time-of-the-summary" => timer,
    "claim-due-finds-messages-that-were-not-read" => messages,
    "claim-due-passes-over-what-the-holder-has-read" => read,
    "claim-due-leaves-sessions-that-rest-alone" => rests,
    "claim-due-keeps-to-its-request" => request,
    "claim-due-forgets-a-removed-session" => removed,
    "concurrent-claims-of-due-sessions-share-nothing" => concurrent,
    "wait-for-due-ends-in-time" => waits,
}

impl World {
    fn due(&self) -> DueRequest {
        DueRequest::new([self.agent.clone()]).limit(100)
    }

    /// Claims what is due, and returns the ids without the tag of the clause.
    async fn claim_due(&self, request: &DueRequest) -> Kept<Vec<String>> {
        let due = self.other.claim_due(request, LONG).await?;
        ensure!(due.failed.is_empty(), "sessions that are not damaged failed: {:?}", due.failed);
        let mut found: Vec<String> =
            due.claimed.iter().map(|claimed| self.name(&claimed.lease.session)).collect();
        found.sort();
        Ok(found)
    }

    fn name(&self, id: &SessionId) -> String {
        id.as_str().strip_prefix(&format!("{}-", self.tag)).unwrap_or(id.as_str()).to_owned()
    }

    /// A session in this phase, which is held.
    async fn in_phase(&self, name: &str, phase: Phase, due: Option<UtcMillis>) -> Kept<Lease> {
        let lease = self.session(name, 1).await?;
        let mut summary = self.summary(phase);
        summary.due = due;
        self.change(&lease, 1, Some(&summary), &[], &[]).await?;
        Ok(lease)
    }

    /// The lease of the only session that is due.
    async fn one_due(&self, why: &str) -> Kept<Lease> {
        let due = self.store.claim_due(&self.due(), LONG).await?;
        match due.claimed.as_slice() {
            [claimed] => Ok(claimed.lease.clone()),
            _ => Err(Broken(format!("one session is due ({why}), found {due:?}"))),
        }
    }

    async fn release_read(&self, lease: &Lease, read: u64) -> Kept {
        self.store.release(lease, InboxSeq(read)).await?;
        Ok(())
    }
}

async fn crashed(w: World) -> Kept {
    let lease = w.in_phase("x", Phase::Running, None).await?;
    w.release_read(&lease, 0).await?;
    same!("what is due", w.claim_due(&w.due()).await?, ["x"]);
    Ok(())
}

async fn leases(w: World) -> Kept {
    let old = w.in_phase("x", Phase::Running, None).await?;
    w.send(&old.session, &[message("a", "1")]).await?;
    w.release_read(&old, 0).await?;
    let due = w.store.claim_due(&w.due(), LONG).await?;
    let [claimed] = due.claimed.as_slice() else {
        return Err(Broken(format!("one session is due, found {due:?}")));
    };
    let lease = &claimed.lease;
    ensure!(lease.fence > old.fence && lease.token != old.token, "the lease is not a new one");
    let found = (claimed.head, claimed.inbox, claimed.summary.clone());
    let expected = (crate::id::Seq(1), InboxSeq(1), Some(w.summary(Phase::Running)));
    same!("head, inbox and summary", found, expected);
    refused!("a claim", w.other.claim(&lease.session, LONG).await, StoreError::Busy { .. });
    w.append(lease, 1, b"2").await?;
    w.store.renew(lease, w.short).await?;
    refused!("the old holder", w.append(&old, 2, b"3").await, StoreError::Fenced { .. });
    Ok(())
}

async fn held(w: World) -> Kept {
    let lease = w.in_phase("x", Phase::Running, Some(UtcMillis(1))).await?;
    w.send(&lease.session, &[message("a", "1")]).await?;
    same!("what is due", w.claim_due(&w.due()).await?, [""; 0]);
    w.store.renew(&lease, LONG).await?;
    w.release_read(&lease, 0).await?;
    same!("what is due once it is free", w.claim_due(&w.due()).await?, ["x"]);
    same!("what is due after that", w.claim_due(&w.due()).await?, [""; 0]);
    Ok(())
}

async fn expired(w: World) -> Kept {
    let id = w.id("x")?;
    let lease = w.claim_for(&id, LONG).await?.lease;
    w.append(&lease, 0, b"1").await?;
    w.change(&lease, 1, Some(&w.summary(Phase::Running)), &[], &[]).await?;
    w.store.renew(&lease, w.short).await?;
    for round in 0.. {
        let found = w.claim_due(&w.due()).await?;
        if found == ["x"] {
            break;
        }
        same!("what is due", found, [""; 0]);
        ensure!(round < 100, "a lease of {:?} should expire in the end", w.short);
        w.expire().await;
    }
    refused!("the old holder", w.append(&lease, 1, b"2").await, StoreError::Fenced { .. });
    Ok(())
}

async fn timer(w: World) -> Kept {
    let now = UtcMillis::now();
    let past = UtcMillis(now.0.saturating_sub(1_000));
    let later = now.after(LONG);
    for (name, due) in [("past", past), ("later", later)] {
        let lease = w.in_phase(name, Phase::Interrupted, Some(due)).await?;
        w.release_read(&lease, 0).await?;
    }
    same!("what is due", w.claim_due(&w.due()).await?, ["past"]);
    // The last summary holds.
    let moved = w.claim(&w.id("later")?).await?.lease;
    let mut summary = w.summary(Phase::Waiting);
    summary.due = Some(past);
    w.change(&moved, 1, Some(&summary), &[], &[]).await?;
    w.release_read(&moved, 0).await?;
    same!("what is due once its time was moved", w.claim_due(&w.due()).await?, ["later"]);
    Ok(())
}

async fn messages(w: World) -> Kept {
    let phases = [Phase::Ended, Phase::Interrupted, Phase::Stopped, Phase::Failed];
    for (at, phase) in phases.into_iter().enumerate() {
        let lease = w.in_phase(&at.to_string(), phase, None).await?;
        w.release_read(&lease, 0).await?;
    }
    same!("what is due before", w.claim_due(&w.due()).await?, [""; 0]);
    for at in 0..phases.len() {
        w.send(&w.id(&at.to_string())?, &[message("a", "1")]).await?;
        same!("what is due with a message", w.claim_due(&w.due()).await?, [at.to_string()]);
    }
    Ok(())
}

async fn read(w: World) -> Kept {
    let lease = w.in_phase("x", Phase::Stopped, None).await?;
    let id = &lease.session;
    w.send(id, &[message("a", "1"), message("b", "2")]).await?;
    w.release_read(&lease, 1).await?;
    let again = w.one_due("`b` was not read").await?;
    w.release_read(&again, 2).await?;
    same!("what is due: all was read", w.claim_due(&w.due()).await?, [""; 0]);
    // What was read stays read, whatever the next holder says.
    let again = w.claim(id).await?.lease;
    w.release_read(&again, 0).await?;
    same!("what is due: the next holder read nothing", w.claim_due(&w.due()).await?, [""; 0]);
    w.send(id, &[message("c", "3")]).await?;
    let again = w.one_due("`c` was not read").await?;
    let mut summary = w.summary(Phase::Stopped);
    summary.inbox = InboxSeq(3);
    w.change(&again, 1, Some(&summary), &[], &[]).await?;
    w.release_read(&again, 0).await?;
    same!("what is due: its summary counts all", w.claim_due(&w.due()).await?, [""; 0]);
    Ok(())
}

async fn rests(w: World) -> Kept {
    use Phase::{Ended, Exhausted, Failed, Interrupted, Stopped, Waiting};
    for (at, phase) in
        [Ended, Exhausted, Failed, Interrupted, Stopped, Waiting].into_iter().enumerate()
    {
        let lease = w.in_phase(&at.to_string(), phase, None).await?;
        w.release_read(&lease, 0).await?;
    }
    // One that was claimed and never written, and one that was running before.
    let claimed = w.claim(&w.id("claimed")?).await?.lease;
    w.release_read(&claimed, 0).await?;
    let lease = w.in_phase("settled", Phase::Running, Some(UtcMillis(1))).await?;
    w.change(&lease, 1, Some(&w.summary(Ended)), &[], &[]).await?;
    w.release_read(&lease, 0).await?;
    same!("what is due", w.claim_due(&w.due()).await?, [""; 0]);
    Ok(())
}

async fn request(w: World) -> Kept {
    for name in ["a", "b", "c", "d"] {
        let lease = w.in_phase(name, Phase::Running, None).await?;
        w.release_read(&lease, 0).await?;
    }
    let others = DueRequest::new([AgentId::new(format!("{}-other", w.tag))]).limit(100);
    same!("what is due of another agent", w.claim_due(&others).await?, [""; 0]);
    same!("what is due of none", w.claim_due(&DueRequest::new([])).await?, [""; 0]);
    let except = w.due().except([w.id("a")?, w.id("c")?]).limit(1);
    let first = w.claim_due(&except).await?;
    let second = w.claim_due(&except).await?;
    let both: BTreeSet<_> = first.iter().chain(&second).map(String::as_str).collect();
    same!("how many at once", (first.len(), second.len()), (1, 1));
    same!("those that are not excepted", both, BTreeSet::from(["b", "d"]));
    same!("what is left of them", w.claim_due(&except).await?, [""; 0]);
    let both = DueRequest { agents: [others.agents, w.due().agents].concat(), ..w.due() };
    same!("the rest", w.claim_due(&both).await?, ["a", "c"]);
    Ok(())
}

async fn removed(w: World) -> Kept {
    let lease = w.in_phase("x", Phase::Running, None).await?;
    w.store.remove(&lease, Remove::All).await?;
    same!("what is due", w.claim_due(&w.due()).await?, [""; 0]);
    // Another one under its id.
    let lease = w.session("x", 1).await?;
    w.release_read(&lease, 0).await?;
    same!("what is due of a new one", w.claim_due(&w.due()).await?, [""; 0]);
    Ok(())
}

async fn concurrent(w: World) -> Kept {
    const SESSIONS: usize = 40;
    for at in 0..SESSIONS {
        let lease = w.in_phase(&format!("{at:02}"), Phase::Running, None).await?;
        w.release_read(&lease, 0).await?;
    }
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..4 {
        let (w, request) = (w.clone(), w.due().limit(3));
        tasks.spawn(async move {
            let store = if task % 2 == 0 { &w.store } else { &w.other };
            let mut found = Vec::new();
            // A store that has no end of them is wrong.
            for _ in 0..SESSIONS {
                let due = store.claim_due(&request, LONG).await?;
                if due.claimed.is_empty() {
                    break;
                }
                found.extend(due.claimed.into_iter().map(|claimed| claimed.lease));
            }
            Ok::<_, StoreError>(found)
        });
    }
    let mut leases = Vec::new();
    while let Some(done) = tasks.join_next().await {
        let Ok(found) = done else {
            return Err(Broken("the store panicked".into()));
        };
        leases.extend(found?);
    }
    let ids: BTreeSet<_> = leases.iter().map(|lease| &lease.session).collect();
    same!("how many sessions, and leases", (ids.len(), leases.len()), (SESSIONS, SESSIONS));
    for lease in &leases {
        w.store.renew(lease, LONG).await?;
    }
    Ok(())
}

async fn waits(w: World) -> Kept {
    let agents = [w.agent.clone()];
    let wait = || async {
        let wait = w.store.wait_due(&agents, Duration::from_millis(1));
        let waited = tokio::time::timeout(Duration::from_secs(10), wait).await;
        ensure!(waited.is_ok(), "a wait for a millisecond takes longer than ten seconds");
        Ok(())
    };
    wait().await?;
    let lease = w.in_phase("x", Phase::Running, None).await?;
    w.release_read(&lease, 0).await?;
    wait().await?;
    same!("what is due after a wait, which claims nothing", w.claim_due(&w.due()).await?, ["x"]);
    Ok(())
}
