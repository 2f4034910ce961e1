"""Tests of many objects that refer to each other: a level of a walk has some that were met before."""
import random
import subprocess
import sys
import unittest

from support import HERE, Reloading, Session, deep, fresh

from _harness.values import walk

RING = """
class Node:
    def __init__(self, key):
        self.key, self.near, self.pair = key, [], (key, self)
class Slim:
    __slots__ = ("at", "other")
nodes = [Node(at) for at in range(%(n)d)]
slim = [Slim() for _ in range(%(n)d)]
for at, node in enumerate(nodes):
    node.near += [nodes[at - 1], nodes[at * 7 %% len(nodes)], nodes[at - 1], slim[at]]
    slim[at].at, slim[at].other = node, nodes[at * 3 %% len(nodes)]
"""


def edges(rng, n):
    return [[rng.randrange(n) for _ in range(rng.randrange(6))] for _ in range(n)]


class Levels(Reloading):
    def test_a_graph_is_restored(self):
        session = fresh(RING % {"n": 300})
        self.assertIsNone(session.unserializable("nodes"))
        self.answer(session, "\n".join([
            "assert all(node.pair[1] is node for node in nodes)",
            "assert all(node.near[0] is node.near[2] is nodes[at - 1] for at, node in enumerate(nodes))",
            "assert all(node.near[3] is slim[at] and slim[at].at is node for at, node in enumerate(nodes))",
            "assert all(slim[at].other is nodes[at * 3 % 300] for at in range(300))"]))

    def test_random_graphs_are_restored_and_distinguished(self):
        for seed in range(12):
            rng = random.Random(seed)
            n = rng.choice((20, 60, 200))
            kinds = [rng.choice(("N()", "[]", "{}", "D()", "S()")) for _ in range(n)]
            lines = ["class N: pass", "class D(dict): pass", "class S:\n    __slots__ = ('xs', 'one')",
                     "all_ = [%s]" % ", ".join(kinds)]
            made = edges(rng, n)
            for at, (kind, others) in enumerate(zip(kinds, made)):
                parts = "[%s]" % ", ".join(["all_[%d]" % other for other in others] + [repr(rng.choice((1, "x", 2.5, None)))])
                lines.append("all_[%d]%s" % (at, {
                    "N()": ".xs = %s; all_[%d].me = (all_[%d],)" % (parts, at, at), "S()": ".xs = %s" % parts,
                    "[]": "[:] = %s" % parts}.get(kind, ".update(a=%s)" % parts)))
            lines += ["part = all_[%d]" % rng.randrange(n), "other = all_[%d]" % rng.randrange(n)]
            source = "\n".join(lines)
            session = fresh(source)
            self.answer(session)
            with self.subTest(seed=seed):
                self.assertEqual(deep(fresh(source).units, "n:all_"), deep(session.units, "n:all_"))
                at = next(at for at, others in enumerate(made) if len(set(others)) > 1 and kinds[at] == "[]")
                session.run("all_[%d][:2] = all_[%d][1::-1]" % (at, at) if made[at][0] != made[at][1] else
                            "all_[%d][0] = all_" % at)
                self.assertNotEqual(deep(fresh(source).units, "n:all_"), deep(session.units, "n:all_"))


HASHES = """
import support
from _harness.values.levels import types_compare_plainly
def metaclass(name, module):
    return type(name, (type,), {"__module__": module, "__hash__": lambda cls: 1})
found = [types_compare_plainly()]
protocols = metaclass("_ProtocolMeta", "typing_extensions")
found.append(types_compare_plainly())
of_program = metaclass("Meta", "__main__")
print([*found, types_compare_plainly()])
"""


