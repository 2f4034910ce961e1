"""Types of the standard library: dates, numbers, patterns, paths, iterators, locks, generators.

Their modules are used only if a program has loaded them.
"""
import _thread
import re
import sys
import types
from functools import singledispatchmethod
from itertools import count
from weakref import WeakKeyDictionary

from _harness.values.codeforms import digest
from _harness.values.compat import TUPLE_GETTER as _getter, get_referents
from _harness.values.funcs import DISPATCHED
from _harness.values.models import kind_of
from _harness.values.shapes import MAPPING, Unserializable, Kind, Unloadable, cuts, lookup, register
from _harness.values.layouts import referents
from _harness.values.payloads import OfElement, OfNamespace, OfReduced, OfState
from _harness.values.syntax import SHARED, OfNode

_modules = sys.modules


def _args(base):
    """The arguments of a C type's own reduction. The class it names is written separately."""
    reduce = MAPPING(base).get("__reduce__")
    if reduce is not None:
        return lambda o: reduce(o)[1]
    given = MAPPING(base)["__getinitargs__"]
    return lambda o: given(o)


def _pattern(cls, part):
    return _modules["re"].compile(*part)


def _call_of(base, o):
    """The arguments that make a function of `operator` again."""
    make, given = MAPPING(base)["__reduce__"](o)
    if make is not type(o):
        raise ValueError("it has arguments by keyword")
    return given


def payload(base):
    """How a type of a loaded module stores its part, or None. The caller caches it."""
    from _harness.values.layouts import PAYLOADS
    name = (base.__module__, base.__qualname__)
    found = None
    if name[0] == "datetime" and name[1] in ("date", "time", "datetime", "timedelta"):
        found = OfReduced(base, _args(base))
    elif name == ("datetime", "timezone"):
        found = OfReduced(base, MAPPING(base)["__getinitargs__"])
    elif name == ("decimal", "Decimal"):
        found = OfReduced(base, lambda o: (base.as_tuple(o)[:],), lambda cls, part: base.__new__(cls, part[0]))
    elif name == ("re", "Pattern"):
        found = OfReduced(base, lambda o: (o.pattern, o.flags), _pattern)
    elif name == ("_random", "Random"):
        found = OfState(base, base.getstate, base.setstate)
    elif name == ("_struct", "Struct"):
        found = OfReduced(base, lambda o: (o.format,), lambda cls, part: cls(*part))
    elif name[0] == "operator" and name[1] in ("attrgetter", "itemgetter", "methodcaller"):
        found = OfReduced(base, lambda o: _call_of(base, o))
    elif name == ("xml.etree.ElementTree", "Element"):
        found = OfElement(base)
    elif name == ("types", "SimpleNamespace"):
        found = OfNamespace(base)
    elif name == ("ast", "AST"):
        found = OfNode(base)
        SHARED.find()
    elif name in (("typing", "Generic"), ("msgspec._core", "_StructMixin")):
        found = PAYLOADS[object]
    if found is not None:
        PAYLOADS[base] = found
    return found


class Path(Kind):
    """Paths by their text: their caches are not content."""
    tag, mutable, early = "path", False, False

    def split(self, walk, objs):
        return [(walk.name(type(o)), [str(p) for p in o.parts]) for o in objs], []

    def build(self, load, head, kids, n):
        return [load.named(cls)(*parts) for cls, parts in head]


class Iterator(Kind):
    """Iterators over a list, tuple or string: their sequence and position."""
    tag, sure, early = "it", False, False

    def split(self, walk, objs):
        head, kids = [], []
        for o in objs:
            call = MAPPING(type(o))["__reduce__"](o)
            seq, at = call[1][0], call[2] if len(call) > 2 else None
            if at is None and type(seq) is list:
                seq = None      # at its end the list it names is not the one it ran over
            head.append((walk.name(type(o)), call[0] is not reversed, at))
            kids.append(seq)
        return head, kids

    def build(self, load, head, kids, n):
        out = []
        for (cls, forth, at), seq in zip(head, kids):
            if seq is None:
                made = (iter if load.named(cls) is _LIST_ITERATOR else reversed)([])
                next(made, None)
            else:
                made = (iter if forth else reversed)(seq)
                if at is not None:
                    MAPPING(type(made))["__setstate__"](made, at)
            if type(made) is not load.named(cls):
                raise Unloadable("iterator")
            out.append(made)
        return out

_LIST_ITERATOR = type(iter([]))


class Lock(Kind):
    """A free lock has no content. A held one is unserializable."""
    sure = False
    held = Unserializable("type lock", kids=lambda walk, o: [])

    def __init__(self, tag, new, taken):
        self.tag, self.new, self.taken = tag, new, taken

    def pick(self, walk, o):
        return self.held if self.taken(o) else self

    def split(self, walk, objs):
        return None, []

    def make(self, load, head, n):
        return [self.new() for _ in range(n)]

    def fill(self, load, objs, head, kids):
        pass


