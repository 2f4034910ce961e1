"""`is` between immutable values: reported where it may have made a difference, and nowhere else."""

import sys
import unittest

from driver import Worker

MODEL = """
import enum
from dataclasses import dataclass
from collections import namedtuple
class Kind(enum.Enum):
    A = "a"
    B = "b"
@dataclass
class Item:
    name: str
    kind: Kind
@dataclass(slots=True)
class Slot:
    name: str
    kind: Kind
Row = namedtuple("Row", "name kind")
class Asked:
    @property
    def name(self):
        return "ab" * 2
class Late:
    def __getattr__(self, name):
        return "ab" * 2
items = [Item("n%d" % (i % 7), (Kind.A, Kind.B)[i % 2]) for i in range(9000)]
slots = [Slot("n%d" % (i % 7), Kind.A) for i in range(9)]
rows = [Row("n%d" % (i % 7), Kind.A) for i in range(9)]
texts = ["ab" * n for n in (2, 2, 3)]
def same(x, y):
    return x is y
class Method:
    def find(self, wanted):
        return [i for i in items[:9] if i.name is wanted]
"""
# Whether identity counts: the values are equal and immutable.
SAME = (
    "r = texts[0] is texts[1]",
    "r = {'a': texts}['a'][0] is texts[1]",
    "held = {'a': [texts[0]]}\nr = held['a'][-1] is texts[1]",
    "r = [a is b for a in texts for b in texts]",
    "r = any(a is b for a in texts for b in texts)",
    "r = same(texts[0], texts[1])",
    "r = [same(a, texts[0]) for a in texts]",
    "r = sum(1 for i in items[:20] for j in items[:20] if i.name is j.name)",
    "r = sum(1 for i in slots for j in slots if i.name is j.name)",
    "r = Method().find(items[0].name)",
    "wanted = items[0].name\nr = [i for i in items[:9] if i.name is wanted]",
    "r = [i for i in items[:9] if items[0].name is not i.name]",
    "import types\nr = types.FunctionType(same.__code__, {})(texts[0], texts[1])",
    "r = [a is b for a in map(Asked, ()) for b in ()] + [same(o.name, texts[0]) for o in [Asked()]]",
)
# What the frame does not show counts as long as equal values are there.
UNKNOWN = (
    "r = [o.name is a for o in [Late()] for a in texts]",
    "r = [a is texts[1] for a in texts]",
)
DIFFERENT = (
    "r = texts[0] is texts[2]",
    "held = {'a': [items[3]], 'b': texts}\nr = held['a'][0] is items[3]",
    "held = {'a': Late(), 'b': texts}\nheld['a'].item = items[3]\nr = held['a'].item is not items[2]",
    "r = {k.value: sum(1 for i in items if i.kind is k) for k in Kind}",
    "r = [i for i in slots if i.kind is Kind.A]",
    "r = [i for i in slots for j in slots if i.kind is j.kind]",
    "r = [same(i, items[1]) for i in items]",
    "r = [same(i.kind, Kind.A) for i in items]",
    "r = [same(a, None) for a in texts]",
    "r = same(texts[0], texts[2])",
    "r = [i for i in items if i.name is i]",
    "def found():\n    for i in items:\n        for k in Kind:\n            if i.kind is not k:\n                return i\nr = found()",
    "def never():\n    return [a is b for a in texts for b in texts]",
)


@unittest.skipIf(sys.version_info < (3, 12), "there are no events of instructions")
class TestIdentity(unittest.TestCase):
    def setUp(self):
        self.worker = Worker(strictness="packages")
        self.addCleanup(self.worker.close)
        self.assertEqual(self.worker.run(MODEL)["untracked"], [])

    def reports(self, source):
        reply = self.worker.run(source)
        self.assertEqual(reply["ending"], {"kind": "ok"}, source)
        return [found for found in reply["untracked"] if found["what"].startswith("identity")]

    def test_equal_values_that_are_compared_are_reported(self):
        for source in (*SAME, *UNKNOWN):
            with self.subTest(source):
                self.assertTrue(self.reports(source))

    def test_values_that_differ_are_not(self):
        for source in DIFFERENT:
            with self.subTest(source):
                self.assertEqual(self.reports(source), [])

    def test_the_line_is_that_of_the_comparison(self):
        self.assertEqual(self.reports("r = 0\nr = [a is b\n  for a in texts for b in texts]")[0]["line"], 2)


if __name__ == "__main__":
    unittest.main()
