use std::panic::Location;
use std::time::{Duration, Instant};

use super::{violations, violations_with};
use crate::graph::{AtMost, Branch, Budget, Dest, Edge, Exit, Expiry, Kind, Node, Rule, Wiring};
use crate::step::Policy;

#[track_caller]
fn edge(to: usize) -> Edge {
    Edge { to, at: Location::caller() }
}

#[track_caller]
fn node(name: &str, exit: Exit) -> Node {
    Node {
        name: name.into(),
        aliases: Vec::new(),
        kind: Kind::Run,
        question: None,
        expires: None,
        exit,
        policy: Policy::default(),
        on_error: None,
        at_most: None,
        at: Location::caller(),
    }
}

#[track_caller]
fn ends(name: &str) -> Node {
    node(name, Exit::End)
}

#[track_caller]
fn then(name: &str, to: usize) -> Node {
    node(name, Exit::Then(edge(to)))
}

/// A step whose signals lead to these steps; `None` ends the loop.
#[track_caller]
fn routes<const N: usize>(name: &str, to: [Option<usize>; N]) -> Node {
    let dest = |to: Option<usize>| to.map_or(Dest::End, |to| Dest::Step(edge(to)));
    let branches = to.map(|to| Branch { signal: "Go", dest: dest(to) }).into();
    node(name, Exit::Route { signals: "Next", branches })
}

impl Node {
    #[track_caller]
    fn or(mut self, to: usize) -> Self {
        self.on_error = Some(edge(to));
        self
    }

    fn at_most(mut self, to: usize) -> Self {
        self.at_most = Some(AtMost { times: 3, instead: edge(to) });
        self
    }

    fn gate(mut self) -> Self {
        self.kind = Kind::Gate;
        self
    }

    #[track_caller]
    fn expires(mut self, to: Option<usize>) -> Self {
        self.expires = Some(Expiry { after: Duration::from_secs(60), to: to.map(edge) });
        self.gate()
    }

    fn once(mut self, alias: &str) -> Self {
        self.aliases.push(alias.into());
        self
    }

    fn off(mut self) -> Self {
        self.kind = Kind::Off("no".into());
        self
    }
}

#[track_caller]
fn wiring(nodes: Vec<Node>) -> Wiring {
    Wiring {
        name: "loop".into(),
        nodes,
        start: 0,
        on_error: None,
        finally: None,
        budget: Budget::default(),
        at: Location::caller(),
    }
}

impl Wiring {
    fn on_error(mut self, to: usize) -> Self {
        self.on_error = Some(edge(to));
        self
    }

    fn finally(mut self, to: usize) -> Self {
        self.finally = Some(edge(to));
        self
    }
}

fn messages(wiring: &Wiring) -> Vec<String> {
    violations(wiring).into_iter().map(|violation| violation.message).collect()
}

#[track_caller]
fn reports(wiring: &Wiring, expected: &[&str]) {
    assert_eq!(messages(wiring), expected);
}

const NO_EXIT: &str = "no path from step `A` ends the loop (add `.end()` to a step, or map a \
                       signal to `end()`)";

#[test]
fn valid_loops_have_no_violations() {
    let sound = [
        ("one step", wiring(vec![ends("A")])),
        ("a cycle that a signal leaves", wiring(vec![then("A", 1), routes("B", [Some(0), None])])),
        ("a step that leads to itself", wiring(vec![routes("A", [Some(0), None])])),
        ("a cycle left by its bound", wiring(vec![then("A", 0).at_most(1), ends("B")])),
        ("an error step", wiring(vec![ends("A").or(1), ends("B")])),
        ("an error step of the loop", wiring(vec![ends("A"), ends("B")]).on_error(1)),
        ("error steps in a row", wiring(vec![ends("A").or(1), ends("B").or(2), ends("C")])),
        ("a retry by way of the error step", wiring(vec![ends("A").or(1), then("B", 0)])),
        ("steps after finally", wiring(vec![ends("A"), then("B", 2), ends("C")]).finally(1)),
        ("a step after an expiry", wiring(vec![ends("A").expires(Some(1)), ends("B")])),
        ("a cycle left by an expiry", wiring(vec![then("A", 0).expires(Some(1)), ends("B")])),
        ("a gate that expires and fails", wiring(vec![ends("A").expires(None)])),
        ("steps with aliases", wiring(vec![then("A", 1).once("a").once("x"), ends("B").once("b")])),
        ("a gate outside of finally", wiring(vec![ends("A").gate(), ends("B")]).finally(1)),
    ];
    for (name, wiring) in sound {
        assert_eq!(messages(&wiring), [""; 0], "{name}");
    }
}

