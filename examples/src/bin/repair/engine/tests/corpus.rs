//! Thirty broken scripts, some of them beyond any rule: how many the rules repair, and that none gets
//! worse.

use std::path::Path;

use super::super::source::Script;
use super::super::{Ending, Python, Ran, Verdict, judge, load, progressed, propose};
use super::{limits, python};

/// The least that the rules repair.
const REPAIRED: usize = 20;

/// More faults than any of them has.
const ROUNDS: usize = 6;

/// Takes the first acceptable proposal for each fault that helps, as a person would who says yes. Returns
/// the runs of the script before and after, and its final source.
async fn repair(python: &Python, script: &Script) -> (Ran, Ran, String) {
    let run = async |source: &str| python.run(source, &script.name, &limits()).await.unwrap();
    let mut source = script.source.clone();
    let first = run(&source).await;
    let mut last = first.clone();
    for _ in 0..ROUNDS {
        let Ending::Raised(fault) = last.ending.clone() else { break };
        let mut helped = None;
        for proposal in propose(&source, &fault) {
            if judge(&source, &proposal.fixed, &fault).is_err() {
                continue;
            }
            let ran = run(&proposal.fixed).await;
            if progressed(&fault, &ran.ending) {
                helped = Some((proposal.fixed, ran));
                break;
            }
        }
        let Some((fixed, ran)) = helped else { break };
        (source, last) = (fixed, ran);
    }
    (first, last, source)
}

/// Whether a script does less than before: prints less, or does not even compile any more.
fn is_worse(before: &Ran, after: &Ran) -> bool {
    let compiles = |ran: &Ran| match &ran.ending {
        Ending::Raised(fault) => fault.facts.syntax.is_none(),
        _ => true,
    };
    !after.stdout.starts_with(&before.stdout) || (compiles(before) && !compiles(after))
}

#[tokio::test]
async fn the_rules_repair_most_of_the_corpus_and_make_nothing_worse() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/corpus");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    assert_eq!(paths.len(), 30);
    let python = python();
    let (mut fixed, mut rest) = (Vec::new(), Vec::new());
    for path in paths {
        let script = load(&path).unwrap();
        let (before, after, source) = repair(&python, &script).await;
        let expected = script.expected.as_deref();
        assert!(expected.is_some(), "{}: without an expected output", script.name);
        assert_ne!(Verdict::of(&before, expected), Verdict::Fixed, "{}: not broken", script.name);
        assert!(!is_worse(&before, &after), "{}: worse\n{source}", script.name);
        match Verdict::of(&after, expected) {
            Verdict::Fixed => fixed.push(script.name),
            _ => rest.push(format!("{}: {}", script.name, after.ending)),
        }
    }
    println!("repaired {}: {fixed:?}\nnot repaired: {rest:#?}", fixed.len());
    assert!(fixed.len() >= REPAIRED, "repaired {}; not repaired: {rest:#?}", fixed.len());
}
