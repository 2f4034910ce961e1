//! `esg scan`: what a source reads and writes.

use std::path::Path;

use harness::esg::{Scan, scan};
use serde_json::{Value, json};

use super::{Result, read};

pub(super) fn scan_file(file: &Path) -> Result<u8> {
    let scan = scan(&read(file)?);
    println!("{}", serde_json::to_string_pretty(&in_json(&scan))?);
    Ok(u8::from(!scan.errors.is_empty()))
}

/// A scan as JSON.
fn in_json(scan: &Scan) -> Value {
    let errors: Vec<_> = scan
        .errors
        .iter()
        .map(|error| json!({"line": error.line, "column": error.column, "message": error.message}))
        .collect();
    let imports: Vec<_> = scan
        .imports
        .iter()
        .map(|import| json!({"module": import.module, "names": import.names, "line": import.line}))
        .collect();
    let definitions: Vec<_> = scan
        .definitions
        .iter()
        .map(|definition| {
            json!({
                "name": definition.name,
                "lines": [definition.lines.start(), definition.lines.end()],
                "references": definition.references,
            })
        })
        .collect();
    json!({
        "reads": scan.reads,
        "deferred_reads": scan.deferred_reads,
        "writes": scan.writes,
        "deferred_writes": scan.deferred_writes,
        "deletes": scan.deletes,
        "mutates": scan.mutates,
        "escapes": scan.escapes,
        "builtin_reads": scan.builtin_reads,
        "summaries": scan.summaries,
        "definitions": definitions,
        "imports": imports,
        "star_imports": scan.star_imports,
        "opaque": scan.opaque,
        "errors": errors,
    })
}
