"""Functions, bound methods and the wrappers of descriptors, by value.

A function binds to the live namespace of its module. Its code is hashed without lines and stored
with them. Stateless functions are identity objects: references everywhere except in their own
entity.
"""
import functools
import marshal
import types
from weakref import WeakKeyDictionary

from _harness.values import codeforms as codes
from _harness.values.bytecode import names_in
from _harness.values.compat import cached
from _harness.values.shapes import ATOM_IDS, Unserializable, Kind, Unloadable, lookup, register

Function, Method, Builtin = types.FunctionType, types.MethodType, types.BuiltinFunctionType
_dumps, _loads = marshal.dumps, marshal.loads
_OF_FUNCTOOLS = functools.singledispatch.__code__.co_filename
_PARAMS = "__type_params__" in Function.__dict__
_Cell = types.CellType
# attrs gives the methods that it makes a copy of the namespace in which their class is defined, and
# `sympy.lambdify` its functions one of that of numpy or `math`.
_COPIES = ("<attrs generated ", "<lambdifygenerated-")


def _loaded(f):
    """The names that a function finds in its copy of a namespace: no other code has the copy."""
    return [name for name in sorted(names_in(f.__code__)) if name in f.__globals__]


def _annotated(walk, f):
    """The annotations of a function, or the function of a package that it wraps and shares them with."""
    wrapped = f.__dict__.get("__wrapped__")
    if type(wrapped) is Function and wrapped.__annotations__ is f.__annotations__ and walk.world.names.of(wrapped):
        return wrapped
    return f.__annotations__


def frozen(walk, o, depth=8):
    """Whether a default cannot change: atoms, names of others, references."""
    t = type(o)
    if id(t) in ATOM_IDS or issubclass(t, type) or t is types.ModuleType:
        return True
    if t is tuple or t is frozenset:
        return depth > 0 and all([frozen(walk, v, depth - 1) for v in o])
    if t is Function:
        return walk.world.names.of(o) is not None or stateless(walk, o, depth - 1)
    return t is Builtin or t is complex or t is range or walk.world.names.constant(o) is not None


def stateless(walk, f, depth=8):
    """A function that calls cannot change: nothing mutable in cells, defaults or attributes."""
    if f.__closure__ or f.__dict__ or depth <= 0:
        return False
    for v in f.__defaults__ or ():
        if not frozen(walk, v, depth):
            return False
    for v in (f.__kwdefaults__ or {}).values():
        if not frozen(walk, v, depth):
            return False
    return True


def _dispatch_caches(f):
    """What a function of `singledispatch` keeps for the classes that it was called with."""
    clear = f.__dict__.get("_clear_cache")
    if type(clear) is Method:
        yield clear.__self__
    if "dispatch_cache" in f.__code__.co_freevars:
        yield f.__closure__[f.__code__.co_freevars.index("dispatch_cache")].cell_contents


class Func(Kind):
    tag = "f"
    late_make = True    # after every cell has been made

    def split(self, walk, objs):
        head, kids = [], []
        for f in objs:
            code = f.__code__
            if walk.world.is_programs(f):
                walk.codes.append(code)
            walk.extra(lambda code=code: _dumps(code))
            if code.co_filename == _OF_FUNCTOOLS:
                walk.caches.update(map(id, _dispatch_caches(f)))
            where = walk.space(f.__globals__)
            cells = f.__closure__ or ()
            if where is None and str.startswith(code.co_filename, _COPIES):
                where = _loaded(f)
                cells += tuple([f.__globals__[name] for name in where])
            head.append((f.__name__, f.__qualname__, codes.digest(code), where, len(cells)))
            kids += (f.__defaults__, f.__kwdefaults__, _annotated(walk, f), f.__dict__, f.__doc__, f.__module__,
                     f.__type_params__ if _PARAMS else None, f.__globals__ if where is None else None)
            kids += cells
        return head, kids

    def make(self, load, head, n):
        return None

    def make_one(self, load, head, part, code):
        name, _, _, where, _ = head
        cells = part[8:]
        if type(where) is list:
            space, cells = {}, cells[:len(cells) - len(where)]
        else:
            space = load.end(where) if where is not None else part[7]
        if type(space) is not dict and not issubclass(type(space), dict):
            raise Unloadable("the globals of a function")
        for cell in cells:
            if type(cell) is not _Cell:
                raise Unloadable("a cell")
        return Function(_loads(code), space, name, None, tuple(cells) or None)

    def fill(self, load, objs, head, kids):
        at = 0
        for f, (_, qualname, _, where, cells) in zip(objs, head):
            part = kids[at:at + 8]
            at += 8 + cells
            if type(where) is list:
                f.__globals__.update(zip(where, kids[at - len(where):at]))
            f.__defaults__, f.__kwdefaults__, noted, f.__dict__, f.__doc__, f.__module__ = part[:6]
            f.__annotations__ = noted.__annotations__ if type(noted) is Function else noted
            f.__qualname__ = qualname
            if _PARAMS and part[6] is not None:
                f.__type_params__ = part[6]


