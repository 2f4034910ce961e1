//! Answering where the loop is not at hand.

use crate::id::SessionId;
use crate::journal::{Valid, post_all, post_expired, read_letters, validate};
use crate::question::mismatch;
use crate::step::Answers;

use super::error::{refused, store_error};
use super::status::{Recorded, unanswered};
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
    ) -> Result<Recorded, SessionsError> {
        let session = SessionId::new(session)?;
        let found = self.read(&session).await?;
        let store = &*self.store;
        post_expired(store, &session, &found.saved).await.map_err(store_error)?;
        let valid = validate(
            store,
            &session,
            &found.saved,
            |asked, value| mismatch(&asked.answer_schema, value),
            answers,
        );
        let Valid { letters, .. } = valid.await.map_err(|why| refused(&session, why))?;
        if !letters.is_empty() {
            post_all(store, &session, &letters).await.map_err(|why| refused(&session, why))?;
        }
        // A run may have gone on meanwhile: what is open is read anew.
        let found = self.read(&session).await?;
        let taken = found.saved.mail.max(found.counted);
        let (unread, _) = read_letters(store, &session, taken).await.map_err(store_error)?;
        let open = unanswered(&found.saved, &unread).cloned().collect();
        Ok(Recorded { open, holder: found.holder })
    }
}
