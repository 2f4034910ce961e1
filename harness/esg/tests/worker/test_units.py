"""Which entities share units, what a step changed, and how the live state is moved."""
import random
import gc
import unittest
import weakref

from support import Reloading, Session, fresh


class Grouping(unittest.TestCase):
    def check(self, source, name, members):
        session = fresh(source)
        self.assertEqual(session.group(name), sorted(members), source)
        return session

    def test_what_shares_an_object_is_one_unit(self):
        for source, name, members in (
            ("a = [1]\nb = a\nc = [1]", "a", ["n:a", "n:b"]),
            ("m = [[0], [0]]\nrow = m[0]\nother = [0]", "row", ["n:m", "n:row"]),
            ("a = [1]; b = (a, 2); c = {'k': b}; d = (1, 2); e = d", "c", ["n:a", "n:b", "n:c"]),
            ("d = (1, 2); e = d", "e", ["n:e"]),
            ("def c():\n    n = 0\n    def inc():\n        nonlocal n; n += 1\n    def get(): return n\n    return inc, get\ninc, get = c()",
             "inc", ["n:inc", "n:get"]),
            ("acc = []\ndef push(x, acc=acc): acc.append(x)", "push", ["n:acc", "n:push"]),
            ("class Q: pass\nq = Q()\nq.xs = xs = []\nm = xs.append", "m", ["n:m", "n:q", "n:xs"]),
            ("class Q:\n    def go(self): pass\nq = Q()\ngo = q.go", "go", ["n:go", "n:q"]),
            ("it = iter(xs := [1, 2])", "it", ["n:it", "n:xs"]),
            ("xs = [1]\ng = (x for x in xs)", "g", ["n:g", "n:xs"]),
            ("class O: pass\no = O()\nd = vars(o)", "d", ["n:d", "n:o"]),
            ("import types\no = types.SimpleNamespace()\nd = vars(o)", "d", ["n:d", "n:o"]),
            ("import functools\nxs = []\np = functools.partial(print, xs)", "p", ["n:p", "n:xs"]),
            ("import csv\nxs = ['a']\nr = csv.reader(xs)", "r", ["n:r", "n:xs"]),
            ("import itertools\nxs = [[1]]\nr = itertools.chain(xs)", "r", ["n:r", "n:xs"]),
            ("e = ValueError(xs := [])", "e", ["n:e", "n:xs"]),
            ("o = object(); p = [o]", "o", ["n:o", "n:p"]),
        ):
            self.check(source, name, members)

    def test_identity_objects_are_referred_to(self):
        session = fresh("class K:\n    registry = []\nL = K\nk = K()\nreg = K.registry\ndef f(): pass\ng = f\nh = [f]")
        token, = session.units["n:k"]["refs"]
        self.assertEqual(session.group("k"), ["n:k"])
        self.assertEqual(session.group("K"), ["n:K"])
        self.assertEqual(session.units["n:L"]["refs"], [token])
        self.assertEqual(session.group("reg"), ["n:reg", token])
        self.assertEqual(session.group("h"), ["n:h"])
        self.assertEqual(session.units["n:h"]["refs"], session.units["n:g"]["refs"])

    def test_a_mutable_part_of_a_function_is_seen_to_change(self):
        for give, change in (
            ("f.__defaults__ = (ys,)", "del ys[0]"),
            ("f.__defaults__ = ((1, (ys,)),)", "del ys[0]"),
            ("f.__kwdefaults__ = {'a': ys}", "del ys[0]"),
            ("f.__annotations__ = {'a': ys}", "del ys[0]"),
            ("f.held = ys", "del ys[0]"),
            ("f.__defaults__ = ([1],)", "f.__defaults__[0].append(2)"),
            ("f.__kwdefaults__ = {'a': [1]}", "f.__kwdefaults__['a'].append(2)"),
            ("f.__kwdefaults__ = {'a': 1}", "f.__kwdefaults__['b'] = 2"),
            ("f.__annotations__ = {'a': [1]}", "f.__annotations__['a'].append(2)"),
            ("f.held = [1]", "f.held.append(2)"),
        ):
            session = fresh("ys = [1, 2]\ndef f(*p, a=0, b=0): pass")
            token, = session.units["n:f"]["refs"]
            session.run(give)
            self.assertIn(token, session.run(change).mutated, (give, change))

    def test_tokens_in_a_circle_are_one_unit(self):
        session = fresh("class A: pass\nclass B: pass\nA.other = B\nB.other = A\nclass C: other = A")
        a, b = session.units["n:A"]["refs"][0], session.units["n:B"]["refs"][0]
        self.assertEqual(sorted(m["entity"] for m in session.units[a]["members"]), sorted([a, b]))
        c = session.units["n:C"]["refs"][0]
        self.assertEqual(len(session.units[c]["members"]), 1)
        session.run("A.c = C")
        self.assertEqual(len(session.units[c]["members"]), 3)
        session.run("del B.other, A.c")
        self.assertEqual([len(session.units[t]["members"]) for t in (a, b, c)], [1, 1, 1])

    def test_sharing_is_distinguished(self):
        a, b = fresh("m = [[0], [0]]\nrow = m[0]"), fresh("m = [[0], [0]]\nrow = m[1]")
        self.assertEqual(a.member("n:m")["own"], b.member("n:m")["own"])
        self.assertEqual(a.member("n:row")["own"], b.member("n:row")["own"])
        self.assertNotEqual(a.units["n:m"]["share"], b.units["n:m"]["share"])
        self.assertEqual([p[:2] for p in a.units["n:m"]["share"]], [["n:m", "n:row"]])

    def test_what_two_tokens_share_is_given_in_both_orders(self):
        session = fresh("class A: pass\nclass B: pass\nA.x, B.x = ([0], 1), [2]\nA.y, B.y = B.x, A.x")
        a, b = session.units["n:A"]["refs"][0], session.units["n:B"]["refs"][0]
        shared = {tuple(p[:2]): p[2] for p in session.units[a]["share"]}
        self.assertEqual(set(shared), {(a, b), (b, a)})


