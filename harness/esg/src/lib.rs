//! The execution state graph: a program of Python steps that re-runs only what an edit affects.
//!
//! A [`Program`] is an ordered list of Python steps, as an agent writes them one by one and edits them
//! later. A [`CodeGraph`] runs it in a worker process and records what each step read, bound, changed
//! and printed. After an edit, [`CodeGraph::replay`] re-runs the affected steps, each on exactly the
//! values it must see, and keeps the rest.
//!
//! ```
//! use harness_esg::{Blobs, CPython, CodeGraph, Program, Trust};
//!
//! let program = Program::from_script("
//! ## %% load
//! rows = [{'v': 3}, {'v': 0}]
//! ## %% clean
//! rows = [r for r in rows if r['v'] > 2]
//! ## %% report
//! total = sum(r['v'] for r in rows)
//! ")?;
//! let python = CPython::find().trust(Trust::Mine).start()?;
//! let mut graph = CodeGraph::new(program, python, Blobs::memory());
//! assert!(graph.replay()?.ok());
//!
//! graph.edit(|program| program.replace("clean", "rows = [r for r in rows if r['v'] < 3]"))?;
//! let report = graph.replay()?;          // `clean` ran on the rows of `load`, then `report`
//! println!("{report}");
//! assert_eq!(graph.value("total")?.repr, "0");
//! assert!(graph.verify()?.same);         // equal to a full run in a fresh worker
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! After any edit, a replay leaves the state that running every step in a fresh worker would leave, in
//! every *tracked* channel: names and what they share, classes, attributes of modules, files and
//! listings in the scratch directory, the random state, the working directory, the environment, the
//! module path, warning filters, output and endings. A step is a transaction: if it fails, it changes
//! nothing.
//!
//! Packages are part of the environment: state inside them counts as caches and constants, except for
//! [ambient channels](Ambient) such as options of pandas or levels of loggers; see [`Strictness`].
//!
//! A step that does anything else (weak references, introspection, threads that outlive it) is recorded
//! as [`Untracked`]. It runs again when anything before it did, and everything after it with it. Clock and entropy readings are recorded: a step that made
//! some is kept while its inputs are the same, and the report lists it. [`CodeGraph::invalidate`]
//! makes it run again. [`CodeGraph::verify`] compares the state with that of a full run.
//!
//! # How it works
//!
//! [`scan`] analyses the source of a step: what it may read and write. This determines which values the
//! worker needs, and the [`Plan`] before the first run. The [`Trace`] records what happened. Traces are
//! verified: an execution is valid as long as the fingerprints of everything it read are the same. A
//! step that runs again and produces the same outputs does not invalidate its readers.
//!
//! Values are stored in [units](Unit): names that share a mutable object are stored and restored
//! together, so that aliases stay aliases. Classes and functions without state are stored separately
//! and referenced, so that an instance keeps its class. An unserializable value, such as a generator or
//! an open file, is made again by its steps when another step needs it.
//!
//! Values and executions belong to one graph. The code of steps runs in the worker and can falsify what
//! its own graph records. So graphs share nothing, and the host never acts on the content of a reply.
//!
//! The guide is [`_guide`]; [`_executors`] is for who adds a language.
#![forbid(unsafe_code)]

/// The guide: what is tracked, queries, storage, trust.
#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/guide.md")]
pub mod _guide {}

/// How to add a language: what an executor promises.
#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/executors.md")]
pub mod _executors {}

mod blobs;
mod cipher;
pub mod diagnosis;
mod error;
mod exec;
mod graph;
mod ledger;
mod model;
pub mod patcher;
mod program;
mod replay;
mod scan;
mod state;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod text;
mod trace;

pub use blobs::{BlobError, BlobId, BlobLimits, BlobStore, Blobs, BlobsSwept, StoredValue};
pub use cipher::{Cipher, CipherError};
pub use diagnosis::Diagnosis;
pub use error::EsgError;
#[cfg(unix)]
pub use exec::{Ambient, CPython, Interpreter, StartError, Strictness, WorkerProcess};
pub use exec::{
    Blob, Caps, Ending, ExecError, Executor, Frame, Graft, Isolation, KillHandle, Layer, Limits,
    Load, Output, Ran, Readable, RunStep, Swept, Sync, Synced, Trust, Unstash, Untracked, Value,
    Wrote,
};
#[cfg(feature = "monty")]
pub use exec::{Monty, MontyAllocator, MontyError, MontyWorker};
pub use graph::{
    Chain, CodeGraph, Credit, Effect, Link, Plan, RanAt, Subject, Touched, TracedEdge, Verdict,
};
pub use ledger::{Journal, JournalError, Ledger, Record, Snapshot};
pub use model::{Entity, EntityError, Fingerprint, Member, Unit, UnitKey};
pub use patcher::{Patcher, RulePatcher};
pub use program::{
    Change, Edge, EdgeKind, EdgeSource, Edges, Edit, EditKind, Input, Observed, Operation, Origin,
    Part, Patch, Program, ProgramError, Provenance, ProvenanceKind, Refusal, Step, StepEdit,
    Version, VersionId, VersionKind, unified,
};
pub use replay::{Blocked, Reason, Report};
pub use scan::{Definition, Import, NameIter, NameMap, NameSet, Scan, SyntaxError, scan};
pub use trace::{Execution, Trace};

/// The kernel sandbox for untrusted code: its layers, and the launcher that applies them.
pub use harness_esg_launcher as sandbox;
