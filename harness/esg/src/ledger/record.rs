//! What can happen to a ledger, as data.
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::program::Operation;
use crate::trace::Execution;

/// One thing that happened to a program or its executions. A journal stores these, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Record {
    /// The program changed.
    Edited(Operation),
    /// A step ran. Its values are in the blob store.
    Ran(Arc<Execution>),
    /// The executions of the step so far are no longer valid.
    Invalid(Arc<str>),
    /// A replay completed.
    Settled {
        /// Its number.
        run: u64,
        /// The numbers of the executions that represent the inputs and the steps, in order.
        executions: Vec<u64>,
    },
    /// Everything that the records before it amount to.
    Snapshot(Snapshot),
}

/// A whole ledger, without what only replays of long ago used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// The changes of the program.
    pub operations: Vec<Operation>,
    /// The executions, oldest first.
    pub executions: Vec<Arc<Execution>>,
    /// By step: the number up to which its executions are no longer valid.
    pub invalid: BTreeMap<Arc<str>, u64>,
    /// The replays, each with the executions that represented the steps.
    pub runs: BTreeMap<u64, Vec<u64>>,
}
