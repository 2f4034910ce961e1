"""Names that functions of packages look up in the frames of their callers."""
import types
import unittest

import support  # noqa: F401 - makes the worker importable
from driver import Worker
from test_field import PANDAS, PLACE
from _harness.world import lookups
from _harness.world.traits import Reader


class LookupsTest(unittest.TestCase):
    def module(self, name, source):
        made = types.ModuleType(name)
        exec(source, vars(made))
        self.found = []
        for _ in range(2):
            lookups.watch(made, name, self.found.extend)
        return made

    def test_a_key_is_noted_once_and_before_the_lookup_fails(self):
        made = self.module("patsy.eval", "class VarLookupDict:\n    def __getitem__(self, key): raise KeyError(key)")
        with self.assertRaises(KeyError):
            made.VarLookupDict()["scaled"]
        self.assertEqual(self.found, ["scaled"])

    def test_what_a_function_finds_is_noted(self):
        made = self.module("cloudpickle.cloudpickle", "def _extract_code_globals(co): return {'K': None}")
        self.assertEqual(made._extract_code_globals(None), {"K": None})
        self.assertEqual(self.found, ["K"])

    def test_the_words_of_a_text_are_noted(self):
        made = self.module("numpy.matrixlib.defmatrix", "def _from_string(str, gdict, ldict): return 1")
        made._from_string("A, B; B C", {}, {})
        self.assertEqual(self.found, ["A", "B", "B", "C"])

    def test_a_version_without_the_function_is_left_alone(self):
        self.assertEqual(vars(self.module("polars.sql.context", "x = 1"))["x"], 1)
        self.module("pandas.core.computation.scope", "class Scope: pass")

    @unittest.skipUnless(PANDAS, "pandas is not installed")
    def test_a_query_reads_what_it_names(self):
        with Worker(path=[PLACE]) as worker:
            worker.run("import pandas as pd\nf = pd.DataFrame({'x': [1, 5]})\nn = 3\nother = 1")
            for step, reads in (("g = f.query('x > @n')", {"f", "n"}), ("h = f.eval('x + 1')", {"f"}),
                                ("def k(m):\n    return f.query('x > @m + @n')\ng = k(other)", {"f", "n", "other"})):
                found = {name[2:] for name in worker.run(step)["reads"] if name[0] in "n*"}
                # Columns are looked up among the names as well.
                self.assertEqual(found - {"x", "m"}, reads, step)

    def test_the_texts_of_code_name_what_a_package_in_c_looks_up(self):
        traits = Reader().one(compile("def f(): q('select max(v) from sales')", "s", "exec"))
        self.assertEqual({*lookups.in_texts({"duckdb"}, traits)} & {"sales", "v", "q"}, {"sales", "v"})
        self.assertEqual({*lookups.in_texts({"numpy"}, traits)}, set())


if __name__ == "__main__":
    unittest.main()
