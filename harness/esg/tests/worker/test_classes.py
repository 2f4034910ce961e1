"""Classes, functions and instances of the program: stored by value, without running their code."""
import sys
import unittest

from support import Reloading, Session, fresh

PROGRAMS = [
    # (source, what must hold in the other process)
    ("def f(n, k=2): return n * k + x\nx = 1", "assert f(3) == 7; x = 5; assert f(3) == 11"),
    ("def counter():\n    n = 0\n    def inc():\n        nonlocal n\n        n += 1\n        return n\n    def get(): return n\n"
     "    return inc, get\ninc, get = counter()\ninc()", "assert inc() == 2 and get() == 2"),
    ("def push(x, acc=[]):\n    acc.append(x)\n    return acc\npush(1)", "assert push(2) == [1, 2]"),
    ("def f(): return 1\nf.calls = [1]\ng = f", "assert g is f and f.calls == [1]"),
    ("def f(a: int, *b: str, c: 'x' = None) -> list: 'doc'", "assert f.__annotations__ == {'a': int, 'b': str, 'c': 'x', 'return': list}"
     " and f.__doc__ == 'doc' and f.__kwdefaults__ == {'c': None}"),
    ("class K:\n    count = 0\n    reg = []\n    def __init__(self, x): self.x = x; K.count += 1\n    @property\n    def dbl(self): return self.x * 2\n"
     "    @staticmethod\n    def s(): return 's'\n    @classmethod\n    def c(cls): return cls\nk = K(3)\nreg = K.reg",
     "assert k.dbl == 6 and K.s() == 's' and K.c() is K and type(k) is K and K.count == 1 and reg is K.reg; assert K(4).x == 4 and K.count == 2"),
    ("class A:\n    def m(self): return ['A']\nclass B(A):\n    def m(self): return super().m() + [__class__.__name__]\nb = B()",
     "assert b.m() == ['A', 'B'] and isinstance(b, A) and B.__mro__ == (B, A, object)"),
    ("class S:\n    __slots__ = ('a', 'b', '__weakref__')\nclass T(S):\n    __slots__ = ('c',)\nt = T(); t.a = 1; t.c = [2]",
     "assert t.a == 1 and t.c == [2] and not hasattr(t, 'b') and not hasattr(t, '__dict__')"),
    ("from enum import Enum, IntEnum, Flag, auto\nclass C(Enum):\n    A = 1\n    B = [2]\n    Z = 1\n    def hi(self): return self.name\n"
     "class P(Flag):\n    R = auto()\n    W = auto()\nclass N(IntEnum):\n    ONE = 1\nc = C.A\np = P.R | P.W\nd = {C.A: 1, N.ONE: 2}",
     "assert c is C.A is C.Z is C(1) and c.hi() == 'A' and p == P.R | P.W and d[C.A] == 1 and d[N.ONE] == 2 and d[1] == 2\n"
     "assert list(C) == [C.A, C.B] and C.B.value == [2] and C([2]) is C.B and P(3) is p and N(1) + 1 == 2 and C['A'] is c"),
    ("from dataclasses import dataclass, field, fields, replace, asdict\n@dataclass\nclass P:\n    x: int = 0\n    y: list = field(default_factory=list)\n"
     "@dataclass(frozen=True, order=True)\nclass F:\n    a: int\n@dataclass(slots=True)\nclass G:\n    b: str = 'q'\np = P(1)\nq = F(2)\ng = G()\nd = {F(1): 'one'}",
     "import dataclasses\nassert p == P(1) and P(2).y == [] and P().y is not P().y and q < F(3) and d[F(1)] == 'one' and repr(g) == \"G(b='q')\"\n"
     "assert dataclasses.asdict(p) == {'x': 1, 'y': []} and dataclasses.replace(q, a=5).a == 5\n"
     "try:\n    q.a = 1\n    assert False\nexcept dataclasses.FrozenInstanceError: pass"),
    ("from typing import NamedTuple, Generic, TypeVar, Protocol, TypedDict\nfrom collections import namedtuple\nclass N(NamedTuple):\n    a: int\n    b: list = []\n"
     "M = namedtuple('M', 'x y', defaults=[0])\nT = TypeVar('T')\nclass Box(Generic[T]):\n    def __init__(self, v: T): self.v = v\n"
     "class D(TypedDict):\n    k: int\nclass Pr(Protocol):\n    def go(self): ...\nn = N(1)\nm = M(5)\nbox = Box[int](3)\nal = Box[int]\nd = D(k=1)",
     "assert n == (1, []) and n._replace(a=2).a == 2 and n.b is N(1).b and m._asdict() == {'x': 5, 'y': 0} and type(m) is M\n"
     "assert box.v == 3 and type(box) is Box and Box[str].__args__ == (str,) and al == Box[int]"),
    ("from abc import ABC, abstractmethod\nclass A(ABC):\n    @abstractmethod\n    def m(self): ...\nclass B(A):\n    def m(self): return 1\n"
     "class V: pass\nA.register(V)\nb = B()", "assert b.m() == 1 and isinstance(V(), A) and issubclass(B, A)\ntry:\n    A()\n    assert False\nexcept TypeError: pass"),
    ("class L(list):\n    def top(self): return self[-1]\nclass D(dict): pass\nclass I(int): pass\nclass X(str): pass\nclass E(Exception):\n    def __init__(self, a, b): super().__init__(a); self.b = b\n"
     "l = L([1, 2]); l.tag = 'x'\nd = D(a=1); d.z = 2\ni = I(5); i.u = 'm'\nx = X('hi')\ne = E(1, 2)\nclass S(set): pass\ns = S([1, 2]); s.k = 1",
     "assert l.top() == 2 and l.tag == 'x' and d == {'a': 1} and d.z == 2 and i == 5 and i.u == 'm' and x == 'hi' and type(x) is X\n"
     "assert e.args == (1,) and e.b == 2 and s == {1, 2} and s.k == 1"),
    ("class Meta(type):\n    def __call__(cls, *a): return super().__call__(*a)\n    def __new__(m, n, b, d, **k): return super().__new__(m, n, b, dict(d, tag=n))\nclass K(metaclass=Meta): pass\nk = K()",
     "assert K.tag == 'K' and type(K) is Meta and type(k) is K"),
    ("class Desc:\n    def __set_name__(self, owner, name): self.name = name\n    def __get__(self, o, t): return self.name\nclass H:\n    d = Desc()\n    subs = []\n"
     "    def __init_subclass__(cls, **k): H.subs.append(cls.__name__)\nclass I(H): pass\nh = I()", "assert h.d == 'd' and H.subs == ['I']"),
    ("from typing import Generic, TypeVar\nclass Base: pass\nK = TypeVar('K', bound=Base, covariant=True)\nL = TypeVar('L', int, str)\n"
     "class Repo(Generic[K]):\n    def get(self) -> K: ...",
     "assert K.__bound__ is Base and K.__covariant__ and L.__constraints__ == (int, str) and Repo.__parameters__ == (K,)"),
    ("class L(list):\n    __slots__ = ('a', 'b', '__dict__')\nrows = L(range(500)); rows.a = rows.c = [1]\nclass P:\n    __slots__ = ('a', 'b')\n"
     "    def __init__(self, a): self.a = a\npoints = [P(n) for n in range(300)]\nfor p in points[:200]: p.b = [p.a]",
     "assert rows == list(range(500)) and rows.a is rows.c and not hasattr(rows, 'b')\n"
     "assert points[5].b == [5] and points[250].a == 250 and not hasattr(points[250], 'b')"),
    ("class Plugin:\n    known = {}\n    def __init_subclass__(cls, **k): Plugin.known[cls.__name__] = cls\nclass Up(Plugin): pass\nclass Upper(Up): pass",
     "assert Plugin.known == {'Up': Up, 'Upper': Upper}\nclass New(Up): pass\nassert Plugin.known['New'] is New and len(Plugin.known) == 3"),
    ("class Meta(type):\n    tables = {}\n    def __new__(m, *a):\n        m.tables[a[0]] = cls = super().__new__(m, *a)\n        return cls\n"
     "class Model(metaclass=Meta): pass\nclass User(Model): pass",
     "assert Meta.tables == {'Model': Model, 'User': User} and type(User) is Meta\nclass New(User): pass\nassert Meta.tables['New'] is New"),
    ("class Node:\n    def __init__(self, v): self.v, self.next = v, None\na = Node(1); b = Node(2); a.next = b; b.next = a\nclass Tree: pass\nTree.root = Tree()\nr = Tree.root",
     "assert a.next is b and b.next is a and Tree.root is r and type(r) is Tree"),
    ("import functools\n@functools.lru_cache(maxsize=None)\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n@functools.wraps(len)\ndef w(x): return len(x)\n"
     "def deco(f):\n    @functools.wraps(f)\n    def inner(*a): return f(*a) + 1\n    return inner\n@deco\ndef one(): return 1\n",
     "assert fib(20) == 6765 and one() == 2 and one.__name__ == 'one' and w([1]) == 1"),
    ("class Q:\n    def m(self): return self.v\nq = Q(); q.v = 1\nbm = q.m\nops = {'+': lambda a, b: a + b, 'n': q.m}", "assert bm() == 1 and bm.__self__ is q and ops['+'](1, 2) == 3; q.v = 7; assert bm() == 7 == ops['n']()"),
    ("import functools\nclass C:\n    @functools.cached_property\n    def big(self): return [1]\nc = C(); c.big.append(2)", "assert c.big == [1, 2] and C().big == [1]"),
    ("class P:\n    def __init__(self, x): self.x = x\n    def __hash__(self): return hash(self.x)\n    def __eq__(self, o): return self.x == o.x\nd = {P(1): 'a', P(2): 'b'}\ns = {P(1)}", "assert d[P(1)] == 'a' and P(1) in s"),
]