class Steps(unittest.TestCase):
    def steps(self, *steps):
        """Each step with the names it touched and the mutations it must show."""
        session = Session()
        for source, touched, mutated in steps:
            settled = session.run(source, {"n:" + n for n in touched})
            self.assertEqual({e for e in settled.mutated if e[0] == "n"}, {"n:" + n for n in mutated}, source)
            found = {m["entity"] for u in session.graph.sweep() for m in u["members"]}
            self.assertEqual(found, set(session.units), source)
            swept = {m["entity"]: (m["own"], u["key"]) for u in session.graph.sweep() for m in u["members"]}
            self.assertEqual(swept, {e: (session.member(e)["own"], u["key"]) for e, u in session.units.items()}, source)
        return session

    def test_changes_reach_every_alias(self):
        self.steps(("a = [1]", "", ""), ("b = a", "a", ""), ("b.append(2)", "b", "ab"), ("len(a)", "a", ""), ("c = list(a)", "a", ""))

    def test_regrouping(self):
        session = self.steps(
            ("m = [[0], [0]]; x = 1", "", ""), ("row = m[0]", "m", ""), ("row.append(1)", ["row"], ["m", "row"]),
            ("m[0] = list(row)", ["m", "row"], ["m"]), ("row.append(5)", ["row"], ["row"]), ("m.append(row)", ["m", "row"], ["m"]))
        self.assertEqual(session.group("row"), ["n:m", "n:row"])
        session.run("del row")
        self.assertEqual(session.group("m"), ["n:m"])

    def test_two_units_become_one_and_two_again(self):
        session = self.steps(("a = [1]; b = [2]; c = [3]; d = c", "", ""), ("a.append(c)", "ac", "a"), ("a.pop()", "a", "a"))
        self.assertEqual((session.together("a"), session.together("c")), (["n:a"], ["n:c", "n:d"]))

    def test_no_net_effect(self):
        self.steps(("cfg = {'x': 1, 'y': [1]}", "", ""), ("cfg['x'] = 9; cfg['x'] = 1", ["cfg"], ""),
                   ("cfg['y'] = [1]", ["cfg"], ""), ("cfg['x'] = True", ["cfg"], ["cfg"]))

    def test_a_class_changes_through_its_instances(self):
        session = Session()
        session.run("class K:\n    n = 0\n    def m(self): type(self).n += 1\nk = K()\ndef f(): pass\nf2 = f")
        token = session.units["n:k"]["refs"][0]
        self.assertEqual(session.run("k.m()", {"n:k"}).mutated, {token})
        self.assertEqual(session.run("k.m", {"n:k"}).mutated, set())
        f = session.units["n:f"]["refs"][0]
        self.assertEqual(session.run("f.note = 1", {"n:f2"}).mutated, {f})
        self.assertEqual(session.run("f.__defaults__ = ()", {"n:f"}).mutated, {f})
        self.assertEqual(session.run("f.__kwdefaults__ = {}", {"n:f"}).mutated, {f})
        self.assertEqual(session.run("def g(): return 5\nf.__code__ = g.__code__", {"n:f"}).mutated, {f})

    def test_methods_of_c_types_lead_to_their_objects_and_run_nothing_of_them(self):
        session = Session()
        session.run("log = []\nclass L(list):\n    def __getattribute__(self, name):\n        log.append(name)\n"
                    "        return list.__getattribute__(self, name)\nl = L()\nit = map(l.append, [1, 2])\nlog.clear()")
        self.assertEqual(session.ns["log"], [])
        self.assertEqual(session.group("it"), session.group("l"))
        session.run("k = 1", {"n:it"})
        self.assertEqual(session.ns["log"], [])
        session.run("import csv, io\nf = io.StringIO()\nw = csv.writer(f)")
        self.assertEqual(session.group("w"), ["n:f", "n:w"])
        self.assertEqual(session.run("w.writerow([1])", {"n:w"}).mutated, {"n:f", "n:w"})

    def test_a_class_that_calls_itself_an_array_is_none(self):
        session = Session()
        session.run("class ndarray(zip): pass\nndarray.__module__ = 'numpy'\na = []\nv = ndarray([a])")
        self.assertIn("n:v", session.units)

    def test_modules_differ_by_what_is_patched(self):
        session = Session()
        session.run("import math")
        self.assertEqual(session.units["n:math"]["refs"], ["m:math"])
        settled = session.run("math.tau = [6]; t = math.tau", {"n:math"})
        self.assertEqual(session.group("t"), ["m:math", "n:t"])
        settled = session.run("del math.tau; math.tau = 5", {"n:math"})
        self.assertEqual(settled.mutated, {"m:math"})
        session.graph.drop(["m:math"])
        self.assertAlmostEqual(session.ns["math"].tau, 6.283185307179586)
        self.assertEqual(session.run("pass", {"n:math"}).back, set())

    def test_a_module_that_is_as_it_was(self):
        session = Session()
        session.run("import cmath\nold = cmath.pi")
        session.run("cmath.pi = 3")
        self.assertEqual(session.run("cmath.pi = old", {"n:cmath", "n:old"}).back, {"m:cmath"})

    def test_atoms_cost_nothing_elsewhere(self):
        session = Session()
        session.run("\n".join("v%d = [%d]" % (i, i) for i in range(2000)))
        looked = []
        held, session.graph.value = session.graph.value, lambda e: (looked.append(e), held(e))[1]
        session.run("x = 5", set())
        self.assertLessEqual(set(looked), {"n:x"})

    def test_dirty(self):
        session = Session()
        session.run("a = [1]; b = [a]; c = [2]; d = 4; class_ = None\nclass K: n = 0")
        token = session.units["n:K"]["refs"][0]
        session.execute("a.append(3); e = c; d = 5; K.n = 1")
        self.assertEqual(session.graph.dirty({"n:a", "n:c", "n:K"}, {"n:d", "n:e"}), ["n:a", "n:b", "n:d", "n:e", token])


