//! Programs on arrays, frames, figures and estimators.
use std::time::Duration;

use harness_esg::{
    Blobs, CPython, CodeGraph, Ending, Executor as _, Limits, Program, RunStep, Trust,
};

/// A program with these packages, after its first run.
fn program(steps: &[(&str, &str)]) -> Option<CodeGraph> {
    let python = crate::packages()?;
    let wall = Duration::from_secs(600);
    let limits =
        Limits { wall, cpu: wall, service: wall, address_space: 8 << 30, ..Limits::default() };
    let python = CPython::at(python).limits(limits).trust(Trust::Mine);
    let mut program = Program::new();
    for (id, source) in steps {
        program.push(id, source).unwrap();
    }
    let mut graph = CodeGraph::new(program, python.start().unwrap(), Blobs::memory());
    assert_eq!(ran(&mut graph).len(), steps.len());
    Some(graph)
}

/// What a replay ran. Nothing may be untracked, or differ from a full run.
fn ran(graph: &mut CodeGraph) -> Vec<String> {
    let report = graph.replay().unwrap();
    assert!(report.ok() && report.untracked.is_empty(), "{report}");
    let ran = report.executed().map(|step| step.to_string()).collect();
    let verdict = graph.verify().unwrap();
    assert!(verdict.same, "{verdict}\n{report}");
    ran
}

fn edit(graph: &mut CodeGraph, step: &str, from: &str, to: &str) -> Vec<String> {
    let source = graph.program().step(step).unwrap().source.replace(from, to);
    graph.edit(|program| program.replace(step, &source)).unwrap();
    ran(graph)
}

#[test]
fn an_edit_of_a_program_on_frames_runs_what_it_must() {
    let steps = [
        (
            "imports",
            "import numpy as np\nimport pandas as pd\nimport matplotlib\n\
                     matplotlib.use('Agg')\nimport matplotlib.pyplot as plt",
        ),
        ("load", "df = pd.DataFrame({'k': list('abab'), 'v': np.arange(4.0)})"),
        ("extra", "df['w'] = df['v'] * 2"),
        ("threshold", "low = 1.0"),
        ("query", "few = df.query('v > @low')"),
        ("mean", "mean = df.groupby('k')['w'].mean()"),
        (
            "plot",
            "fig, ax = plt.subplots()\nax.plot(mean.index, mean.values)\n\
                  fig.savefig('mean.png')\nplt.close(fig)",
        ),
        ("report", "print(mean.round(1).to_dict(), len(few))"),
    ];
    let Some(mut graph) = program(&steps) else { return };
    assert_eq!(edit(&mut graph, "report", "round(1)", "round(2)"), ["report"]);
    assert_eq!(edit(&mut graph, "plot", "mean.index", "list(mean.index)"), ["plot"]);
    assert_eq!(edit(&mut graph, "threshold", "1.0", "2.0"), ["threshold", "query", "report"]);
    let after = edit(&mut graph, "extra", "* 2", "* 3");
    assert_eq!(after, ["extra", "query", "mean", "plot", "report"]);
}

/// `eval` of pandas looks names up in the frames of its callers.
#[test]
fn names_in_expressions_for_pandas_are_read() {
    let steps = [
        ("imports", "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2, 3]})"),
        ("low", "low = 1"),
        ("factor", "factor = 10"),
        ("scaled", "scaled = df.eval('a * @factor').tolist()"),
        (
            "above",
            "def above(frame):\n    return pd.eval('frame.a > low').tolist()\nmask = above(df)",
        ),
        ("both", "both = pd.eval('low + factor')"),
        ("cell", "import numpy as np\ncell = np.full((1, 1), factor)"),
        ("block", "block = np.bmat('cell cell').tolist()"),
    ];
    let Some(mut graph) = program(&steps) else { return };
    // On Python 3.11 pandas asks for all names at once.
    let after = edit(&mut graph, "factor", "10", "20");
    assert!(
        ["scaled", "both", "block"].iter().all(|step| after.iter().any(|ran| ran == step)),
        "{after:?}"
    );
    assert_eq!(graph.value("scaled").unwrap().repr, "[20, 40, 60]");
    let after = edit(&mut graph, "low", "1", "2");
    assert!(["above", "both"].iter().all(|step| after.iter().any(|ran| ran == step)), "{after:?}");
    assert_eq!(graph.value("mask").unwrap().repr, "[False, False, True]");
    assert_eq!(graph.value("block").unwrap().repr, "[[20, 20]]");
}

