//! Every script that ships is repaired; files that are no scripts are refused.

use std::path::{Path, PathBuf};

use super::super::source::Script;
use super::super::{
    Ending, Fault, LoadError, Rule, Verdict, judge, load, progressed, propose, shipped,
};
use super::{limits, python, stubborn};

/// The simplest loop: always the first proposal that is acceptable.
async fn repair(script: &Script) -> (Verdict, Vec<Rule>, String) {
    let python = python();
    let mut source = script.source.clone();
    let mut rules = Vec::new();
    let mut last: Option<Fault> = None;
    loop {
        let ran = python.run(&source, &script.name, &limits()).await.unwrap();
        let verdict = Verdict::of(&ran, script.expected.as_deref());
        if let Some(last) = &last {
            assert!(progressed(last, &ran.ending), "{source}{}", ran.stderr);
        }
        let Ending::Raised(fault) = &ran.ending else {
            return (verdict, rules, source);
        };
        let best = propose(&source, fault)
            .into_iter()
            .find(|proposal| judge(&source, &proposal.fixed, fault).is_ok());
        let Some(best) = best.filter(|_| rules.len() < 10) else {
            return (verdict, rules, source);
        };
        last = Some((**fault).clone());
        rules.push(best.rule);
        source = best.fixed;
    }
}

#[tokio::test]
async fn every_shipped_script_fails_and_is_repaired() {
    let scripts = shipped();
    assert!(scripts.len() >= 8);
    let mut broken = Vec::new();
    let mut used = Vec::new();
    for script in &scripts {
        let lines = script.source.lines().count();
        assert!((20..=60).contains(&lines), "{}: {lines} lines", script.name);
        let (verdict, rules, source) = repair(script).await;
        println!("{}: {rules:?}", script.name);
        if verdict != Verdict::Fixed || rules.is_empty() {
            broken.push(format!("{}: {verdict:?} after {rules:?}\n{source}", script.name));
        }
        used.extend(rules);
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    for rule in [
        Rule::MisspeltName,
        Rule::MisspeltAttribute,
        Rule::MissingImport,
        Rule::MisspeltModule,
        Rule::Indentation,
        Rule::TabsAndSpaces,
        Rule::MissingColon,
        Rule::Bracket,
        Rule::Quote,
        Rule::AssignmentInCondition,
        Rule::PrintStatement,
        Rule::MissingComma,
        Rule::MisspeltArgument,
        Rule::MissingArgument,
        Rule::MissingSelf,
        Rule::MisspeltKey,
        Rule::NumberInText,
    ] {
        assert!(used.contains(&rule), "no script needs the rule for: {rule}");
    }
}

#[tokio::test]
async fn what_no_rule_knows_is_left_alone() {
    let script = stubborn("no_rule.py");
    let (verdict, rules, source) = repair(&script).await;
    assert!(matches!(verdict, Verdict::StillFailing(Ending::Raised(_))), "{verdict:?}");
    assert!(rules.is_empty());
    assert_eq!(source, script.source);
}

#[tokio::test]
async fn a_wrong_output_is_no_success() {
    let (verdict, ..) = repair(&stubborn("wrong_total.py")).await;
    let expected =
        Verdict::WrongOutput { expected: "Total: 27.06\n".into(), got: "Total: 24.60\n".into() };
    assert_eq!(verdict, expected);
}

#[test]
fn files_that_are_no_scripts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let says = |path: &Path, what: &str| {
        let error = load(path).unwrap_err().to_string();
        assert_eq!(error, format!("{}: {what}", path.display()));
    };
    says(&folder.path().join("none.py"), "no such file");
    says(folder.path(), "is a directory or device, not a script");
    says(Path::new("/dev/zero"), "is a directory or device, not a script");
    says(&file("nul.py", b"a\0b"), "is no text in UTF-8");
    says(&file("latin.py", b"# caf\xe9"), "is no text in UTF-8");
    says(&file("big.py", &vec![b'#'; (1 << 20) + 1]), "is larger than 1 MiB");
    assert!(load(&file("full.py", &vec![b'#'; 1 << 20])).is_ok());
    let good = file("good.py", b"print(1)\r\n");
    let script = load(&good).unwrap();
    assert_eq!((script.name.as_str(), script.expected), ("good.py", None));
    file("good.expected", b"1\n");
    assert_eq!(load(&good).unwrap().expected.as_deref(), Some("1\n"));
    file("good.expected", b"\0");
    assert!(matches!(load(&good), Err(LoadError::Binary(_))));
}

#[tokio::test]
async fn line_ends_tabs_and_the_last_line_stay_as_they_are() {
    let source = "def f(items):\r\n\tfor item in itmes:\r\n\t\tprint( item )   \r\n\r\nf([1])";
    let script =
        Script { name: "crlf.py".into(), source: source.into(), expected: Some("1\n".into()) };
    let (verdict, rules, fixed) = repair(&script).await;
    assert_eq!((verdict, rules), (Verdict::Fixed, vec![Rule::MisspeltName]));
    assert_eq!(fixed, source.replace("itmes", "items"));
}
