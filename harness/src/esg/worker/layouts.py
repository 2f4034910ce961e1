"""Instances of classes: the payload of the C type they derive from, their `__dict__` and their slots.

A class made by a `class` statement adds a dict and slots to what its nearest C ancestor keeps; that
ancestor's part is its payload. A C type that is not listed here is a hole.
"""
import array
import io
import types
from collections import OrderedDict, defaultdict, deque
from gc import get_referents

from _harness_shapes import (
    MAPPING, MRO, Hole, Kind, Unloadable, atomic, frozen_set, lookup, pairs, put_pairs, refill_set)

_FLAGS = type.__dict__["__flags__"].__get__
_SIZE = type.__dict__["__basicsize__"].__get__
_BASE = type.__dict__["__base__"].__get__
_MODULE = type.__dict__["__module__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__
_Getset, _Member = types.GetSetDescriptorType, types.MemberDescriptorType
_HEAP, _FIXED = 1 << 9, 1 << 8
_FOREIGN = frozenset(map(id, (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)))


def python_made(cls):
    """Whether a `class` statement (or a call of `type`) made the class, so that dict and slots are all it adds."""
    if not _FLAGS(cls) & _HEAP or _FLAGS(cls) & _FIXED:
        return False
    slots = 0
    for k, v in MAPPING(cls).items():
        t = type(v)
        if t is _Member and v.__objclass__ is cls:
            slots += 1
        elif t is _Getset and v.__objclass__ is cls and k not in ("__dict__", "__weakref__"):
            return False
        elif id(t) in _FOREIGN and v.__objclass__ is cls:
            return False
        elif k == "__new__" and t is types.BuiltinFunctionType and v.__self__ is cls:
            return False
    return _SIZE(cls) - _SIZE(_BASE(cls)) - 8 * slots in (0, 8, 16)


class Payload:
    """What a C type keeps besides dict and slots. `heads`: plain data; `kids`: objects it refers to."""
    late, mutable, sure = False, True, True

    def head(self, o):
        return None

    def kids(self, o):
        return ()

    def new(self, cls, head):
        return object.__new__(cls)

    def fill(self, load, o, head, part):
        pass


class OfSequence(Payload):
    def __init__(self, base):
        self.base, self.items = base, base.__iter__

    def kids(self, o):
        return list(self.items(o))

    def new(self, cls, head):
        return self.base.__new__(cls)

    def fill(self, load, o, head, part):
        self.base.extend(o, part)


class OfDeque(OfSequence):
    def head(self, o):
        return o.maxlen if type(o) is self.base else self.base.__dict__["maxlen"].__get__(o)

    def new(self, cls, head):
        made = self.base.__new__(cls)
        self.base.__init__(made, (), head)
        return made


class OfDict(Payload):
    sure = False

    def __init__(self, base):
        self.base, self.items, self.put = base, base.items, base.__setitem__
        self.factory = base.__dict__.get("default_factory")

    def kids(self, o):
        found = [v for pair in self.items(o) for v in pair]
        return found if self.factory is None else [self.factory.__get__(o)] + found

    def new(self, cls, head):
        return self.base.__new__(cls)

    def fill(self, load, o, head, part):
        if self.factory is not None:
            self.factory.__set__(o, part[0])
            part = part[1:]
        put = dict.__setitem__ if self.base is not OrderedDict else self.put

        def later():
            load.check(part[::2])
            for k, v in zip(part[::2], part[1::2]):
                put(o, k, v)
        later() if atomic(part[::2]) else load.later(later)


class OfSet(Payload):
    sure = False

    def head(self, o):
        return set.__sizeof__(o)

    def kids(self, o):
        return list(set.__iter__(o))

    def new(self, cls, head):
        return set.__new__(cls)

    def fill(self, load, o, head, part):
        def later():
            load.check(part)
            refill_set(o, part, head)
        load.later(later)


class OfValue(Payload):
    """Numbers and strings: the value is plain data, given when the object is made."""
    mutable = False

    def __init__(self, base):
        self.base = base

    def head(self, o):
        if self.base is int:
            return int.__add__(o, 0)
        if self.base is float:
            return float.__pos__(o)
        if self.base is str:
            return str.__str__(o)
        if self.base is bytes:
            return bytes.__getitem__(o, slice(None))
        return (complex.__dict__["real"].__get__(o), complex.__dict__["imag"].__get__(o))

    def new(self, cls, head):
        return self.base.__new__(cls, *head) if self.base is complex else self.base.__new__(cls, head)


class OfBytearray(Payload):
    def head(self, o):
        return bytes(bytearray.__getitem__(o, slice(None)))

    def new(self, cls, head):
        made = bytearray.__new__(cls)
        bytearray.extend(made, head)
        return made


class OfTuple(Payload):
    late, mutable = True, False

    def kids(self, o):
        return list(tuple.__iter__(o))

    def new(self, cls, head, part):
        return tuple.__new__(cls, part)


class OfFrozen(OfTuple):
    sure = False

    def head(self, o):
        return frozenset.__sizeof__(o)

    def kids(self, o):
        return list(frozenset.__iter__(o))

    def new(self, cls, head, part):
        return frozen_set(cls, part, head)


class OfError(Payload):
    """Exceptions, without their traceback: one that has a traceback cannot be stored."""
    sure = False
    _names = ("args", "__cause__", "__context__", "__suppress_context__")

    def __init__(self, base):
        self.base = base
        self.fields = [BaseException.__dict__[n] for n in self._names]
        for cls in reversed(MRO(base)):
            if cls is not BaseException and cls is not object:
                self.fields += [v for v in MAPPING(cls).values() if type(v) is _Member]
        self.trace = BaseException.__dict__["__traceback__"].__get__

    def kids(self, o):
        out = []
        for field in self.fields:
            try:
                out.append(field.__get__(o))
            except AttributeError:
                out.append(None)
        return out

    def head(self, o):
        trace, lines = self.trace(o), []
        while trace is not None:
            lines.append((trace.tb_frame.f_code.co_name, trace.tb_lineno))
            trace = trace.tb_next
        return lines

    def new(self, cls, head):
        if head:
            raise Unloadable("a traceback")
        return self.base.__new__(cls)

    def fill(self, load, o, head, part):
        for field, value in zip(self.fields, part):
            if value is not None or field.__get__(o) is not None:
                field.__set__(o, value)


class OfNamespace(Payload):
    """`SimpleNamespace`: nothing but its dict."""
    sure = False

    def __init__(self, base):
        self.base = base

    def new(self, cls, head):
        return self.base.__new__(cls)


class OfReduced(Payload):
    """C types whose own `__reduce__` is a call with plain arguments: dates, decimals, patterns."""
    late, mutable, sure = True, False, False

    def __init__(self, base, args, make=None):
        self.base, self.args = base, args
        self.make = make or (lambda cls, part: base.__new__(cls, *part))

    def kids(self, o):
        return list(self.args(o))

    def new(self, cls, head, part):
        return self.make(cls, part)


class OfState(Payload):
    """C types with a state that is plain data and can be set: text buffers, arrays, generators of numbers."""
    sure = False

    def __init__(self, base, get, put, args=lambda head: ()):
        self.base, self.get, self.put, self.args = base, get, put, args

    def head(self, o):
        return self.get(o)

    def new(self, cls, head):
        made = self.base.__new__(cls, *self.args(head))
        self.put(made, head)
        return made

PAYLOADS = {
    object: Payload(), list: OfSequence(list), dict: OfDict(dict), defaultdict: OfDict(defaultdict),
    OrderedDict: OfDict(OrderedDict), set: OfSet(), frozenset: OfFrozen(), tuple: OfTuple(),
    int: OfValue(int), float: OfValue(float), str: OfValue(str), bytes: OfValue(bytes),
    complex: OfValue(complex), bytearray: OfBytearray(), deque: OfDeque(deque),
    array.array: OfState(array.array, lambda o: (o.typecode, array.array.tobytes(o)),
                         lambda o, head: array.array.frombytes(o, head[1]), lambda head: (head[0],)),
}
for _cls in (io.StringIO, io.BytesIO):
    PAYLOADS[_cls] = OfState(
        _cls, lambda o, _cls=_cls: tuple(_cls.__getstate__(o)[:-1]),
        lambda o, head, _cls=_cls: (_cls.__init__(o), _cls.__setstate__(o, head + (None,))))


def payload_of(base):
    """How a C type keeps its part, or None when that is unknown."""
    found = PAYLOADS.get(base)
    if found is None and issubclass(base, BaseException) and not base.__name__.startswith("Unicode"):
        found = PAYLOADS[base] = OfError(base)
    if found is None:
        from _harness_library import payload
        found = payload(base)
    return found


class Instance(Kind):
    """Objects of one class."""
    tag = "i"

    def __init__(self, cls, payload, getdict, slots, mro):
        self.cls, self.payload, self.getdict, self.slots, self.mro = cls, payload, getdict, slots, mro
        self.mutable = payload.mutable or getdict is not None or bool(slots)
        self.early = not payload.late
        self.bare = payload is PAYLOADS[object] and not slots and getdict is not None
        self.owned = None
        self.sure = payload.sure

    def mark(self, walk):
        return ("i", walk.name(self.cls), self.mutable)

    def split(self, walk, objs):
        if self.bare:
            return None, list(map(self.getdict, objs))
        head, kids = [], []
        payload, getdict, slots = self.payload, self.getdict, self.slots
        for o in objs:
            found = list(payload.kids(o))
            have, rest = [], 0
            kids += found
            if self.owned is not None:
                held = pairs([self.owned(o)])
                rest = len(held)
                kids += held
            if getdict is not None:
                kids.append(getdict(o))
            for slot in slots:
                try:
                    kids.append(slot.__get__(o))
                    have.append(True)
                except AttributeError:
                    have.append(False)
            head.append((payload.head(o), len(found), have, rest))
        return head, kids

    def make(self, load, head, n):
        if self.bare:
            new, cls = object.__new__, self.cls
            return [new(cls) for _ in range(n)]
        return [self.payload.new(self.cls, part[0]) for part in head]

    def fill(self, load, objs, head, kids):
        if self.bare:
            for o, held in zip(objs, kids):
                self.setdict(o, held)
            return
        at = 0
        for o, (h, n, have, rest) in zip(objs, head):
            self.payload.fill(load, o, h, kids[at:at + n])
            at = self._attributes(o, have, kids, at + n, rest)

    def _attributes(self, o, have, kids, at, rest):
        if rest:
            put_pairs(self.owned(o), kids[at:at + rest])
            at += rest
        if self.getdict is not None:
            self.setdict(o, kids[at])
            at += 1
        for slot, full in zip(self.slots, have):
            if full:
                slot.__set__(o, kids[at])
                at += 1
        return at

    def build(self, load, head, kids, n):
        at, out = 0, []
        for h, count, have, rest in head:
            o = self.payload.new(self.cls, h, kids[at:at + count])
            at = self._attributes(o, have, kids, at + count, rest)
            out.append(o)
        return out


def instance_kind(cls):
    """The layout of a class: an `Instance`, or a `Hole` when its C ancestor is unknown."""
    base, mro = cls, MRO(cls)
    while python_made(base):
        base = _BASE(base)
    payload = payload_of(base)
    getdict = setdict = None
    slots = []
    for c in reversed(mro):
        made = python_made(c)
        for k, v in MAPPING(c).items():
            if type(v) is _Getset and k == "__dict__" and v.__objclass__ is c and getdict is None:
                getdict, setdict = v.__get__, v.__set__ if made or c is BaseException else None
            elif type(v) is _Member and v.__objclass__ is c:
                if made:
                    slots.append(v)
                elif k == "__dict__" and getdict is None:
                    getdict = v.__get__
    if payload is None:
        name = str(_MODULE(cls)) + "." + _QUALNAME(cls)
        return Hole("type " + (name[9:] if name.startswith("builtins.") else name), kids=referents)
    owned = None
    if getdict is not None and setdict is None:
        owned, getdict = getdict, None
    kind = Instance(cls, payload, getdict, slots, mro)
    kind.owned, kind.mutable = owned, kind.mutable or owned is not None
    kind.setdict = setdict
    if base is not object and base is not cls and payload.late and kind.mutable:
        kind.sure = False
    if not made_plainly(mro):
        kind.sure = False
    if any(["__del__" in MAPPING(c) for c in mro if python_made(c)]):
        kind.hole, kind.opaque = "finalizer", False     # a copy made on trial would run it
    return kind


def made_plainly(mro):
    return all(c is object or python_made(c) for c in mro)


def referents(walk, o):
    """What an object that cannot be taken apart refers to, for sharing; the machinery left out."""
    return [v for v in get_referents(o)
            if not issubclass(type(v), type) and id(type(v)) not in _MACHINERY and not walk.world.is_space(v)]

_MACHINERY = frozenset(map(id, (types.FrameType, types.CodeType, types.ModuleType, types.BuiltinFunctionType)))
