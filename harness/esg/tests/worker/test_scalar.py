"""Scalar steps: which steps they are, and that their replies equal those of the full path."""

import sys
import unittest
import warnings

import support  # noqa: F401  makes the worker's files importable
from test_calm import Both

from _harness.loop.scalar import foresee, read_and_bound

# Scalar steps, with their reads and bindings for `x` = 1 and a string `t`.
SCALAR = [
    ("pass", "", ""),
    ("5", "", ""),
    ("y = 5", "", "y"),
    ("x = 1", "", "x"),
    ("x = x + 1", "x", "x"),
    ("x += 0", "x", ""),
    ("x = x", "x", ""),
    ("y = x; x = 2; z = x", "x", "x y z"),
    ("y = 1; z = y", "", "y z"),
    ("y = -x * 2 // 3 % 4 - x / 7", "x", "y"),
    ("y = x < 2", "x", "y"),
    ("y = 'e' in t", "t", "y"),
    ("y = t + '!' * 3", "t", "y"),
    ("y = '%d' % x", "x", "y"),
    ("y = z = x", "x", "y z"),
    ("x, t = t, x", "x t", "x t"),
    ("x", "x", ""),
    ("y = (x + 1) * (2 - x)  # a sum", "x", "y"),
    ("x / 0", "x", ""),
]
# What the compiler may warn about, although it generates no code for it.
WARNED = [
    r"y = '\d'",
    r"y = b'\777'",
    "y = 1or 2",
    "y = 0xfor 2",
    "y = 1.or 2",
    "if 0: 'a'()",
    "y = 1 or 'a' ()",
    "y = 1 or (2)(3)",
    "y = 1 or 'a'['b']",
    "y = 1 or x is 2",
    "if 0:\n assert (1, 'a')",
]
if sys.version_info >= (3, 12):
    WARNED.append("y = ~True")
# Other steps: code of the program could run, or the result could be any value.
OTHERS = [
    "'what it says of itself'",
    "print(x)",
    "y = len",
    "len",
    "missing",
    "y = x if x else 2",
    "for i in 'ab': y = i",
    "y = ~x",
    "y = x is None",
    "y = not x",
    "y = x ** 0.5",
    "x **= 0.5",
    "y = 1j",
    "y = (x, 1)",
    "y = 1, 2",
    "y = ...",
    "y = f'{x}'",
    "y: int = x",
    "del x",
    "import math",
    "y = v",
    "v = 1",
    "y = t.upper",
    "y = t[0]",
    "y = __name__",
    "__name__ = 'y'",
    "__builtins__ = 1",
    "settrace = 1",
    "y = '__globals__'",
    "def y(): pass",
    "y = lambda: x",
    "assert x",
    "raise",
]


class Text(str):
    __hash__ = str.__hash__

    def __eq__(self, other):
        raise AssertionError("it is asked")


class TestWhichTheyAre(unittest.TestCase):
    def names(self):
        return {"__name__": "__main__", "__builtins__": {}, "x": 1, "t": "text", "v": [1]}

    def foreseen(self, source, names=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return foresee(source, compile(source, "<step:s>", "exec"), names or self.names())

    def test_those_that_are_scalar(self):
        for source, read, bound in SCALAR:
            with self.subTest(source):
                uses, before = self.foreseen(source)
                after = dict(before)
                try:
                    exec(source, after)
                except ZeroDivisionError:
                    pass
                found = read_and_bound(uses, before, after)
                self.assertEqual(found, (set(read.split()), set(bound.split())))

    def test_others(self):
        for source in OTHERS:
            with self.subTest(source):
                self.assertIsNone(self.foreseen(source))

    def test_those_that_the_compiler_warns_of(self):
        for source in WARNED:
            with self.subTest(source):
                self.assertIsNone(self.foreseen(source))

    def test_a_key_that_is_no_plain_text(self):
        self.assertIsNone(self.foreseen("y = 1", {Text("z"): 1}))

    def test_many_names(self):
        """Arguments of more than a byte have a prefix."""
        source = "; ".join("a%d = 1" % at for at in range(300))
        self.assertIsNone(self.foreseen(source))


class TestWhatIsSaidOfThem(Both):
    def test_as_of_others(self):
        for at, (source, _, _) in enumerate(SCALAR):
            with self.subTest(source):
                self.both("x = 1; t = 'text'; v = [1]", "a%d" % at)
                self.both(source, "b%d" % at)
                self.both(source, "c%d" % at)
        for at, source in enumerate(OTHERS):
            with self.subTest(source):
                self.both("x = 1; t = 'text'; v = [1]", "d%d" % at)
                self.both(source, "e%d" % at)

    def test_a_warning_of_the_compiler(self):
        self.both("x = 1; shown = []\nimport warnings\nwarnings.simplefilter('always')")
        for at, source in enumerate(WARNED):
            with self.subTest(source):
                self.assertIn("Warning", self.both(source, "a%d" % at)["stderr"]["text"])
        self.both("def show(*shown): print('warned')\nwarnings.showwarning = show")
        for at, source in enumerate(WARNED):
            with self.subTest(source):
                self.assertEqual(self.both(source, "b%d" % at)["stdout"]["text"], "warned\n")

    def test_those_that_fail(self):
        for at, source in enumerate((
            "y = x\nx = 2\nz = x / 0\nw = 1",
            "y = 1\nz = y\nx + t",
            "x / 0",
            "x = 3\nx = x + 1\nv = x\nx = t % 5",
            "y = 1 << -x",
        )):
            with self.subTest(source):
                self.both("x = 1; t = 'text'", "a%d" % at)
                self.assertEqual(self.both(source, "b%d" % at)["ending"]["kind"], "raised")
                # Its bindings up to then stay.
                self.both("r = repr(sorted((k, globals()[k]) for k in 'vwxyz' if k in globals()))", "c%d" % at)
                for worker in self.workers:
                    worker.ask("sync", drop=["n:v", "n:w", "n:y", "n:z"])

    def test_garbage_is_not_theirs(self):
        """Freeing garbage may run code of the program: that of an unfinished generator."""
        worker = self.workers[0]
        worker.run("y = 0\ndef g():\n    try: yield\n    finally: print(y)")
        worker.run("x = g(); next(x); x = [x]; x.append(x); x = 1")
        for at in range(1000):
            worker.run("y = %d" % at)
        reply = worker.run("z = [[] for _ in range(5000)]")
        self.assertEqual(reply["stdout"]["text"], "999\n")

    def test_where_code_runs_whenever_it_likes(self):
        """Its effects are reported for the step in which they happen."""
        self.both("import sys\ndef hook(event, args):\n    if event == 'exec': print(event)")
        self.assertTrue(self.both("sys.addaudithook(hook)")["untracked"])
        self.assertEqual(self.both("x = 1")["stdout"]["text"], "exec\n")

    def test_readings_that_do_not_fit(self):
        for worker in self.workers:
            reply = worker.run("x = 1", readings=[["time", 1]])
            self.assertEqual([one["what"] for one in reply["untracked"]], ["the readings to replay do not fit"])

    def test_names_of_the_builtins(self):
        """A builtin that a step has replaced or added is not a plain value."""
        self.both("import builtins\nbuiltins.added = 1")
        self.assertIn("m:builtins", self.both("x = added")["reads"])
        self.both("added = 2")
        self.assertEqual(self.both("x = added")["reads"], ["n:added"])


if __name__ == "__main__":
    unittest.main()