# Every hook of a class raises, and so does its metaclass: probing, storing and loading run none of it.
TRAP = """
armed = []
def boom(*a, **k):
    if armed: raise SystemError('code of the program ran')
    return NotImplemented
class Meta(type):
    def __getattribute__(cls, n):
        if armed: raise SystemError('metaclass')
        return type.__getattribute__(cls, n)
    def __instancecheck__(cls, o): raise SystemError
    def __hash__(cls):
        if armed: raise SystemError
        return 1
    def __eq__(cls, o):
        if armed: raise SystemError
        return cls is o
class Trap(metaclass=Meta):
    def __init__(self): object.__setattr__(self, 'kept', [1])
    def __getattribute__(self, n):
        if armed: raise SystemError(n)
        return object.__getattribute__(self, n)
    @property
    def prop(self): boom()
    %s
class TrapList(list):
    def __iter__(self): raise SystemError
    def __len__(self): raise SystemError
    def __getitem__(self, i): raise SystemError
class TrapDict(dict):
    def __iter__(self): raise SystemError
    def items(self): raise SystemError
    def keys(self): raise SystemError
    def __getitem__(self, i): raise SystemError
class TrapStr(str):
    def __str__(self): raise SystemError
    def __hash__(self): raise SystemError
    def __eq__(self, o): raise SystemError
t = Trap()
v = [t, TrapList([1]), TrapDict(a=1), TrapStr('x'), (t, t)]
""" % "\n    ".join("__%s__ = boom" % n for n in (
    "reduce reduce_ex getstate setstate getnewargs copy deepcopy eq ne lt hash repr str bool len iter contains getitem setitem "
    "call setattr delattr getattr dir sizeof format bytes index int float class_getitem init_subclass").split())


