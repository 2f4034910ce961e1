//! The execution state graph: a program of steps, of which only what an edit touched runs again.
mod scan;

pub use scan::{Definition, Import, Scan, SyntaxError, scan};
