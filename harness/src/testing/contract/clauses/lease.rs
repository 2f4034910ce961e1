//! One holder at a time.

use std::time::Instant;

use crate::clock::UtcMillis;
use crate::id::Seq;
use crate::store::{FormerHolder, InboxSeq, Phase, Remove, StoreError};

use super::super::world::{Kept, LONG, World, message};
use super::clauses;

clauses! {
    "claim-of-a-held-session-is-busy" => busy,
    "claims-grow-in-fence-and-differ-in-token" => fences,
    "claim-reports-head-inbox-and-summary" => reports,
    "lease-is-free-once-it-expires-and-not-before" => expires,
    "renew-holds-on" => renew,
    "expired-lease-without-another-claim-still-holds" => expired,
    "renew-after-another-claim-is-fenced" => renew_fenced,
    "append-after-another-claim-is-fenced" => append_fenced,
    "release-frees-at-once" => release,
    "released-lease-is-fenced" => released,
    "holder-is-shown-while-there-is-one" => holder,
    "claim-reports-what-is-known-of-the-former-holder" => former,
}

async fn busy(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    let now = UtcMillis::now();
    for store in [&w.store, &w.other] {
        let again = store.claim(&lease.session, LONG).await;
        refused!("a second claim", again, StoreError::Busy { until, .. } if until > now);
    }
    w.append(&lease, 1, b"2").await?;
    let new = w.claim(&w.id("new")?).await?.lease;
    let again = w.other.claim(&new.session, LONG).await;
    refused!("a second claim of a new session", again, StoreError::Busy { .. });
    w.append(&new, 0, b"1").await?;
    Ok(())
}

async fn fences(w: World) -> Kept {
    let id = w.id("x")?;
    let mut seen = Vec::new();
    for round in 0..5 {
        let lease = w.claim(&id).await?.lease;
        same!("the session of the lease", lease.session, id);
        for (fence, token) in &seen {
            ensure!(lease.fence > *fence, "fence {} after fence {fence}", lease.fence);
            ensure!(lease.token != *token, "a token came twice");
        }
        seen.push((lease.fence, lease.token));
        // Before the session exists and after.
        if round > 1 {
            w.append(&lease, round - 2, b"x").await?;
        }
        w.release(&lease).await?;
    }
    Ok(())
}

async fn reports(w: World) -> Kept {
    let lease = w.session("x", 3).await?;
    w.send(&lease.session, &[message("a", "1"), message("b", "2")]).await?;
    w.release(&lease).await?;
    let claimed = w.claim(&lease.session).await?;
    let found = (claimed.head, claimed.inbox, claimed.summary);
    same!("head, inbox and summary", found, (Seq(3), InboxSeq(2), Some(w.summary(Phase::Ended))));
    Ok(())
}

async fn expires(w: World) -> Kept {
    let id = w.id("x")?;
    let begun = Instant::now();
    let lease = w.claim_for(&id, w.short).await?.lease;
    w.append(&lease, 0, b"1").await?;
    let stolen = w.steal(&id).await?;
    if w.real_time() {
        let (took, ttl) = (begun.elapsed(), w.short);
        // Clocks of two machines may run a little differently.
        ensure!(took >= ttl * 9 / 10, "a lease of {ttl:?} was given away after {took:?}");
    }
    same!("the head", stolen.head, Seq(1));
    ensure!(stolen.lease.fence > lease.fence, "the thief's fence is not higher");
    refused!("a third", w.store.claim(&id, LONG).await, StoreError::Busy { .. });
    // One that was claimed, never written and left.
    let id = w.id("y")?;
    w.claim_for(&id, w.short).await?;
    same!("the head of a new session", w.steal(&id).await?.head, Seq(0));
    Ok(())
}

async fn renew(w: World) -> Kept {
    let id = w.id("x")?;
    let lease = w.claim_for(&id, w.short).await?.lease;
    w.append(&lease, 0, b"1").await?;
    w.store.renew(&lease, LONG).await?;
    w.expire().await;
    refused!("a claim", w.store.claim(&id, LONG).await, StoreError::Busy { .. });
    w.store.renew(&lease, w.short).await?;
    w.steal(&id).await?;
    Ok(())
}