class Classes(Reloading):
    @unittest.skipIf(sys.version_info < (3, 13), "type variables have no defaults")
    def test_the_default_of_a_type_variable_may_be_none(self):
        session = fresh("from typing import TypeVar\nT, U, V = TypeVar('T', default=None), TypeVar('U', default=int), TypeVar('V')")
        self.assertEqual([session.unserializable(name) for name in "TUV"], [None] * 3)
        self.answer(session, "assert T.has_default() and T.__default__ is None and U.__default__ is int and not V.has_default()")

    def test_what_is_registered_with_a_subclass_is_seen_in_its_base(self):
        session = fresh("from abc import ABC\nclass Base(ABC): pass\nclass Sub(Base): pass\nclass Other: pass")
        base, sub = [session.units[name]["refs"][0] for name in ("n:Base", "n:Sub")]
        self.assertLessEqual({base, sub}, session.run("Sub.register(Other)").mutated)
        self.assertEqual([session.unserializable(name) for name in ("Base", "Sub")], [None, None])

    def test_programs_come_back_in_another_process(self):
        for source, check in PROGRAMS:
            session = fresh(source)
            for e, unit in session.units.items():
                self.assertIsNone(unit["unserializable"], (source, e))
            self.answer(session, check)

    def test_no_code_of_the_program_runs(self):
        session = Session()
        session.run(TRAP)
        session.ns["armed"].append(1)
        session.graph.settle(2, {"n:" + n for n in session.names()}, set(), set())
        session.graph.dirty({"n:" + n for n in session.names()}, {"n:v"})
        session.graph.codes({"n:" + n for n in session.names()})
        self.assertTrue(session.graph.sweep())
        self.assertIsNone(session.unserializable("t"))
        self.assertIsNone(session.unserializable("v"))
        before = session.own("v")
        items = session.items()
        session.graph.drop([e for e in session.units])
        session.ns["armed"] = [1]
        self.assertEqual(session.graph.load(items), [])
        again = Session.run(session, "pass")
        del again
        session.ns["armed"].clear()
        self.assertEqual(before, session.own("v"))

    def test_a_key_whose_hash_runs_code_is_unserializable(self):
        session = fresh("class K:\n    n = 0\n    def __hash__(self): K.n += 1; return 1\nd = {K(): 1}")
        self.assertEqual(session.unserializable("d"), "a key whose __hash__ runs code")

    def test_an_object_with_a_finalizer_is_unserializable(self):
        session = Session()
        settled = session.run("class K:\n    n = []\n    def __del__(self): K.n.append(1)\nk = K()")
        self.assertEqual((session.unserializable("k"), settled.notes, session.ns["K"].n), ("finalizer", ["__del__"], []))

    def test_class_content(self):
        base = "class K(%s):\n    %s"
        seen = []
        for b, body in (("", "x = 1"), ("", "x = True"), ("", "y = 1"), ("int", "x = 1"), ("", "x = 1\n    y = 2"), ("", "y = 2\n    x = 1"),
                        ("", "__slots__ = ('x',)"), ("", "x: int = 1"), ("", "'doc'\n    x = 1"), ("", "def x(self): return 1"), ("", "def x(self): return 2")):
            own = fresh(base % (b, body)).own("K")
            self.assertNotIn(own, seen, body)
            seen.append(own)
        self.assertEqual(fresh(base % ("", "x = 1")).own("K"), fresh("\n\n# moved\n" + base % ("", "x =  1")).own("K"))

    def test_an_instance_does_not_show_its_classs_content_in_its_own(self):
        a, b = fresh("class K:\n    x = 1\nk = K()"), fresh("class K:\n    x = 2\nk = K()")
        self.assertEqual(a.member("n:k")["own"], b.member("n:k")["own"])
        self.assertNotEqual(a.own("k"), b.own("k"))

    def test_used_caches_of_functions_of_packages_are_unserializable_and_show_their_use(self):
        session = fresh("import functools\nf = functools.cache(len)\nf(())")
        self.assertEqual(session.unserializable("f"), "type functools.lru_cache")
        self.assertEqual(session.run("pass").mutated, set())
        self.assertIn("n:f", session.run("f((1,))").mutated)

    def test_generators_show_where_they_are(self):
        session = fresh("def g():\n    for i in [1, 2, 3]: yield i\nit = g()")
        self.assertEqual(session.run("pass").mutated, set())
        self.assertEqual(session.run("next(it)").mutated, {"n:it"})
        self.assertEqual(session.unserializable("it"), "generator")
        other = fresh("def g():\n    for i in [1, 2, 3]: yield i\nit = g()\nnext(it)")
        self.assertEqual(session.own("it"), other.own("it"))

    def test_loads(self):
        session = fresh("def f():\n    def g(): return a + len(b)\n    return [c for _ in g()]\nh = (lambda z: lambda: z + d)(1)")
        self.assertEqual(session.member(session.units["n:f"]["refs"][0])["loads"], ["a", "b", "c", "len"])
        self.assertEqual(session.member("n:h")["loads"], ["d"])


if __name__ == "__main__":
    unittest.main()
