//! Lists of sessions and of open interrupts.

use std::collections::BTreeSet;

use crate::clock::UtcMillis;
use crate::id::{AgentId, Seq, SessionId};
use crate::store::{Batch, Filter, NewEntry, Phase, Remove, Row, SessionSummary};

use super::super::world::{Kept, World, interrupt};
use super::clauses;

clauses! {
    "list-is-in-the-order-of-keys" => order,
    "list-filters-hold-together" => filters,
    "list-pages-show-each-row-once" => pages,
    "list-pages-stand-though-sessions-come-and-go" => under_change,
    "list-rows-show-the-session" => rows,
    "list-of-interrupts-has-a-row-for-each" => interrupts,
    "list-of-interrupts-follows-its-session" => follows,
}

fn names(rows: &[Row]) -> Vec<SessionId> {
    rows.iter().map(|row| row.session.clone()).collect()
}

async fn order(w: World) -> Kept {
    for name in ["b", "a\0", "a", "a\u{1}", "B", "a\0b", "\u{e9}", "a-b", "ab", "e\u{301}", "a b"] {
        w.session(name, 1).await?;
    }
    let rows = w.rows(Filter::sessions(), 3).await?;
    same!("how many", rows.len(), 11);
    let ordered = rows.is_sorted_by(|one, other| one.key() < other.key());
    ensure!(ordered, "the rows are not in the order of their keys: {:?}", names(&rows));
    Ok(())
}

async fn put(w: &World, name: &str, agent: &AgentId, phase: Phase) -> Kept<SessionId> {
    let lease = w.claim(&w.id(name)?).await?.lease;
    let summary = SessionSummary { agent: agent.clone(), ..w.summary(phase) };
    let batch = Batch {
        entries: &[NewEntry { bytes: b"1", snapshot: false }],
        summary: Some(&summary),
        open: &[interrupt("q", None)],
        ..Batch::default()
    };
    w.store.append(&lease, batch).await?;
    Ok(lease.session)
}

async fn filters(w: World) -> Kept {
    let other = AgentId::new(format!("{}-other", w.tag));
    let a = put(&w, "a", &w.agent, Phase::Interrupted).await?;
    let b = put(&w, "b", &w.agent, Phase::Ended).await?;
    let c = put(&w, "c", &other, Phase::Interrupted).await?;
    for base in [Filter::sessions(), Filter::interrupts()] {
        let list = async |filter: Filter| {
            Ok::<_, crate::store::StoreError>(names(
                &w.store.list(&filter, None, 1_000).await?.rows,
            ))
        };
        let both = base.clone().agent(w.agent.clone()).phase(Phase::Interrupted);
        same!("agent and phase", list(both).await?, std::slice::from_ref(&a));
        let agent = base.clone().agent(w.agent.clone());
        same!("agent", list(agent).await?, [a.clone(), b.clone()]);
        same!(
            "the other agent",
            list(base.clone().agent(other.clone())).await?,
            std::slice::from_ref(&c)
        );
        let none = base.clone().agent(other.clone()).phase(Phase::Failed);
        same!("none", list(none).await?, []);
    }
    Ok(())
}

async fn pages(w: World) -> Kept {
    let mut expected = Vec::new();
    for n in 0..10 {
        expected.push(w.session(&format!("{n}"), 1).await?.session);
    }
    for limit in [1, 2, 3, 5, 9, 10, 11, u32::MAX] {
        let found = names(&w.rows(Filter::sessions(), limit).await?);
        same!(format!("sessions in pages of {limit}"), found, expected);
    }
    let all = Filter::sessions().agent(w.agent.clone());
    let last = w.store.list(&all, None, 10).await?;
    same!("`next` after the last row", last.next, None);
    let key = last.rows.get(3).map(Row::key);
    let rest = w.store.list(&all, key.as_deref(), 100).await?;
    same!("rows after a row", names(&rest.rows), expected[4..]);
    Ok(())
}

/// Between pages a row that was shown goes, and one comes in before the place and one after it.
async fn under_change(w: World) -> Kept {
    let mut leases = Vec::new();
    for n in [1, 3, 5, 7, 9] {
        leases.push(w.session(&n.to_string(), 1).await?);
    }
    let all = Filter::sessions().agent(w.agent.clone());
    let first = w.store.list(&all, None, 2).await?;
    same!("the first page", names(&first.rows), [w.id("1")?, w.id("3")?]);
    if let Some(shown) = leases.first() {
        w.store.remove(shown, Remove::All).await?;
    }
    w.session("0", 1).await?;
    w.session("2", 1).await?;
    w.session("8", 1).await?;
    let (mut seen, mut after) = (Vec::new(), first.next);
    while let Some(place) = after {
        let page = w.store.list(&all, Some(&place), 2).await?;
        seen.extend(names(&page.rows));
        ensure!(seen.len() < 100, "the list has no end");
        after = page.next;
    }
    let new = w.id("8")?;
    let own: Vec<_> = seen.iter().filter(|id| **id != new).cloned().collect();
    same!("those that were there all along", own, [w.id("5")?, w.id("7")?, w.id("9")?]);
    ensure!(seen.iter().collect::<BTreeSet<_>>().len() == seen.len(), "a row came twice");
    Ok(())
}

async fn rows(w: World) -> Kept {
    let lease = w.session("x", 3).await?;
    let row = Row {
        session: lease.session,
        summary: w.summary(Phase::Ended),
        head: Seq(3),
        created: UtcMillis(1_000),
        updated: UtcMillis(1_002),
        interrupt: None,
    };
    same!("rows", w.rows(Filter::sessions(), 9).await?, [row]);
    Ok(())
}

async fn interrupts(w: World) -> Kept {
    let mut expected = Vec::new();
    for name in ["b", "a", "c"] {
        let lease = w.session(name, 1).await?;
        if name != "c" {
            let asked = [interrupt("q2", Some(7)), interrupt("q1", None), interrupt("q3", None)];
            w.change(&lease, 1, None, &asked, &["q3".into()]).await?;
            expected.push((lease.session.clone(), interrupt("q1", None)));
            expected.push((lease.session, interrupt("q2", Some(7))));
        }
    }
    expected.sort_by_key(|(session, interrupt)| (session.clone(), interrupt.id.clone()));
    for limit in [1, 3, 100] {
        let rows = w.rows(Filter::interrupts(), limit).await?;
        let found: Vec<_> =
            rows.into_iter().filter_map(|row| Some((row.session, row.interrupt?))).collect();
        same!(format!("interrupts in pages of {limit}"), found, expected);
    }
    let plain = w.rows(Filter::sessions(), 100).await?;
    same!("how many sessions", plain.len(), 3);
    ensure!(plain.iter().all(|row| row.interrupt.is_none()), "a list of sessions shows interrupts");
    Ok(())
}

async fn follows(w: World) -> Kept {
    let lease = w.session("x", 1).await?;
    w.change(&lease, 1, None, &[interrupt("q", None)], &[]).await?;
    let summary = w.summary(Phase::Interrupted);
    w.change(&lease, 1, Some(&summary), &[], &[]).await?;
    let waiting = Filter::interrupts().phase(Phase::Interrupted);
    same!("open", w.rows(waiting.clone(), 9).await?.len(), 1);
    w.change(&lease, 1, None, &[], &["q".into()]).await?;
    same!("closed", w.rows(waiting, 9).await?, []);
    Ok(())
}