/// What refers to a view, also to one that has a name: a list, a method of it.
#[test]
fn a_view_is_stored_with_what_refers_to_it() {
    let steps = [
        (
            "make",
            "import numpy as np\nwhole = np.arange(10)\nodd = whole[1::2]\nheld = [odd, [odd]]\n\
             fill = odd.fill",
        ),
        ("change", "fill(5)"),
        (
            "read",
            "total = int(whole.sum()), held[1][0] is odd, bool(np.shares_memory(held[0], whole))",
        ),
    ];
    let Some(mut graph) = program(&steps) else { return };
    assert_eq!(edit(&mut graph, "change", "5", "7"), ["change", "read"]);
    assert_eq!(graph.value("total").unwrap().repr, "(55, True, True)");
}

/// A figure that stays open is one unit with its axes, and what is drawn later changes both.
#[test]
fn a_figure_that_stays_open_is_followed() {
    let steps = [
        (
            "figure",
            "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\n\
             fig, axes = plt.subplots(2, 2)",
        ),
        ("draw", "line, = axes[0, 0].plot([1, 2, 3])"),
        ("title", "axes[0, 1].set_title('one')"),
        ("count", "count = len(axes[0, 0].lines), fig.axes[1].get_title()"),
        ("other", "n = 1"),
    ];
    let Some(mut graph) = program(&steps) else { return };
    assert_eq!(edit(&mut graph, "other", "1", "2"), ["other"]);
    edit(&mut graph, "title", "one", "two");
    assert_eq!(graph.value("count").unwrap().repr, "(1, 'two')");
    edit(&mut graph, "draw", "[1, 2, 3])", "[1, 2, 4]); axes[0, 0].plot([1, 2])");
    assert_eq!(graph.value("count").unwrap().repr, "(2, 'two')");
    // The step that imports the package runs again in the same worker.
    edit(&mut graph, "figure", "2, 2", "2, 3");
}

/// Of the thousands of objects of a figure that stays open, only those with names are members of its
/// unit: what a step costs does not grow with the square of what is drawn.
#[test]
fn a_figure_that_stays_open_is_a_unit_of_few_members() {
    let Some(python) = crate::packages() else { return };
    let wall = Duration::from_secs(600);
    let limits =
        Limits { wall, cpu: wall, service: wall, address_space: 8 << 30, ..Limits::default() };
    let mut python = CPython::at(python).limits(limits).trust(Trust::Mine).start().unwrap();
    let steps = [
        "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt",
        "fig, axes = plt.subplots(4, 4)",
        "for ax in axes.flat:\n    for n in range(20):\n        ax.plot([n, n + 1, n], label=str(n))",
        "first = axes[0, 0].lines[0]",
    ];
    for (seq, source) in (1..).zip(steps) {
        let ran = python.run(&RunStep { seq, step: "s", source, bind: None, readings: None });
        let ran = ran.unwrap();
        assert_eq!(ran.ending, Ending::Ok);
        for (unit, _) in &ran.units {
            let (members, pairs) = (unit.members.len(), unit.share.len());
            assert!(members <= 8 && pairs <= 28, "{members} members, {pairs} pairs after {source}");
        }
    }
}

/// Expressions keep their hashes, which differ from process to process, and what was computed of them:
/// neither is content, and a full run in another process is equal.
#[test]
fn expressions_are_compared_without_their_caches() {
    let steps = [
        ("imports", "import sympy as sp"),
        ("symbols", "x, y = sp.symbols('x y')"),
        ("f", "f = sp.sin(x) ** 2 + x * y"),
        ("integral", "F = sp.integrate(f, x)\nprint(F)"),
        ("matrix", "M = sp.Matrix([[x, 1], [y, 2]])\nvalues = M.eigenvals()"),
        ("all", "all = {f, F, M.det()}\nnamed = {str(one): sp.simplify(one) for one in all}"),
        ("roots", "roots = sp.solve(x**3 - 6*x**2 + 11*x - 6, x)\nprint(roots)"),
    ];
    let Some(mut graph) = program(&steps) else { return };
    assert_eq!(edit(&mut graph, "roots", "- 6, x)", "- 6, x)[:2]"), ["roots"]);
    assert_eq!(edit(&mut graph, "f", "** 2", "** 3"), ["f", "integral", "all"]);
}

