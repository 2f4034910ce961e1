"""What a step reads, case by case. The step's own bindings are not reads, however they are made."""

import sys
import unittest

from driver import Worker
from stand_ins import CHANNELS, UNITS

# Name, earlier steps, the step, names it reads. Without builtins that it calls: absent names in
# `builtins` that no case expects.
CASES = [
    ("constant", [], "x = 5", ""),
    ("own binding", [], "x = 5\ny = x", ""),
    ("before own binding", ["x = 1"], "y = x\nx = 2", "x"),
    ("augmented", ["x = 1"], "x += 1", "x"),
    ("untaken branch", ["a = 1\nb = 2\nc = True"], "v = a if c else b", "a c"),
    ("absent", [], "try:\n    y\nexcept NameError:\n    pass", "y NameError"),
    ("name error", [], "y", "y"),
    ("deleted", ["x = 1"], "del x", "x"),
    ("deleted own", [], "x = 1\ndel x", ""),
    ("loop after delete", ["x = 1"], "for i in (1, 2):\n    if i == 2:\n        x = 3\n    v = x\n    del x", "x"),
    ("function", ["k = 1\ndef f():\n    return k"], "v = f()", "f k"),
    ("function not called", ["k = 1"], "def f():\n    return k", ""),
    ("function before and after", ["k = 1\ndef f():\n    return k"], "a = f()\nk = 2\nb = f()", "f k"),
    ("function after rebind", ["k = 1\ndef f():\n    return k"], "k = 2\nb = f()", "f"),
    ("function in a loop", ["k = 5\ndef f():\n    return k"], "for i in (1, 2):\n    k = i\n    f()", "f"),
    ("rebound to the same", ["k = j = []\ndef f():\n    return k"], "k = 1\nf()\nk = j\nf()", "f j k?"),
    ("global store", ["n = 1\ndef f():\n    global n\n    n = 2"], "f()", "f"),
    ("global augmented", ["n = 1\ndef f():\n    global n\n    n += 2"], "f()", "f n"),
    ("global store not called", ["n = 1"], "def f():\n    global n\n    n = 1", ""),
    ("global delete not called", ["n = 1"], "def f():\n    global n\n    del n", ""),
    ("global delete", ["n = 1\ndef f():\n    global n\n    del n"], "f()", "f n"),
    ("global delete and store", ["n = 1\ndef f():\n    global n\n    del n\n    n = 2"], "f()", "f n"),
    ("lambda", ["off = 1"], "v = sorted([1], key=lambda r: r + off)", "off sorted"),
    ("comprehension", ["xs = [1]\nw = 1"], "ys = [x + w for x in xs]", "xs w"),
    ("comprehension over own", ["x = 1"], "ys = [x for x in (1, 2)]", ""),
    ("set and dict", ["a = 1"], "v = {a for _ in (1,)}, {a: 1 for _ in (1,)}", "a"),
    ("generator made", ["a = 1"], "g = (a for _ in (1,))", ""),
    ("generator resumed", ["a = 1", "g = (a for _ in (1,))"], "v = next(g)", "a g next"),
    ("generator resumed", ["a = b = 1", "def f():\n    yield a\n    yield b\ng = f()\nnext(g)"], "v = next(g)", "b g next"),
    ("walrus", ["xs = [1]"], "zs = [y := i for i in xs]\nprint(y)", "xs print"),
    ("class body", ["q = 1"], "class A:\n    w = q", "q"),
    ("class body own", ["q = 1"], "class A:\n    q = 2\n    w = q", ""),
    ("class body before own", ["q = 1"], "class A:\n    q = q", "q"),
    ("class body by branch", ["q = 1\nc = 0"], "class A:\n    if c:\n        q = 2\n    w = q", "c q"),
    ("class body twice", ["q = 1"], "for i in (0, 1):\n    class A:\n        if i == 0:\n            q = 2\n        w = q", "q"),
    ("class body comprehension", ["n = 3"], "class A:\n    n = 4\n    xs = [n for _ in (1, 2)]", "n"),
    ("class nested", ["q = 1"], "class A:\n    class B:\n        w = q", "q"),
    ("class in a function", ["q = 1"], "def f():\n    class A:\n        w = q\nf()", "q"),
    ("class body before rebinding", ["q = 1"], "class A:\n    w = q\nq = 2", "q"),
    ("class body after rebinding", ["q = 1"], "q = 2\nclass A:\n    w = q", ""),
    ("class in a function before rebinding", ["q = 1"], "def f():\n    class A:\n        w = q\nf()\nq = 2", "q"),
    ("class body that fails", ["q = 1"], "try:\n    class A:\n        w = q\n        [][0]\nexcept IndexError: pass", "IndexError q"),
    ("class that is decorated", ["q = 1"], "@(lambda cls: 1)\nclass A:\n    w = q", "q"),
    ("class by exec", ["q = 1"], "exec('class A:\\n    w = q\\nq = 2')", "exec q"),
    (
        "class whose metaclass asks for the frame",
        ["import sys\nclass M(type):\n    def __new__(meta, *given):\n        assert sys._getframe(1).f_code.co_name == '<module>'\n"
         "        return type.__new__(meta, *given)"],
        "class A(metaclass=M): made = True",
        "M sys type",
    ),
    ("class keywords", ["class A:\n    def __init_subclass__(cls, **k): cls.k = k"], "class B(A, name=1, func=2): pass", "A"),
    ("class bases", ["class A: pass"], "class B(A): pass", "A"),
    ("class annotation", ["T = int"], "class A:\n    x: T = 1", "T"),
    ("method not called", ["k = 1"], "class A:\n    def f(self):\n        return k", ""),
    ("property", ["k = 1"], "class A:\n    @property\n    def p(self):\n        return k\nv = A().p", "k property"),
    ("exec", ["x = 1"], "exec('y = x + 1')", "exec x"),
    ("exec of own", ["x = 1"], "x = 2\nexec('y = x + 1')", "exec"),
    ("exec with locals", ["x = 1\nz = 1"], "exec('y = x; z = 5; w = z', globals(), {})", "* exec globals x z?"),
    ("eval", ["x = 1"], "v = eval('x')", "eval x"),
    ("eval compiled elsewhere", ["x = 1\ncode = compile('x', 'f', 'eval')"], "eval(code, {'x': 2})\nv = eval(code)", "code eval x"),
    ("eval elsewhere only", ["x = 1"], "v = eval('x', {'x': 2})", "eval x?"),
    ("function of another globals", ["x = 1\nimport types\ndef f():\n    return x"], "g = types.FunctionType(f.__code__, {'x': 2})\ng()\nf()", "f types x"),
    (
        "code of a library with these names",
        [
            "import types, colorsys\nh = types.FunctionType(colorsys.hls_to_rgb.__code__, globals())",
            "ONE_THIRD, TWO_THIRD, ONE_SIXTH, _v = 1 / 3, 2 / 3, 1 / 6, colorsys._v",
            "b = colorsys.hls_to_rgb(.1, .2, .3)",
            "q = 1",
        ],
        "a = h(.1, .2, .3)",
        "ONE_THIRD _v h",
    ),
    (
        "code of a library with these names, behind the library",
        [
            "import types, colorsys\nh = types.FunctionType(colorsys.hls_to_rgb.__code__, globals())",
            "ONE_THIRD, TWO_THIRD, ONE_SIXTH, _v = 1 / 3, 2 / 3, 1 / 6, colorsys._v",
        ],
        "b = colorsys.hls_to_rgb(.1, .2, .3)\na = h(.1, .2, .3)",
        "ONE_THIRD _v colorsys h",
    ),
    ("function of another globals only", ["x = 1\nimport types\ndef f():\n    return x"], "g = types.FunctionType(f.__code__, {'x': 2})\ng()", "f types"),
    ("globals", ["x = 1"], "v = globals()['x']", "* globals x?"),
    ("globals get", ["x = 1"], "v = globals().get('x')", "* globals x?"),
    ("globals in a function", ["def f():\n    return len(globals())"], "f()", "* f globals len"),
    ("vars", [], "v = len(vars())", "* len vars"),
    ("vars of an object", ["class A: pass"], "v = vars(A)", "A vars"),
    ("dir", [], "v = dir()", "* dir"),
    ("dir of an object", ["a = 1"], "v = dir(a)", "a dir"),
    ("dir in a function", ["def f():\n    return dir()"], "f()", "f dir"),
    ("locals", [], "v = sorted(locals())", "* locals sorted"),
    ("locals in a function", ["def f(a):\n    return locals()"], "f(1)", "f locals"),
    ("main attribute", ["x = 1"], "import __main__\nv = __main__.x", "x"),
    ("main attribute of own", ["x = 1"], "import __main__\nx = 2\nv = __main__.x", ""),
    ("main from", ["x = 1"], "from __main__ import x as y", "x"),
    ("main in sys", ["x = 1"], "import sys\nv = sys.modules['__main__'].x", "x"),
    ("main absent", [], "import __main__\nv = hasattr(__main__, 'nope')", "hasattr nope"),
    ("main dict", ["x = 1"], "import __main__\nv = __main__.__dict__['x']", "* x?"),
    ("main vars", ["x = 1"], "import __main__\nv = vars(__main__)", "* vars"),
    ("main set", ["x = 1"], "import __main__\n__main__.x = 2\nv = x", ""),
    ("star import", [], "from math import *\nv = pi", ""),
    ("builtin shadowed", ["len = max"], "v = len([1])", "len"),
    ("dunder", [], "v = __name__", ""),
    ("annotation", ["T = int"], "x: T = 1", "T __annotations__"),
    ("decorator", ["def deco(f):\n    return f"], "@deco\ndef f(): pass", "deco"),
    ("default", ["q = 1"], "def f(a=q): pass", "q"),
    ("f string", ["x = 1.0\nw = 5"], "s = f'{x:{w}}'", "w x"),
    ("except", ["E = ValueError"], "try:\n    raise E()\nexcept E as e:\n    pass", "E"),
    ("with", ["import contextlib"], "with contextlib.suppress() as s:\n    pass", "contextlib"),
    ("async", ["k = 1"], "import asyncio\nasync def m():\n    return k\nv = asyncio.run(m())", "k"),
    ("match", ["x = [1]"], "match x:\n    case [a]:\n        y = a", "x"),
    ("failing", ["a = 1\nb = 2"], "x = a\n1 / 0\ny = b", "a"),
    ("dataclass", ["import dataclasses"], "@dataclasses.dataclass\nclass P:\n    a: int\n    b: 'str' = ''", "dataclasses int str"),
    ("namedtuple", ["import collections"], "P = collections.namedtuple('P', 'a b')\nv = P(1, 2)._replace(a=3)", "collections"),
    ("type hints", ["import typing\nT = int\ndef f(a: 'T'): pass"], "v = typing.get_type_hints(f)", "T f typing"),
    ("pickled by name", ["class K: pass\nk = K()\nimport pickle"], "v = pickle.dumps(k)", "K k pickle"),
    ("thread", ["k = 1\nimport threading"], "t = threading.Thread(target=lambda: k)\nt.start()\nt.join()", "k threading"),
    ("many names", ["\n".join("n%d = 0" % i for i in range(300))], "\n".join("v = n%d" % i for i in range(300)), " ".join("n%d" % i for i in range(300))),
]

