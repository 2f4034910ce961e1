//! What comes next, as a table: the state of the replay, what happened, what comes.
use super::*;
use crate::model::Fingerprint;

const LOOKED: Event = Event::Looked { spared: false, valid: None };
const VALID: Event = Event::Looked { spared: false, valid: Some(Valid { absent: false }) };
const ABSENT: Event = Event::Looked { spared: false, valid: Some(Valid { absent: true }) };
const STUCK: Action = Action::Everything { stuck: true, watched: false };

fn steps() -> Vec<Planned> {
    ["a", "b", "c"]
        .map(|id| Planned {
            id: id.into(),
            syntax: Fingerprint::of(&[id.as_bytes()]),
            source: "".into(),
            bind: None,
            scan: Arc::default(),
        })
        .into()
}

/// The action after `event` at the second of three steps, with these changes to the replay.
fn after(event: Event, change: impl Fn(&mut Pass<'_>)) -> Action {
    let steps = steps();
    let options = Options { stop_on_failure: false, sweep: true };
    let mut pass = Pass::new(&steps, options);
    pass.at = 1;
    change(&mut pass);
    advance(&pass, event)
}

#[test]
fn the_steps_are_looked_at_in_order_then_the_files_are_restored() {
    let none = |_: &mut Pass<'_>| ();
    assert_eq!(after(Event::Begun, none), Action::Look(0));
    assert_eq!(after(Event::Begun, |pass| pass.steps = &[]), Action::Restore);
    for failed in [false, true] {
        assert_eq!(after(Event::Past { failed }, none), Action::Look(2));
        assert_eq!(after(Event::Past { failed }, |pass| pass.at = 2), Action::Restore);
    }
    let stops = |pass: &mut Pass<'_>| pass.options.stop_on_failure = true;
    assert_eq!(after(Event::Past { failed: true }, stops), Action::Restore);
    assert_eq!(after(Event::Past { failed: false }, stops), Action::Look(2));
    assert_eq!(after(Event::Restored { more: false }, none), Action::Done);
}

#[test]
fn a_step_is_kept_if_it_is_valid_and_nothing_forces_it() {
    type Change = fn(&mut Pass<'_>);
    let table: &[(Event, Change, Action)] = &[
        (LOOKED, |_| (), Action::Run),
        (VALID, |_| (), Action::Keep),
        (ABSENT, |_| (), Action::Keep),
        (VALID, |pass| pass.forced.extend(["b".into()]), Action::Run),
        (VALID, |pass| pass.forced.extend(["a".into()]), Action::Keep),
        (VALID, |pass| pass.full = true, Action::Run),
        (
            VALID,
            |pass| {
                pass.full = true;
                pass.done.insert("b".into());
            },
            Action::Keep,
        ),
        (ABSENT, |pass| pass.revived.extend(["b".into()]), Action::Run),
        (VALID, |pass| pass.revived.extend(["b".into()]), Action::Keep),
        (Event::Looked { spared: true, valid: None }, |pass| pass.full = true, Action::Spare),
    ];
    for (event, change, action) in table {
        assert_eq!(after(*event, change), *action, "{event:?}");
    }
}

#[test]
fn each_pass_forces_more_or_everything_runs_or_it_fails() {
    for event in [Event::Missing { more: true }, Event::Restored { more: true }] {
        assert_eq!(after(event, |_| ()), STUCK);
        assert_eq!(after(event, |pass| pass.full = true), Action::Unreachable);
        let grown: [fn(&mut Pass<'_>); 4] = [
            |pass| pass.forced.extend(["a".into()]),
            |pass| pass.spared.extend(["a".into()]),
            |pass| pass.widened += 1,
            |pass| pass.renewed += 1,
        ];
        for grow in grown {
            assert_eq!(after(event, grow), Action::Again);
            // Not if that was so when the pass began.
            let before = |pass: &mut Pass<'_>| {
                grow(pass);
                pass.begin();
            };
            assert_eq!(after(event, before), STUCK);
        }
    }
    assert_eq!(after(Event::Missing { more: false }, |_| ()), STUCK);
    assert_eq!(after(Event::Missing { more: false }, |pass| pass.full = true), Action::Fail);
}

#[test]
fn the_worker_is_replaced_a_few_times_then_everything_runs() {
    assert_eq!(after(Event::Elsewhere, |pass| pass.renewed = RENEWALS - 1), Action::Renew);
    assert_eq!(after(Event::Elsewhere, |pass| pass.renewed = RENEWALS), STUCK);
}

#[test]
fn a_replay_that_ran_something_ends_with_a_sweep() {
    let ran = |pass: &mut Pass<'_>| pass.done.extend(["b".into()]);
    assert_eq!(after(Event::Settled, |_| ()), Action::Done);
    assert_eq!(after(Event::Settled, ran), Action::Sweep);
    let off = |pass: &mut Pass<'_>| {
        ran(pass);
        pass.options.sweep = false;
    };
    assert_eq!(after(Event::Settled, off), Action::Done);
    let full = |pass: &mut Pass<'_>| {
        ran(pass);
        pass.full = true;
    };
    assert_eq!(after(Event::Settled, full), Action::Done);
    // What it finds is looked for once more, with a sweep after each step.
    assert_eq!(after(Event::Swept { unseen: Some(0) }, ran), Action::Done);
    let everything = |watched| Action::Everything { stuck: false, watched };
    assert_eq!(after(Event::Swept { unseen: Some(2) }, ran), everything(true));
    assert_eq!(after(Event::Swept { unseen: None }, ran), everything(false));
    let watched = |pass: &mut Pass<'_>| {
        full(pass);
        pass.watched = true;
    };
    assert_eq!(after(Event::Settled, watched), Action::Attribute);
}