#[test]
fn estimators_that_hold_each_other_stay_shared() {
    let steps = [
        (
            "imports",
            "from sklearn.pipeline import Pipeline\n\
                     from sklearn.preprocessing import StandardScaler",
        ),
        ("numeric", "numeric = StandardScaler()"),
        ("prepare", "prepare = Pipeline([('n', numeric)])"),
        ("model", "model = Pipeline([('prepare', prepare)])"),
        ("search", "search = model, 0.1"),
        ("use", "search[0].set_params(prepare__n__with_mean=False)\nprint(numeric.with_mean)"),
    ];
    let Some(mut graph) = program(&steps) else { return };
    assert_eq!(edit(&mut graph, "search", "0.1", "0.2"), ["search", "use"]);
    assert_eq!(edit(&mut graph, "use", "False", "True"), ["use"]);
}

#[test]
fn arrays_changed_in_place_and_generators_are_followed() {
    let steps = [
        ("imports", "import numpy as np"),
        ("seed", "np.random.seed(1)"),
        ("draw", "a = np.random.rand(1000)"),
        ("view", "v = a[10:20]"),
        ("change", "v[0] = 5.0"),
        ("sum", "s = float(a.sum())"),
        ("options", "np.set_printoptions(precision=3)"),
        ("shown", "print(v)"),
        ("other", "n = 1"),
    ];
    let Some(mut graph) = program(&steps) else { return };
    assert_eq!(edit(&mut graph, "other", "1", "2"), ["other"]);
    let after = edit(&mut graph, "seed", "1", "2");
    assert!(
        ["seed", "draw", "change", "sum", "shown"]
            .iter()
            .all(|step| after.contains(&(*step).to_owned())),
        "{after:?}"
    );
    let after = edit(&mut graph, "options", "3", "5");
    assert!(
        after.contains(&"shown".to_owned()) && !after.contains(&"draw".to_owned()),
        "{after:?}"
    );
    let after = edit(&mut graph, "change", "5.0", "6.0");
    assert!(after.contains(&"sum".to_owned()) && !after.contains(&"draw".to_owned()), "{after:?}");
}

/// A program that sets no seed finds the same numbers in each worker.
#[test]
fn a_generator_without_a_seed_begins_alike_in_each_worker() {
    for draws in
        ["import numpy as np\na = np.random.rand(3)", "from numpy.random import rand\na = rand(3)"]
    {
        let steps =
            [("draw", draws), ("again", "import numpy\nb = numpy.random.rand()"), ("end", "n = 1")];
        let Some(mut graph) = program(&steps) else { return };
        assert!(graph.replay().unwrap().ok());
        let verdict = graph.verify().unwrap();
        assert!(verdict.same, "{verdict}");
        assert_eq!(edit(&mut graph, "end", "1", "2"), ["end"]);
    }
}

#[test]
fn an_estimator_is_kept() {
    let steps = [
        (
            "imports",
            "import numpy as np\nfrom sklearn.ensemble import RandomForestClassifier\n\
                     from sklearn.metrics import accuracy_score",
        ),
        (
            "data",
            "X = np.random.default_rng(0).normal(size=(200, 4))\ny = (X[:, 0] > 0).astype(int)",
        ),
        ("fit", "model = RandomForestClassifier(n_estimators=10, random_state=0).fit(X, y)"),
        ("score", "score = float(accuracy_score(y, model.predict(X)))"),
        ("report", "print(round(score, 2))"),
    ];
    let Some(mut graph) = program(&steps) else { return };
    assert_eq!(edit(&mut graph, "report", "2", "3"), ["report"]);
    assert_eq!(edit(&mut graph, "score", "y, model", "list(y), model"), ["score"]);
    let after = edit(&mut graph, "fit", "10", "2");
    assert_eq!(after[..2], ["fit", "score"]);
}

#[test]
fn settings_of_scikit_learn_are_versioned() {
    let steps = [
        (
            "imports",
            "import numpy as np\nimport sklearn\nfrom sklearn.preprocessing import StandardScaler",
        ),
        ("config", "sklearn.set_config(transform_output='pandas')"),
        ("fit", "scaled = StandardScaler().fit_transform(np.arange(6.0).reshape(3, 2))"),
        ("kind", "kind = type(scaled).__name__\nprint(kind)"),
        ("other", "n = 1"),
    ];
    let Some(mut graph) = program(&steps) else { return };
    assert_eq!(graph.value("kind").unwrap().repr, "'DataFrame'");
    assert_eq!(edit(&mut graph, "other", "1", "2"), ["other"]);
    let after = edit(&mut graph, "config", "pandas", "default");
    assert_eq!(after[..3], ["config", "fit", "kind"]);
    assert_eq!(graph.value("kind").unwrap().repr, "'ndarray'");
}