GENERIC = [
    ("type parameters", ["D = B = int\nk = e = 1"], "class C[V: B]:\n    x = k\n    y: V = e\ntype T[U] = D", "__annotations__? e k"),
    ("type alias evaluated", ["D = int"], "type T = D\nv = T.__value__", "D"),
    ("bound evaluated", ["B = int"], "class C:\n    q = 1\n    type T = B\nv = C.T.__value__", "B"),
]


def names_read(reply):
    return {entity.removeprefix("n:") for entity in reply["reads"] if entity[0] in "n*"}


class TestReads(unittest.TestCase):
    def test_each_case(self):
        generic = GENERIC if sys.version_info >= (3, 12) else []
        for name, before, step, reads in CASES + generic:
            with self.subTest(name), Worker({"values.units": UNITS, "world.channels": CHANNELS}) as worker:
                for source in before:
                    reply = worker.run(source, "before")
                    self.assertEqual(reply["ending"]["kind"], "ok", reply)
                reply = worker.run(step)
                fails = name in ("name error", "failing")
                self.assertEqual(reply["ending"]["kind"], "raised" if fails else "ok", reply)
                words = reads.split()
                tolerated = {word[:-1] for word in words if word.endswith("?")}
                expected = {word for word in words if not word.endswith("?")}
                self.assertEqual(names_read(reply) - tolerated, expected)

    def test_a_binding_that_leaves_all_as_it_was(self):
        """Steps that bind names to their current value, or delete their own bindings. Both count as
        writes. Earlier step, step, writes, reads."""
        cases = [
            ("import math\nx = 0", "import math\nx = 0", {"math": "bound", "x": "bound"}, ""),
            ("x = y = []", "x = y", {"x": "bound"}, "y"),
            ("x = 0", "x = x", {}, "x"),
            ("x = 0", "y = x\nx = 5\nx = y", {"y": "bound"}, "x"),
            ("x = 0\nc = 1", "if c:\n    x = 0", {"x": "bound"}, "c"),
            ("x = 0\nc = 0", "if c:\n    x = 0", {}, "c"),
            ("from math import *", "from math import *", {"pi": "bound", "tau": "bound"}, ""),
            ("", "try:\n    int('')\nexcept ValueError as e:\n    pass", {"e": "deleted"}, "int ValueError"),
            ("", "for i in ():\n    pass\nelse:\n    i = 1\ndel i", {"i": "deleted"}, ""),
            ("x = 0\ndef f():\n    global x\n    x = 0", "f()", {"x": "bound"}, "f"),
            ("x = 0", "import __main__\n__main__.x = 0", {"__main__": "bound", "x": "bound"}, ""),
            ("x = 0", "exec('x = 0')", {"x": "bound"}, "exec"),
            ("x = 0", "exec('x = 0', globals(), {})", {}, "* exec globals"),
            ("x = 0", "class A:\n    x = 0", {"A": "bound"}, ""),
            ("x = 0", "v = [x := 0 for _ in (1,)]", {"v": "bound", "x": "bound"}, ""),
            ("x = 0", "try:\n    x = 0\nfinally:\n    pass", {"x": "bound"}, ""),
            ("x = 0", "while True:\n    x = 0\n    break", {"x": "bound"}, ""),
        ]
        for before, step, wrote, reads in cases:
            with self.subTest(step), Worker({"values.units": UNITS, "world.channels": CHANNELS}) as worker:
                worker.run(before, "before")
                reply = worker.run(step)
                self.assertEqual(reply["ending"]["kind"], "ok", reply)
                found = {entity[2:]: kind for entity, kind in reply["wrote"].items()}
                if "*" in step and "math" in step:
                    found = {name: found[name] for name in wrote}
                read = names_read(reply)
                if sys.version_info < (3, 12):
                    # What may not have happened counts as read there, which is equivalent.
                    wrote = {name: kind for name, kind in wrote.items() if name in found or name not in read}
                    read -= {"x"} - set(reads.split())
                self.assertEqual(found, wrote)
                self.assertEqual(read, set(reads.split()))

    def test_a_builtin_is_found_behind_the_names_and_not_among_them(self):
        steps = [
            "for i in range(3):\n    len\n    if i == 1:\n        len = None\nassert len is None\ndel len\nassert len('ab') == 2",
            "def f():\n    return len('ab')\nf()\nlen = lambda x: 7\nassert f() == 7\ndel len\nassert f() == 2",
            "def f():\n    global len\n    len = 3\nlen\nf()\nassert len == 3\ndel len",
            "import builtins\nkept = max\nmax(1, 2)\nbuiltins.max = min\nassert max(1, 2) == 1\nbuiltins.max = kept",
            "import builtins\nbuiltins.mine = 1\nmine\ndel builtins.mine\ntry:\n    mine\nexcept NameError:\n    x = 1\nassert x",
            "len\ntry:\n    (lambda: 0).__globals__['len']\nexcept KeyError:\n    x = 2\nassert x == 2",
            "len\nexec('len')\ntry:\n    globals()['len']\nexcept KeyError:\n    x = 3\nassert x == 3",
            "import inspect\ndef f():\n    return len\nf()\nassert not inspect.getclosurevars(f).globals",
        ]
        for step in steps:
            with self.subTest(step), Worker({"values.units": UNITS, "world.channels": CHANNELS}) as worker:
                reply = worker.run(step)
                self.assertEqual(reply["ending"]["kind"], "ok", reply)

    def test_a_second_run_of_a_function_is_reported_again(self):
        with Worker({"values.units": UNITS, "world.channels": CHANNELS}) as worker:
            worker.run("k = 1\ndef f():\n    return k")
            for _ in range(3):
                self.assertEqual(names_read(worker.run("v = f()")), {"f", "k"})

    def test_what_the_step_binds_and_deletes_is_reported(self):
        with Worker({"values.units": UNITS, "world.channels": CHANNELS}) as worker:
            worker.run("a = []\nb = a\nc = 1\nd = 2")
            reply = worker.run("b = a\nc = 3\ndel d\ne = 4\ne2 = 5\ndel e2")
            wrote = {"b": "bound", "c": "bound", "d": "deleted", "e": "bound", "e2": "deleted"}
            self.assertEqual(reply["wrote"], {"n:" + name: how for name, how in wrote.items()})
            self.assertEqual(names_read(reply), {"a", "d"})

    @unittest.skipIf(sys.version_info < (3, 12), "the tool is that of later versions")
    def test_a_step_that_takes_the_tool_has_read_everything(self):
        with Worker({"values.units": UNITS, "world.channels": CHANNELS}) as worker:
            worker.run("import sys\nx = 1")
            for taken in (
                "for i in range(6):\n    if sys.monitoring.get_tool(i):\n        sys.monitoring.free_tool_id(i)\n        sys.monitoring.use_tool_id(i, 'mine')",
                "for i in range(6):\n    if sys.monitoring.get_tool(i):\n        sys.monitoring.set_events(i, 0)",
                "for i in range(6):\n    if sys.monitoring.get_tool(i):\n        sys.monitoring.register_callback(i, sys.monitoring.events.INSTRUCTION, None)",
            ):
                self.assertIn("*", names_read(worker.run(taken)))
                self.assertEqual(names_read(worker.run("y = x")), {"x"})
