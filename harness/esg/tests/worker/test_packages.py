"""Which distribution a module of a package belongs to, and that code of packages costs no tracking."""

import os
import subprocess
import sys
import tempfile
import unittest
import venv
from unittest import mock

from _harness.world import packages
from driver import Worker, sources
from support import Session
from test_field import PLACE, installed


def put(folder, **files):
    os.makedirs(folder)
    for name, text in files.items():
        name = {"top_level": "top_level.txt", "PKG_INFO": "PKG-INFO"}.get(name, name)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as opened:
            opened.write(text)


class PackagesTest(unittest.TestCase):
    def test_distributions_are_found_by_their_records(self):
        with tempfile.TemporaryDirectory() as home:
            about = "Metadata-Version: 2.1\nName: {}\nVersion: {}\n\nVersion: of the text\n"
            rows = "scikit/__init__.py,sha256=x,1\nscikit/core.py,,\nsingle.py,,\n../../bin/tool,,\n"
            put(f"{home}/scikit_learn-1.2.dist-info", METADATA=about.format("scikit-learn", "1.2"), RECORD=rows)
            put(f"{home}/other-3.egg-info", PKG_INFO=about.format("Other", "3"), top_level="other\n_other\n")
            put(f"{home}/empty-1.dist-info")
            with open(f"{home}/old-4.egg-info", "w", encoding="utf-8") as opened:
                opened.write(about.format("old", "4"))
            found = packages._distributions(home)
        expected = {name: ("k:scikit-learn", "1.2") for name in ("scikit", "single")}
        expected.update({name: ("k:Other", "3") for name in ("other", "_other")})
        self.assertEqual({name: found.get(name) for name in expected}, expected)

    @unittest.skipIf(sys.version_info < (3, 12), "no monitoring")
    def test_code_of_packages_is_reported_once_after_an_import(self):
        tracker = sources()["track.monitoring"]
        count = (
            "    def _starts(self, code, _offset):\n"
            "        if code.co_name == '_split_chunks':\n"
            "            dict.__setitem__(self.namespace, 'starts', self.namespace.get('starts', 0) + 1)\n"
        )
        tracker = tracker.replace("    def _starts(self, code, _offset):\n", count)
        with Worker(replaced=[("track.monitoring", tracker)]) as worker:
            worker.run("import textwrap, colorsys, calendar")
            worker.run("import sched\nfor _ in range(50):\n    textwrap.fill('a b')")
            worker.run("from collections import namedtuple\nP = namedtuple('P', 'a b')")
            reply = worker.run("print(starts)")
        self.assertLessEqual(int(reply["stdout"]["text"]), 2)

    def test_what_packages_bind_in_modules_is_no_change_by_the_program(self):
        lazy = "def __getattr__(name):\n    if name != 'Model': raise AttributeError(name)\n" \
               "    made = globals()[name] = type(name, (), {})\n    return made\n"
        patch = "import colorsys\ndef rgb_to_hsv(*color):\n    return 1\ncolorsys.rgb_to_hsv = rgb_to_hsv\n"
        with tempfile.TemporaryDirectory() as home:
            for name, text in (("lazily", lazy), ("patches", patch)):
                with open(f"{home}/{name}.py", "w", encoding="utf-8") as opened:
                    opened.write(text)
            with Worker(path=[home]) as worker:
                worker.run("import colorsys, types")
                for step in ("from lazily import Model", "import patches", "setattr(types, 'n', 1)\nb = colorsys"):
                    reply = worker.run(step)
                    found = [name for name in reply["wrote"] if name.startswith("m:") and name != "m:types"]
                    self.assertEqual((found, reply["untracked"]), ([], []), step)
                for step in ("import lazily\nlazily.Model = 1", "import lazily\nsetattr(lazily, 'Model', 2)",
                             "def put(module): module.other = 3\nput(lazily)"):
                    self.assertIn("m:lazily", worker.run(step)["wrote"], step)

    @unittest.skipUnless(installed("msgspec"), "msgspec is not installed")
    def test_what_a_metaclass_in_c_keeps_of_a_class_is_its_content(self):
        source = "import msgspec\nclass Row(msgspec.Struct, frozen=True):\n    port: int = 80"
        found = []
        for edited in (source, source, source.replace("80", "81"), source.replace("frozen", "order")):
            session = Session()
            session.run(edited)
            found.append(session.own("Row"))
        self.assertEqual([found.index(one) for one in found], [0, 0, 2, 3])
        with Worker(path=[PLACE]) as worker:
            worker.run("rows = [1]")
            worker.run(source)
            reply = worker.run("row = msgspec.json.decode(b'{}', type=Row)")
        self.assertEqual((reply["ending"]["kind"], "*" in reply["reads"]), ("ok", False))
        self.assertIn("a metaclass with state of its own", str([unit["unserializable"] for unit in session.units.values()]))

    def test_what_a_package_imports_by_a_string_is_its_own(self):
        library = "def late(names):\n    exec('import xml.sax.saxutils', {}, names)\n"
        with tempfile.TemporaryDirectory() as home:
            with open(f"{home}/lateness.py", "w", encoding="utf-8") as opened:
                opened.write(library)
            with Worker(path=[home]) as worker:
                worker.run("import lateness\nnames = {}")
                reply = worker.run("lateness.late(names)")
                self.assertNotIn("p:import/xml.sax.saxutils", reply["wrote"])
                reply = worker.run("exec('import xml.dom.minidom', {}, {})")
                self.assertIn("p:import/xml.dom.minidom", reply["wrote"])

    def test_levels_that_a_call_of_a_package_sets_are_state(self):
        library = "import logging\ndef be_quiet(level):\n    logging.getLogger('quiet').setLevel(level)\n"
        with tempfile.TemporaryDirectory() as home:
            put(f"{home}/quiet", **{"__init__.py": library})
            with Worker(path=[home]) as worker:
                worker.run("import quiet")
                reply = worker.run("quiet.be_quiet(30)")
        self.assertIn("p:ambient/logging", reply["wrote"])

    def test_options_of_xarray_are_state(self):
        options = "OPTIONS = {'keep_attrs': 'default'}\ndef set_options(**named):\n    OPTIONS.update(named)\n"
        with tempfile.TemporaryDirectory() as home:
            put(f"{home}/xarray", **{"__init__.py": "from xarray.core.options import set_options\n"})
            put(f"{home}/xarray/core", **{"__init__.py": "", "options.py": options})
            with Worker(path=[home]) as worker:
                worker.run("import xarray")
                reply = worker.run("xarray.set_options(keep_attrs=True)")
                self.assertIn("p:ambient/xarray.options", reply["wrote"])
                self.assertEqual(reply.get("untracked", []), [])
                reply = worker.run("n = 1")
        self.assertNotIn("p:ambient/xarray.options", reply["reads"])

    def test_a_query_is_written_down_once(self):
        library = (
            "count = []\n"
            "class LazyFrame:\n"
            "    def __init__(self, plan): self.plan = plan\n"
            "    def __reduce__(self):\n"
            "        count.append(1)\n"
            "        return LazyFrame, (self.plan,)\n"
        )
        with tempfile.TemporaryDirectory() as home:
            put(f"{home}/polars", **{"__init__.py": "class Config:\n    state = staticmethod(dict)\n"})
            put(f"{home}/polars/lazyframe", **{"__init__.py": "", "frame.py": library})
            with Worker(path=[home]) as worker:
                worker.run("import polars.lazyframe.frame as frame\nquery = frame.LazyFrame('all')")
                first = worker.run("print(len(frame.count))")["stdout"]["text"]
                worker.run("plan = query.plan")
                again = worker.run("print(len(frame.count))")["stdout"]["text"]
        self.assertGreater(int(first), 0)
        self.assertEqual(again, first)

    def test_what_a_model_keeps_of_its_summaries_is_no_content(self):
        library = (
            "class Model:\n"
            "    _cache = {}\n"
            "    def __init__(self): self.params, self._cache = [1.5], {}\n"
            "    def summary(self):\n"
            "        self.diagn, self._cache['n'] = {'condno': 2}, 1\n"
            "        return self.__dict__.setdefault('_summary_cache', {'text': 'x'})\n"
        )
        with tempfile.TemporaryDirectory() as home:
            put(f"{home}/statsmodels", **{"__init__.py": library})
            with Worker(path=[home]) as worker:
                worker.run("import statsmodels\nmodel = statsmodels.Model()")
                self.assertNotIn("n:model", worker.run("model.summary()")["wrote"])
                self.assertIn("n:model", worker.run("model.params[0] = 2.5")["wrote"])
            with mock.patch.object(sys, "path", [home, *sys.path]):
                session, other = Session(), Session()
                session.run("import statsmodels\nmodel = statsmodels.Model()\nmodel.summary()")
                other.graph.load(session.items())
            self.assertEqual(vars(other.ns["model"]), {"params": [1.5], "_cache": {}})

    def test_closures_and_views_that_a_package_keeps_for_itself_are_its_own(self):
        hooks = "def pipe(*hooks):\n    def piped(value): return hooks\n    return piped\n"
        make = (
            "from types import MappingProxyType\nfrom hooked.hooks import pipe\n"
            "DEFAULT, _EMPTY = pipe(int), MappingProxyType({})\n"
            "def fields(): return DEFAULT, _EMPTY\n"
        )
        with tempfile.TemporaryDirectory() as home:
            put(f"{home}/hooked", **{"__init__.py": "", "hooks.py": hooks, "make.py": make})
            with mock.patch.object(sys, "path", [home, *sys.path]):
                session, other = Session(), Session()
                session.run("from hooked import make\nclass One: default, about = make.fields()")
                session.run("class Two: default, about = make.fields()")
                other.graph.load(session.items())
        self.assertEqual([session.group(name) for name in ("One", "Two")], [["n:One"], ["n:Two"]])
        found = other.ns["make"]
        self.assertIs(other.ns["One"].default, found.DEFAULT)
        self.assertIs(other.ns["Two"].about, found._EMPTY)

    def test_methods_with_a_copy_of_the_namespace_hold_what_they_load(self):
        library = (
            "import sys\n"
            "def _make_init_script(cls, factory):\n"
            "    return {**sys.modules[cls.__module__].__dict__, 'factory': factory, 'cls': cls}\n"
            "def define(cls, factory):\n"
            "    script, found = 'def __init__(self):\\n    (lambda: setattr(self, \"n\", factory(cls)))()', {}\n"
            "    code = compile(script, '<attrs generated methods ' + cls.__qualname__ + '>', 'exec')\n"
            "    eval(code, _make_init_script(cls, factory), found)\n"
            "    cls.__init__ = found['__init__']\n"
        )
        source = "rows = []\nclass Account: pass\nclass Other: pass\n_make.define(Account, id)"
        with tempfile.TemporaryDirectory() as home:
            put(f"{home}/attr", **{"__init__.py": "", "_make.py": library})
            with Worker(path=[home]) as worker:
                worker.run("from attr import _make\nrows = []")
                reply = worker.run("class Account: pass\n_make.define(Account, len)")
            self.assertNotIn("*", reply["reads"])
            self.assertIn("n:_make", reply["reads"])
            with mock.patch.object(sys, "path", [home, *sys.path]):
                session, other = Session(), Session()
                session.run("from attr import _make")
                session.run(source)
                other.graph.load(session.items())
        self.assertEqual(session.group("rows"), ["n:rows"])
        account = other.ns["Account"]
        self.assertEqual(account().n, id(account))
        self.assertEqual(sorted(account.__init__.__globals__), ["cls", "factory"])

    def test_the_thread_that_refreshes_bars_is_the_packages_own(self):
        monitor = (
            "import threading\n"
            "class TMonitor(threading.Thread):\n"
            "    daemon = True\n"
            "    def run(self):\n"
            "        threading.Event().wait()\n"
        )
        bars = "from tqdm._monitor import TMonitor\ndef tqdm(rows):\n    TMonitor().start()\n    return rows\n"
        with tempfile.TemporaryDirectory() as home:
            put(f"{home}/tqdm", **{"__init__.py": bars, "_monitor.py": monitor})
            with Worker(path=[home]) as worker:
                worker.run("from tqdm import tqdm")
                for _ in range(2):
                    reply = worker.run("for n in tqdm(range(3)):\n    pass")
                    self.assertEqual(reply.get("untracked", []), [])

    def test_what_the_worker_makes_a_package_load_is_no_part_of_the_state(self):
        kept = (
            "class Kept:\n    def __getstate__(self):\n"
            "        from . import press\n        return {'text': press.TEXT}\n"
        )
        press = "from . import deep\nTEXT = 'a'\n"
        tests = [
            ("from PIL import kept\nk = kept.Kept()", {"p:import/PIL.kept"}),
            # It is loaded now. The same step, made again, leaves the same.
            ("from PIL import kept\nk = kept.Kept()", {"p:import/PIL.kept"}),
            ("k = kept.Kept()", set()),
            ("m = k.__getstate__()", set()),
        ]
        with tempfile.TemporaryDirectory() as home:
            # Values of a package of this name are pickled.
            put(f"{home}/PIL", **{"__init__.py": "", "kept.py": kept, "press.py": press, "deep.py": ""})
            with Worker(path=[home]) as worker:
                for source, wrote in tests:
                    reply = worker.run(source)
                    for field, expected in (("wrote", wrote), ("reads", set())):
                        found = {name for name in reply[field] if name.startswith("p:import/")}
                        if field == "reads":
                            found &= {"p:import/PIL.press", "p:import/PIL.deep"}
                        self.assertEqual(found, expected, (field, source))

    def test_an_object_that_is_its_own_attributes_is_not_stored(self):
        kept = "class Bunch(dict):\n    def __init__(self, **held):\n        super().__init__(held)\n"
        kept += "        self.__dict__ = self\n"
        with tempfile.TemporaryDirectory() as home:
            put(f"{home}/PIL", **{"__init__.py": "", "kept.py": kept})
            with Worker(path=[home]) as worker:
                reply = worker.run("from PIL.kept import Bunch\nb = Bunch(a=[1])")
                why = {unit["members"][0]["entity"]: unit.get("unserializable") for unit in reply["units"]}
                self.assertEqual(why["n:b"], "type Bunch: its attributes are itself")
                self.assertEqual(worker.run("b.a.append(2)")["wrote"], {"n:b": "mutated"})

    def test_what_an_import_sets_is_the_environments_for_a_restored_value_too(self):
        library = (
            "import os, random, warnings\nos.environ.setdefault('SETS', '1')\n"
            "warnings.filterwarnings('ignore', 'of sets')\nrandom.random()\ndef f(): pass\n"
        )
        with tempfile.TemporaryDirectory() as home:
            put(f"{home}/place", **{"sets.py": library})
            with Worker(path=[f"{home}/place"]) as worker:
                reply = worker.run("from sets import f")
                self.assertEqual(sorted(reply["wrote"]), ["n:f"])
                unit, blob = reply["units"][0], worker.blob
            with Worker(path=[f"{home}/place"]) as worker:
                self.assertEqual(worker.ask("sync", blob, load=[unit])["failed"], [])
                self.assertEqual(worker.ask("sweep", accounted=[])["unattributed"], [])
                self.assertEqual(worker.run("x = f.__module__")["wrote"], {"n:x": "bound"})

    def test_what_a_package_reads_of_its_process_is_its_own(self):
        library = "def maps():\n    with open('/proc/self/maps') as held:\n        return len(held.read()) > 0\n"
        with tempfile.TemporaryDirectory() as home:
            put(f"{home}/place", **{"maps.py": library})
            with Worker(path=[f"{home}/place"]) as worker:
                reply = worker.run("import maps\nx = maps.maps()")
                self.assertEqual((reply["untracked"], list(reply["external"])), ([], [f"x:{home}/place/maps.py"]))
                reply = worker.run("y = len(open('/proc/self/maps').read())")
                self.assertEqual(len(reply["untracked"]), 1)

    def test_code_that_a_package_compiles_under_a_name_is_its_own(self):
        library = (
            "def render(source):\n"
            "    names = {}\n"
            "    exec(compile(source, '<template>', 'exec'), names)\n"
            "    return names['root']\n"
        )
        with tempfile.TemporaryDirectory() as home:
            put(f"{home}/pages", **{"__init__.py": library})
            with Worker(path=[home]) as worker:
                code = "def root(x):\\n    return x.__subclasses__()"
                worker.run(f"import pages\nroot = pages.render('{code}')")
                self.assertEqual(worker.run("found = len(root(str))").get("untracked", []), [])
                worker.run(f"names = {{}}\nexec(compile('{code}', '<mine>', 'exec'), names)\nmine = names['root']")
                reply = worker.run("found = len(mine(str))")
                self.assertEqual([found["what"] for found in reply["untracked"]], ["__subclasses__"])

    def test_the_prefix_is_that_of_the_virtual_environment(self):
        with tempfile.TemporaryDirectory() as home:
            venv.create(home, with_pip=False)
            asked = "import sys; print(sys.prefix, sys.exec_prefix)"
            python = os.path.join(home, "bin", "python")
            plain = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout
            with Worker(python=python) as worker:
                self.assertEqual(worker.run(asked)["stdout"]["text"], plain)

    def test_code_that_a_package_generates_is_its_own(self):
        plot = (
            "import dataclasses\n\n@dataclasses.dataclass(frozen=True)\nclass Part:\n    size: int\n\n"
            "class Figure: pass\n\ndef figure():\n    import shop.backends\n    shop.backends.chosen = 'agg'\n"
            "    made = {}\n    code = 'def draw(self):\\n    object.__setattr__(self, 1, 2)'\n"
            "    exec(code, globals(), made)\n    found = Figure()\n    found.draw = made['draw']\n    return found\n"
        )
        with tempfile.TemporaryDirectory() as home:
            put(f"{home}/shop", **{"__init__.py": "", "plot.py": plot, "backends.py": ""})
            with Worker(path=[home]) as worker:
                for source in 2 * ["import shop.plot\nf = shop.plot.figure()"]:
                    reply = worker.run(source)
                    wrote = sorted(name for name in reply["wrote"] if name[0] in "nmf")
                    self.assertEqual(wrote, ["n:f", "n:shop"])
