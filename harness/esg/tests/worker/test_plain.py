"""The fast path for plain values gives the same result as a walk."""
import unittest

from support import Session

from _harness.values import plain
from _harness.values import settle
from _harness.values.pickles import join
from _harness.values.walk import Walk

VALUES = [
    None, True, False, 0, 1, -1, 255, 256, 1 << 31, -(1 << 63), 1 << 300, 0.0, -0.0, 1.5, float("inf"),
    float("nan"), "", "a", "ä", "\ud800", "x" * 300, b"", b"\0", b"y" * 300, "z" * (1 << 16),
]
STEPS = [
    "a = 1; b = 'x'; c = None; d = [1]; e = d",
    "a = 1",
    "a = 2; b = b + 'y'",
    "c = a",
    "d = 5",
    "e = 6.5",
    "f = b",
    "a = [a]; b = a",
    "a = b = 0",
    "del c",
    "c = 3",
]


class Plain(unittest.TestCase):
    def test_a_leaf_is_what_a_walk_gives(self):
        world = Session().graph.world
        for value in VALUES:
            with self.subTest(value=repr(value)[:40]):
                walk = Walk(world, extras=True).run([value])
                leaf, own = plain.leaf(value)
                self.assertEqual((own, join(leaf)), (walk.own(), join(walk)))
                self.assertEqual((leaf.refs, leaf.unserializable, leaf.sure), (walk.refs, walk.unserializable, walk.sure))

    def test_what_is_large_is_walked(self):
        self.assertIsNone(plain.leaf("x" * (1 << 16) + "x"))
        self.assertIsNotNone(plain.leaf("x"))

    def test_steps_settle_as_they_do_the_long_way(self):
        def described():
            session, results = Session(), []
            for step in STEPS:
                before = session.names()
                touched = {"n:" + name for name in before if name in step}
                settled = session.run(step, touched)
                units = [
                    (unit["members"], unit["refs"], unit["unserializable"], unit["blob"], unit["share"])
                    for unit in settled.units
                ]
                results.append((sorted(units, key=repr), settled.mutated, settled.created, settled.back))
                results.append({e: sorted(x.unit.members) for e, x in session.graph.entries.items()})
            return results

        short, real = described(), plain.settle
        calls = []
        plain.settle = lambda *args: calls.append(args) is not None
        try:
            long = described()
        finally:
            plain.settle = real
        self.assertIs(settle.plain, plain)
        self.assertTrue(calls)
        self.assertEqual(short, long)


if __name__ == "__main__":
    unittest.main()
