//! Answering where the loop is not at hand.

use crate::id::SessionId;
use crate::inbox::{check_answers, read_inbox_after, send_all, send_expired};
use crate::question::mismatch;
use crate::step::{Answers, Interrupt};

use super::error::{not_given, store_error};
use super::status::{RecordedAnswers, unanswered};
use super::{Sessions, SessionsError};

impl Sessions {
    /// Answers questions of a session, and does not go on with it: the run that holds it does, or
    /// whoever [resumes](crate::Agent::resume) it next, with [`Answers::none`]. Says which questions
    /// still wait.
    ///
    /// All answers are checked before any is recorded, as an agent checks them, except that each
    /// must fit the schema that was stored with its question instead of the question's type. The
    /// same answer again changes nothing.
    ///
    /// # Errors
    /// The session asks [no such question](SessionsError::is_unknown_interrupt), the question was
    /// answered already, [differently](SessionsError::is_conflict), or
    /// [has expired](SessionsError::is_expired), or the answer
    /// [does not fit](SessionsError::is_wrong_answer); and as of [`status`](Sessions::status).
    pub async fn answer_json(
        &self,
        session: impl AsRef<str>,
        answers: Answers,
    ) -> Result<RecordedAnswers, SessionsError> {
        let session = SessionId::new(session)?;
        let found = self.read(&session).await?;
        let (store, recorded) = (&*self.store, &found.recorded.session);
        send_expired(store, &session, recorded).await.map_err(store_error)?;
        let unfit = |asked: &Interrupt, value: &_| mismatch(&asked.answer_schema, value);
        let checked = check_answers(store, &session, recorded, unfit, answers).await;
        let checked = checked.map_err(|error| not_given(&session, error))?;
        if !checked.messages.is_empty() {
            let sent = send_all(store, &session, &checked.messages).await;
            sent.map_err(|error| not_given(&session, error))?;
        }
        // A run may have advanced the session meanwhile: what is open is read again.
        let found = self.read(&session).await?;
        let (unread, _) =
            read_inbox_after(store, &session, found.inbox()).await.map_err(store_error)?;
        let open = unanswered(&found.recorded.session, &unread).cloned().collect();
        Ok(RecordedAnswers { open, holder: found.holder })
    }
}
