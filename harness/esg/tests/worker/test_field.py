"""Values of numpy, pandas and scikit-learn: stored, restored, found when changed in place.

`HARNESS_VENV` names a virtual environment where these are installed. Without it, and under another
version of Python, nothing is tested: `worker.rs` fails then where `HARNESS_CHECK` is set."""
import copyreg
import os
import sys
import types
import unittest

VENV = os.environ.get("HARNESS_VENV")
PLACE = os.path.join(VENV or "", "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
if VENV and PLACE not in sys.path:
    sys.path.append(PLACE)

from support import Session  # noqa: E402


def installed(name):
    """Whether this interpreter can import a package. Its own environment must have it."""
    if not VENV or not os.path.isdir(PLACE):
        return False
    __import__(name)
    return True


NUMPY, PANDAS, SKLEARN = (installed(name) for name in ("numpy", "pandas", "sklearn"))


def restored(session):
    """Another namespace, with everything that is stored."""
    other = Session()
    failed = other.graph.load(session.items())
    return other, failed


@unittest.skipUnless(NUMPY, "numpy is not installed")
class ArrayTest(unittest.TestCase):
    """Arrays of numpy."""

    def kept(self, source, *names):
        session = Session()
        session.run("import numpy as np\n" + source)
        for name in names:
            self.assertIsNone(session.unserializable(name), name)
        other, failed = restored(session)
        self.assertEqual(failed, [])
        twin = Session()
        twin.run("import numpy as np\n" + source)
        for name in names:
            self.assertEqual(twin.own(name), session.own(name), name)
            again = Session()
            again.ns.update(other.names())
            again.run("pass")
            self.assertEqual(again.own(name), session.own(name), name)
        return session, other

    def test_arrays_of_every_kind_are_restored(self):
        import numpy as np
        source = """
a = np.arange(12.0).reshape(3, 4)
f = np.asfortranarray(a)
e = np.empty((0, 3), 'i4')
s = np.array(3)
t = np.array(['x', 'yy'])
d = np.array(['2020-01-01'], 'M8[D]')
r = np.zeros(2, [('p', 'i1'), ('q', 'f8')])
o = np.array([1, 'two', None], object)
c = np.array([1 + 2j])
b = np.array([True, False])
x = np.float64(1.5), np.int64(2), np.bool_(True), np.dtype('f4')
fixed = np.ones(2); fixed.flags.writeable = False
g = np.random.default_rng(1)
"""
        names = "a f e s t d r o c b x fixed g".split()
        session, other = self.kept(source, *names)
        for name in "a f e s t d r o c b fixed".split():
            one, two = session.ns[name], other.ns[name]
            self.assertTrue(np.array_equal(one, two), name)
            self.assertEqual((one.dtype, one.flags.f_contiguous, one.flags.writeable),
                             (two.dtype, two.flags.f_contiguous, two.flags.writeable), name)
        self.assertEqual(session.ns["g"].random(), other.ns["g"].random())

    def test_the_dtypes_that_exist_once_are_restored_as_they_are(self):
        # `asarray` gives the array itself only if its dtype is the same object.
        _, other = self.kept("""
import pickle
a = np.arange(6.0).reshape(2, 3)
view = a[1]
other = pickle.loads(pickle.dumps(a))
kinds = {c: np.zeros(2, c) for c in "?bBhHiIlLqQefdgFDGO"}
swapped = np.zeros(2, ">f8")
""", "a", "view", "other", "kinds", "swapped")
        other.run("x = np.asarray(a, float) is a, view.dtype is a.dtype, other.dtype is a.dtype")
        self.assertEqual(other.ns["x"], (True, True, False))
        self.assertTrue(all(held.dtype is other.ns["np"].dtype(char) for char, held in other.ns["kinds"].items()))

    def test_the_fields_of_restored_records_have_the_dtypes_that_exist_once(self):
        session, other = self.kept("r = np.zeros(3, dtype=[('a', '<u4'), ('p', '<f4', (2,)), ('t', [('v', '>i2')])])\n"
                                   "s = np.zeros(2, dtype=np.dtype([('a', 'u1'), ('b', 'f8')], align=True))", "r", "s")
        for name in "rs":
            self.assertEqual(other.ns[name].dtype.descr, session.ns[name].dtype.descr)
        for values in session.ns, other.ns:
            self.assertIs(values["r"]["a"].dtype, session.ns["np"].dtype("u4"))
            self.assertIs(values["r"]["p"].dtype, session.ns["np"].dtype("f4"))
            self.assertIs(values["s"]["b"].dtype, session.ns["np"].dtype(float))

    def test_a_change_in_place_is_found(self):
        session = Session()
        session.run("import numpy as np\na = np.zeros(1000)\nb = [a]\nc = np.zeros(3)")
        settled = session.run("a[500] = 1")
        self.assertEqual(settled.mutated, {"n:a", "n:b"})

    def test_a_view_is_one_unit_with_its_array(self):
        source = "a = np.arange(10)\nv = a[2:8:2]\nw = a.reshape(2, 5)\nother = np.arange(10)"
        session, other = self.kept(source, "a", "v", "w", "other")
        self.assertEqual(session.group("a"), ["n:a", "n:v", "n:w"])
        self.assertEqual(session.group("other"), ["n:other"])
        other.ns["a"][2] = 99
        self.assertEqual((int(other.ns["v"][0]), int(other.ns["w"][0, 2])), (99, 99))

    def test_too_large_a_value_is_hashed_and_not_stored(self):
        session = Session({"unit_bytes": 1000})
        session.run("import numpy as np\na = np.zeros(1000)")
        self.assertEqual(session.unserializable("a"), "too large")
        before = session.member("n:a")["own"]
        session.run("a[3] = 1")
        self.assertNotEqual(session.member("n:a")["own"], before)

    def test_a_function_for_arrays_is_found_without_asking_every_module(self):
        asked = []
        other = types.ModuleType("other")
        other.__getattr__ = asked.append
        sys.modules["other"] = other
        self.addCleanup(sys.modules.pop, "other")
        session, again = self.kept("f = np.hypot\nfs = {'a': np.sin, 'b': [np.sin, np.add]}", "f", "fs")
        import numpy as np
        self.assertEqual(asked, [])
        self.assertIs(again.names()["f"], np.hypot)
        self.assertIs(again.names()["fs"]["b"][1], np.add)
        session.run("own = np.frompyfunc(lambda v: v, 1, 1)")
        self.assertIsNotNone(session.unserializable("own"))

    def test_a_view_with_strides_of_its_own_shares_with_its_array(self):
        session = Session()
        session.run("import numpy as np\na = np.arange(6.0)\nw = np.lib.stride_tricks.sliding_window_view(a, 2)\n"
                    "s = np.lib.stride_tricks.as_strided(a, (2, 3), (24, 8))")
        self.assertEqual(session.group("w"), ["n:a", "n:s", "n:w"])
        self.assertEqual(session.run("a[0] = 9").mutated, {"n:a", "n:s", "n:w"})

    def test_a_record_shares_with_its_array(self):
        session, other = self.kept("a = np.zeros(3, [('i', 'i4'), ('x', 'f8')])\nr = a[1]\nx = a['x']", "a", "r", "x")
        self.assertEqual(session.group("r"), ["n:a", "n:r", "n:x"])
        self.assertEqual(session.run("r['x'] = 2.5").mutated, {"n:a", "n:r", "n:x"})
        other.run("r['i'] = 7")
        self.assertEqual(other.ns["a"].tolist(), [(0, 0.0), (7, 0.0), (0, 0.0)])
        session, other = self.kept("r = np.zeros(2, [('i', 'i4')])[0]\nc = r.copy()", "r", "c")
        other.run("r['i'] = 3")
        self.assertEqual((other.ns["r"]["i"], other.ns["c"]["i"]), (3, 0))
        session = Session()
        session.run("import numpy as np\na = np.rec.array([(1, 2.5)], dtype=[('i', 'i4'), ('x', 'f8')])\nr, v = a[0], a[:1]")
        self.assertEqual(session.group("r"), ["n:a", "n:r", "n:v"])
        self.assertEqual(session.run("r.i = 3").mutated, {"n:a", "n:r", "n:v"})
        self.kept("a = np.rec.array([(1, 2.5)], dtype=[('i', 'i4'), ('x', 'f8')])", "a")

    def test_an_array_in_a_buffer_shares_with_it(self):
        session = Session()
        session.run("import array\nimport numpy as np\nb = bytearray(8)\nm = memoryview(b)\na = np.frombuffer(b, 'u4')\n"
                    "p = a[:1]\ns = array.array('i', [1, 2])\nt = np.frombuffer(s, 'i4')")
        self.assertEqual(session.group("a"), ["n:a", "n:b", "n:m", "n:p"])
        self.assertEqual(session.run("m[0] = 1", {"n:m"}).mutated, {"n:a", "n:b", "n:m", "n:p"})
        self.assertEqual(session.group("t"), ["n:s", "n:t"])
        self.assertIsNotNone(session.unserializable("a"))
        # Nothing else refers to the memory, or nothing can change it.
        for source in ("np.frombuffer(bytearray(8), 'u4')", "np.ndarray(2, 'u4', buffer=bytearray(8))",
                       "np.frombuffer(b'12345678', 'u4')", "np.asarray(memoryview(bytearray(8)))", "pickle.loads(pickle.dumps(np.arange(999), 5))"):
            self.kept("import pickle\na = " + source, "a")

    def test_views_of_an_array_of_another_class_are_not_restored_apart(self):
        for source in ("np.matrix([[1, 2], [3, 4]])", "np.rec.array([(1, 2.5), (2, 3.5)], dtype=[('i', 'i4'), ('x', 'f8')])"):
            session = Session()
            session.run("import numpy as np\na = " + source + "\nb = a[:1]")
            self.assertEqual(session.group("a"), ["n:a", "n:b"])
            self.assertIsNotNone(session.unserializable("a"))
            self.kept("a = " + source + "[:1]", "a")

    def test_what_was_computed_of_an_object_is_no_content(self):
        made = types.ModuleType("networkx")
        source = "class Graph:\n    def __init__(self): self.near = {}\n    @cached_property\n    def nodes(self): return View(self.near)"
        exec("from functools import cached_property\nclass View:\n    def __init__(self, near): self.near = near\n" + source, vars(made))
        sys.modules["networkx"] = made
        self.addCleanup(sys.modules.pop, "networkx")
        session = Session()
        session.run("import networkx\ng = networkx.Graph()\ng.near['a'] = 1")
        self.assertEqual(session.run("g.nodes").mutated, set())
        self.assertIsNone(session.unserializable("g"))
        self.assertEqual(session.run("g.near['a'] = 2").mutated, {"n:g"})
        self.assertEqual(vars(restored(session)[0].ns["g"]), {"near": {"a": 2}})

    def test_masked_arrays_are_restored(self):
        session, other = self.kept("a = np.ma.array([1.5, 2.5], mask=[False, True])\nb = np.ma.array([True, False])\n"
                                   "c = np.ma.array(np.array([1, 'x', None], dtype=object), mask=[0, 0, 1], fill_value='y')\n"
                                   "d = np.ma.masked_where(np.arange(4) > 2, np.arange(4))\nd.harden_mask()", *"abcd")
        self.assertEqual(str(other.ns["c"].filled()), str(session.ns["c"].filled()))
        self.assertTrue(other.ns["d"].hardmask)
        # The default with which it is filled is kept once it has been asked for.
        self.assertEqual(session.run("a.filled()").mutated, set())
        self.assertEqual(session.run("a[0] = np.ma.masked").mutated, {"n:a"})
        self.assertEqual(session.run("a.fill_value = 9").mutated, {"n:a"})
        session.run("e = d.data")
        self.assertEqual(session.run("e[0] = 7").mutated, {"n:d", "n:e"})

    def test_objects_of_the_program_in_an_array_keep_their_identity(self):
        source = "class A: pass\nx = A()\na = np.array([x, None], object)"
        session, other = self.kept(source, "a", "x")
        self.assertEqual(session.group("a"), ["n:a", "n:x"])
        self.assertIs(other.ns["a"][0], other.ns["x"])


@unittest.skipUnless(PANDAS, "pandas is not installed")
class FrameTest(ArrayTest):
    """Frames of pandas."""

    def test_frames_that_share_an_index_share_nothing(self):
        import pandas as pd
        session = Session()
        session.run("import pandas as pd\ndf = pd.DataFrame({'a': [1.0, 2.0], 'b': [3.0, 4.0]}, index=['x', 'y'])\n"
                    "other = df * 2\nvalue = df.loc['x', 'a']")
        self.assertEqual(session.group("df"), ["n:df"])
        self.assertEqual(session.group("other"), ["n:other"])
        other, failed = restored(session)
        self.assertEqual(failed, [])
        for name in ("df", "other"):
            pd.testing.assert_frame_equal(other.ns[name], session.ns[name])
        self.assertEqual(session.run("df['c'] = 1.0").mutated, {"n:df"})

    def test_frames_that_share_memory_until_one_is_written_to_share_nothing(self):
        session = Session()
        session.run("import numpy as np, pandas as pd\ndf = pd.DataFrame({'a': range(3), 'b': range(3)})")
        session.run("one = df.rename(columns={'a': 'x'})\ntwo = df.rename(columns={'a': 'y'})\nthree = two.rename(columns=str)")
        for name in ("df", "one", "two", "three"):
            self.assertEqual(session.group(name), [f"n:{name}"])
        # Unlike an array that is written to by another name.
        session.run("a = np.arange(6.0).reshape(3, 2)\nover = pd.DataFrame(a, copy=False)")
        self.assertEqual(session.group("over"), ["n:a", "n:over"])
        self.assertEqual(session.run("a[0, 0] = 9").mutated, {"n:a", "n:over"})

    def test_frames_are_restored(self):
        source = """
import pandas as pd
df = pd.DataFrame({'a': [1, 2, 3], 'b': [1.5, None, 2.5], 'c': ['x', 'y', None]})
df['when'] = pd.to_datetime(['2020-01-01', '2020-01-02', '2020-01-03'])
df['kind'] = pd.Categorical(['p', 'q', 'p'])
s = df['b']
i = df.set_index('when').index
m = df.groupby('kind', observed=True)['a'].sum()
t = pd.Timestamp('2020-01-01'), pd.NaT, pd.NA, pd.Timedelta(1, 'h')
"""
        session, other = self.kept(source, "df", "s", "i", "m", "t")
        self.assertTrue(session.ns["df"].equals(other.ns["df"]))
        self.assertTrue(session.ns["m"].equals(other.ns["m"]))

    def test_the_groups_of_a_frame_share_it(self):
        session = Session()
        session.run("import pandas as pd\nf = pd.DataFrame({'k': list('abab'), 'v': [1.0, 2.0, 3.0, 4.0]})")
        session.run("g = f.groupby('k')\nprint(g.ngroups)")
        self.assertEqual(session.group("g"), ["n:f", "n:g"])
        other, failed = restored(session)
        self.assertEqual(failed, [])
        self.assertIs(other.ns["g"].obj, other.ns["f"])
        self.assertEqual(session.run("g['v'].mean()\ng.describe()").mutated, set())
        self.assertEqual(session.run("f['w'] = f['v'] * 2").mutated, {"n:f", "n:g"})

    def test_caches_are_no_content(self):
        session = Session()
        session.run("import pandas as pd\ndf = pd.DataFrame({'a': range(5)})")
        settled = session.run("x = df['a'].sum(), df.index.is_unique, df.loc[2], repr(df)")
        self.assertEqual(settled.mutated, set())
        session.run("""
days = pd.date_range("2010-01-01", periods=3)
waits = pd.timedelta_range("1 day", periods=3)
months = pd.period_range("2010-01", periods=3, freq="M")
bins = pd.interval_range(0, 3)
all = pd.DataFrame({"d": days, "w": waits, "m": months, "b": bins, "c": pd.Categorical(["a", "b", "a"]),
                    "i": pd.array([1, None, 3]), "s": ["x", "y", None], "o": [True, False, None]}, index=days)
""")
        for source in ("y = repr(all), repr(days), repr(waits), repr(months)", "all.describe(include='all')\nall.dtypes",
                       "all.reindex(pd.date_range('2009-12-31', periods=5))\nall.sort_index(ascending=False)",
                       "[(all[c].unique(), all[c].isna(), all[c].astype(str)) for c in all]",
                       "all['d'].dt.year, all['w'].dt.days, all['m'].dt.month, all['c'].cat.codes, days.freq, bins.left"):
            self.assertEqual(session.run(source).mutated, set(), source)

    def test_what_is_registered_for_pickling_holds_inside_of_a_frame(self):
        session = Session()
        session.run("import copyreg, pandas as pd\n"
                    "copyreg.pickle(memoryview, lambda held: (memoryview, (bytes(held),)))\n"
                    "df = pd.DataFrame({'a': range(5)})\ndf.attrs['source'] = memoryview(b'abc')")
        self.addCleanup(copyreg.dispatch_table.pop, memoryview)
        self.assertIsNone(session.unserializable("df"))

    def test_restored_columns_own_their_memory_as_those_that_were_written(self):
        session = Session()
        session.run("import numpy as np, pandas as pd\nx = np.arange(4.0)\n"
                    "df = pd.DataFrame({'x': x, 'y': x * 2, 'g': list('abcd')})")
        other, failed = restored(session)
        self.assertEqual(failed, [])
        for one in (session, other):
            one.execute("import numpy as np\nviews = [df.y, np.asarray(df.y)]")
            base = one.ns["views"][1].base
            self.assertEqual((type(base).__name__, base.shape, base.base), ("ndarray", (2, 4), None))

    def test_a_frame_changed_in_place_is_found(self):
        session = Session()
        session.run("import pandas as pd\ndf = pd.DataFrame({'a': range(5)})\nother = df.copy()")
        for change in ("df.loc[2, 'a'] = 9", "df['b'] = 1", "df.drop(columns='b', inplace=True)"):
            self.assertEqual(session.run(change).mutated, {"n:df"}, change)

    def test_objects_of_the_program_in_a_frame_are_written_by_themselves(self):
        session = Session()
        session.run("import pandas as pd\nclass A: n = 0\na = A()\ndf = pd.DataFrame({'a': [a, A()]})")
        self.assertIsNone(session.unserializable("df"))
        self.assertEqual(session.group("a"), ["n:a", "n:df"])
        other, failed = restored(session)
        self.assertEqual(failed, [])
        self.assertIs(other.ns["df"].loc[0, "a"], other.ns["a"])
        self.assertIs(type(other.ns["df"].loc[1, "a"]), other.ns["A"])
        self.assertIn("n:df", session.run("df.loc[1, 'a'].n = 3", touched={"n:df"}).mutated)

    def test_a_key_in_a_package_whose_hash_is_of_the_program_is_not_stored(self):
        session = Session()
        session.run("import pandas as pd\nclass A:\n    def __hash__(self): return 1\n"
                    "    def __eq__(self, other): return self is other\n"
                    "df = pd.DataFrame({'a': [1]}, index=[A()])\ncells = pd.DataFrame({'a': [A()]})")
        self.assertIn("of the program", session.unserializable("df"))
        self.assertIsNone(session.unserializable("cells"))


@unittest.skipUnless(SKLEARN, "scikit-learn is not installed")
class EstimatorTest(unittest.TestCase):
    """Estimators of scikit-learn."""

    def test_transformers_and_functions_of_the_program_in_a_pipeline_are_written_by_themselves(self):
        session = Session()
        session.run("""
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
X = np.random.default_rng(0).normal(size=(60, 2))
y = (X[:, 0] > 0).astype(int)
class Clip(BaseEstimator, TransformerMixin):
    def __init__(self, high=2.0): self.high = high
    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self
    def transform(self, X): return np.clip(X, None, self.high)
def double(X): return X * 2
clip = Clip()
pipe = Pipeline([("clip", clip), ("double", FunctionTransformer(double)), ("model", LogisticRegression())]).fit(X, y)
columns = ColumnTransformer([("clip", Clip(0.5), [0])]).fit(X)
""")
        self.assertEqual([session.unserializable(name) for name in ("pipe", "columns")], [None, None])
        self.assertEqual(session.group("clip"), ["n:clip", "n:pipe"])
        other, failed = restored(session)
        self.assertEqual(failed, [])
        self.assertIs(other.ns["pipe"].steps[0][1], other.ns["clip"])
        self.assertIs(other.ns["pipe"].steps[1][1].func, other.ns["double"])
        for call in ("pipe.predict(X)", "columns.transform(X)"):
            one, two = eval(call, session.ns), eval(call, other.ns)
            self.assertTrue((one == two).all(), call)
        before = session.own("pipe")
        session.run("clip.high = 1.0", touched={"n:clip"})
        self.assertNotEqual(session.own("pipe"), before)

    def test_an_estimator_is_restored_and_fit_is_a_change(self):
        session = Session()
        session.run("""
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
X = np.random.default_rng(0).normal(size=(60, 3))
y = (X[:, 0] > 0).astype(int)
rf = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, y)
lr = LogisticRegression()
""")
        self.assertIsNone(session.unserializable("rf"))
        other, failed = restored(session)
        self.assertEqual(failed, [])
        self.assertIs(other.ns["rf"].classes_.dtype, session.ns["np"].dtype(int))
        self.assertEqual(list(other.ns["rf"].predict(other.ns["X"])), list(session.ns["rf"].predict(session.ns["X"])))
        self.assertEqual(session.run("p = rf.predict(X)").mutated, set())
        self.assertEqual(session.run("lr.fit(X, y)").mutated, {"n:lr"})
        # What its trees make to be pickled has no identity, so it is not written again.
        self.assertEqual(session.run("for model in rf, lr:\n    model.predict(X)").mutated, set())

    def stored(self, *sources):
        """A session after some steps, and another one with what is stored of it."""
        session = Session()
        session.run("from sklearn.pipeline import Pipeline\nfrom sklearn.preprocessing import StandardScaler")
        for source in sources:
            session.run(source)
        other, failed = restored(session)
        self.assertEqual(failed, [])
        return session, other.ns

    def test_estimators_that_hold_each_other_are_restored_with_what_they_share(self):
        session, held = self.stored(
            "numeric = StandardScaler()", "prepare = Pipeline([('n', numeric)])",
            "model = Pipeline([('prepare', prepare)])", "search = model, 0.1")
        self.assertEqual(session.group("search"), ["n:model", "n:numeric", "n:prepare", "n:search"])
        self.assertIsNone(session.unserializable("search"))
        self.assertIs(held["search"][0], held["model"])
        self.assertIs(held["model"].steps[0][1], held["prepare"])
        self.assertIs(held["prepare"].steps[0][1], held["numeric"])
        self.assertEqual(session.run("search = model, 0.2").mutated, set())

    def test_a_shared_part_without_a_name_is_restored_once(self):
        session, held = self.stored("a = Pipeline([('x', StandardScaler())])", "b = Pipeline([('y', a.steps[0][1])])")
        self.assertEqual(session.group("a"), ["n:a", "n:b"])
        self.assertIs(held["a"].steps[0][1], held["b"].steps[0][1])

    def test_a_part_that_an_object_holds_twice_is_restored_once(self):
        session, held = self.stored("s = StandardScaler()\np = Pipeline([('x', s), ('y', s)])\ndel s",
                                    "q = Pipeline([('x', StandardScaler()), ('y', StandardScaler())])")
        self.assertIs(held["p"].steps[0][1], held["p"].steps[1][1])
        self.assertIsNot(held["q"].steps[0][1], held["q"].steps[1][1])
        self.assertNotEqual(session.own("p"), session.own("q"))

    def test_a_part_that_was_held_twice_is_written_as_any_other(self):
        session, _ = self.stored("s = StandardScaler()\np = Pipeline([('x', s), ('y', s)])\ndel s",
                                 "q = Pipeline([('x', StandardScaler()), ('y', StandardScaler())])")
        twice, alone = session.own("p"), session.own("q")
        self.assertEqual(session.run("p.get_params()").mutated, set())
        self.assertEqual(session.run("p.steps[1] = 'y', StandardScaler()").mutated, {"n:p"})
        self.assertEqual(session.own("p"), alone)
        session.run("p.steps[1] = 'y', p.steps[0][1]")
        self.assertEqual(session.own("p"), twice)

    def test_an_array_that_an_estimator_keeps_is_restored_once(self):
        session, held = self.stored(
            "import numpy as np\nfrom sklearn.gaussian_process import GaussianProcessRegressor\n"
            "X = np.arange(6.0).reshape(6, 1)",
            "g = GaussianProcessRegressor(copy_X_train=False, optimizer=None).fit(X, X[:, 0] * 2)")
        self.assertEqual(session.group("g"), ["n:X", "n:g"])
        self.assertIs(held["g"].X_train_, held["X"])
        session.run("from sklearn.preprocessing import StandardScaler\n"
                    "V = np.arange(4.0)\nh = StandardScaler()\nh.held_ = V[:2]")
        self.assertEqual(session.group("h"), ["n:V", "n:h"])
        self.assertEqual(session.run("V[0] = 9").mutated, {"n:V", "n:h"})

    def test_a_text_is_stored_without_the_address_of_its_stop_words(self):
        session, held = self.stored("from sklearn.feature_extraction.text import TfidfVectorizer\n"
                                    "t = TfidfVectorizer().fit(['a cell', 'the cell'])")
        self.assertIn("_stop_words_id", vars(session.ns["t"]))
        self.assertNotIn("_stop_words_id", vars(held["t"]))
        self.assertEqual(session.run("t.transform(['a cell'])").mutated, set())

    def test_a_search_is_restored(self):
        session, held = self.stored(
            "from sklearn.linear_model import Ridge\nfrom sklearn.model_selection import GridSearchCV",
            "s = GridSearchCV(Ridge(), {'alpha': [1, 2], 'tol': [0.1, 1e-4]}, cv=2)\n"
            "s.fit([[1.0], [2.0], [3.0], [5.0]], [1.0, 2.0, 3.0, 3.0])")
        self.assertIsNone(session.unserializable("s"))
        self.assertEqual(held["s"].best_params_, session.ns["s"].best_params_)
        self.assertEqual(list(held["s"].cv_results_["param_alpha"]), [1, 1, 2, 2])

    def test_views_that_overlap_inside_of_an_object_are_not_stored(self):
        session = Session()
        session.run("import numpy as np\nfrom sklearn.preprocessing import StandardScaler\n"
                    "a, b, c = StandardScaler(), StandardScaler(), StandardScaler()\nx = np.arange(10.0)\n"
                    "a.x, a.y = x[:6], x[4:]\nb.x = np.arange(10.0)\nb.y = b.x[:2]\n"
                    "x = np.arange(10.0).reshape(5, 2)\nc.x, c.y = x[:, 0], x[:, 1]\ndel x")
        shared = "a part of an object of a package that is shared"
        self.assertEqual([session.unserializable(name) for name in "abc"], [shared, shared, None])

    def test_a_tree_of_points_is_stored_without_addresses(self):
        session, held = self.stored("from scipy.spatial import KDTree\nt = KDTree([[0, 0], [1, 1], [5, 5]], leafsize=2)")
        self.assertIsNone(session.unserializable("t"))
        self.assertEqual(held["t"].query([4, 4])[1], 2)
        self.assertEqual(held["t"].leafsize, 2)

    def test_an_undefined_function_is_a_value(self):
        session, held = self.stored("from sympy import Function, symbols, dsolve\nx = symbols('x')\n"
                                    "f, g = Function('f'), Function('g', real=True)\ne = f(x).diff(x) - f(x)")
        for name in "fge":
            self.assertIsNone(session.unserializable(name))
            self.assertEqual(session.group(name), ["n:" + name])
        self.assertEqual(held["e"].atoms(held["f"]), {held["f"](held["x"])})
        self.assertTrue(held["g"](held["x"]).is_real)
        self.assertFalse(held["f"] == held["g"])
        # What sympy computes of them is kept in them.
        self.assertEqual(session.run("dsolve(e)\nf(x).is_real").mutated, set())

    def test_cells_that_frames_share_are_one_object(self):
        cells = "[{'n': 1}, [2], {3}, Counter('a'), deque([4]), bytearray(b'5'), N(a=6), Series([7])]"
        session, held = self.stored("from collections import Counter, deque\nfrom types import SimpleNamespace as N\n"
                                    "from pandas import Series, DataFrame, concat\n"
                                    f"a = DataFrame({{'x': range(8), 'c': {cells}}})",
                                    "b = a[a.x >= 0].copy()\nc = a.c.copy()\nd = concat([a, a])\nlast = a.c[1]")
        self.assertIsNone(session.unserializable("a"))
        for other in (held["b"].c, held["c"], held["d"].c[:8], held["d"].c[8:]):
            self.assertTrue(all(one is cell for one, cell in zip(other, held["a"].c)))
        self.assertIs(held["last"], held["a"].c[1])
        self.assertLessEqual({"n:a", "n:b", "n:c", "n:d"}, session.run("last.append(3)").mutated)

    def test_functions_that_sympy_compiles_share_no_namespace(self):
        session, held = self.stored("from sympy import symbols, lambdify, sin, Abs\nx = symbols('x')\n"
                                    "f, g = lambdify(x, sin(x) + Abs(x), 'numpy'), lambdify(x, x**2 + sin(x), 'numpy')")
        for name in "fg":
            self.assertIsNone(session.unserializable(name))
            self.assertEqual(session.group(name), ["n:" + name])
        self.assertEqual([held[name](0.0) for name in "fg"], [0.0, 0.0])

    def test_functions_of_packages_are_known_by_name(self):
        session, held = self.stored("from numpy import mean\nfrom numpy.linalg import inv\n"
                                    "from numpy.random import default_rng, rand")
        for name in ("mean", "inv", "default_rng"):
            self.assertIsNone(session.unserializable(name))
            self.assertIs(held[name], session.ns[name])
        self.assertIsNone(session.unserializable("rand"))

    def test_a_large_container_that_a_name_shares_is_one_object(self):
        session, held = self.stored("from sklearn.feature_extraction.text import CountVectorizer\n"
                                    "v = CountVectorizer().fit([' '.join('word%d' % i for i in range(100))])\n"
                                    "words = v.vocabulary_")
        self.assertIsNone(session.unserializable("v"))
        self.assertEqual(len(held["words"]), 100)
        self.assertIs(held["words"], held["v"].vocabulary_)
        self.assertLessEqual({"n:v", "n:words"}, session.run("words['more'] = 100").mutated)

    def test_a_part_that_a_name_shares_is_one_unit(self):
        session = Session()
        session.run("from sklearn.pipeline import Pipeline\nfrom sklearn.linear_model import LinearRegression\n"
                    "import numpy as np\nX, y = np.arange(4.0).reshape(4, 1), np.arange(4.0)\n"
                    "step = LinearRegression()\npipe = Pipeline([('a', step)])\nalone = LinearRegression()")
        self.assertEqual(session.group("pipe"), ["n:pipe", "n:step"])
        self.assertIn("n:pipe", session.run("step.fit(X, y)").mutated)
        session.run("alone.fit(X, y)\ncoef = alone.coef_")
        self.assertEqual(session.group("coef"), ["n:alone", "n:coef"])

    def test_what_a_package_holds_is_known_by_its_name(self):
        session = Session()
        session.run("import numpy as np\nfrom scipy.stats import norm, gamma\nfrom sympy import ZZ, Matrix\n"
                    "shifted, draws = norm(loc=2), np.random.mtrand._rand\nm, n = Matrix([1, 2]), Matrix([3])")
        # Each draw changes the global generator of numpy, which all of them refer to.
        self.assertEqual(session.run("x = shifted.rvs() + draws.random()").mutated, set())
        for name in ("norm", "gamma", "shifted", "draws", "ZZ", "m", "n"):
            self.assertEqual(session.group(name), ["n:" + name])
        other, failed = restored(session)
        self.assertEqual(failed, [])
        self.assertIs(other.ns["draws"], session.ns["draws"])
        self.assertIs(other.ns["shifted"].dist._random_state, session.ns["draws"])
        self.assertIs(other.ns["ZZ"], session.ns["ZZ"])
        self.assertIs(other.ns["m"]._rep.domain, session.ns["ZZ"])
        session.run("from mpmath import mp, pi, quad, sqrt")
        for name in ("mp", "pi", "quad", "sqrt"):
            self.assertEqual(session.group(name), ["n:" + name])
        # The content of a constant depends on the precision.
        self.assertEqual(session.run("mp.dps = 40\nprint(pi)\nmp.dps = 15").mutated, set())
        self.assertIs(restored(session)[0].ns["pi"], session.ns["pi"])
        # A generator that the program gives a distribution is its own.
        self.assertEqual(session.run("norm.random_state = 5").mutated, {"n:norm"})
        self.assertEqual(session.run("norm.random_state = None").mutated, {"n:norm"})


if __name__ == "__main__":
    unittest.main()