/// What draws on an image shares it.
#[test]
fn an_image_changes_with_what_is_drawn_on_it() {
    let make = "image = Image.new('RGB', (8, 6), 'white')\nboard = ImageDraw.Draw(image)";
    let steps = [
        ("imports", "from PIL import Image, ImageDraw"),
        ("make", make),
        ("draw", "board.point((1, 1), fill='red')"),
        ("read", "color = image.getpixel((1, 1))"),
    ];
    let Some(mut graph) = program(&steps) else { return };
    graph.edit(|program| program.replace("draw", "board.point((1, 1), fill='blue')")).unwrap();
    assert!(ran(&mut graph).contains(&"read".to_owned()));
    assert_eq!(graph.value("color").unwrap().repr, "(0, 0, 255)");
}

/// The worker reads an image through a function that imports a module: the step's imports are its own.
#[test]
fn a_step_that_imports_and_makes_an_image_is_made_again() {
    let steps = [
        (
            "make",
            "from PIL import Image, ImageDraw\nimage = Image.new('RGB', (8, 6), 'white')\n\
             board = ImageDraw.Draw(image)",
        ),
        ("draw", "board.point((1, 1), fill='red')"),
        ("read", "color = image.getpixel((1, 1))"),
    ];
    let Some(mut graph) = program(&steps) else { return };
    edit(&mut graph, "draw", "red", "blue");
    assert_eq!(graph.value("color").unwrap().repr, "(0, 0, 255)");
    edit(&mut graph, "make", "white", "black");
    edit(&mut graph, "draw", "blue", "red");
    assert_eq!(graph.value("color").unwrap().repr, "(255, 0, 0)");
}

/// Functions of packages import modules when they are first needed: a format of images, a codec.
#[test]
fn submodules_that_a_library_imports_late_are_there_after_edits() {
    let steps = [
        ("make", "from PIL import Image\nimage = Image.new('RGB', (4, 4), 'red')"),
        ("save", "image.save('a.png')"),
        ("look", "import PIL\nseen = hasattr(PIL, 'PngImagePlugin')"),
        (
            "use",
            "info = PIL.PngImagePlugin.PngInfo()\ninfo.add_text('k', 'v')\nn = len(info.chunks)",
        ),
        ("read", "color = Image.open('a.png').getpixel((0, 0))"),
        ("encode", "import codecs\ntext = 'é'.encode('utf-7')"),
        ("decode", "import encodings\nback = text.decode('utf-7'), hasattr(encodings, 'utf_7')"),
    ];
    let Some(mut graph) = program(&steps) else { return };
    edit(&mut graph, "use", "'v'", "'w'");
    edit(&mut graph, "encode", "'é'", "'ü'");
    edit(&mut graph, "decode", "back =", "again =");
    edit(&mut graph, "make", "red", "blue");
    assert_eq!(graph.value("color").unwrap().repr, "(0, 0, 255)");
    assert_eq!(graph.value("seen").unwrap().repr, "True");
    edit(&mut graph, "save", "image.save", "n = 1\nimage.save");
}

#[test]
fn a_submodule_that_its_package_loads_when_it_is_looked_for_makes_no_difference() {
    let steps = [
        ("import", "import numpy as np"),
        ("use", "n = int(np.random.default_rng(1).integers(9))"),
        ("end", "e = 1"),
    ];
    let Some(mut graph) = program(&steps) else { return };
    let source = "import pandas as pd\nn = len(pd.DataFrame({'k': [1, 2]}))";
    graph.edit(|program| program.replace("use", source)).unwrap();
    graph.replay().unwrap();
    let verdict = graph.verify().unwrap();
    assert!(verdict.same, "{verdict}");
}

/// Submodules, warning filters and settings: a package is loaded once in a worker.
#[test]
fn what_a_first_import_does_stands_when_the_importing_step_runs_again() {
    let steps = [
        ("import", "import xml.dom.minidom\nimport sklearn.pipeline\nk = 1"),
        ("dom", "import xml\nwhere = xml.dom.minidom.__name__"),
        ("filters", "import warnings\nkept = any('numpy' in str(one) for one in warnings.filters)"),
        ("sub", "name = sklearn.pipeline.__name__"),
    ];
    let Some(mut graph) = program(&steps) else { return };
    assert_eq!(edit(&mut graph, "import", "k = 1", "k = 2"), ["import"]);
    assert_eq!(edit(&mut graph, "filters", "kept =", "again ="), ["filters"]);
    assert_eq!(edit(&mut graph, "sub", "name =", "named ="), ["sub"]);
    assert_eq!(edit(&mut graph, "dom", "where =", "there ="), ["dom"]);
    assert_eq!(graph.value("again").unwrap().repr, "True");
}