class Count(Kind):
    """`itertools.count` over plain integers: where it is, which only its text shows, and its step. Its
    own reduction warns."""
    tag, sure = "count", False
    other = Unserializable("type itertools.count", kids=referents)
    text = re.compile(r"count\((-?\d+)(?:, (-?\d+))?\)").fullmatch

    def pick(self, walk, o):
        # No number of a class of the program, whose text would run code, and none that is too long.
        plain = all([v is count or type(v) is int and v.bit_length() < 4096 for v in get_referents(o)])
        return self if plain and self.text(repr(o)) else self.other

    def split(self, walk, objs):
        return [tuple(map(int, filter(None, self.text(repr(o)).groups()))) for o in objs], []

    def make(self, load, head, n):
        return [count(*found) for found in head]

    def fill(self, load, objs, head, kids):
        pass


class Generator(Kind):
    """A suspended generator or coroutine: its code, its position, the content of its frame. Never
    stored."""
    unserializable, sure = "generator", False

    def __init__(self, tag, prefix):
        self.tag, self.prefix = tag, prefix

    def split(self, walk, objs):
        head, kids = [], []
        for o in objs:
            frame = getattr(o, self.prefix + "_frame")
            code = getattr(o, self.prefix + "_code")
            walk.codes.append(code)
            found = [v for v in referents(walk, o) if v is not code]
            head.append((digest(code), o.__name__, o.__qualname__, frame.f_lasti if frame else None, len(found)))
            kids += found
        return head, kids


def _std_iterators():
    for o in (iter([]), iter(()), iter(""), iter("a"), reversed([]), iter(b""), iter(range(0))):
        yield type(o)

ITERATOR = register(Iterator(), *_std_iterators())
for _tag, _prefix, _type in (("gen", "gi", types.GeneratorType), ("coro", "cr", types.CoroutineType),
                             ("agen", "ag", types.AsyncGeneratorType)):
    register(Generator(_tag, _prefix), _type)
LOCK = Lock("lock", _thread.allocate_lock, _thread.LockType.locked)
RLOCK = Lock("rlock", _thread.RLock, vars(_thread.RLock)["_is_owned"])
register(LOCK)
register(RLOCK)
PICKS = {id(_thread.LockType): LOCK.pick, id(_thread.RLock): RLOCK.pick}
PICKS[id(WeakKeyDictionary)] = DISPATCHED.pick
PICKS[id(singledispatchmethod)] = DISPATCHED.of_method
SHARED.picks = PICKS
PICKS[id(count)] = register(Count()).pick
PATH = register(Path())


class Proxy(Kind):
    """`mappingproxy`, and the views of dicts: views of another object."""
    tag, mutable, early, sure = "mp", False, False, False

    def pick(self, walk, o):
        """What a package keeps is its own: all fields of dataclasses share one empty proxy, and a copy would not
        share its dict."""
        name = walk.world.names.constant(o)
        return self if name is None else ("g", *name)

    def split(self, walk, objs):
        return None, [get_referents(o)[0] for o in objs]

    def build(self, load, head, kids, n):
        return [types.MappingProxyType(v) for v in kids]


class View(Proxy):
    def __init__(self, tag, look):
        self.tag, self.look = tag, look

    def build(self, load, head, kids, n):
        return [self.look(v) for v in kids]


PICKS[id(types.MappingProxyType)] = register(Proxy()).pick
for _tag, _look in (("dk", dict.keys), ("dv", dict.values), ("di", dict.items)):
    register(View(_tag, _look), type(_look({})))


class Hidden(Kind):
    """A descriptor of the program's own class: `__slots__` members, `__dict__`, read as values."""
    tag, mutable, early = "sd", False, False

    def split(self, walk, objs):
        return [(walk.name(o.__objclass__), o.__name__) for o in objs], []

    def build(self, load, head, kids, n):
        return [MAPPING(load.named(cls))[name] for cls, name in head]


class Generic(Kind):
    """`list[int]`, `int | str`, type variables: rebuilt from their parts."""
    mutable, early, sure = False, False, False

    def __init__(self, tag, parts, make):
        self.tag, self.parts, self.make_one = tag, parts, make

    def split(self, walk, objs):
        found = [self.parts(o) for o in objs]
        return [len(f) for f in found], [v for f in found for v in f]

    def build(self, load, head, kids, n):
        return [self.make_one(*part) for _, part in cuts(head, head, kids)]


def _union(*args):
    made = args[0]
    for arg in args[1:]:
        made = made | arg
    return made

HIDDEN = register(Hidden(), types.MemberDescriptorType, types.GetSetDescriptorType)
register(Generic("ga", lambda o: (o.__origin__, o.__args__), types.GenericAlias), types.GenericAlias)
register(Generic("tg", lambda o: MAPPING(_getter)["__reduce__"](o)[1], lambda *a: _getter(*a)), _getter)  # type: ignore[misc]
register(Generic("un", lambda o: o.__args__, _union), types.UnionType)