#[test]
fn unreachable_steps() {
    reports(
        &wiring(vec![ends("Write"), ends("Publish")]),
        &["step `Publish` cannot be reached from `Write` (route to it, or remove it)"],
    );
    // A step's own edges do not make it reachable, nor do edges of another unreachable step.
    reports(
        &wiring(vec![ends("A"), routes("Lost", [Some(1), Some(2)]), ends("Far")]),
        &[
            "step `Lost` cannot be reached from `A` (route to it, or remove it)",
            "step `Far` cannot be reached from `A` (route to it, or remove it)",
        ],
    );
}

#[test]
fn suggests_a_similar_step_that_is_reached() {
    let typo = wiring(vec![then("Write", 1), ends("Polish"), ends("Polished")]);
    let found = violations(&typo);
    assert_eq!(found[0].near.as_deref(), Some("Polish"));
    assert_eq!(
        found[0].message,
        "step `Polished` cannot be reached from `Write` (did an edge to `Polish` mean `Polished`? \
         otherwise route to it, or remove it)"
    );
    let none = wiring(vec![ends("Polish"), ends("Polished")]);
    assert_eq!(violations(&none)[0].near, None, "only the entry leads to the start");
}

#[test]
fn loops_without_an_exit() {
    reports(&wiring(vec![then("A", 0)]), &[NO_EXIT]);
    reports(&wiring(vec![then("A", 1), then("B", 0)]), &[NO_EXIT]);
    // A failure is not an exit: a loop that only an error step ends would run indefinitely.
    reports(&wiring(vec![then("A", 0).or(1), ends("B")]), &[NO_EXIT]);
    reports(&wiring(vec![then("A", 0), ends("B")]).finally(1), &[NO_EXIT]);
    // A bound that leads back is not an exit either.
    reports(&wiring(vec![then("A", 0).at_most(0)]), &[NO_EXIT]);
}

#[test]
fn cycles_that_no_edge_leaves() {
    reports(
        &wiring(vec![routes("A", [Some(1), None]), then("B", 2), then("C", 1)]),
        &["no edge leaves the cycle of `B`, `C` (end it, route out of it, or bound a step of it \
           with `.at_most(n, step)`)"],
    );
    reports(
        &wiring(vec![routes("A", [Some(1), None]), then("B", 1).or(0)]),
        &["no edge leaves the cycle of `B` (end it, route out of it, or bound a step of it with \
           `.at_most(n, step)`)"],
    );
    // Two cycles are two violations, in the order of the loop.
    let two = wiring(vec![routes("A", [Some(2), Some(1), None]), then("B", 1), then("C", 2)]);
    let found = violations(&two);
    let cycles: Vec<&[String]> = found.iter().map(|violation| &*violation.steps).collect();
    assert_eq!(cycles, [["B"], ["C"]]);
}

