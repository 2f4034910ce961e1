//! The execution state graph: a program of steps, of which only what an edit touched runs again.
//!
//! A [`Program`] is an ordered list of steps of Python, as an agent writes them one by one and edits
//! them afterwards. A [`CodeGraph`] runs it in a worker process and records for each step what it
//! really read, bound, changed and printed. After an edit, [`CodeGraph::replay`] runs again what the
//! edit touched, each step on exactly the values it has to see, and keeps the rest.
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
//! let report = graph.replay()?;          // clean and report ran; `rows` was as before clean
//! println!("{report}");
//! assert_eq!(graph.value("total")?.repr, "0");
//! assert!(graph.verify()?.same);         // equal to running everything in a fresh worker
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is promised
//!
//! After any edit, replay leaves the state that running every step in a fresh worker would, in every
//! *tracked* channel: names and what they share, classes, attributes of modules, files and listings
//! in the scratch directory, the random state, working directory, environment, module path, warning
//! filters, output and endings. A step that fails is a transaction: it leaves what was there.
//!
//! A step that touches anything else (weak references, introspection, logging levels, threads, the
//! network) is recorded as [`Untracked`], and a program with such a step runs as a whole, in a fresh
//! worker, whenever any of it has to. Clocks and entropy are recorded: a step that read them is kept
//! while its inputs are the same, and says so; [`CodeGraph::invalidate`] reads them anew.
//! [`CodeGraph::verify`] compares with a full run.
//!
//! # How it works
//!
//! [`scan`] reads a step's source: what it may read and write, without running it. That is enough to
//! know what to bring to the worker, and for a [`Plan`] before the first run; what counts in the end
//! is the [`Trace`] of what happened. Traces are verified: an execution stands as long as the
//! fingerprints of all that it read are the same. A step that runs again and makes what it made
//! before spares its readers.
//!
//! Values are kept in [units](Unit): names that share a mutable object are stored and put back
//! together, so that aliases stay aliases. Classes and functions without state are stored by
//! themselves and referred to, so that an instance stays one of its class. What can not be stored, a
//! generator or an open file, is made again when a step needs it, by the steps that made it.
//!
//! Values and executions belong to one graph. The code of steps runs in the worker and can falsify
//! what its own graph records, so nothing of it is shared with another, and the host never acts on
//! what a worker says.
//!
//! The guide is [`_guide`].
#![forbid(unsafe_code)]

/// The guide: what is tracked, asking, keeping, trust. Its code is compiled and run as a test.
#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/guide.md")]
pub mod _guide {}

mod blobs;
mod error;
mod exec;
mod graph;
mod model;
mod program;
mod replay;
mod scan;
mod state;
mod text;
mod trace;

pub use blobs::{BlobError, BlobId, BlobLimits, Blobs, BlobsSwept, Stored};
pub use error::EsgError;
pub use exec::{
    Blob, Ending, ExecError, Executor, Frame, Isolation, KillHandle, Layer, Limits, Load, Output,
    Ran, RunStep, Swept, Sync, Synced, Trust, Unstash, Untracked, Value, Wrote,
};
#[cfg(unix)]
pub use exec::{CPython, Interpreter, Python, StartError};
pub use graph::{
    Chain, CodeGraph, Effect, Link, Plan, RanAt, Subject, Touched, TracedEdge, Verdict,
};
pub use model::{Entity, EntityError, Member, Print, Unit, UnitKey};
pub use program::{
    Change, Edge, EdgeKind, EdgeSource, Edges, Input, Observed, Operation, Origin, Part, Program,
    ProgramError, Step, Version, VersionId, VersionKind,
};
pub use replay::{Blocked, Reason, Report};
pub use scan::{Definition, Import, NameIter, NameMap, NameSet, Scan, SyntaxError, scan};
pub use trace::{Execution, Trace};
