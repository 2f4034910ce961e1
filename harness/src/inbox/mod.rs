//! What other processes send to a session: answers, inputs, stop requests.
//!
//! A process that does not hold a session writes no log: it sends messages, and the run that holds
//! the session applies them. The first message under a key decides.

mod answers;
mod judge;
mod message;
mod send;

pub(crate) use answers::{Checked, NotGiven, check_answers, send_all};
pub use judge::AnswerError;
pub(crate) use judge::{Verdict, judge, unfit};
pub(crate) use message::{
    Body, Input, SentFrom, Unread, applied_key, input_key, interrupt_key, resolutions, stop_key,
    unread, waiting_inputs, why_skipped,
};
pub(crate) use send::{
    KnownInput, known_input, note_applied, note_skipped, queue_input, read_inbox, read_inbox_after,
    reserve_input, send_child_settled, send_expired, send_stop, summary,
};
