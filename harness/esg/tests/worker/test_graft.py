"""Names that are bound again without a run of the step that bound them."""
import unittest

from support import Session
from test_field import NUMPY, PANDAS


class GraftTest(unittest.TestCase):
    def bound_again(self, before, take, onto, change, names):
        """A session in which `take` binds `names`, then leaves, `change` runs, and they are bound again; with what that
        changed, or None."""
        s = Session()
        for step in before:
            s.run(step)
        s.run(take)
        units = {s.units["n:" + name]["key"]: s.units["n:" + name] for name in names}
        s.graph.drop(["n:" + name for name in names])
        s.run(change)
        items = [{**unit, "take": [m["entity"] for m in unit["members"] if m["entity"][2:] in names]}
                 for unit in units.values()]
        settled = s.graph.graft(99, items, frozenset("n:" + name for name in onto))
        return s.ns, settled

    def test_an_object_of_what_was_read_is_the_one_that_is_live(self):
        made = "class C:\n    def __init__(self, n): self.n, self.part = n, [n]\nall = [C(n) for n in range(3)]\nother = all[0]"
        takes = "last, parts, two = all[-1], {c.n: c.part for c in all}, [all[1], [C(7)]]"
        ns, settled = self.bound_again([made], takes, ["all"], "other = all[1].part", ["last", "parts", "two"])
        self.assertIs(ns["last"], ns["all"][2])
        self.assertIs(ns["parts"][1], ns["other"])
        self.assertIs(ns["two"][0], ns["all"][1])
        self.assertEqual(ns["two"][1][0].n, 7)
        [unit] = [unit for unit in settled.units if any(m["entity"] == "n:last" for m in unit["members"])]
        self.assertEqual([m["entity"] for m in unit["members"]], ["n:all", "n:last", "n:other", "n:parts", "n:two"])
        self.assertEqual(settled.mutated, set())

    def test_the_attributes_of_an_object_are_its_own(self):
        made = "class C: pass\nc = C()\nc.n = 1\nother = c"
        ns, _ = self.bound_again([made], "held = vars(c)", ["c"], "other = 1", ["held"])
        self.assertIs(ns["held"], vars(ns["c"]))

    def test_what_differs_or_is_unknown_is_refused(self):
        made = "all = [[1], [2]]\nother = all[0]"
        for change in ("all.append(3)", "del all"):
            with self.subTest(change):
                ns, settled = self.bound_again([made], "last = all[-1]", ["all"], change, ["last"])
                self.assertIsNone(settled)
                self.assertNotIn("last", ns)
        # It shares an object with a name that the step cannot have read.
        _, settled = self.bound_again([made, "apart = [5]\nall.append(apart)\nall.pop()"], "last = [all[1], apart]", ["all"],
                                      "other = 1", ["last"])
        self.assertIsNone(settled)

    def test_a_damaged_form_is_refused_and_no_comparison_runs_code(self):
        s = Session()
        s.run("class C:\n    def __eq__(self, other): raise KeyError\nall = [C()]\nother = all[0]")
        s.run("first = all[0]")
        unit = s.units["n:first"]
        s.graph.drop(["n:first"])
        item = {**unit, "take": ["n:first"]}
        self.assertIsNone(s.graph.graft(98, [{**item, "blob": unit["blob"][:-9]}], frozenset(["n:all"])))
        self.assertIsNotNone(s.graph.graft(99, [item], frozenset(["n:all"])))
        self.assertIs(s.ns["first"], s.ns["all"][0])

    @unittest.skipUnless(NUMPY, "numpy is not installed")
    def test_a_view_is_one_of_the_array_that_is_live(self):
        made = ["import numpy as np\nwhole = np.arange(9.0)", "left = whole[:4]"]
        ns, settled = self.bound_again(made, "right = whole[4:]", ["whole"], "left = whole[:3]", ["right"])
        self.assertIsNotNone(settled)
        ns["whole"][8] = -1
        self.assertEqual(ns["right"].tolist(), [4.0, 5.0, 6.0, 7.0, -1.0])

    @unittest.skipUnless(PANDAS, "pandas is not installed")
    def test_a_frame_is_the_one_that_is_live(self):
        made = ["import pandas as pd\nall = {'a': pd.DataFrame({'x': [1.0]}), 'b': pd.DataFrame({'x': [2.0]})}", "a = all['a']"]
        ns, settled = self.bound_again(made, "b = all['b']", ["all"], "a = 1", ["b"])
        self.assertIsNotNone(settled)
        self.assertIs(ns["b"], ns["all"]["b"])


if __name__ == "__main__":
    unittest.main()
