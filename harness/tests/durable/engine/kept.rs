//! What an engine keeps between invocations: messages that come in, what is left when it gives up.

use harness::store::{InboxSeq, Message, ReadRequest, Sent, SessionStore};
use harness::{SessionId, Sessions};

use super::*;

fn id() -> SessionId {
    SessionId::new("order-7").unwrap()
}

fn kept(checkpoint: &str) -> Checkpoint {
    serde_json::from_str(checkpoint).unwrap()
}

/// The messages with which another process answers.
async fn answered(checkpoint: &str, said: bool) -> Vec<Message> {
    let store = kept(checkpoint).into_store(&id());
    let sessions = Sessions::new(store.clone());
    let asked = sessions.status("order-7").await.unwrap().questions[0].id.clone();
    sessions.answer_json("order-7", Answers::json(asked, said.into())).await.unwrap();
    let request = ReadRequest::messages_after(InboxSeq(0));
    let page = store.read(&id(), request).await.unwrap().unwrap();
    page.messages
        .into_iter()
        .map(|stored| stored.message)
        .filter(|it| it.interrupt.is_some())
        .collect()
}

fn works(world: &World, toy: &Toy, checkpoint: &str) -> Result<Turn<Order>, HostError> {
    in_a_process(invocation(Some(checkpoint)).work(toy, slots(world)))
}

#[test]
fn messages_that_come_between_invocations_are_applied() {
    let (expected, there, _) = on_a_store();
    let (world, toy) = (World::default(), Toy::default());
    let (_, checkpoint) = asked(starts(&world, &Toy::default()).unwrap());
    // Nothing is due.
    let (_, same) = asked(works(&world, &Toy::default(), &checkpoint).unwrap());
    assert_eq!(kept(&same).head(), kept(&checkpoint).head());
    let (checkpoint, second) = in_a_process(async {
        let yes = answered(&checkpoint, true).await;
        let (with, sent) = kept(&checkpoint).receive(&id(), &yes).await.unwrap();
        assert!(matches!(sent, Sent::Accepted(_)));
        let no = answered(&checkpoint, false).await;
        let (with, second) = with.receive(&id(), &no).await.unwrap();
        (json(&with), second)
    });
    assert!(matches!(second, Sent::Taken { .. }), "the first answer decides");
    let state = ended(works(&world, &toy, &checkpoint).unwrap());
    assert_eq!((&state, world.counts()), (&expected, there.counts()));
    assert_eq!(ended(works(&world, &toy, &checkpoint).unwrap()), state);
    assert_eq!(world.counts(), there.counts(), "a replay");
}

#[test]
fn an_input_that_waits_starts_the_next_turn() {
    let world = World::default();
    let (yes, checkpoint) = asked(starts(&world, &Toy::default()).unwrap());
    let queue = |checkpoint: &str, sum| {
        let input = Order::update().sum(sum);
        in_a_process(kept(checkpoint).enqueue::<Order>(&id(), "in-2", input))
    };
    let with = json(&queue(&checkpoint, 10).unwrap());
    let other = queue(&with, 11).unwrap_err();
    assert!(other.is_input_conflict(), "{other}");
    let (_, checkpoint) = asked(resumes(&world, &Toy::default(), &with, yes).unwrap());
    let again = json(&queue(&checkpoint, 10).unwrap());
    let (_, same) = asked(works(&world, &Toy::default(), &again).unwrap());
    assert_eq!(kept(&same).head(), kept(&checkpoint).head(), "it is applied once");
}

#[test]
fn an_engine_that_gives_up_keeps_what_its_results_say() {
    let (expected, there, _) = on_a_store();
    let whole = Toy::default();
    let _ = asked(starts(&World::default(), &whole).unwrap());
    for number in 2..=whole.length() {
        let world = World::default();
        let gave_up = starts(&world, &Toy::default().dies(Death::Before(number)));
        let Err(HostError::Engine { checkpoint: Some(left), .. }) = gave_up else { panic!() };
        // Another invocation, with a journal of its own.
        let turn = works(&world, &Toy::default(), &json(&left));
        let (yes, checkpoint) = asked(turn.unwrap());
        let state = ended(resumes(&world, &Toy::default(), &checkpoint, yes).unwrap());
        assert_eq!((&state, world.counts()), (&expected, there.counts()), "{number}");
    }
    let none = starts(&World::default(), &Toy::default().dies(Death::Before(1)));
    assert!(matches!(none, Err(HostError::Engine { checkpoint: None, .. })));
}

#[test]
fn a_run_that_was_asked_to_stop_is_not_continued_because_of_its_bound() {
    let (world, toy) = (World::default(), Toy::default());
    let (yes, checkpoint) = asked(starts(&world, &Toy::default()).unwrap());
    let resume = |bound| {
        let invocation = invocation(Some(&checkpoint)).at_most(bound);
        let invocation = invocation.on_begin(|control| control.stop());
        in_a_process(invocation.resume(&toy, yes.clone(), slots(&world)))
    };
    let stopped = |turn| match turn {
        Ok(Turn::Settled { outcome: Outcome::Stopped(_), checkpoint }) => json(&checkpoint),
        other => panic!("{other:?}"),
    };
    // A replay decides as its journal does, whatever its bound is.
    let first = stopped(resume(1));
    assert_eq!(stopped(resume(1)), first);
    assert_eq!(stopped(resume(100)), first);
}

#[test]
fn a_replay_with_another_bound_ends_as_its_journal_does() {
    let (world, toy) = (World::default(), Toy::default());
    let start = |bound| {
        let invocation = invocation(None).at_most(bound);
        in_a_process(invocation.run(&toy, "in-1", Order::update(), slots(&world)))
    };
    for bound in [1, 100] {
        assert!(matches!(start(bound), Ok(Turn::Unfinished { .. })), "{bound}");
    }
}