class Dispatched(Kind):
    """What `functools.singledispatch` has found for the classes that it was called with, which follows from what is
    registered: no content."""
    tag = "dc"

    def pick(self, walk, o):
        return self if id(o) in walk.caches else walk.world.kind(type(o))

    @staticmethod
    def of_method(walk, o):
        """The kind of a `functools.singledispatchmethod`, which keeps a method for each object from Python 3.13 on."""
        walk.caches.add(id(vars(o).get("_method_cache")))
        return walk.world.kind(type(o))

    def split(self, walk, objs):
        return None, []

    def make(self, load, head, n):
        return [WeakKeyDictionary() for _ in range(n)]

    def fill(self, load, objs, head, kids):
        pass


class Bound(Kind):
    tag, mutable, early = "m", False, False

    def split(self, walk, objs):
        return None, [v for o in objs for v in (o.__func__, o.__self__)]

    def build(self, load, head, kids, n):
        return [Method(kids[2 * i], kids[2 * i + 1]) for i in range(n)]


class BoundBuiltin(Kind):
    """`xs.append`: a method of a builtin type with its object."""
    tag, mutable, early = "bm", False, False

    def split(self, walk, objs):
        return [o.__name__ for o in objs], [o.__self__ for o in objs]

    def build(self, load, head, kids, n):
        out = []
        for name, owner in zip(head, kids):
            cls = owner if issubclass(type(owner), type) else type(owner)
            found = lookup(cls, name)
            if found is None:
                raise Unloadable("method " + name)
            out.append(type(found).__get__(found, None if cls is owner else owner, cls))
        return out


class BoundWrapper(Kind):
    """`count.__next__`: a special method of a builtin type with its object."""
    tag, mutable, early = "bw", False, False

    def split(self, walk, objs):
        return [(o.__name__, o.__qualname__) for o in objs], [o.__self__ for o in objs]

    def build(self, load, head, kids, n):
        out = []
        for (name, _), owner in zip(head, kids):
            found = lookup(type(owner), name)
            if type(found) is not types.WrapperDescriptorType:
                raise Unloadable("method " + name)
            out.append(found.__get__(owner, type(owner)))
        return out


class Property(Kind):
    tag, mutable, early = "p", False, False
    names = "__name__" in property.__dict__

    def split(self, walk, objs):
        kids = []
        for o in objs:
            try:
                name = o.__name__ if self.names else None
            except AttributeError:
                name = None
            kids += (o.fget, o.fset, o.fdel, o.__doc__, name)
        return None, kids

    def build(self, load, head, kids, n):
        out = []
        for i in range(n):
            get, put, drop, doc, name = kids[5 * i:5 * i + 5]
            made = property(get, put, drop)
            if made.__doc__ is not doc and made.__doc__ != doc:
                made = property(get, put, drop, doc)
            if name is not None and getattr(made, "__name__", None) != name:
                made.__name__ = name
            out.append(made)
        return out


class Wrapped(Kind):
    """`staticmethod` and `classmethod`."""
    mutable, early = False, False

    def __init__(self, tag, cls):
        self.tag, self.cls = tag, cls
        self._func = cls.__dict__["__func__"].__get__
        self._dict = cls.__dict__["__dict__"].__get__

    def split(self, walk, objs):
        return None, [v for o in objs for v in (self._func(o), tuple(self._dict(o).items()))]

    def build(self, load, head, kids, n):
        out = []
        for i in range(n):
            made = self.cls(None)
            made.__init__(kids[2 * i])
            held = self._dict(made)
            held.clear()
            held.update(kids[2 * i + 1])
            out.append(made)
        return out


class Partial(Kind):
    tag, sure = "pt", False
    _func = functools.partial.__dict__["func"].__get__
    _args = functools.partial.__dict__["args"].__get__
    _keywords = functools.partial.__dict__["keywords"].__get__
    _dict = functools.partial.__dict__["__dict__"].__get__

    def split(self, walk, objs):
        return None, [v for o in objs for v in (self._func(o), self._args(o), self._keywords(o), self._dict(o))]

    def make(self, load, head, n):
        return [functools.partial.__new__(functools.partial, len) for _ in range(n)]

    def fill(self, load, objs, head, kids):
        for i, o in enumerate(objs):
            functools.partial.__setstate__(o, tuple(kids[4 * i:4 * i + 4]))