class Moving(Reloading):
    def test_what_no_name_reaches_is_let_go(self):
        source = """
def make():
    class Data(list): pass
    data = Data([%d])
    class K:
        def size(self): return data
    def f(): return data
    return f, K
f, K = make()
k = K()
def g(): return %d
made = [g, f, K, f.__closure__[0].cell_contents]
"""
        session, alive = Session(), []
        for at in range(200):
            session.run(source % (at, at))
            alive += map(weakref.ref, session.ns["made"])
            entities = sorted(session.units)
            session.units.clear()
            if at % 2:
                session.graph.drop(entities)
            else:
                keys = sorted({x.unit.key for x in session.graph.entries.values()})
                session.graph.stash(keys)
                session.graph.forget(keys)
        gc.collect()
        self.assertEqual([o() for o in alive if o() is not None], [])

    def test_a_sweep_keeps_no_value_alive(self):
        session = fresh("class A: pass\na = A()")
        made = weakref.ref(session.ns["a"])
        session.graph.sweep()
        # Nothing may wait for the collector: when a finalizer runs is part of what a step does.
        gc.disable()
        try:
            session.graph.drop(["n:a"])
            session.ns.pop("a", None)
            self.assertIsNone(made())
        finally:
            gc.enable()

    def test_drop_and_load(self):
        session = fresh("a = [1]; b = a; c = 5\nclass K: pass\nk = K(); k.xs = [a, c]\ndef f(): return K")
        items, units = session.items(), dict(session.units)
        session.graph.drop(list(units) + ["n:unknown", "f:x", "p:rng"])
        self.assertEqual(session.names(), {})
        self.assertEqual(session.graph.load(items), [])
        ns = session.ns
        self.assertTrue(ns["a"] is ns["b"] is ns["k"].xs[0] and type(ns["k"]) is ns["K"] is ns["f"]())
        self.assertEqual(session.run("pass").units, [])
        self.assertEqual(session.run("a.append(2)", {"n:a"}).mutated, {"n:a", "n:b", "n:k"})

    def test_stash_and_unstash(self):
        session = fresh("a = [1]; b = a; c = 5")
        a, key = session.ns["a"], session.units["n:a"]["key"]
        session.graph.stash([key])
        self.assertEqual(sorted(session.names()), ["c"])
        session.run("a = 7", set())
        session.graph.drop(["n:a"])
        session.graph.unstash([{"key": key, "members": ["n:a", "n:b"]}])
        self.assertTrue(session.ns["a"] is session.ns["b"] is a)
        self.assertEqual(session.run("pass").units, [])
        session.graph.stash([key])
        session.graph.forget([key])
        session.graph.unstash([{"key": key, "members": ["n:a"]}])
        self.assertEqual(sorted(session.names()), ["c"])

    def test_part_of_a_unit(self):
        session = fresh("a = [1]; b = [a]; c = 5")
        item = [i for i in session.items() if len(i["members"]) == 2][0]
        session.graph.drop(["n:a", "n:b"])
        self.assertEqual(session.graph.load([dict(item, take=["n:b"])]), [])
        self.assertEqual(sorted(session.names()), ["b", "c"])
        self.assertEqual(session.run("b[0].append(2)", {"n:b"}).mutated, {"n:b"})

    def test_a_token_is_given_to_another_object(self):
        session = fresh("class K: pass\nk = K()")
        old = session.units["n:k"]["refs"][0]
        session.run("class K: pass\nj = K()")
        new = session.units["n:j"]["refs"][0]
        self.assertNotEqual(old, new)
        session.graph.alias([[old, new]])
        self.assertEqual(session.graph.entity(session.ns["K"]), old)
        self.assertEqual(session.run("K.x = 1", {"n:K"}).mutated, {old})

    def test_references_may_stand_for_other_tokens(self):
        session = fresh("class K:\n    def m(self): return 1\nk = K()")
        token = session.units["n:k"]["refs"][0]
        item = [i for i in session.items() if i["members"][0]["entity"] == "n:k"][0]
        session.run("class Other: pass")
        other = session.units["n:Other"]["refs"][0]
        session.graph.drop(["n:k"])
        self.assertEqual(session.graph.load([dict(item, refs=[other if r == token else r for r in item["refs"]])]), [])
        self.assertIs(type(session.ns["k"]), session.ns["Other"])

    def test_a_blob_that_does_not_load_installs_nothing(self):
        session = fresh("a = [1]; b = a\nclass K: pass\nk = K()")
        items = session.items()
        session.graph.drop(list(session.units))
        bad = [dict(i, blob=i["blob"][:-9]) for i in items]
        self.assertEqual(len(session.graph.load(bad)), len(items))
        self.assertEqual(session.names(), {})
        alone = [i for i in items if i["members"][0]["entity"] == "n:k"]
        self.assertEqual(session.graph.load(alone)[0][1], "missing " + alone[0]["refs"][0])

    def test_a_name_means_what_importing_gave(self):
        session = fresh("import math\nf = math.sqrt")
        own = session.own("f")
        self.assertEqual(session.run("math.sqrt = abs", {"n:math", "n:f"}).mutated, set())
        self.assertEqual(session.own("f"), own)
        items = session.items()
        session.graph.drop(["n:f", "m:math"])
        items.sort(key=lambda i: i["members"][0]["entity"] != "m:math")
        self.assertEqual(session.graph.load(items), [])
        self.assertIs(session.ns["math"].sqrt, abs)
        self.assertEqual(session.ns["f"](16), 4.0)
        session.graph.drop(["m:math"])

    def test_random_graphs(self):
        for seed in range(12):
            rng = random.Random(seed)
            lines = ["import collections", "class A: pass", "class B(A):\n    __slots__ = ('s',)",
                     "def mk():\n    c = [0]\n    n = 1\n    def f():\n        nonlocal n\n        n += 1\n        return c, n\n    return f"]
            names = []
            for i in range(40):
                name = "v%d" % i
                some = lambda: rng.choice(names) if names and rng.random() < 0.7 else rng.choice(
                    ["1", "True", "1.5", "'x'", "None", "b'q'", "[]", "{}", "()", "A", "B", "len", "mk", "collections"])
                lines.append(name + " = " + rng.choice([
                    "[%s, %s]", "(%s, %s)", "{'a': %s, 'b': %s}", "{1: %s, (2,): %s}", "collections.deque([%s, %s])",
                    "collections.OrderedDict([('k', %s), ('j', %s)])", "(%s, [%s])"]) % (some(), some()))
                names.append(name)
                if rng.random() < 0.5:
                    lines.append("%s_o = %s(); %s_o.x = %s; %s_o.y = %s" % (name, rng.choice("AB"), name, some(), name, some()))
                    names.append(name + "_o")
                if rng.random() < 0.1:
                    lines.append("%s_f = mk(); %s_f()" % (name, name))
                    names.append(name + "_f")
                if rng.random() < 0.3:
                    target = rng.choice(names)
                    lines.append("if type(%s) is list: %s.append(%s)" % (target, target, rng.choice(names)))
                if rng.random() < 0.2:
                    lines.append("del %s" % names.pop(rng.randrange(len(names))))
            session = fresh("\n".join(lines))
            self.assertEqual([u["unserializable"] for u in session.units.values() if u["unserializable"]], [])
            self.answer(session)


if __name__ == "__main__":
    unittest.main()
