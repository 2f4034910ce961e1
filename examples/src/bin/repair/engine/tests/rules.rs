//! Each rule alone: the mistake, the best proposal, and that the result runs.

use super::super::{Ending, Rule, judge, propose};
use super::{fault, run};

/// Checks triples of a rule, a failing source and its repair.
async fn check(cases: &[(Rule, &str, &str)]) {
    let mut wrong = Vec::new();
    for (rule, source, fixed) in cases {
        let fault = fault(source).await;
        let proposals = propose(source, &fault);
        match proposals.first() {
            Some(best) if best.rule == *rule && best.fixed == *fixed => {
                if let Err(refusal) = judge(source, fixed, &fault) {
                    wrong.push(format!("{source}refused: {refusal}"));
                }
                let ran = run(fixed).await;
                if ran.ending != Ending::Ok {
                    wrong.push(format!("{fixed}still: {}", ran.ending));
                }
            }
            other => wrong.push(format!("{source}{fault}\n{other:#?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn names() {
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
    ])
    .await;
}

#[tokio::test]
async fn attributes() {
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
    ])
    .await;
}

#[tokio::test]
async fn imports() {
    use Rule::{MissingImport as Import, MisspeltModule as Module};
    check(&[
        (Import, "print(math.pi)\n", "import math\nprint(math.pi)\n"),
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
    ])
    .await;
}

#[tokio::test]
async fn indentation() {
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
    ])
    .await;
}

#[tokio::test]
async fn brackets() {
    use Rule::Bracket;
    check(&[
        (Bracket, "print(len([1, 2])\nx = 1\n", "print(len([1, 2]))\nx = 1\n"),
        (Bracket, "x = [\n    1,\n    2,\ny = 1\n", "x = [\n    1,\n    2,\n]\ny = 1\n"),
        (Bracket, "if len([1] > 0:\n    x = 1\n", "if len([1]) > 0:\n    x = 1\n"),
        (Bracket, "print((1))) \n", "print((1)) \n"),
        (Bracket, "x = [1, 2)\n", "x = [1, 2]\n"),
        (Bracket, "x = [1]\nprint(x[0)\n", "x = [1]\nprint(x[0])\n"),
    ])
    .await;
}

#[tokio::test]
async fn quotes() {
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
    ])
    .await;
}

#[tokio::test]
async fn small_slips_of_syntax() {
    use Rule::{
        AssignmentInCondition as Assign, MissingColon as Colon, MissingComma as Comma,
        PrintStatement as Fingerprint,
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
        (Fingerprint, "print 'a', f'{1}'  # b\n", "print('a', f'{1}')  # b\n"),
        (Comma, "x = [1, 2 3]\n", "x = [1, 2, 3]\n"),
        (Comma, "x = {\n    'a': 1\n    'b': 2,\n}\n", "x = {\n    'a': 1,\n    'b': 2,\n}\n"),
    ])
    .await;
}

#[tokio::test]
async fn arguments_keys_and_sums() {
    use Rule::{
        MissingArgument, MissingSelf, MisspeltArgument, MisspeltKey as Key, NumberInText as Number,
    };
    check(&[
        (MisspeltArgument, "def f(width=1): pass\nf(witdh=2)\n", "def f(width=1): pass\nf(width=2)\n"),
        (MissingArgument, "def f(a, rate): pass\ntax_rate = 2\nf(1)\n", "def f(a, rate): pass\ntax_rate = 2\nf(1, rate=tax_rate)\n"),
        (MissingSelf, "class A:\n    @property\n    def p(self): return 1\n    def f(x): return x\na = A()\na.f(1)\n", "class A:\n    @property\n    def p(self): return 1\n    def f(self, x): return x\na = A()\na.f(1)\n"),
        (Key, "d = {'colour': 1}\nprint(f\"{d['color']} color\")\n", "d = {'colour': 1}\nprint(f\"{d['colour']} color\")\n"),
        (Key, "rows = [{'name': 1}]\nfor k in ['nmae']:\n    print([row[k] for row in rows])\n", "rows = [{'name': 1}]\nfor k in ['name']:\n    print([row[k] for row in rows])\n"),
        (Number, "n = 3\nprint('n: ' + n + '!')\n", "n = 3\nprint('n: ' + str(n) + '!')\n"),
        (Number, "print(len('é') + ' é')\n", "print(str(len('é')) + ' é')\n"),
    ])
    .await;
}

#[tokio::test]
async fn without_a_near_match_nothing_is_proposed() {
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
        "int('x')\n",
        "raise ValueError('name')\n",
        "1 + None\n",
        "x = 5 5\n",
    ] {
        let proposals = propose(source, &fault(source).await);
        assert!(proposals.is_empty(), "{source}{proposals:#?}");
    }
}
