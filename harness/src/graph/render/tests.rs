use std::io::Write as _;
use std::panic::Location;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::graph::{AtMost, Branch, Budget, Dest, Edge, Exit, Expiry, Graph, Kind, Node, Wiring};
use crate::step::Policy;

#[track_caller]
fn edge(to: usize) -> Edge {
    Edge { to, at: Location::caller() }
}

#[track_caller]
fn node(name: &str, kind: Kind, exit: Exit) -> Node {
    Node {
        name: name.into(),
        aliases: Vec::new(),
        kind,
        question: None,
        expires: None,
        exit,
        policy: Policy::default(),
        on_error: None,
        at_most: None,
        at: Location::caller(),
    }
}

fn graph(name: &str, nodes: Vec<Node>, on_error: Option<usize>, finally: Option<usize>) -> Graph {
    Graph {
        wiring: Arc::new(Wiring {
            name: name.into(),
            nodes,
            start: 0,
            on_error: on_error.map(edge),
            finally: finally.map(edge),
            budget: Budget::default(),
            at: Location::caller(),
        }),
    }
}

/// A loop with every kind of step and of edge.
fn drafts() -> Graph {
    let branches = vec![
        Branch { signal: "Good", dest: Dest::Step(edge(2)) },
        Branch { signal: "Poor", dest: Dest::Step(edge(0)) },
        Branch { signal: "Hopeless", dest: Dest::End },
    ];
    let mut write = node("Write", Kind::Run, Exit::Then(edge(1)));
    write.at_most = Some(AtMost { times: 3, instead: edge(3) });
    write.on_error = Some(edge(1));
    let review = node("Review", Kind::Decide, Exit::Route { signals: "Verdict", branches });
    let approve = node("Approve", Kind::Gate, Exit::Then(edge(3)));
    let tidy = node("Tidy", Kind::Run, Exit::End);
    graph("drafts", vec![write, review, approve, tidy], Some(3), Some(3))
}

/// Parses a drawing with Graphviz itself.
fn parse_with_graphviz(drawn: &str) {
    let dot = Command::new("dot")
        .arg("-Tcanon")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut dot = dot.unwrap_or_else(|error| {
        panic!(
            "`dot` of Graphviz must be installed to check drawings (package `graphviz`): {error}"
        )
    });
    dot.stdin.take().unwrap().write_all(drawn.as_bytes()).unwrap();
    let read = dot.wait_with_output().unwrap();
    assert!(read.status.success(), "{}\n{drawn}", String::from_utf8_lossy(&read.stderr));
}

#[test]
fn for_graphviz() {
    let drawn = drafts().to_dot();
    assert_eq!(
        drawn,
        r#"digraph {
    start [label="drafts", shape=box, style=rounded];
    start -> s0;
    s0 [label="Write", shape=box];
    s0 -> s1;
    s0 -> s3 [label="after 3"];
    s0 -> s1 [label="error", style=dotted];
    s1 [label="Review", shape=diamond];
    s1 -> s2 [label="Good"];
    s1 -> s0 [label="Poor"];
    s1 -> finish [label="Hopeless"];
    s2 [label="Approve", shape=hexagon];
    s2 -> s3;
    s3 [label="Tidy", shape=box];
    s3 -> finish;
    finish [label="end", shape=doublecircle];
    failed [label="any error", shape=parallelogram];
    failed -> s3 [style=dotted];
    finish -> s3 [label="finally", style=dotted];
}
"#
    );
    parse_with_graphviz(&drawn);
}

#[test]
fn an_unmarked_drawing_equals_the_graphs() {
    let drafts = drafts();
    let nowhere = drafts.drawing().mark(["Nobody", ""]).mark([""; 0]);
    for drawing in [drafts.drawing(), nowhere] {
        assert_eq!(drawing.to_mermaid(), drafts.to_mermaid());
        assert_eq!(drawing.to_dot(), drafts.to_dot());
        assert_eq!(drawing.to_string(), drafts.to_mermaid());
        assert_eq!(format!("{drawing:?}"), drafts.to_mermaid());
    }
}

