//! Failures of the disk and of logs, as the caller of a store understands them.

use std::io;

use harness::store::StoreError;
use harness::{Seq, SessionId};

pub(crate) use crate::local::error::{failed, refuse_foreign, refuse_network, unsure};

use super::index::Flaw;

/// Whether the process, or the machine, has no descriptor left for a file.
pub(crate) fn is_out_of_files(error: &StoreError) -> bool {
    let StoreError::Unavailable { ambiguous: false, source: Some(source), .. } = error else {
        return false;
    };
    source.downcast_ref::<io::Error>().is_some_and(has_no_descriptor)
}

/// The same of a failure of the disk.
pub(crate) fn has_no_descriptor(error: &io::Error) -> bool {
    let out_of = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(|it| it.raw_os_error());
    error.raw_os_error().is_some_and(|code| out_of.contains(&code))
}

pub(crate) fn flawed(session: &SessionId, after: u64, flaw: Flaw) -> StoreError {
    let what = match flaw {
        Flaw::Newer(found) => {
            return StoreError::NewerFormat { found, known: super::record::FORMAT };
        }
        Flaw::Damaged(what) => what,
        Flaw::Other => "its file holds another session".to_owned(),
    };
    StoreError::Corrupt { session: session.clone(), after: Seq(after), what }
}
