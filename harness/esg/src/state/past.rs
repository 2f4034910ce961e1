//! What came before a step, as far as untracked operations may see it.
use crate::model::Fingerprint;

/// What ran so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Past {
    /// Every run, whatever it did.
    pub(crate) ran: Option<Fingerprint>,
    /// The untracked operations, and everything that they may have seen: what they may have left in
    /// the worker. `None` if there were none.
    pub(crate) residue: Option<Fingerprint>,
}

impl Past {
    /// The residue after a run with untracked operations.
    pub(crate) fn residue_with(self, run: Fingerprint) -> Fingerprint {
        Fingerprint::of(&[b"residue", &bytes(self.residue), &bytes(self.ran), run.bytes()])
    }

    /// What came before the step after this run.
    pub(crate) fn after(self, run: Fingerprint, untracked: bool) -> Self {
        let ran = Fingerprint::of(&[b"past", &bytes(self.ran), run.bytes()]);
        let residue = if untracked { Some(self.residue_with(run)) } else { self.residue };
        Self { ran: Some(ran), residue }
    }
}

fn bytes(of: Option<Fingerprint>) -> [u8; 32] {
    of.map(|one| *one.bytes()).unwrap_or_default()
}
