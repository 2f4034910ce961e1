//! The current content of entities outside the state.
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;

use sha2::{Digest as _, Sha256};

use crate::model::{Entity, Fingerprint};
use crate::state::Looked;

/// Files and distributions as they are now. Each is read once.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    seen: RefCell<HashMap<Entity, Option<String>>>,
    /// Versions of distributions as executions found them. The worker's fingerprint covers them.
    packages: HashMap<Entity, Option<String>>,
}

impl Outside {
    /// Takes the version of a distribution from an execution.
    pub(crate) fn trust_package(&mut self, entity: &Entity, version: Option<String>) {
        self.packages.insert(entity.clone(), version);
    }
}

impl Looked for Outside {
    fn outside(&self, entity: &Entity) -> Option<String> {
        let Entity::External(path) = entity else {
            return self.packages.get(entity).cloned().flatten();
        };
        if let Some(known) = self.seen.borrow().get(entity) {
            return known.clone();
        }
        let found = digest(path);
        self.seen.borrow_mut().insert(entity.clone(), found.clone());
        found
    }
}

/// The SHA-256 of a file in hex; `None` if it cannot be read.
fn digest(path: &str) -> Option<String> {
    let mut file =
        File::open(path).ok().filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    Some(Fingerprint::new(hasher.finalize().into()).to_string())
}
