//! Each rule alone: the mistake, the first patch, and that the result runs.
use harness_esg::patcher::Rule;
use harness_esg::{CodeGraph, Diagnosis, Patch, RulePatcher};

use crate::{graph, pythons};

/// A program of one step, whose source is replaced for each case.
struct Bench(CodeGraph);

impl Bench {
    fn new() -> Self {
        Self(graph(&pythons()[0], &[("only", "pass")]))
    }

    fn run(&mut self, source: &str) {
        self.0.edit(|program| program.replace("only", source)).unwrap();
        self.0.replay().unwrap();
    }

    fn failing(&mut self, source: &str) -> (Diagnosis, Vec<Patch>) {
        self.run(source);
        let found = self.0.diagnose().unwrap().unwrap_or_else(|| panic!("{source}does not fail"));
        let patches = RulePatcher.patches(&found, self.0.program());
        (found, patches)
    }
}

/// Checks triples of a rule, a failing source and its repair.
fn check(cases: &[(Rule, &str, &str)]) {
    let (mut bench, mut wrong) = (Bench::new(), Vec::new());
    for (rule, source, fixed) in cases {
        let (found, patches) = bench.failing(source);
        let best = patches.first().map(|patch| (patch, patch.preview("only", source).unwrap()));
        match best {
            Some((patch, new)) if new == *fixed && patch.why.starts_with(&rule.to_string()) => {
                bench.run(fixed);
                if let Some(found) = bench.0.diagnose().unwrap() {
                    wrong.push(format!("{fixed}still: {found}"));
                }
            }
            _ => wrong.push(format!("{source}{found}\n{patches:#?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn names() {
    use Rule::MisspeltName as Name;
    check(&[
        (
            Name,
            "total = 1\nprint(f'{totl:>3}', 'totl', totl)  # totl\n",
            "total = 1\nprint(f'{total:>3}', 'totl', total)  # totl\n",
        ),
        (
            Name,
            "def f(items):\n    return sum(item + len(itmes) for item in items)\nf([1])\n",
            "def f(items):\n    return sum(item + len(items) for item in items)\nf([1])\n",
        ),
        (Name, "ok = true\n", "ok = True\n"),
    ]);
}

#[test]
fn attributes() {
    use Rule::MisspeltAttribute as Attribute;
    check(&[
        (Attribute, "' a'.strip().uper()\n", "' a'.strip().upper()\n"),
        (Attribute, "import math\nmath.sqroot(4)\n", "import math\nmath.sqrt(4)\n"),
        (
            Attribute,
            "class A:\n    def __init__(self): self.value = 1\na = A()\nprint(a.vlaue)\n",
            "class A:\n    def __init__(self): self.value = 1\na = A()\nprint(a.value)\n",
        ),
        (Attribute, "items = []\nitems.push(1)\n", "items = []\nitems.append(1)\n"),
        (Attribute, "from collections import Countr\n", "from collections import Counter\n"),
    ]);
}

#[test]
fn attributes_of_a_module_and_of_its_member() {
    use Rule::AttributeElsewhere as Elsewhere;
    check(&[
        (
            Elsewhere,
            "import datetime\nx = datetime.strptime('1', '%d')\n",
            "import datetime\nx = datetime.datetime.strptime('1', '%d')\n",
        ),
        (
            Elsewhere,
            "import os\nx = os.join('a', 'b')\n",
            "import os\nx = os.path.join('a', 'b')\n",
        ),
        (
            Elsewhere,
            "from datetime import datetime\nx = datetime.timedelta(1)\n",
            "from datetime import datetime\nfrom datetime import timedelta\nx = timedelta(1)\n",
        ),
        (
            Elsewhere,
            "from datetime import datetime\nx = datetime.datetime(2024, 1, 1)\n",
            "from datetime import datetime\nx = datetime(2024, 1, 1)\n",
        ),
        (
            Elsewhere,
            "import datetime as dt\nx = dt.datetime.timedelta(1)\n",
            "import datetime as dt\nx = dt.timedelta(1)\n",
        ),
        (
            Elsewhere,
            "from time import time\ntime.sleep(0)\n",
            "from time import time\nfrom time import sleep\nsleep(0)\n",
        ),
    ]);
}

#[test]
fn imports() {
    use Rule::{MissingImport as Import, MisspeltModule as Module};
    check(&[
        (Import, "print(math.pi)\n", "import math\nprint(math.pi)\n"),
        (Import, "print(factorial(3))\n", "from math import factorial\nprint(factorial(3))\n"),
        (Import, "c = Counter('ab')\n", "from collections import Counter\nc = Counter('ab')\n"),
        (
            Import,
            "import sys\nprint(datetime.now() is None)\n",
            "import sys\nfrom datetime import datetime\nprint(datetime.now() is None)\n",
        ),
        (
            Import,
            "print(datetime.date(2024, 1, 1))\n",
            "import datetime\nprint(datetime.date(2024, 1, 1))\n",
        ),
        (Module, "import colections\n", "import collections\n"),
        (Module, "from jsno import dumps\n", "from json import dumps\n"),
    ]);
}

#[test]
fn a_package_is_imported_by_its_usual_name_where_it_is_installed() {
    let Some(python) = crate::packages() else { return };
    let mut bench = Bench(graph(&python, &[("only", "pass")]));
    for (source, import) in [
        ("x = np.zeros(2).sum()\n", "import numpy as np\n"),
        ("x = numpy.zeros(2).sum()\n", "import numpy\n"),
    ] {
        let (_, patches) = bench.failing(source);
        let fixed = patches[0].preview("only", source).unwrap();
        assert_eq!(fixed, format!("{import}{source}"));
        bench.run(&fixed);
        assert_eq!(bench.0.diagnose().unwrap(), None);
    }
    let (_, patches) = bench.failing("sns.set_theme()\n");
    assert!(!format!("{patches:?}").contains("seaborn"), "{patches:#?}");
}

#[test]
fn indentation() {
    use Rule::{Indentation as Indent, TabsAndSpaces as Tabs};
    check(&[
        (Indent, "a = 1\n  b = 2\nc = 3\n", "a = 1\nb = 2\nc = 3\n"),
        (Indent, "if 1:\n    a = 1\n   b = 2\n", "if 1:\n    a = 1\n    b = 2\n"),
        (Indent, "for i in [1]:\nprint(i)\nprint(2)\n", "for i in [1]:\n    print(i)\nprint(2)\n"),
        (
            Indent,
            "if 1:\n    for i in [1]:\n    if i:\n        print(i)\n",
            "if 1:\n    for i in [1]:\n        if i:\n            print(i)\n",
        ),
        (Tabs, "if 1:\n    a = 1\n\tb = 2\n", "if 1:\n    a = 1\n    b = 2\n"),
        (Tabs, "if 1:\n\ta = 1\n\tc = 1\n        b = 2\n", "if 1:\n\ta = 1\n\tc = 1\n\tb = 2\n"),
    ]);
}

#[test]
fn brackets() {
    use Rule::Bracket;
    check(&[
        (Bracket, "print(len([1, 2])\nx = 1\n", "print(len([1, 2]))\nx = 1\n"),
        (Bracket, "x = [\n    1,\n    2,\ny = 1\n", "x = [\n    1,\n    2,\n]\ny = 1\n"),
        (Bracket, "if len([1] > 0:\n    x = 1\n", "if len([1]) > 0:\n    x = 1\n"),
        (Bracket, "print((1))) \n", "print((1)) \n"),
        (Bracket, "x = [1, 2)\n", "x = [1, 2]\n"),
        (Bracket, "x = [1]\nprint(x[0)\n", "x = [1]\nprint(x[0])\n"),
    ]);
}

#[test]
fn quotes() {
    use Rule::Quote;
    check(&[
        (Quote, "print('a, 1)\n", "print('a, 1')\n"),
        (Quote, "x = [\"a\", \"b]\n", "x = [\"a\", \"b\"]\n"),
        (Quote, "print('don't')\n", "print('don\\'t')\n"),
        (Quote, "print(\"a')\n", "print(\"a\")\n"),
        (
            Quote,
            "def f():\n    \"\"\"About.\n    return 1\nf()\n",
            "def f():\n    \"\"\"About.\"\"\"\n    return 1\nf()\n",
        ),
    ]);
}

#[test]
fn small_slips_of_syntax() {
    use Rule::{
        AssignmentInCondition as Assign, MissingColon as Colon, MissingComma as Comma,
        PrintStatement as Print,
    };
    check(&[
        (Colon, "if 1 < 2  # why\n    a = 1\n", "if 1 < 2:  # why\n    a = 1\n"),
        (Colon, "if 1:\n    a = 1\nelse\n    a = 2\n", "if 1:\n    a = 1\nelse:\n    a = 2\n"),
        (Colon, "def f(x) -> int\n    return x\n", "def f(x) -> int:\n    return x\n"),
        (
            Assign,
            "x = 1\nif x = 1:\n    print(dict(a=1))\n",
            "x = 1\nif x == 1:\n    print(dict(a=1))\n",
        ),
        (Assign, "x = [y for y in [1] if y = 1]\n", "x = [y for y in [1] if y == 1]\n"),
        (Print, "print 'a', f'{1}'  # b\n", "print('a', f'{1}')  # b\n"),
        (Comma, "x = [1, 2 3]\n", "x = [1, 2, 3]\n"),
        (Comma, "x = {\n    'a': 1\n    'b': 2,\n}\n", "x = {\n    'a': 1,\n    'b': 2,\n}\n"),
    ]);
}

/// Code that uses a table with two columns.
fn table(use_it: &str) -> String {
    let class = "class Table:\n    columns = ['region', 'Revenue']\n    def keys(self): return self.columns\n    \
        def __contains__(self, key): return key in self.columns\n    \
        def __getitem__(self, key):\n        if isinstance(key, list):\n            \
        lost = [k for k in key if k not in self]\n            \
        if lost: raise KeyError(f'{lost} not in index')\n        elif key not in self: raise KeyError(key)\n    \
        def grouped(self): return Grouped()\n\n\
        class Grouped:\n    def __getitem__(self, key):\n        \
        if key not in Table.columns: raise KeyError('Column not found: ' + key)\n\n\
        table = Table()\n";
    class.to_owned() + use_it
}

#[test]
fn arguments_keys_and_sums() {
    use Rule::{
        MissingArgument, MissingSelf, MisspeltArgument, MisspeltKey as Key, NumberInText as Number,
    };
    check(&[
        (
            MisspeltArgument,
            "def f(width=1): pass\nf(witdh=2)\n",
            "def f(width=1): pass\nf(width=2)\n",
        ),
        (
            MissingArgument,
            "def f(a, rate): pass\ntax_rate = 2\nf(1)\n",
            "def f(a, rate): pass\ntax_rate = 2\nf(1, rate=tax_rate)\n",
        ),
        (
            MissingSelf,
            "class A:\n    @property\n    def p(self): return 1\n    def f(x): return x\na = A()\na.f(1)\n",
            "class A:\n    @property\n    def p(self): return 1\n    def f(self, x): return x\na = A()\na.f(1)\n",
        ),
        (
            MissingSelf,
            "class A:\n    def f(x, n=1): return x\na = A()\na.f(1, n=2)\n",
            "class A:\n    def f(self, x, n=1): return x\na = A()\na.f(1, n=2)\n",
        ),
        (
            Key,
            "d = {'colour': 1}\nprint(f\"{d['color']} color\")\n",
            "d = {'colour': 1}\nprint(f\"{d['colour']} color\")\n",
        ),
        (
            Key,
            "rows = [{'name': 1}]\nfor k in ['nmae']:\n    print([row[k] for row in rows])\n",
            "rows = [{'name': 1}]\nfor k in ['name']:\n    print([row[k] for row in rows])\n",
        ),
        (
            Key,
            "d = {'host': 'a', 'port': 1}\nprint(d['hostname'])\n",
            "d = {'host': 'a', 'port': 1}\nprint(d['host'])\n",
        ),
        // Tables are no mappings, and word it in ways of their own.
        (Key, &table("print(table['revenue'])\n"), &table("print(table['Revenue'])\n")),
        (
            Key,
            &table("print(table.grouped()['revenue'])\n"),
            &table("print(table.grouped()['Revenue'])\n"),
        ),
        (
            Key,
            &table("print(table[['region', 'revenue']])\n"),
            &table("print(table[['region', 'Revenue']])\n"),
        ),
        (Number, "n = 3\nprint('n: ' + n + '!')\n", "n = 3\nprint('n: ' + str(n) + '!')\n"),
        (Number, "print(len('é') + ' é')\n", "print(str(len('é')) + ' é')\n"),
    ]);
}

#[test]
fn files() {
    let made = "import os\nos.mkdir('in')\nopen('in/rows.csv', 'w').close()\n";
    let source = |rest: &str| format!("{made}{rest}");
    check(&[
        (Rule::MisspeltFile, &source("open('in/row.csv')\n"), &source("open('in/rows.csv')\n")),
        (
            Rule::MisspeltFile,
            &source("name = 'row.csv'\nopen(os.path.join('in', name))\n"),
            &source("name = 'rows.csv'\nopen(os.path.join('in', name))\n"),
        ),
    ]);
}

#[test]
fn without_a_near_match_nothing_is_proposed() {
    let mut bench = Bench::new();
    for source in [
        "print(elephant)\n",
        "'a'.elephant()\n",
        "import elephant_tools\n",
        "{'a': 1}['elephant']\n",
        "d = {}\nd['x']\n",
        "def f(a): pass\nf(elephant=1)\n",
        "def f(a): pass\nf()\n",
        "def f(a): pass\nf(1, 2)\n",
        "def f(a, b): pass\na = b = 1\nf()\n",
        "class A:\n    @classmethod\n    def f(cls, x): pass\nA.f(1, x=2)\n",
        "int('x')\n",
        "raise ValueError('name')\n",
        "1 + None\n",
        "x = 5 5\n",
    ] {
        let (_, patches) = bench.failing(source);
        assert!(patches.is_empty(), "{source}{patches:#?}");
    }
}

#[test]
fn words_and_operators() {
    use Rule::{ForeignOperator as Operator, MisspeltKeyword as Keyword};
    check(&[
        (Keyword, "improt random\nx = random.random()\n", "import random\nx = random.random()\n"),
        (Keyword, "form math import pi\nx = pi\n", "from math import pi\nx = pi\n"),
        (
            Keyword,
            "def f(x):\n    retrun x\nprint(f(1))\n",
            "def f(x):\n    return x\nprint(f(1))\n",
        ),
        (
            Keyword,
            "x = 1\nif x:\n    y = 2\nesle:\n    y = 3\n",
            "x = 1\nif x:\n    y = 2\nelse:\n    y = 3\n",
        ),
        (Keyword, "whlie False:\n    x = 1\n", "while False:\n    x = 1\n"),
        (Keyword, "fro i in [1]:\n    x = i\n", "for i in [1]:\n    x = i\n"),
        (Keyword, "xs = [x fro x in [1]]\n", "xs = [x for x in [1]]\n"),
        (Keyword, "clas A:\n    x = 1\n", "class A:\n    x = 1\n"),
        (
            Keyword,
            "tyr:\n    x = 1\nexcept ValueError:\n    x = 2\n",
            "try:\n    x = 1\nexcept ValueError:\n    x = 2\n",
        ),
        (
            Operator,
            "x = 5\nif x > 3 && x < 10:\n    y = '&&'\n",
            "x = 5\nif x > 3 and x < 10:\n    y = '&&'\n",
        ),
        (Operator, "x = 5\ny = x>3||x<1\n", "x = 5\ny = x>3 or x<1\n"),
        (Operator, "x = 5\nif !x:\n    y = 1\n", "x = 5\nif not x:\n    y = 1\n"),
        (
            Operator,
            "x = 5\nif x > 9:\n    y = 1\nelse if x > 3:\n    y = 2\n",
            "x = 5\nif x > 9:\n    y = 1\nelif x > 3:\n    y = 2\n",
        ),
    ]);
}

#[test]
fn arguments_of_the_right_call() {
    use Rule::MisspeltArgument as Argument;
    check(&[
        (
            Argument,
            "from dataclasses import dataclass\n@dataclass\nclass Item:\n    name: str\n    count: int = 1\n\nitems = [Item('a', count=3), Item(nmae='b', count=2)]\n",
            "from dataclasses import dataclass\n@dataclass\nclass Item:\n    name: str\n    count: int = 1\n\nitems = [Item('a', count=3), Item(name='b', count=2)]\n",
        ),
        (Argument, "x = sorted([3, 1], reversed=True)\n", "x = sorted([3, 1], reverse=True)\n"),
        (Argument, "xs = [3, 1]\nxs.sort(ky=abs)\n", "xs = [3, 1]\nxs.sort(key=abs)\n"),
        (Argument, "x = round(3.14159, ndigit=2)\n", "x = round(3.14159, ndigits=2)\n"),
        (Argument, "x = int('12', bas=8)\n", "x = int('12', base=8)\n"),
        // The function that is called passes it on to another one.
        (
            Argument,
            "import json\nx = json.dumps([1], indnt=2)\n",
            "import json\nx = json.dumps([1], indent=2)\n",
        ),
        // It says the parameters of the other one only where it fails.
        (
            Argument,
            "import argparse\np = argparse.ArgumentParser()\nx = p.add_argument('n', narg='*')\n",
            "import argparse\np = argparse.ArgumentParser()\nx = p.add_argument('n', nargs='*')\n",
        ),
    ]);
}

#[test]
fn a_method_that_leaves_out_its_object() {
    let class = "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n        items.append(item)\n\ns = Stack()\ns.push(1)\n";
    let fixed = class.replace("        items.append", "        self.items.append");
    check(&[(Rule::MissingSelf, class, &fixed)]);
}

#[test]
fn an_import_joins_those_of_the_program() {
    let imports = ("imports", "import json\nfrom os import (\n    path,\n)");
    let rest = [("load", "rows = json.loads('[4]')"), ("root", "root = math.sqrt(rows[0])")];
    let mut with = graph(&pythons()[0], &[imports, rest[0], rest[1]]);
    with.replay().unwrap();
    let found = with.diagnose().unwrap().unwrap();
    let patches = RulePatcher.patches(&found, with.program());
    let changed: Vec<_> = patches[0].steps().map(|step| &**step).collect();
    assert_eq!(changed, ["imports"]);
    with.edit(|program| program.patch(&patches[0])).unwrap();
    let source = &with.program().step("imports").unwrap().source;
    assert_eq!(**source, *format!("{}\nimport math", imports.1));
    let report = with.replay().unwrap();
    assert!(report.ok() && report.kept.contains(&"load".into()), "{report}");

    // Beside other code it would run that again: it stays where it is used.
    let load = ("load", "import json\nrows = json.loads('[4]')");
    let mut beside = graph(&pythons()[0], &[load, rest[1]]);
    beside.replay().unwrap();
    let found = beside.diagnose().unwrap().unwrap();
    let patches = RulePatcher.patches(&found, beside.program());
    assert_eq!(patches[0].steps().next().map(|step| &**step), Some("root"));
}
