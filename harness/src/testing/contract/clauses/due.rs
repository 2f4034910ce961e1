//! Claims of any session that needs somebody.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::clock::UtcMillis;
use crate::id::{AgentId, SessionId};
use crate::store::{Claim, Claimed, Facts, Mail, Phase};

use super::super::world::{Kept, LONG, World, letter};
use super::clauses;

clauses! {
    "due-takes-a-session-whose-holder-is-gone" => crashed,
    "due-leaves-a-held-session" => held,
    "due-takes-a-session-whose-time-has-come" => time,
    "due-takes-a-session-with-letters-not-counted" => letters,
    "due-takes-only-sessions-of-its-agents" => agents,
    "due-gives-none-after-the-wait" => none,
    "due-is-told-of-what-comes-while-it-waits" => told,
    "due-gives-a-session-to-one-alone" => one_alone,
}

async fn due(w: &World, wait: Duration) -> Kept<Option<Claimed>> {
    let agents = [w.agent.clone()];
    Ok(w.store.claim(Claim::Due { agents: &agents, wait }, LONG).await?)
}

/// The session that is due at once, which is then held.
async fn now(w: &World) -> Kept<Option<SessionId>> {
    Ok(due(w, Duration::ZERO).await?.map(|claimed| claimed.lease.session))
}

/// A session that rests, with these facts.
async fn resting(w: &World, name: &str, facts: &Facts) -> Kept<SessionId> {
    let lease = w.session(name, 1).await?;
    w.change(&lease, 1, Some(facts), &[], &[]).await?;
    w.store.renew(&lease, Duration::ZERO).await?;
    Ok(lease.session)
}

async fn crashed(w: World) -> Kept {
    let id = w.id("x")?;
    let lease = w.claim_for(&id, w.short).await?.lease;
    w.append(&lease, 0, b"1").await?;
    w.change(&lease, 1, Some(&w.facts(Phase::Running)), &[], &[]).await?;
    let claimed = if w.real_time() {
        due(&w, w.short * 100).await?
    } else {
        w.expire().await;
        due(&w, Duration::ZERO).await?
    };
    let Some(claimed) = claimed else {
        ensure!(false, "nothing was due though a lease of {:?} had expired", w.short);
        return Ok(());
    };
    same!("session and head", (claimed.lease.session.clone(), claimed.head.0), (id, 1));
    same!("facts", claimed.facts, Some(w.facts(Phase::Running)));
    w.append(&claimed.lease, 1, b"2").await?;
    let released = resting(&w, "y", &w.facts(Phase::Running)).await?;
    same!("one that was released while it ran", now(&w).await?, Some(released));
    Ok(())
}

async fn held(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    w.post(&lease.session, &[letter("k", "v")]).await?;
    let facts = Facts { due: Some(UtcMillis(1)), ..w.facts(Phase::Running) };
    w.change(&lease, 1, Some(&facts), &[], &[]).await?;
    same!("what is due", now(&w).await?, None);
    w.append(&lease, 1, b"2").await?;
    Ok(())
}

async fn time(w: World) -> Kept {
    let later = UtcMillis(UtcMillis::now().0 + 3_600_000);
    resting(&w, "a", &Facts { due: Some(later), ..w.facts(Phase::Waiting) }).await?;
    resting(&w, "b", &w.facts(Phase::Waiting)).await?;
    same!("nothing yet", now(&w).await?, None);
    let past = Facts { due: Some(UtcMillis(1)), ..w.facts(Phase::Waiting) };
    let id = resting(&w, "c", &past).await?;
    same!("what is due", now(&w).await?, Some(id));
    same!("it is held then", now(&w).await?, None);
    if w.real_time() {
        let soon = UtcMillis(UtcMillis::now().0 + 50);
        let id = resting(&w, "d", &Facts { due: Some(soon), ..w.facts(Phase::Waiting) }).await?;
        let found = due(&w, w.short * 100).await?.map(|claimed| claimed.lease.session);
        same!("what comes due during the wait", found, Some(id));
        ensure!(UtcMillis::now() >= soon, "it was given before its time");
    }
    Ok(())
}

async fn letters(w: World) -> Kept {
    let id = resting(&w, "x", &w.facts(Phase::Interrupted)).await?;
    same!("without letters", now(&w).await?, None);
    w.post(&id, &[letter("k", "v")]).await?;
    let Some(claimed) = due(&w, Duration::ZERO).await? else {
        ensure!(false, "nothing was due though a letter was there");
        return Ok(());
    };
    same!("its mail", claimed.mail, Mail(1));
    let facts = Facts { mail: Mail(1), ..w.facts(Phase::Interrupted) };
    w.change(&claimed.lease, 1, Some(&facts), &[], &[]).await?;
    w.store.renew(&claimed.lease, Duration::ZERO).await?;
    same!("with all letters counted", now(&w).await?, None);
    Ok(())
}

async fn agents(w: World) -> Kept {
    let id = resting(&w, "x", &w.facts(Phase::Running)).await?;
    let wait = Duration::ZERO;
    let strangers = [AgentId::new(format!("{}-other", w.tag))];
    let other = w.store.claim(Claim::Due { agents: &strangers, wait }, LONG).await?;
    same!("for another agent", other, None);
    same!("for none", w.store.claim(Claim::Due { agents: &[], wait }, LONG).await?, None);
    let [stranger] = strangers;
    let both = [stranger, w.agent.clone()];
    let found = w.store.claim(Claim::Due { agents: &both, wait }, LONG).await?;
    same!("for both", found.map(|claimed| claimed.lease.session), Some(id));
    Ok(())
}

async fn none(w: World) -> Kept {
    resting(&w, "x", &w.facts(Phase::Ended)).await?;
    w.claim(&w.id("only-claimed")?).await?;
    let begun = std::time::Instant::now();
    same!("what is due", due(&w, w.short).await?.map(|claimed| claimed.lease.session), None);
    let took = begun.elapsed();
    ensure!(took < w.short * 100, "a wait of {:?} took {took:?}", w.short);
    Ok(())
}

async fn told(w: World) -> Kept {
    let id = resting(&w, "x", &w.facts(Phase::Interrupted)).await?;
    let waiter = w.clone();
    let waits = tokio::spawn(async move { due(&waiter, waiter.short * 100).await });
    tokio::task::yield_now().await;
    w.other.post(&id, &[letter("k", "v")]).await?;
    let found = waits.await??.map(|claimed| (claimed.lease.session, claimed.mail));
    same!("what it was given", found, Some((id, Mail(1))));
    Ok(())
}

async fn one_alone(w: World) -> Kept {
    let mut expected = BTreeSet::new();
    for n in 0..12 {
        expected.insert(resting(&w, &n.to_string(), &w.facts(Phase::Running)).await?);
    }
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..24 {
        let mut w = w.clone();
        if n % 2 == 1 {
            std::mem::swap(&mut w.store, &mut w.other);
        }
        tasks.spawn(async move { now(&w).await });
    }
    let mut found = Vec::new();
    while let Some(claimed) = tasks.join_next().await {
        found.extend(claimed??);
    }
    // Those who came in each other's way may have got none; no session is lost by that.
    while let Some(id) = now(&w).await? {
        ensure!(found.len() < 100, "sessions are given out again and again");
        found.push(id);
    }
    same!("how many were given", found.len(), 12);
    same!("which were given", found.into_iter().collect::<BTreeSet<_>>(), expected);
    Ok(())
}