CACHED_TYPE = type(functools.lru_cache(None)(lambda: 0))
_INFO, _CACHED_DICT = CACHED_TYPE.__dict__["cache_info"], CACHED_TYPE.__dict__["__dict__"].__get__


# Of a cache with more values none is looked at: that would cost each step that names it.
_MANY_CACHED = 10_000
_MOST_HITS = 1_000_000


def _is_typed(o):
    given = _CACHED_DICT(o).get("cache_parameters")
    cells = given.__closure__ or () if type(given) is Function else ()
    return any([c.cell_contents is True for c in cells])


def _calls(o):
    """The calls that fill a cache as it is, the oldest first: arguments, the names and values of those with a name,
    and what was returned. None if it does not show them."""
    hits, misses, most, number = _INFO(o)
    function = _CACHED_DICT(o).get("__wrapped__")
    if number > _MANY_CACHED or hits > _MOST_HITS or type(function) is not Function and (hits or misses):
        return None
    # What is no longer there was let go of for what is, or because an exception was raised.
    if misses != number and (number != most or misses - number > _MANY_CACHED):
        return None
    typed, found = _is_typed(o), []
    for key, result in cached(o, number, most is not None):
        call = _call(key, typed, result)
        if call is None:
            return None
        found.append(call)
    return tuple(found)


def _mark():
    """What stands in a key before the names of arguments."""
    function = functools.lru_cache(None)(lambda **named: None)
    function(name=0)
    return cached(function, 1, False)[0][0][0]


_MARK = _mark()


def _call(key, typed, result):
    if type(key) is not tuple:
        return (key,), (), (), result
    at = next((at for at, part in enumerate(key) if part is _MARK), None)
    if typed:
        return (key[:len(key) // 2], (), (), result) if at is None else None
    named = key[at + 1:] if at is not None else ()
    return key[:at], named[::2], named[1::2], result


class Cached(Kind):
    """`functools.lru_cache`. What it has cached is content: a name may have the same object, and what it returns
    later depends on it. It is filled again by calls of a function that returns what is stored."""
    tag, sure = "lc", False
    used = Unserializable("type functools.lru_cache", tag="lu", kids=lambda walk, o: Cached.kids(o), blind=False)

    @staticmethod
    def kids(o):
        held = _CACHED_DICT(o)
        hits, misses, most, number = _INFO(o)
        pairs = cached(o, number, most is not None) if number <= _MANY_CACHED else ()
        shown = [v for _, v in pairs if id(type(v)) not in ATOM_IDS]
        return [held.get("__wrapped__"), held, (hits, misses, most, number), *shown]

    def pick(self, walk, o):
        return self if _calls(o) is not None else self.used

    def split(self, walk, objs):
        head, kids = [], []
        for o in objs:
            held, (hits, misses, most, _) = _CACHED_DICT(o), _INFO(o)
            head.append((most, _is_typed(o), hits, misses))
            kids += (held.get("__wrapped__"), held, _calls(o))
        return head, kids

    def make(self, load, head, n):
        return None

    late_make = True

    def make_one(self, load, head, part, code):
        if part[0] is None:
            raise Unloadable("what lru_cache wraps")
        made = functools._lru_cache_wrapper(part[0], head[0], head[1], functools._CacheInfo)
        return made

    def fill(self, load, objs, head, kids):
        for i, (o, (_, _, hits, misses)) in enumerate(zip(objs, head)):
            function, o.__dict__, calls = kids[3 * i:3 * i + 3]
            if misses:
                load.later(functools.partial(_refill, load, o, function, hits, misses, calls))


_STUB = (lambda *given, **named: "result").__code__


def _refill(load, o, function, hits, misses, calls):
    """Calls a cached function that has other code for so long, so that nothing of the program runs."""
    load.check([part for args, _, named, _ in calls for part in (*args, *named)])
    code = function.__code__
    stub = _STUB.replace(co_freevars=code.co_freevars)
    number = _STUB.co_consts.index("result")
    before, after = _STUB.co_consts[:number], _STUB.co_consts[number + 1:]
    try:
        function.__code__ = stub
        for at in range(misses - len(calls)):
            o(at, at)
        for args, names, named, result in calls:
            function.__code__ = stub.replace(co_consts=(*before, result, *after))
            o(*args, **dict(zip(names, named)))
        for _ in range(hits):
            o(*args, **dict(zip(names, named)))
    finally:
        function.__code__ = code


register(Bound(), Method)
register(Property(), property)
register(Wrapped("sm", staticmethod), staticmethod)
register(Wrapped("cm", classmethod), classmethod)
register(Partial(), functools.partial)
register(BoundWrapper(), types.MethodWrapperType)
CACHED = register(Cached())
DISPATCHED = register(Dispatched())
FUNC = register(Func())
BOUND_BUILTIN = register(BoundBuiltin())