class Packages(Reloading):
    def test_objects_of_packages_are_what_they_are_beside_any_others(self):
        # The interned string is the one that the module has as its name.
        for made in ("ipaddress.ip_address(i)", "collections.Counter(a=i)", "pathlib.PurePosixPath('a%d' % i)",
                     "types.SimpleNamespace(n=i)", "fractions.Fraction(i, 7)", "collections.defaultdict(int, a=i)"):
            source = "import collections, fractions, ipaddress, pathlib, types\nv = [%s for i in range(40)]\nv += [%s, None]"
            names = "'ipaddress', 'collections', 'pathlib', 'types', 'fractions'"
            with self.subTest(made):
                one = fresh(source % (made, names))
                other = fresh(source % (made, ", ".join("''.join(%s)" % list(name) for name in eval(names))))
                self.assertEqual(one.own("v"), other.own("v"))
                self.answer(one, "assert len(v) == 46 and v[45] is None")

    def test_what_a_module_holds_is_known_by_its_name_among_others(self):
        session = fresh("import random, sys\nv = [random.Random(i) for i in range(20)] + [random._inst]\n"
                        "w = [sys.stdout] + [None] * 30")
        self.answer(session, "import random, sys; assert v[20] is random._inst and w[0] is sys.stdout")


class Metaclasses(unittest.TestCase):
    def test_the_hash_of_protocols_is_the_usual_one(self):
        # In a process of its own: other tests have metaclasses, too.
        done = subprocess.run([sys.executable, "-S", "-B", "-c", HASHES], cwd=HERE, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.strip(), "[True, True, False]")


class Together(unittest.TestCase):
    """Names of one graph, of which a walk from one says that most of what the others lead to has not changed."""

    def walks(self, session, source):
        """The changes of a step, and how many walks went to their ends over more than the step's names."""
        run, large = walk.Walk.run, []

        def counted(self, roots, follower=None):
            done = run(self, roots, follower)
            is_cut = follower is not None and follower.cut_off
            if len(self.ordinals()) > 100 and not is_cut and not any([self is one for one in large]):
                large.append(self)
            return done
        walk.Walk.run = counted
        try:
            return session.run(source), len(large)
        finally:
            walk.Walk.run = run

    def test_one_walk_shows_that_no_name_of_a_graph_has_changed(self):
        session = fresh(RING % {"n": 300} + "a, b, c = nodes[3:6]")
        found, walks = self.walks(session, "len(nodes)")
        self.assertEqual((found.mutated, found.units, walks), (set(), [], 1))

    def test_each_change_of_a_graph_is_found(self):
        session = fresh(RING % {"n": 300} + "a, b, c = nodes[3:6]")
        for change in ("nodes[150].key = -1", "nodes[7].near.append(a)", "slim[9].other = slim[8]", "nodes.pop()",
                       "nodes[20].near[0], nodes[20].near[1] = nodes[20].near[1], nodes[20].near[0]",
                       "nodes[40].near = list(nodes[40].near)", "del nodes[5].pair", "nodes[30].__class__ = type('M', (Node,), {})"):
            with self.subTest(change):
                self.assertIn("n:nodes", session.run(change).mutated)
                self.assertEqual(session.run("len(nodes)").mutated, set())

    def test_it_holds_of_a_graph_that_was_restored(self):
        session = fresh(RING % {"n": 300} + "a, b, c = nodes[3:6]")
        items = session.items()
        again = Session()
        self.assertEqual(again.graph.load(items), [])
        found, walks = self.walks(again, "len(nodes)")
        self.assertEqual((found.mutated, walks), (set(), 1))
        self.assertIn("n:a", again.run("nodes[150].key = -1").mutated)

    def test_a_sweep_finds_what_no_step_has_reported(self):
        session = fresh(RING % {"n": 300} + "a, b, c = nodes[3:6]")
        before = {m["entity"]: m["own"] for unit in session.graph.sweep() for m in unit["members"]}
        self.assertEqual(before, {e: session.member(e)["own"] for e in before})
        session.ns["nodes"][77].key = "other"
        after = {m["entity"]: m["own"] for unit in session.graph.sweep() for m in unit["members"]}
        self.assertNotEqual(before["n:nodes"], after["n:nodes"])


if __name__ == "__main__":
    unittest.main()
