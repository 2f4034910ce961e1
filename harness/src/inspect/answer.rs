//! Answering interrupts without the loop.

use crate::id::SessionId;
use crate::inbox::{check_answers, read_inbox_after, send_all, send_expired};
use crate::question::mismatch;
use crate::step::{Answers, Interrupt};

use super::error::{not_given, store_error};
use super::status::{RecordedAnswers, unanswered};
use super::{Sessions, SessionsError};

impl Sessions {
    /// Records answers to interrupts of a session, without resuming it. The run that holds the
    /// session applies them, or else the run that next [resumes](crate::Agent::resume) it, with
    /// [`Answers::none`]. Returns the interrupts that are still open.
    ///
    /// All answers are checked before any is recorded. Each must match the schema that is stored
    /// with its interrupt, because the question's type is not known here. Sending the same answer
    /// again changes nothing.
    ///
    /// # Errors
    /// An answer [is refused](SessionsError::answer_error): its interrupt is unknown, has expired or
    /// has another answer, or the answer does not match. Also those of
    /// [`status`](Sessions::status).
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
        // A run may have advanced the session meanwhile, so the open interrupts are read again.
        let found = self.read(&session).await?;
        let (unread, _) =
            read_inbox_after(store, &session, found.inbox()).await.map_err(store_error)?;
        let open = unanswered(&found.recorded.session, &unread).cloned().collect();
        Ok(RecordedAnswers { open, holder: found.holder })
    }
}
