//! The execution state graph: a program of steps, of which only what an edit touched runs again.
mod blobs;
mod exec;
mod model;
mod program;
mod scan;

pub use blobs::{BlobError, BlobId, BlobLimits, Blobs, BlobsSwept, Stored};
pub use exec::{
    Blob, Ending, ExecError, Executor, Frame, KillHandle, Load, Output, Ran, RunStep, Swept, Sync,
    Synced, Unstash, Untracked, Value, Wrote,
};
pub use model::{Entity, EntityError, Member, Print, Unit, UnitKey};
pub use program::{
    Change, Edge, EdgeKind, EdgeSource, Edges, Input, Observed, Operation, Origin, Part, Program,
    ProgramError, Step, Version, VersionId, VersionKind,
};
pub use scan::{Definition, Import, Scan, SyntaxError, scan};
