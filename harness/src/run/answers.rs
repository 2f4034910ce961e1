use crate::clock::UtcMillis;
use crate::id::InterruptId;
use crate::session::Session;
use crate::state::State;
use crate::step::{Answer, Answers};

use super::error::Kind;

/// An answer that was taken: to which question, from whom.
pub(crate) type Taken = (InterruptId, Option<String>);

/// Records the answers in the session: all of them, or none and why.
///
/// The same answer again is taken as read; another one to the same question is refused.
pub(crate) fn accept<S: State>(
    session: &mut Session<S>,
    answers: Answers,
) -> Result<Vec<Taken>, Kind> {
    let mut fresh: Vec<(usize, Answer)> = Vec::new();
    for answer in answers.list {
        let at = session.questions.iter().position(|asked| asked.interrupt.id == answer.id);
        let Some(at) = at else {
            return Err(Kind::UnknownInterrupt {
                session: session.id.clone(),
                id: answer.id,
                open: session.open().map(|asked| asked.interrupt.id.to_string()).collect(),
            });
        };
        check(session, at, &answer)?;
        if session.questions[at].expired || session.questions[at].is_overdue(UtcMillis::now()) {
            return Err(Kind::Expired { session: session.id.clone(), id: answer.id });
        }
        let earlier = fresh
            .iter()
            .find_map(|(other, earlier)| (*other == at).then_some(earlier))
            .or(session.questions[at].answer.as_ref());
        match earlier {
            Some(earlier) if earlier.value == answer.value => {}
            Some(_) => {
                let recorded = session.questions[at].answer.as_ref();
                let recorded = recorded.and_then(|answer| answer.value.clone().ok());
                return Err(Kind::Conflict {
                    session: session.id.clone(),
                    id: answer.id,
                    recorded,
                });
            }
            None => fresh.push((at, answer)),
        }
    }
    let taken = fresh.iter().map(|(_, answer)| (answer.id.clone(), answer.by.clone())).collect();
    for (at, answer) in fresh {
        session.questions[at].answer = Some(answer);
    }
    let now = UtcMillis::now();
    for question in session.questions.iter_mut().filter(|question| question.is_overdue(now)) {
        question.expired = true;
    }
    Ok(taken)
}

fn check<S>(session: &Session<S>, at: usize, answer: &Answer) -> Result<(), Kind> {
    let asked = &session.questions[at];
    let name = asked.interrupt.name.clone();
    if let Some(given) = answer.name.filter(|given| **given != *name) {
        let id = answer.id.clone();
        return Err(Kind::AnotherQuestion { id, given: given.to_owned(), asked: name });
    }
    let fits = answer.value.as_ref().map_err(Clone::clone).and_then(|value| (asked.check)(value));
    fits.map_err(|why| Kind::IllTypedAnswer { id: answer.id.clone(), asked: name, why })
}
