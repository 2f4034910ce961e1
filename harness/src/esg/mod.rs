//! The execution state graph: a program of steps, of which only what an edit touched runs again.
mod blobs;
mod error;
mod exec;
mod graph;
mod model;
mod program;
mod replay;
mod scan;
mod state;
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
pub use scan::{Definition, Import, Scan, SyntaxError, scan};
pub use trace::{Execution, Trace};
