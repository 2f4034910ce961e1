//! What other processes see, and what is left when one of them is killed.

use std::time::Duration;

use crate::id::Seq;
use crate::store::{Filter, ReadRequest, StoreError};

use super::super::child::{Child, check, end_after, write};
use super::super::world::{Kept, LONG, Stop, World};
use super::clauses;

clauses! {
    "killed-process-loses-nothing-acknowledged" => killed,
    "other-processes-see-writes" => see,
    "other-processes-respect-the-lease" => respect,
}

const ROUNDS: u32 = 10;

/// A number below `below`, another each time.
fn random(below: u64) -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().1 % below
}

async fn killed(mut w: World) -> Kept {
    let id = w.id("x")?;
    let mut acknowledged = Seq(0);
    for round in 0..ROUNDS {
        let mut child = Child::start(w.hooks(), &id, &w.agent, w.short)?;
        let closed = w.close();
        // At some moment of its beginnings, or of the batch that follows an acknowledgement.
        let moment = if round % 5 == 0 {
            random(30)
        } else {
            child.claimed().await?;
            for _ in 0..random(6) {
                acknowledged = child.acknowledged().await?;
            }
            random(3)
        };
        tokio::time::sleep(Duration::from_millis(moment)).await;
        acknowledged = child.kill().await?.unwrap_or(acknowledged);

        w = closed.open().await;
        let max = w.max_batch();
        let found = w.store.read(&id, ReadRequest::from(Seq(1)).limit(u64::MAX)).await?;
        match &found {
            Some(page) => check(page, acknowledged, max)?,
            None => same!("acknowledged of a session that is not there", acknowledged, Seq(0)),
        }
        let claimed = w.steal(&id).await?;
        let head = claimed.head;
        ensure!(
            (acknowledged..=end_after(acknowledged)).contains(&head),
            "{acknowledged} was acknowledged last, one batch was under way, and the head is {head}"
        );
        // It continues after the batch of the killed one.
        acknowledged = write(&*w.store, &claimed.lease, &w.agent, head, max).await?;
        let page = w.page(&id).await?;
        check(&page, acknowledged, max)?;
        same!("the head after the next batch", page.head, end_after(head));
        w.release(&claimed.lease).await?;
    }
    Ok(())
}

async fn see(w: World) -> Kept {
    let id = w.id("x")?;
    let lease = w.claim(&id).await?.lease;
    let mut child = {
        let first = write(&*w.store, &lease, &w.agent, Seq(0), w.max_batch()).await?;
        let second = write(&*w.store, &lease, &w.agent, first, w.max_batch()).await?;
        w.release(&lease).await?;
        let mut child = Child::start(w.hooks(), &id, &w.agent, LONG)?;
        child.claimed().await?;
        let found = child.acknowledged().await?;
        same!("the first head of the other process", found, end_after(second));
        child
    };
    for _ in 0..5 {
        let acknowledged = child.acknowledged().await?;
        for (handle, store) in [("one handle", &w.store), ("the other", &w.other)] {
            let page = store.read(&id, ReadRequest::from(Seq(1)).limit(u64::MAX)).await?;
            let Some(page) = page else {
                return Err(Stop::Broken(format!("{handle}: the session is not there")));
            };
            check(&page, acknowledged, w.max_batch())?;
        }
        let listed: Vec<_> =
            w.rows(Filter::sessions(), 9).await?.into_iter().map(|row| row.head).collect();
        ensure!(
            matches!(*listed, [head] if head >= acknowledged),
            "{acknowledged} was acknowledged, and a list shows heads {listed:?}"
        );
    }
    child.kill().await.map(drop)
}

async fn respect(w: World) -> Kept {
    let id = w.id("x")?;
    let mut child = Child::start(w.hooks(), &id, &w.agent, LONG)?;
    child.claimed().await?;
    for _ in 0..3 {
        child.acknowledged().await?;
        for store in [&w.store, &w.other] {
            refused!(
                "a claim of what another process holds",
                store.claim(&id, LONG).await,
                StoreError::Busy { ref session, .. } if *session == id
            );
        }
    }
    child.kill().await.map(drop)
}