#[test]
fn a_loop_without_an_exit_reports_its_cycles() {
    let fork = wiring(vec![
        routes("A", [Some(1), Some(2)]),
        then("B", 1),
        then("C", 3),
        then("D", 2),
        ends("E").or(5),
        then("F", 5),
    ]);
    reports(
        &fork.on_error(4),
        &[
            NO_EXIT,
            "no edge leaves the cycle of `B` (end it, route out of it, or bound a step of it with \
             `.at_most(n, step)`)",
            "no edge leaves the cycle of `C`, `D` (end it, route out of it, or bound a step of it \
             with `.at_most(n, step)`)",
            "no edge leaves the cycle of `F` (end it, route out of it, or bound a step of it with \
             `.at_most(n, step)`)",
        ],
    );
    // A cycle through the start is reported once.
    reports(&wiring(vec![routes("A", [Some(0), Some(1)]), then("B", 0)]), &[NO_EXIT]);
}

#[test]
fn a_step_with_a_repeated_name_is_validated_too() {
    let rules = |nodes, repeats: &[usize]| -> Vec<Rule> {
        let wiring = wiring(nodes).finally(1);
        let found = violations_with(&wiring, repeats);
        found.into_iter().map(|violation| violation.rule).collect()
    };
    let sound = || vec![ends("A"), ends("Close")];
    let with = |last: Vec<Node>| [sound(), last].concat();
    assert_eq!(rules(with(vec![ends("A")]), &[0]), []);
    // It leads to a step that is off, leads only to itself, fails to itself, or asks after
    // `finally`.
    assert_eq!(rules(with(vec![ends("X").off(), then("A", 2)]), &[0]), [Rule::Off]);
    assert_eq!(rules(with(vec![then("A", 2)]), &[0]), [Rule::EndlessCycle]);
    assert_eq!(rules(with(vec![ends("A").or(2)]), &[0]), [Rule::ErrorCycle]);
    assert_eq!(rules(with(vec![ends("Close").gate()]), &[1]), [Rule::AskInFinally]);
    // A step that only it leads to is reachable if the first step of its name is.
    assert_eq!(rules(with(vec![ends("B"), then("A", 2)]), &[0]), []);
    let lost = with(vec![ends("Lost"), ends("B"), then("Lost", 3)]);
    assert_eq!(rules(lost, &[2]), [Rule::Unreachable, Rule::Unreachable]);
}

#[test]
fn finally_and_error_steps_follow_the_same_rules() {
    let endless = wiring(vec![ends("A"), then("B", 1)]).finally(1);
    assert_eq!(violations(&endless)[0].rule, Rule::EndlessCycle);
    let endless = wiring(vec![ends("A").or(1), then("B", 1)]);
    assert_eq!(violations(&endless)[0].rule, Rule::EndlessCycle);
}

#[test]
fn cyclic_error_routes() {
    reports(
        &wiring(vec![ends("A").or(0)]),
        &["the error route `A` -> `A` is a cycle (route the failures of an error step to \
           another step, or let them fail the run)"],
    );
    reports(
        &wiring(vec![ends("A").or(1), ends("B").or(2), ends("C").or(1)]),
        &["the error route `B` -> `C` -> `B` is a cycle (route the failures of an error \
           step to another step, or let them fail the run)"],
    );
}

#[test]
fn finally_cannot_ask() {
    reports(
        &wiring(vec![ends("A"), then("B", 2), ends("C").gate()]).finally(1),
        &["`finally` leads to step `C`, which asks a question, but a run that is ending does not \
             wait (ask before the end)"],
    );
    // Nor can the steps that handle its failures.
    let by_error = wiring(vec![ends("A"), ends("B").or(2), ends("C").gate()]).finally(1);
    assert_eq!(violations(&by_error)[0].rule, Rule::AskInFinally);
}