async fn expired(w: World) -> Kept {
    let id = w.id("x")?;
    let lease = w.claim_for(&id, w.short).await?.lease;
    w.append(&lease, 0, b"1").await?;
    w.expire().await;
    same!("the head", w.append(&lease, 1, b"2").await?.head, Seq(2));
    w.store.renew(&lease, LONG).await?;
    let claim = w.store.claim(&id, LONG).await;
    refused!("a claim after it was renewed", claim, StoreError::Busy { .. });
    Ok(())
}

async fn renew_fenced(w: World) -> Kept {
    let id = w.id("x")?;
    let old = w.claim_for(&id, w.short).await?.lease;
    w.append(&old, 0, b"1").await?;
    let new = w.steal(&id).await?.lease;
    refused!("a renewal", w.store.renew(&old, LONG).await, StoreError::Fenced { .. });
    let release = w.store.release(&old, InboxSeq(0)).await;
    refused!("a release", release, StoreError::Fenced { .. });
    let claim = w.store.claim(&id, LONG).await;
    refused!("a claim: the old holder released nothing", claim, StoreError::Busy { .. });
    w.store.renew(&new, LONG).await?;
    Ok(())
}

async fn append_fenced(w: World) -> Kept {
    let id = w.id("x")?;
    let old = w.claim_for(&id, w.short).await?.lease;
    w.append(&old, 0, b"1").await?;
    let new = w.steal(&id).await?.lease;
    refused!("the old holder", w.append(&old, 1, b"old").await, StoreError::Fenced { .. });
    let summary = w.summary(Phase::Failed);
    let change = w.change(&old, 1, Some(&summary), &[], &[]).await;
    refused!("its summary", change, StoreError::Fenced { .. });
    let prune = w.store.remove(&old, Remove::All).await;
    refused!("its removal", prune, StoreError::Fenced { .. });
    w.append(&new, 1, b"new").await?;
    let page = w.page(&id).await?;
    same!("summary", page.summary, w.summary(Phase::Ended));
    same!("entries", w.entries(&id).await?, [b"1".to_vec(), b"new".to_vec()]);
    Ok(())
}

async fn release(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    w.release(&lease).await?;
    let next = w.other.claim(&lease.session, LONG).await?;
    same!("the head at the next claim", next.head, Seq(1));
    Ok(())
}

async fn released(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    w.release(&lease).await?;
    refused!("an append", w.append(&lease, 1, b"2").await, StoreError::Fenced { .. });
    refused!("a renewal", w.store.renew(&lease, LONG).await, StoreError::Fenced { .. });
    let again = w.store.release(&lease, InboxSeq(0)).await;
    refused!("a second release", again, StoreError::Fenced { .. });
    let removal = w.store.remove(&lease, Remove::All).await;
    refused!("a removal", removal, StoreError::Fenced { .. });
    same!("the head", w.page(&lease.session).await?.head, Seq(1));
    Ok(())
}

async fn holder(w: World) -> Kept {
    let before = UtcMillis::now();
    let lease = w.session("x", 1).await?;
    let holder = w.page(&lease.session).await?.holder;
    same!("the holder's fence", holder.map(|holder| holder.fence), Some(lease.fence));
    ensure!(
        holder.is_some_and(|holder| holder.until > before),
        "the lease has expired already, says the page: {holder:?}"
    );
    w.release(&lease).await?;
    same!("the holder after release", w.page(&lease.session).await?.holder, None);
    Ok(())
}

/// What a store does not know it does not say.
async fn former(w: World) -> Kept {
    use FormerHolder::{Expired, Released, Unknown};
    let id = w.id("x")?;
    for round in 0..2 {
        let claimed = w.claim(&id).await?;
        let former = claimed.former;
        ensure!(
            matches!(former, Released | Unknown),
            "no process held the session, or it was released, and the claim reports {former:?}"
        );
        if round == 0 {
            w.append(&claimed.lease, 0, b"1").await?;
        }
        w.release(&claimed.lease).await?;
    }
    w.claim_for(&id, w.short).await?;
    let former = w.steal(&id).await?.former;
    ensure!(
        matches!(former, Expired | Unknown),
        "the lease of a process that runs has expired, and the claim reports {former:?}"
    );
    Ok(())
}
