//! What becomes of stored bytes that are not as they were written.

use std::collections::BTreeSet;

use crate::id::{Seq, SessionId};
use crate::store::{Batch, Filter, NewEntry, Page, Phase, ReadRequest, StoreError};

use super::super::hooks::Damage;
use super::super::world::{Kept, LONG, World, message};
use super::clauses;

clauses! {
    "damage-is-reported-and-names-its-session" => reported,
    "damage-is-left-alone" => left_alone,
    "damage-hides-no-other-session" => others,
    "torn-tail-is-set-aside" => torn,
    "newer-format-is-reported" => newer,
    "newer-format-is-left-alone" => newer_left_alone,
}

/// A session of three entries, which is not held.
async fn session(w: &World, name: &str, phase: Phase) -> Kept<SessionId> {
    let lease = w.claim(&w.id(name)?).await?.lease;
    let summary = w.summary(phase);
    for (after, text) in ["first entry", "second entry", "third entry"].into_iter().enumerate() {
        let entries = &[NewEntry { bytes: text.as_bytes(), snapshot: false }];
        let after = Seq(after as u64);
        let batch =
            Batch { after, entries, summary: Some(&summary), flush: true, ..Batch::default() };
        w.store.append(&lease, batch).await?;
    }
    w.release(&lease).await?;
    Ok(lease.session)
}

async fn read(w: &World, id: &SessionId) -> Result<Option<Page>, StoreError> {
    w.store.read(id, ReadRequest::from(Seq(1)).limit(u64::MAX)).await
}

async fn damaged(w: World, id: &SessionId, how: Damage) -> Kept<World> {
    let closed = w.close();
    closed.hooks.damage(id, how).await?;
    Ok(closed.open().await)
}

/// Makes every request that a damaged session may get, whatever the answers are, and compares what
/// is stored of it before and after.
async fn unchanged(w: World, id: &SessionId, how: Damage) -> Kept<World> {
    let closed = w.close();
    let sound = closed.hooks.stored(id).await?;
    closed.hooks.damage(id, how).await?;
    let before = closed.hooks.stored(id).await?;
    ensure!(sound != before, "{how:?}: the session should be damaged, and is as it was");
    let w = closed.open().await;
    let _ = read(&w, id).await;
    let _ = w.store.list(&Filter::sessions().agent(w.agent.clone()), None, 9).await;
    let _ = w.store.send(id, &[message("k", "v")]).await;
    let claimed = w.store.claim(id, LONG).await;
    ensure!(claimed.is_err(), "{how:?}: it can be claimed: {claimed:?}");
    let closed = w.close();
    let after = closed.hooks.stored(id).await?;
    let lengths = (before.len(), after.len());
    ensure!(
        before == after,
        "{how:?}: the store has written to it; its lengths before and after: {lengths:?}"
    );
    Ok(closed.open().await)
}

async fn reported(mut w: World) -> Kept {
    for (name, phase) in [("resting", Phase::Ended), ("running", Phase::Running)] {
        let id = session(&w, name, phase).await?;
        w = damaged(w, &id, Damage::Flip).await?;
        refused!(
            format!("a read of a damaged session, {name}"),
            read(&w, &id).await,
            StoreError::Corrupt { ref session, .. } if *session == id
        );
        refused!(
            format!("a claim of a damaged session, {name}"),
            w.store.claim(&id, LONG).await,
            StoreError::Corrupt { ref session, .. } if *session == id
        );
    }
    Ok(())
}

async fn left_alone(mut w: World) -> Kept {
    for (name, phase) in [("resting", Phase::Ended), ("running", Phase::Running)] {
        let id = session(&w, name, phase).await?;
        w = unchanged(w, &id, Damage::Flip).await?;
    }
    Ok(())
}

async fn others(mut w: World) -> Kept {
    let mut sound = BTreeSet::new();
    for name in ["a", "c"] {
        sound.insert(session(&w, name, Phase::Running).await?);
    }
    let id = session(&w, "b", Phase::Running).await?;
    w = damaged(w, &id, Damage::Flip).await?;
    for limit in [1, 100] {
        let rows = w.rows(Filter::sessions(), limit).await?;
        let listed: BTreeSet<_> =
            rows.into_iter().map(|row| row.session).filter(|listed| *listed != id).collect();
        same!(format!("a list, in pages of {limit}"), listed, sound);
    }
    for id in &sound {
        same!("entries of another session", w.entries(id).await?.len(), 3);
    }
    for id in &sound {
        let claimed = w.claim(id).await?;
        same!(
            "the head after another session's append",
            w.append(&claimed.lease, 3, b"4").await?.head,
            Seq(4)
        );
    }
    Ok(())
}

async fn torn(w: World) -> Kept {
    // It is not released: the writer of the last batch has died.
    let lease = w.claim_for(&w.id("x")?, w.short).await?.lease;
    let summary = w.summary(Phase::Running);
    let batch = |after, entries, flush| Batch {
        after: Seq(after),
        entries,
        summary: Some(&summary),
        flush,
        ..Batch::default()
    };
    let texts = ["first entry", "second entry", "third entry", "fourth entry"];
    let entries = texts.map(|text| NewEntry { bytes: text.as_bytes(), snapshot: false });
    w.store.append(&lease, batch(0, &entries[..2], true)).await?;
    w.store.append(&lease, batch(2, &entries[2..], false)).await?;
    let id = lease.session;
    let w = damaged(w, &id, Damage::CutTail).await?;
    let expected: Vec<_> = texts[..2].iter().map(|text| text.as_bytes().to_vec()).collect();
    same!("entries before the batch that was cut", w.entries(&id).await?, expected);
    let claimed = w.steal(&id).await?;
    same!("the head at the claim", claimed.head, Seq(2));
    w.append(&claimed.lease, 2, b"next").await?;
    let expected: Vec<_> = expected.into_iter().chain([b"next".to_vec()]).collect();
    same!("entries after the next batch", w.entries(&id).await?, expected);
    let w = w.close().open().await;
    same!("entries after the next batch, opened again", w.entries(&id).await?, expected);
    Ok(())
}

async fn newer(w: World) -> Kept {
    let id = session(&w, "x", Phase::Running).await?;
    let w = damaged(w, &id, Damage::NewerFormat).await?;
    refused!(
        "a read of a newer format",
        read(&w, &id).await,
        StoreError::NewerFormat { found, known } if found > known
    );
    refused!(
        "a claim of a newer format",
        w.store.claim(&id, LONG).await,
        StoreError::NewerFormat { found, known } if found > known
    );
    Ok(())
}

async fn newer_left_alone(w: World) -> Kept {
    let id = session(&w, "x", Phase::Running).await?;
    unchanged(w, &id, Damage::NewerFormat).await.map(drop)
}