#[test]
fn reports_every_violation_with_its_location() {
    let first = line!() + 2;
    let nodes = vec![
        routes("A", [Some(1), None]),
        then("B", 1).or(2),
        ends("C").or(3),
        ends("D").or(2),
        ends("Lost"),
    ];
    let found = violations(&wiring(nodes));
    let seen: Vec<(Rule, &[String], u32)> = found
        .iter()
        .map(|violation| (violation.rule, &*violation.steps, violation.declared.line - first))
        .collect();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        seen,
        [
            (Rule::Unreachable, &*names(&["Lost"]), 4),
            (Rule::EndlessCycle, &*names(&["B"]), 1),
            // A cyclic error route is reported at the edge that closes it.
            (Rule::ErrorCycle, &*names(&["C", "D"]), 3),
        ],
    );
    assert!(found.iter().all(|violation| violation.declared.file == file!()));
}

#[test]
fn ten_thousand_steps_validate_fast() {
    const N: usize = 10_000;
    let name = |step: usize| format!("Step{step}");
    let shapes: [(&str, Vec<Node>, usize); 5] = [
        ("a ring", (0..N).map(|step| then(&name(step), (step + 1) % N)).collect(), 1),
        ("a line", (1..=N).map(|next| routes(&name(next), [Some(next % N), None])).collect(), 0),
        ("all lost", (0..N).map(|step| ends(&name(step))).collect(), N - 1),
        (
            "a fan of cycles",
            std::iter::once(node(
                "A",
                Exit::Route {
                    signals: "Next",
                    branches: (1..N)
                        .map(|to| Branch { signal: "Go", dest: Dest::Step(edge(to)) })
                        .chain([Branch { signal: "Stop", dest: Dest::End }])
                        .collect(),
                },
            ))
            .chain((1..N).map(|step| then(&name(step), step)))
            .collect(),
            N - 1,
        ),
        (
            "a long error route",
            (0..N)
                .map(|step| if step + 1 < N { ends(&name(step)).or(step + 1) } else { ends("Z") })
                .collect(),
            0,
        ),
    ];
    for (shape, nodes, expected) in shapes {
        let wiring = wiring(nodes);
        let begun = Instant::now();
        assert_eq!(violations(&wiring).len(), expected, "{shape}");
        // A quadratic algorithm would take minutes.
        assert!(begun.elapsed() < Duration::from_secs(20), "{shape}: {:?}", begun.elapsed());
    }
}

#[test]
fn an_expiry_is_an_edge() {
    let off = wiring(vec![ends("A").expires(Some(1)), ends("B").off()]);
    reports(
        &off,
        &["step `A` leads to step `B`, which is off: no (change the target, or switch the \
             step on)"],
    );
    let declared = violations(&off)[0].declared.line;
    assert_eq!(off.nodes[0].expires.unwrap().to.unwrap().at.line(), declared);
    reports(
        &wiring(vec![ends("A"), then("B", 2), ends("C").expires(Some(0))]).finally(1),
        &["`finally` leads to step `C`, which asks a question, but a run that is ending does not \
             wait (ask before the end)"],
    );
    // An expiry that only leads back does not leave the cycle.
    assert_eq!(
        violations(&wiring(vec![routes("A", [Some(1), None]), then("B", 1).expires(Some(1))]))[0]
            .rule,
        Rule::EndlessCycle
    );
}

#[test]
fn an_alias_names_one_step() {
    let taken = wiring(vec![then("A", 1).once("B"), then("B", 2).once("c"), ends("C").once("c")]);
    reports(
        &taken,
        &[
            "the alias `B` of step `A` is already the name of step `B` (remove one of them)",
            "the alias `c` of step `C` is already an alias of step `B` (remove one of them)",
        ],
    );
    assert!(violations(&taken).iter().all(|found| found.rule == Rule::Alias));
    let lines: Vec<u32> = violations(&taken).iter().map(|found| found.declared.line).collect();
    assert_eq!(lines, [taken.nodes[0].at.line(), taken.nodes[2].at.line()]);
    reports(
        &wiring(vec![ends("A").once("A").once("a").once("a")]),
        &[
            "the alias `A` of step `A` is already the name of that step (remove one of them)",
            "the alias `a` of step `A` is already an alias of that step (remove one of them)",
        ],
    );
}
