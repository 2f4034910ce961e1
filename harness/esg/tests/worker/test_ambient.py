"""Ambient channels: state inside packages that programs set on purpose."""

import os
import tempfile
import unittest

from driver import Worker
from test_field import PLACE, installed

LIBRARY = """import csv, logging
csv.field_size_limit(99)
logging.getLogger("library").addHandler(logging.NullHandler())
logging.getLogger("library.part").setLevel(30)
"""

# A package with settings of its own, which opens files without Python.
NATIVE = """import ctypes, json
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
def _open(path, mode):
    return ctypes.c_void_p(libc.fopen(path.encode(), mode))
def write_parquet(path, text):
    opened = _open(path, b"w")
    libc.fputs(text.encode(), opened)
    libc.fclose(opened)
def read_parquet(path):
    opened, held = _open(path, b"r"), ctypes.create_string_buffer(99)
    libc.fgets(held, 99, opened)
    libc.fclose(opened)
    return held.value.decode()
class Config:
    digits = 2
    @classmethod
    def state(cls):
        return {"POLARS_ROWS": None, "digits": cls.digits}
    @classmethod
    def load(cls, text):
        cls.digits = json.loads(text)["direct"]["digits"]
"""


class AmbientTest(unittest.TestCase):
    def setUp(self):
        self.worker = Worker()
        self.addCleanup(self.worker.close)

    def run_step(self, source):
        reply = self.worker.run(source)
        self.assertEqual(reply["ending"], {"kind": "ok"}, reply)
        return reply

    def stored(self, reply, entity):
        """A function that restores the one channel that a step changed."""
        self.assertEqual(reply["wrote"], {entity: "mutated"})
        [unit] = reply["units"]
        self.assertIsNone(unit.get("unserializable"))
        blob = self.worker.blob[unit["blob"][0]:sum(unit["blob"])]
        loaded = [{**unit, "key": "9.1", "blob": [0, len(blob)], "take": [entity]}]
        return lambda: self.worker.ask("sync", blob, load=loaded)

    def test_the_switches_of_logging_are_state(self):
        self.run_step("import logging, warnings")
        look = ("print(logging.getLevelName(25), logging.getLoggerClass().__name__, warnings.showwarning.__name__, "
                "logging.getLogRecordFactory().__name__)")
        make = "def make(*args, old=logging.LogRecord): return old(*args)\nlogging.setLogRecordFactory(make)\ndel make"
        # What restores one of them leaves the others.
        for change, after in (("logging.addLevelName(25, 'NOTE')", "NOTE Logger showwarning LogRecord\n"),
                              ("logging.captureWarnings(True)", "NOTE Logger _showwarning LogRecord\n"),
                              (make, "NOTE Logger _showwarning make\n")):
            entity = "p:ambient/logging" + ".warnings" * ("capture" in change)
            reply = self.run_step(change)
            self.assertIn(entity, reply["wrote"])
            [unit] = [unit for unit in reply["units"] if unit["members"][0]["entity"] == entity]
            blob = self.worker.blob[unit["blob"][0]:sum(unit["blob"])]
            self.worker.ask("sync", drop=[entity])
            self.assertNotEqual(self.run_step(look)["stdout"]["text"], after)
            self.worker.ask("sync", blob, load=[{**unit, "key": "9.1", "blob": [0, len(blob)], "take": [entity]}])
            self.assertEqual(self.run_step(look)["stdout"]["text"], after)
        self.worker.ask("sync", drop=["p:ambient/logging.warnings"])
        reply = self.run_step("class Mine(logging.Logger): pass\nlogging.setLoggerClass(Mine)")
        self.assertEqual(reply["units"][-1]["unserializable"], "an object of the program")
        self.worker.ask("sync", drop=["p:ambient/logging"])
        self.assertEqual(self.run_step(look)["stdout"]["text"], "Level 25 Logger showwarning LogRecord\n")

    def test_attributes_of_loggers_are_state(self):
        self.run_step("import logging\none = logging.getLogger('one')")
        look = "print(getattr(logging.getLogger('one'), 'tag', None))"
        reply = self.run_step("one.tag = 'first'")
        self.assertEqual(reply["wrote"], {"p:ambient/logging": "mutated"})
        restore = self.stored(reply, "p:ambient/logging")
        self.assertEqual(self.run_step("one.tag, one.other = 'second', 1")["wrote"], {"p:ambient/logging": "mutated"})
        self.worker.ask("sync", drop=["p:ambient/logging"])
        self.assertEqual(self.run_step(look)["stdout"]["text"], "None\n")
        restore()
        self.assertEqual(self.run_step(look)["stdout"]["text"], "first\n")
        reply = self.run_step("one.tag = print")
        self.assertEqual(reply["units"][0]["unserializable"], "an attribute of a logger")

    def test_what_a_handler_refers_to_changes_with_what_is_logged(self):
        self.run_step("import io, logging\nout = io.StringIO()\nkept, apart = [], []")
        add = ("class Keep(logging.Handler):\n    def __init__(self, into):\n        super().__init__()\n        self.into = into\n"
               "    def emit(self, record): self.into.append(record.getMessage())\n"
               "logging.getLogger('a').addHandler(logging.StreamHandler(out))\nlogging.getLogger('a').addHandler(Keep(kept))")
        reply = self.run_step(add)
        # Their content is as before. What was stored of them is none of what the handlers have.
        self.assertEqual({"n:out", "n:kept"} & reply["wrote"].keys(), {"n:out", "n:kept"})
        self.assertEqual([unit["unserializable"] for unit in reply["units"] if unit["members"][0]["entity"] in ("n:out", "n:kept")],
                         ["a part of the state of a package"] * 2)
        reply = self.run_step("logging.getLogger('a.b').warning('first')")
        self.assertEqual({"n:out", "n:kept", "p:ambient/logging"} - reply["wrote"].keys(), set())
        self.assertEqual({"n:out", "n:kept", "p:ambient/logging"} - {*reply["reads"]}, set())
        self.assertNotIn("n:apart", reply["wrote"])
        self.assertEqual(self.run_step("apart.append(1)")["wrote"], {"n:apart": "mutated"})
        # A step that does not log reads none of that, after a restore either.
        self.worker.ask("sync", drop=["p:ambient/logging"])
        reply = self.run_step("apart.append(2)")
        self.assertEqual((reply["reads"], reply["wrote"]), (["n:apart"], {"n:apart": "mutated"}))
        self.run_step("logging.getLogger('a').addHandler(logging.StreamHandler(out))\n"
                      "logging.getLogger('a').addHandler(Keep(kept))")
        reply = self.run_step("logging.getLogger('a').handlers.clear()")
        self.assertEqual([unit.get("unserializable") for unit in reply["units"] if unit["members"][0]["entity"] in ("n:out", "n:kept")],
                         [None] * 2)
        self.assertEqual(self.run_step("logging.getLogger('a').debug('second')")["wrote"], {})

    def test_a_module_that_is_out_of_sight_has_no_state(self):
        self.run_step("import csv, sys\ncsv.field_size_limit(10)")
        for source in ("del sys.modules['_csv']", "csv.field_size_limit(20)"):
            found = self.run_step(source)["untracked"]
            self.assertEqual([it for it in found if "ambient" in it["what"]], [])

    def test_what_an_import_sets_is_the_environments(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        for name in ("first", "second"):
            with open(os.path.join(home.name, f"{name}.py"), "w", encoding="utf-8") as opened:
                opened.write(LIBRARY.replace("library", name))
        self.worker = Worker(path=[home.name])
        self.addCleanup(self.worker.close)
        reply = self.run_step("import csv, logging, sys\nlogging.basicConfig(level=20, stream=sys.stdout)")
        self.assertIn("p:ambient/logging", reply["wrote"])
        self.assertEqual(self.run_step("import first")["wrote"], {"n:first": "bound"})
        self.assertEqual(self.worker.ask("sweep", accounted=[])["unattributed"], [])
        reply = self.run_step(
            "logging.getLogger('first.part').setLevel(10)\nlogging.getLogger('first').setLevel(10)\ncsv.field_size_limit(50)"
        )
        self.assertEqual(sorted(reply["wrote"]), ["p:ambient/csv", "p:ambient/logging"])
        # It refers to no handler, which would look as if the program held it.
        self.assertEqual([unit.get("unserializable") for unit in reply["units"]], [None, None])
        self.worker.ask("sync", drop=["p:ambient/logging"])
        self.assertEqual(self.run_step("import second")["wrote"], {"n:second": "bound"})
        # What the program set stays its own, and where it set nothing, what the import left is there again.
        look = "print([(one.level, len(one.handlers)) for one in map(logging.getLogger, ('', 'first', 'first.part', 'second'))])"
        self.assertEqual(self.run_step(look)["stdout"]["text"], "[(30, 0), (0, 1), (30, 0), (0, 1)]\n")
        self.worker.ask("sync", drop=["p:ambient/csv"])
        self.assertEqual(self.run_step("print(csv.field_size_limit())")["stdout"]["text"], "99\n")

    @unittest.skipUnless(installed("mpmath"), "mpmath is not installed")
    def test_the_precision_of_mpmath_is_restored(self):
        self.worker = Worker(path=[PLACE])
        self.addCleanup(self.worker.close)
        self.run_step("from mpmath import *\nimport mpmath")
        show = "print(pi + 0, mp.dps, iv.prec)"
        first = self.run_step(show)["stdout"]["text"]
        # Its functions and constants are as they were, and share nothing.
        reply = self.run_step("mp.dps = 30\niv.prec = 99\nmp.pretty = True")
        restore = self.stored(reply, "p:ambient/mpmath")
        second = self.run_step(show)
        self.assertIn("p:ambient/mpmath", second["reads"])
        self.assertEqual(second["stdout"]["text"], "3.14159265358979323846264338328 30 99\n")
        self.worker.ask("sync", drop=["p:ambient/mpmath"])
        self.assertEqual(self.run_step(show)["stdout"]["text"], first)
        restore()
        self.assertEqual(self.run_step(show)["stdout"]["text"], second["stdout"]["text"])

    @unittest.skipUnless(installed("matplotlib"), "matplotlib is not installed")
    def test_a_registered_colormap_is_restored(self):
        self.worker = Worker(path=[PLACE])
        self.addCleanup(self.worker.close)
        self.run_step("import matplotlib\nfrom matplotlib.colors import ListedColormap")
        reply = self.run_step("matplotlib.colormaps.register(ListedColormap(['red', 'blue'], name='duo'))")
        restore = self.stored(reply, "p:ambient/matplotlib.colormaps")
        # To use one computes its colors.
        use = self.run_step("print(matplotlib.colormaps['duo'](0), 'duo' in matplotlib.colormaps)")
        self.assertNotIn("p:ambient/matplotlib.colormaps", use["wrote"])
        self.worker.ask("sync", drop=["p:ambient/matplotlib.colormaps"])
        self.assertEqual(self.run_step("print('duo' in matplotlib.colormaps)")["stdout"]["text"], "False\n")
        restore()
        again = self.run_step("print(matplotlib.colormaps['duo'](0), 'duo' in matplotlib.colormaps)")
        self.assertEqual(again["stdout"]["text"], use["stdout"]["text"])

    @unittest.skipUnless(installed("pandas"), "pandas is not installed")
    def test_what_prints_depends_on_how_arrays_and_frames_are_printed(self):
        self.worker = Worker(path=[PLACE])
        self.addCleanup(self.worker.close)
        arrays, frames = "p:ambient/numpy.print", "p:ambient/pandas.display"
        self.run_step("import numpy as np\nimport pandas as pd\nx = np.arange(3) / 7\nf = pd.DataFrame({'x': x})")
        for source, used in (
            ("y = x * 2\ng = f.groupby('x').sum()\nprint(len(g), y.mean())", set()),
            ("t = str(x)", {arrays}),
            ("t = f'{f}'", {arrays, frames}),
            ("f.info()", {frames}),
            ("t = np.array2string(x)", {arrays}),
            ("d = pd.get_option('display.width')", {frames}),
            ("with pd.option_context('display.width', 40):\n    pass", {frames}),
        ):
            reply = self.run_step(source)
            self.assertEqual({arrays, frames} & set(reply["reads"]), used, source)
            self.assertEqual({arrays, frames} & set(reply["wrote"]), set(), source)
        self.assertIn(arrays, self.run_step("np.set_printoptions(precision=2)")["wrote"])
        self.assertIn(frames, self.run_step("pd.options.display.precision = 3")["wrote"])
        self.worker.ask("sync", drop=[arrays, frames])
        self.assertEqual(self.run_step("print(x[1], x, f)")["stdout"]["text"].count("0.142857"), 3)

    @unittest.skipUnless(installed("pandas"), "pandas is not installed")
    def test_a_function_of_the_program_that_is_an_option_is_restored(self):
        self.worker = Worker(path=[PLACE])
        self.addCleanup(self.worker.close)
        self.run_step("import pandas as pd\nsign = '!'\ndef made(digits):\n    return lambda v: f'{v:.{digits}f}{sign}'")
        reply = self.run_step("pd.set_option('display.float_format', made(2))")
        restore = self.stored(reply, "p:ambient/pandas.display")
        show = "print(pd.Series([1.23456]).to_string())"
        reply = self.run_step(show)
        self.assertEqual(reply["stdout"]["text"], "0   1.23!\n")
        # It is the same as before.
        self.assertNotIn("p:ambient/pandas.display", reply["wrote"])
        self.worker.ask("sync", drop=["p:ambient/pandas.display"])
        self.assertEqual(self.run_step(show)["stdout"]["text"], "0    1.23456\n")
        restore()
        self.run_step("sign = '?'")
        self.assertEqual(self.run_step(show)["stdout"]["text"], "0   1.23?\n")
        # Where it stands in the source makes no difference.
        self.run_step("\n\n\ndef made(digits):\n    return lambda v: f'{v:.{digits}f}{sign}'")
        self.assertEqual(self.run_step("pd.set_option('display.float_format', made(2))")["wrote"], {})

    def test_only_a_step_with_decimals_depends_on_their_context(self):
        self.run_step("from decimal import Decimal as D, getcontext as now\nk, v = [1], {'a': [D(1)]}\nclass A: fee = D(2)\na = A()")
        for source, depends in (
            ("x = [len(k)]", False), ("def f(): return k", False), ("s = 'a'.upper()", False), ("c = v['a'][0] / 3", True),
            ("z = a.fee * 2", True), ("w = D('1')", True), ("now().prec = 7", True), ("g = {'d': D}", True), ("h = g['d'](1)", True),
        ):
            with self.subTest(source):
                self.assertEqual("p:ambient/decimal" in self.run_step(source)["reads"], depends)

    @unittest.skipUnless(installed("sympy"), "sympy is not installed")
    def test_an_attribute_set_on_what_a_package_holds_is_untracked(self):
        self.worker = Worker(path=[PLACE])
        self.addCleanup(self.worker.close)
        self.run_step("from sympy import ZZ\nfrom mpmath import mp")
        reply = self.run_step("ZZ.mark = 3\nmp.dps = 20")
        self.assertEqual([it["what"] for it in reply["untracked"]], ["sympy.polys.domains.integerring.ZZ.mark was replaced"])

    @unittest.skipUnless(installed("numpy"), "numpy is not installed")
    def test_a_masked_array_is_restored_where_its_module_was_not_loaded(self):
        self.worker = Worker(path=[PLACE])
        self.addCleanup(self.worker.close)
        reply = self.run_step("import numpy\nm = numpy.ma.array([1, 2], mask=[0, 1])\ndel numpy")
        [unit] = [unit for unit in reply["units"] if unit["members"][0]["entity"] == "n:m"]
        blob = self.worker.blob[unit["blob"][0]:sum(unit["blob"])]
        self.worker = Worker(path=[PLACE])
        self.addCleanup(self.worker.close)
        self.worker.ask("sync", blob, load=[{**unit, "key": "9.1", "blob": [0, len(blob)], "take": ["n:m"]}])
        self.assertEqual(self.run_step("print(m)")["stdout"]["text"], "[1 --]\n")

    @unittest.skipUnless(installed("pandas"), "pandas is not installed")
    def test_an_accessor_that_is_registered_is_untracked(self):
        self.worker = Worker(path=[PLACE])
        self.addCleanup(self.worker.close)
        self.run_step("import pandas as pd")
        reply = self.run_step("@pd.api.extensions.register_series_accessor('x')\nclass X:\n    def __init__(self, held): pass")
        self.assertEqual([it["what"] for it in reply["untracked"]], ["pandas.api.extensions.register_series_accessor"])

    def test_files_that_a_package_opens_by_itself_are_dependencies(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        with open(os.path.join(home.name, "polars.py"), "w", encoding="utf-8") as opened:
            opened.write(NATIVE)
        self.worker = Worker(path=[home.name])
        self.addCleanup(self.worker.close)
        self.run_step("import polars")
        self.assertEqual(self.run_step("polars.write_parquet('a', 'x')")["wrote"], {"f:a": "bound"})
        reply = self.run_step("print(polars.read_parquet('a'))")
        self.assertEqual(reply["stdout"]["text"], "x\n")
        self.assertIn("f:a", reply["reads"])
        # Files elsewhere are external work.
        self.assertTrue(reply["clock"])
        self.assertEqual(self.run_step("polars.Config.digits = 5")["wrote"], {"p:ambient/polars.config": "mutated"})
        self.worker.ask("sync", drop=["p:ambient/polars.config"])
        self.assertEqual(self.run_step("print(polars.Config.digits)")["stdout"]["text"], "2\n")

    def test_the_arguments_stay(self):
        reply = self.run_step("import sys\nargs = ['tool', 'a']\nsys.argv = args")
        self.assertIn("p:ambient/sys.argv", str(reply["wrote"]))
        reply = self.run_step("print(sys.argv[1])")
        self.assertEqual(reply["stdout"]["text"], "a\n")
        self.assertIn("p:ambient/sys.argv", str(reply["reads"]))
        self.assertEqual(reply["untracked"], [])