class TypeVar(Kind):
    """A type variable written in C (3.12 and later), whose bound, constraints and default are classes."""
    sure = False
    _flags = ("__covariant__", "__contravariant__", "__infer_variance__")

    def __init__(self, tag, name):
        self.tag, self.cls = tag, name

    def pick(self, walk, o):
        # A bound or default may be lazy code, which reading it would run.
        simple = all([type(v) is str or v is None or type(v) is dict or issubclass(type(v), type) or
                      type(v) is tuple and all([issubclass(type(one), type) for one in v]) or
                      walk.world.names.constant(v) is not None for v in get_referents(o)])
        return self if simple else _LAZY

    def split(self, walk, objs):
        head = []
        for o in objs:
            bound, default = getattr(o, "__bound__", None), getattr(o, "__default__", None)
            head.append((
                o.__name__, {f.strip("_"): bool(getattr(o, f, False)) for f in self._flags},
                [walk.name(cls) for cls in getattr(o, "__constraints__", ())],
                None if bound is None else walk.name(bound), hasattr(o, "has_default") and o.has_default(),
                walk.name(default) if issubclass(type(default), type) else None))
        return head, [o.__module__ for o in objs]

    def make(self, load, head, n):
        cls, out = getattr(_modules.get("typing") or __import__("typing"), self.cls), []
        for name, flags, constraints, bound, has_default, default in head:
            named = {"default": default and load.named(default)} if has_default else {}
            if self.cls == "TypeVar":
                named.update(flags, bound=bound and load.named(bound))
            out.append(cls(name, *[load.named(one) for one in constraints], **named))
        return out

    def fill(self, load, objs, head, kids):
        for o, module in zip(objs, kids):
            if module is not None:
                o.__module__ = module


_LAZY = Unserializable("type typing.TypeVar with a bound", kids=referents)
_TYPE_VARS = {name: register(TypeVar("v" + name, name)) for name in ("TypeVar", "ParamSpec", "TypeVarTuple")}


def _reference(*args):
    arg, is_argument, module, is_class = args
    return _modules["typing"].ForwardRef(arg, is_argument, module=module, is_class=is_class)

# A name of a class that is found later. What it was found to be is kept beside, and is no content.
_REFERENCE = register(Generic("fr", lambda o: (
    o.__forward_arg__, o.__forward_is_argument__, o.__forward_module__, o.__forward_is_class__), _reference))


class Alias(Generic):
    """`Optional[int]`, `Literal["a"]`, `Callable[[int], str]`: subscripted again, which finds the object that `typing`
    keeps of these parts. The attributes are those that its own `__reduce__` reads."""

    def __init__(self):
        super().__init__("al", _parts_of_alias, None)

    def build(self, load, head, kids, n):
        out = []
        for form, args in zip(kids[::2], kids[1::2]):
            load.check(args)
            subscripts = lookup(form, "__class_getitem__") if issubclass(type(form), type) else None
            function = subscripts.__func__ if type(subscripts) is classmethod else None
            if type(function) is types.FunctionType and load.world.is_programs(function):
                raise Unloadable("a class with a subscript of its own")
            if form is _modules["typing"].Callable or form is _modules["collections.abc"].Callable:
                # Of several parameters `typing` makes one list.
                given = args[0] if len(args) == 2 and not _is_type(args[0]) else list(args[:-1])
                out.append(form[given, args[-1]])
            else:
                out.append(form[args[0] if len(args) == 1 and type(args[0]) is not tuple else args])
        return out


def _is_type(arg):
    """Whether it is the type of one parameter, and not what stands for all of them."""
    return arg is not ... and type(arg).__name__ not in ("ParamSpec", "_ConcatenateGenericAlias")


def _parts_of_alias(o):
    typing, name = _modules["typing"], type(o).__name__
    if name == "_AnnotatedAlias":
        return typing.Annotated, (o.__origin__, *o.__metadata__)
    if name == "_UnionGenericAlias":
        return typing.Union, o.__args__
    if name == "_CallableGenericAlias":
        return typing.Callable if type(o).__module__ == "typing" else o.__origin__, o.__args__
    return getattr(typing, o._name) if o._name else o.__origin__, o.__args__


_ALIAS = register(Alias())
_ALIASES = frozenset((
    ("typing", "_GenericAlias"), ("typing", "_UnionGenericAlias"), ("typing", "_LiteralGenericAlias"),
    ("typing", "_CallableGenericAlias"), ("typing", "_ConcatenateGenericAlias"), ("typing", "_AnnotatedAlias"),
    ("collections.abc", "_CallableGenericAlias"),
))


def pick_type_var(walk, o, t):
    """The kind of a type variable, or None if the object is none."""
    typing = _modules.get("typing")
    if typing is None or sys.version_info < (3, 12):
        return None
    for name, kind in _TYPE_VARS.items():
        if vars(typing).get(name) is t:
            return kind.pick(walk, o)
    return None


def late_kind(names, t):
    """The kind of a type whose module may not be loaded yet, or None."""
    if names.of(t) is None:
        return None
    where = t.__module__.partition(".")[0]
    if where == "pathlib" and t.__name__ in ("PosixPath", "PurePosixPath", "PureWindowsPath"):
        return PATH
    if where == "typing" and t.__name__ == "ForwardRef":
        return _REFERENCE
    if (t.__module__, t.__name__) in _ALIASES:
        return _ALIAS
    return kind_of(t)