#[test]
fn marks_a_path() {
    let path = ["Write", "Review", "Nobody", "Write", "Review", "Approve", "Tidy"];
    let drawing = drafts().drawing().mark(path);
    assert_eq!(
        drawing.to_mermaid(),
        "\
flowchart TD
    start([\"drafts\"]) --> s0
    s0[\"Write ×2\"]:::visited
    s0 --> s1
    s0 -- \"after 3\" --> s3
    s0 -. \"error\" .-> s1
    s1{\"Review ×2\"}:::visited
    s1 -- \"Good\" --> s2
    s1 -- \"Poor\" --> s0
    s1 -- \"Hopeless\" --> finish
    s2{{\"Approve ×1\"}}:::visited
    s2 --> s3
    s3[\"Tidy ×1\"]:::visited
    s3 --> finish
    finish(((end)))
    failed[/any error/] -.-> s3
    finish -. \"finally\" .-> s3
    classDef visited stroke:#00aa77,stroke-width:3px
    linkStyle 0,1,3,4,5,7 stroke:#00aa77,stroke-width:3px
"
    );
    let drawn = drawing.to_dot();
    assert_eq!(
        drawn,
        r##"digraph {
    start [label="drafts", shape=box, style=rounded];
    start -> s0 [color="#00aa77", penwidth=3];
    s0 [label="Write ×2", shape=box, color="#00aa77", penwidth=3];
    s0 -> s1 [color="#00aa77", penwidth=3];
    s0 -> s3 [label="after 3"];
    s0 -> s1 [label="error", style=dotted, color="#00aa77", penwidth=3];
    s1 [label="Review ×2", shape=diamond, color="#00aa77", penwidth=3];
    s1 -> s2 [label="Good", color="#00aa77", penwidth=3];
    s1 -> s0 [label="Poor", color="#00aa77", penwidth=3];
    s1 -> finish [label="Hopeless"];
    s2 [label="Approve ×1", shape=hexagon, color="#00aa77", penwidth=3];
    s2 -> s3 [color="#00aa77", penwidth=3];
    s3 [label="Tidy ×1", shape=box, color="#00aa77", penwidth=3];
    s3 -> finish;
    finish [label="end", shape=doublecircle];
    failed [label="any error", shape=parallelogram];
    failed -> s3 [style=dotted];
    finish -> s3 [label="finally", style=dotted];
}
"##
    );
    parse_with_graphviz(&drawn);
}

/// The marked edges of a path, in Graphviz syntax.
fn taken(graph: &Graph, path: &[&str]) -> Vec<String> {
    let drawn = graph.drawing().mark(path).to_dot();
    let marked = drawn.lines().filter(|line| line.contains("->") && line.contains("penwidth"));
    marked.map(|line| line.split(" [").next().unwrap().trim().to_owned()).collect()
}

#[test]
fn a_step_without_an_edge_marks_the_loops_own_edges() {
    let drafts = drafts();
    // `Review` failed, or ended and was followed by `finally`: the names do not show which.
    assert_eq!(
        taken(&drafts, &["Review", "Tidy"]),
        ["s1 -> finish", "failed -> s3", "finish -> s3"]
    );
    // The next turn of a session.
    assert_eq!(taken(&drafts, &["Tidy", "Write"]), ["start -> s0", "s3 -> finish"]);
    // Another attempt; a run that resumes in the middle.
    assert_eq!(taken(&drafts, &["Review", "Review"]), [""; 0]);
    assert_eq!(taken(&drafts, &["Approve", "Review"]), [""; 0]);
}

#[test]
fn marking_again_adds_a_path() {
    let twice = drafts().drawing().mark(["Write"]).mark(vec!["Review".to_owned()]);
    let drawn = twice.to_dot();
    assert!(drawn.contains("\"Write ×1\"") && drawn.contains("\"Review ×1\""), "{drawn}");
    assert!(drawn.contains("s0 -> s1;"), "no edge joins two paths: {drawn}");
}

#[test]
fn hostile_names_are_escaped_in_labels() {
    let name = "a\"];x\\ \\N\r\n<b>&lt;<b> ] ; }} 日本 \u{0}\\";
    let drawn = graph("\"", vec![node(name, Kind::Run, Exit::End)], None, None);
    let marked = drawn.drawing().mark([name]);
    assert_eq!(
        marked.to_dot(),
        r##"digraph {
    start [label="\"", shape=box, style=rounded];
    start -> s0 [color="#00aa77", penwidth=3];
    s0 [label="a\"];x\\ \\N  <b>&amp;lt;<b> ] ; }} 日本 \\u{0}\\ ×1", shape=box, color="#00aa77", penwidth=3];
    s0 -> finish;
    finish [label="end", shape=doublecircle];
}
"##
    );
    parse_with_graphviz(&drawn.to_dot());
    let mermaid = marked.to_mermaid();
    let label = "a#quot;];x#92; #92;N  #lt;b>#amp;lt;#lt;b> ] ; }} 日本 #92;u{0}#92; ×1";
    assert!(mermaid.contains(&format!("    s0[\"{label}\"]:::visited\n")), "{mermaid}");
}

#[test]
fn mermaid_markup_in_names_is_escaped() {
    let cases = [
        ("", "(no name)"),
        (" \n", "(no name)"),
        ("`", "#96;"),
        ("`a` ``b", "#96;a#96; #96;#96;b"),
        ("&lt;&#35;#35;", "#amp;lt;#amp;#35;35;#35;35;"),
        ("1. one", "1#46; one"),
        ("12) x", "12#41; x"),
        ("1.5 or 2. x", "1.5 or 2. x"),
        ("7.", "7#46;"),
        ("- a - b", "#45; a - b"),
        (" -", " #45;"),
        ("+ a + b", "#43; a + b"),
        ("* a", "#42; a"),
        ("> a > b", "#62; a > b"),
        ("---", "#45;--"),
        ("# a", "#35; a"),
        ("**a** and *b*", "#42;#42;a#42;#42; and #42;b#42;"),
        ("__a__ _b_ a_b_c", "#95;#95;a#95;#95; #95;b#95; a_b_c"),
        ("~~a~~", "#126;#126;a#126;#126;"),
        ("[a](b)", "#91;a](b)"),
        ("![a](b)", "!#91;a](b)"),
        ("\\n \\*", "#92;n #92;#42;"),
        ("$$x$$", "#36;#36;x#36;#36;"),
        ("fa:fa-user", "fa#58;fa-user"),
        ("style:#f00; x: y", "style#58;#35;f00; x: y"),
        ("http://a.b WWW.a.b a@b.c", "http#58;//a.b WWW#46;a.b a#64;b.c"),
        ("%%{init: {}}%% 5%", "#37;%{init: {}}#37;% 5%"),
        ("end", "end"),
    ];
    for (name, label) in cases {
        let lead = Branch { signal: name, dest: Dest::End };
        let route = Exit::Route { signals: "Next", branches: vec![lead] };
        let drawn = graph(name, vec![node(name, Kind::Decide, route)], None, None);
        let expected = format!(
            "flowchart TD\n    start([\"{label}\"]) --> s0\n    s0{{\"{label}\"}}\n    s0 -- \
             \"{label}\" --> finish\n    finish(((end)))\n"
        );
        assert_eq!(drawn.to_mermaid(), expected);
        let marked = drawn.drawing().mark([name]).to_mermaid();
        assert!(marked.contains(" ×1\"}:::visited\n"), "{marked}");
        parse_with_graphviz(&drawn.to_dot());
        if !name.trim().is_empty() {
            let inner = node(&format!("{name}/x"), Kind::Run, Exit::End);
            let drawn = graph("x", vec![inner], None, None);
            let title = format!("    subgraph g0[\"{label}\"]\n");
            assert!(name.contains('/') || drawn.to_mermaid().contains(&title), "{name}");
            parse_with_graphviz(&drawn.to_dot());
        }
    }
    let nameless = graph("", vec![node("", Kind::Run, Exit::End)], None, None);
    let dot = nameless.drawing().mark([""]).to_dot();
    assert!(dot.contains("start [label=\"(no name)\""), "{dot}");
    assert!(dot.contains("s0 [label=\"(no name) ×1\""), "{dot}");
}

#[test]
fn long_names_are_shortened() {
    let long = "é".repeat(1_000);
    let drawn = graph(&long, vec![node(&long, Kind::Run, Exit::End)], None, None);
    let cut = format!("{}… (cut)", "é".repeat(crate::text::MAX_SHOWN / 2));
    let marked = drawn.drawing().mark([&long]);
    assert!(drawn.to_dot().contains(&format!("s0 [label=\"{cut}\"")));
    assert!(marked.to_dot().contains(&format!("s0 [label=\"{cut} ×1\"")));
    assert!(marked.to_mermaid().contains(&format!("s0[\"{cut} ×1\"]")));
    assert!(marked.to_mermaid().contains(&format!("start([\"{cut}\"])")));
}

#[test]
fn draws_ten_thousand_steps() {
    const STEPS: usize = 10_000;
    // Each step leads to the next one and to the first, which leads to all.
    let hub = (1..STEPS).map(|to| Branch { signal: "Go", dest: Dest::Step(edge(to)) }).collect();
    let mut nodes = vec![node("s0", Kind::Decide, Exit::Route { signals: "Next", branches: hub })];
    nodes.extend((1..STEPS).map(|step| {
        let mut node = node(&format!("s{step}"), Kind::Run, Exit::Then(edge(0)));
        node.on_error = Some(edge((step + 1) % STEPS));
        node
    }));
    let graph = graph("many", nodes, None, None);
    let path = (1..STEPS).flat_map(|step| ["s0".to_owned(), format!("s{step}")]);

    let began = Instant::now();
    let drawing = graph.drawing().mark(path);
    let (mermaid, dot) = (drawing.to_mermaid(), drawing.to_dot());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());

    let edges = 1 + (STEPS - 1) + 2 * (STEPS - 1);
    assert_eq!(dot.matches(" -> ").count(), edges);
    assert_eq!(mermaid.lines().count(), 1 + STEPS + edges + 1 + 2);
    // The start and every step's edges, except error edges and the last step's edge.
    let taken = 1 + (STEPS - 1) + (STEPS - 2);
    assert_eq!(dot.matches("penwidth").count(), STEPS + taken);
}

#[test]
fn nested_loops_are_groups_and_off_steps_are_grey() {
    let nodes = vec![
        node("Write", Kind::Run, Exit::Then(edge(1))),
        node("Review/Read", Kind::Run, Exit::Then(edge(2))),
        node("Review/Mark", Kind::Run, Exit::End),
        node("Send", Kind::Off("not sent here".into()), Exit::End),
    ];
    let drawn = graph("drafts", nodes, None, None);
    assert_eq!(
        drawn.to_dot(),
        r#"digraph {
    start [label="drafts", shape=box, style=rounded];
    start -> s0;
    s0 [label="Write", shape=box];
    s0 -> s1;
    subgraph cluster0 {
        label="Review";
        s1 [label="Read", shape=box];
        s2 [label="Mark", shape=box];
    }
    s1 -> s2;
    s2 -> finish;
    s3 [label="Send", shape=box];
    s3 [style=dashed, color=gray, fontcolor=gray];
    finish [label="end", shape=doublecircle];
}
"#
    );
    parse_with_graphviz(&drawn.to_dot());
    let marked = drawn.drawing().mark(["Write", "Review/Read", "Review/Mark"]).to_mermaid();
    assert!(marked.contains("    subgraph g0[\"Review\"]\n        s1[\"Read ×1\"]:::visited\n"));
    assert!(marked.contains("    style s3 fill:#eee"), "{marked}");
}

#[test]
fn a_step_with_items_is_drawn_as_several() {
    let review = node("Review files", Kind::Each, Exit::End);
    let graph = graph("reviews", vec![review], None, None);
    assert!(graph.to_mermaid().contains("    s0[[\"Review files\"]]\n"), "{graph}");
    let marked = graph.drawing().mark(["Review files"]);
    let mermaid = marked.to_mermaid();
    assert!(mermaid.contains("    s0[[\"Review files ×1\"]]:::visited\n"), "{mermaid}");
    let dot = graph.to_dot();
    assert!(dot.contains("    s0 [label=\"Review files\", shape=box3d];\n"), "{dot}");
    parse_with_graphviz(&dot);
    parse_with_graphviz(&marked.to_dot());
}

#[test]
fn a_loop_without_a_start_is_drawn_without_that_edge() {
    let sound = graph("x", vec![node("A", Kind::Run, Exit::End)], None, None);
    let wiring = Wiring { start: usize::MAX, ..(*sound.wiring).clone() };
    let broken = Graph { wiring: Arc::new(wiring) };
    assert!(broken.to_mermaid().contains("    start([\"x\"])\n    s0"));
    let dot = broken.drawing().mark(["A", "A"]).to_dot();
    assert!(!dot.contains("start -> "), "{dot}");
}

#[test]
fn an_expiry_is_drawn_with_its_time() {
    let mut ask = node("Ask", Kind::Gate, Exit::End);
    ask.expires = Some(Expiry { after: Duration::from_secs(90), to: Some(edge(1)) });
    let mut fails = node("Late", Kind::Gate, Exit::End);
    fails.expires = Some(Expiry { after: Duration::from_secs(90), to: None });
    let graph = graph("asks", vec![ask, fails], None, None);
    let mermaid = graph.to_mermaid();
    assert!(mermaid.contains("    s0 -- \"expires after 90s\" --> s1\n"), "{mermaid}");
    assert_eq!(mermaid.matches("expires").count(), 1, "{mermaid}");
    let dot = graph.to_dot();
    assert!(dot.contains("    s0 -> s1 [label=\"expires after 90s\"];\n"), "{dot}");
    parse_with_graphviz(&dot);
}
