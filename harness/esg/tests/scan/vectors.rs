//! Every case of `vectors.json` is scanned soundly, and nearly every one exactly.
//!
//! Sound: nothing required is missing. Exact: sound, and nothing beyond the tolerated extras.
use std::collections::BTreeSet;
use std::fmt::Write as _;

use harness_esg::{Scan, scan};
use serde_json::Value;

use super::cases::{large, own};

type Names = BTreeSet<String>;

/// The share of cases that must be exact.
const EXACT: f64 = 0.97;

fn names(case: &Value, field: &str) -> Names {
    let listed = case[field].as_array().map(Vec::as_slice).unwrap_or_default();
    listed.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn union(sets: &[&Names]) -> Names {
    sets.iter().flat_map(|set| set.iter().cloned()).collect()
}

/// The fields of a case that are not sound, and those that are not exact.
fn judge(case: &Value, found: &Scan) -> (Vec<&'static str>, Vec<&'static str>) {
    let (mut unsound, mut inexact) = (Vec::new(), Vec::new());
    let known_opaque = case["opaque"] == true;
    let excused = known_opaque && found.opaque;
    let (reads, deferred) = (names(case, "reads"), names(case, "deferred_reads"));
    let tolerated = names(case, "reads_ok_extra");
    let all = union(&[&own(&found.reads), &own(&found.deferred_reads)]);
    if !excused && !reads.is_subset(&own(&found.reads)) {
        unsound.push("reads");
    }
    if !excused && !deferred.is_subset(&all) {
        unsound.push("deferred_reads");
    }
    let spurious: Names = own(&found.reads).difference(&reads).cloned().collect();
    let late: Names = deferred.difference(&tolerated).cloned().collect();
    if !own(&found.reads).is_subset(&union(&[&reads, &tolerated]))
        || !own(&found.deferred_reads).is_subset(&union(&[&deferred, &tolerated, &reads]))
        || !late.is_disjoint(&spurious)
    {
        inexact.push("reads");
    }
    let writes = names(case, "writes");
    if !excused && !writes.is_subset(&own(&found.writes)) {
        unsound.push("writes");
    }
    if !own(&found.writes).is_subset(&union(&[&writes, &names(case, "writes_ok_extra")])) {
        inexact.push("writes");
    }
    let mutates = names(case, "mutates");
    let escapes = names(case, "escapes");
    if !excused && !mutates.is_subset(&own(&found.mutates)) {
        unsound.push("mutates");
    }
    if !own(&found.mutates).is_subset(&union(&[
        &mutates,
        &names(case, "mutates_ok_extra"),
        &escapes,
    ])) {
        inexact.push("mutates");
    }
    let deletes = names(case, "deletes");
    if !excused && !deletes.is_subset(&own(&found.deletes)) {
        unsound.push("deletes");
    }
    if !own(&found.deletes).is_subset(&deletes) {
        inexact.push("deletes");
    }
    if known_opaque && !found.opaque && !unsound.is_empty() {
        unsound.push("opaque");
    }
    if !names(case, "star_imports").is_subset(&found.star_imports) {
        unsound.push("star_imports");
    }
    if !names(case, "builtin_reads").is_subset(&own(&found.builtin_reads)) {
        unsound.push("builtin_reads");
    }
    for (name, loaded) in case["summaries"].as_object().unwrap() {
        let listed = loaded.as_array().unwrap().iter();
        let listed: Names = listed.map(|name| name.as_str().unwrap().to_owned()).collect();
        if !found.summaries.get(name).is_some_and(|answer| listed.is_subset(&own(answer))) {
            unsound.push("summaries");
        }
    }
    (unsound, inexact)
}

/// This many bytes after a step select the coarse walk.
#[test]
fn every_case_is_sound_in_a_large_source() {
    let file: Value = serde_json::from_str(include_str!("vectors.json")).unwrap();
    let mut report = String::new();
    for case in file["cases"].as_array().unwrap() {
        if case["error"] != "" {
            continue;
        }
        let source = case["source"].as_str().unwrap();
        let found = scan(&large(source));
        let (unsound, _) = judge(case, &found);
        if !unsound.is_empty() || !found.errors.is_empty() {
            let _ = writeln!(report, "--- {} unsound {unsound:?}\n{source}{found:?}", case["id"]);
        }
    }
    assert!(report.is_empty(), "{report}");
}

#[test]
fn every_case_is_sound_and_nearly_every_one_exact() {
    let file: Value = serde_json::from_str(include_str!("vectors.json")).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() > 200, "the file holds {} cases", cases.len());
    let (mut report, mut unsound_cases, mut exact) = (String::new(), 0_usize, 0_usize);
    for case in cases {
        let source = case["source"].as_str().unwrap();
        let found = scan(source);
        let (unsound, inexact) = if case["error"] == "" {
            let (mut unsound, inexact) = judge(case, &found);
            if !found.errors.is_empty() {
                unsound.push("errors");
            }
            (unsound, inexact)
        } else if found.errors.is_empty() {
            (vec!["no error reported"], vec![])
        } else {
            (vec![], vec![])
        };
        unsound_cases += usize::from(!unsound.is_empty());
        exact += usize::from(unsound.is_empty() && inexact.is_empty());
        if !unsound.is_empty() || !inexact.is_empty() {
            let _ = writeln!(
                report,
                "--- {} unsound {unsound:?} inexact {inexact:?}\n{source}reads {:?} late {:?} \
                 writes {:?} mutates {:?} deletes {:?} builtins {:?} summaries {:?} errors {:?}",
                case["id"],
                found.reads,
                found.deferred_reads,
                found.writes,
                found.mutates,
                found.deletes,
                found.builtin_reads,
                found.summaries,
                found.errors,
            );
        }
    }
    println!("{exact} of {} exact\n{report}", cases.len());
    assert_eq!(unsound_cases, 0, "{report}");
    #[expect(clippy::cast_precision_loss)]
    let share = exact as f64 / cases.len() as f64;
    assert!(
        share >= EXACT,
        "{share:.3} of the cases are exact, at least {EXACT} must be\n{report}"
    );
}
