"""Instances of classes: the payload of their C ancestor, their `__dict__` and their slots.

A class made by a `class` statement adds a dict and slots to the part of its nearest C ancestor,
which is its payload. A C type that is not listed here is unserializable.
"""
import array
import io
import types
from collections import OrderedDict, defaultdict, deque
from itertools import chain

from _harness.values.compat import FIXED as _FIXED, FLAGS as _FLAGS, HEAP as _HEAP, SIZE as _SIZE, get_referents
from _harness.values.models import slot_of
from _harness.values.payloads import (
    OfBytearray, OfDeque, OfDict, OfError, OfFrozen, OfSequence, OfSet, OfState, OfTuple, OfValue, Payload)
from _harness.values.shapes import MAPPING, MRO, Unserializable, Kind, pairs, put_pairs

_BASE = type.__dict__["__base__"].__get__
_MODULE = type.__dict__["__module__"].__get__
_NAME = type.__dict__["__name__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__
_Getset, _Member = types.GetSetDescriptorType, types.MemberDescriptorType
_RUNNING = frozenset((
    ("threading", "Thread"), ("concurrent.futures._base", "Executor"), ("concurrent.futures._base", "Future"),
    ("subprocess", "Popen"), ("multiprocessing.process", "BaseProcess"),
))
_FOREIGN = frozenset(map(id, (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)))


def has_dict(payload, cls):
    """Whether a C ancestor has a dict that can be replaced."""
    return payload is not None and payload.has_dict and payload.base is cls


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


PAYLOADS = {
    object: Payload(), list: OfSequence(list), dict: OfDict(dict), defaultdict: OfDict(defaultdict),
    OrderedDict: OfDict(OrderedDict), set: OfSet(), frozenset: OfFrozen(), tuple: OfTuple(),
    int: OfValue(int), float: OfValue(float), str: OfValue(str), bytes: OfValue(bytes),
    complex: OfValue(complex), bytearray: OfBytearray(), deque: OfDeque(deque),
    array.array: OfState(array.array, lambda o: (o.typecode, array.array.tobytes(o)),
                         lambda o, head: array.array.frombytes(o, head[1]), lambda head: (head[0],)),
}


def _buffer(cls):
    """How a buffer of text or bytes stores its part: nothing, once it is closed."""
    closed = MAPPING(cls)["closed"].__get__

    def get(o):
        return () if closed(o) else tuple(cls.__getstate__(o)[:-1])

    def put(o, head):
        cls.__init__(o)
        if head:
            cls.__setstate__(o, head + (None,))
        else:
            cls.close(o)

    return OfState(cls, get, put)


for _cls in (io.StringIO, io.BytesIO):
    PAYLOADS[_cls] = _buffer(_cls)


def payload_of(base):
    """How a C type stores its part, or None if unknown."""
    found = PAYLOADS.get(base)
    if found is None and issubclass(base, BaseException) and not base.__name__.startswith("Unicode"):
        found = PAYLOADS[base] = OfError(base)
    if found is None:
        from _harness.values.library import payload
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
        # A slot that is no content, with what makes the value that it begins with.
        self.unread = None
        self.sure = payload.sure

    @property
    def plain(self):
        """Whether objects have nothing but a dict and slots."""
        return self.payload is PAYLOADS[object] and self.owned is None and self.unread is None and self.sure

    def mark(self, walk):
        return ("i", walk.name(self.cls), self.mutable)

    def split(self, walk, objs):
        if self.bare:
            return None, list(map(self.getdict, objs))
        if self.payload is PAYLOADS[object] and self.owned is None:
            readers = [slot.__get__ for slot in self.slots]
            try:
                columns = [map(read, objs) for read in (*([self.getdict] if self.getdict else ()), *readers)]
                return [(None, 0, [True] * len(readers), 0)] * len(objs), list(chain.from_iterable(zip(*columns)))
            except AttributeError:
                pass    # some slots are empty
        head, kids = [], []
        payload, getdict, slots = self.payload, self.getdict, self.slots
        for o in objs:
            try:
                found, state = list(payload.kids(o)), payload.head(o)
            except (AttributeError, OSError, ReferenceError, RuntimeError, TypeError, ValueError) as why:
                # It was closed, or let go of what it had.
                walk.fail(f"type {_MODULE(type(o))}.{_NAME(type(o))}: {type(why).__name__}")
                walk.opaque = walk.blind = True
                found, state = [], None
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
            head.append((state, len(found), have, rest))
        return head, kids

    def width(self, head):
        # Those that were read column by column have one head in common.
        same = head is not None and len(head) > 1 and head[0] is head[-1]
        return len(head[0][2]) + (self.getdict is not None) if same else 0

    def make(self, load, head, n):
        if self.bare:
            new, cls = object.__new__, self.cls
            return [new(cls) for _ in range(n)]
        made = [self.payload.new(self.cls, part[0]) for part in head]
        if self.unread is not None:
            slot, first = self.unread
            for o in made:
                slot.__set__(o, first())
        return made

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


def _unserializable(cls, why, kids):
    kind = Unserializable(why, kids)
    kind.cls = cls if python_made(cls) else None
    return kind


def instance_kind(cls):
    """The layout of a class: an `Instance`, or an `Unserializable` if its C ancestor is unknown."""
    base, mro = cls, MRO(cls)
    for one in mro:
        # By name, as their modules may not be loaded. Numbers that the system gave are in them.
        if (_MODULE(one), _QUALNAME(one)) in _RUNNING:
            return _unserializable(cls, "type " + _MODULE(one) + "." + _QUALNAME(one), lambda walk, o: [])
    while python_made(base):
        base = _BASE(base)
    payload = payload_of(base)
    getdict = setdict = None
    slots = []
    for c in reversed(mro):
        made = python_made(c)
        for k, v in MAPPING(c).items():
            if type(v) is _Getset and k == "__dict__" and v.__objclass__ is c and getdict is None:
                getdict, setdict = v.__get__, v.__set__ if made or c is BaseException or has_dict(payload, c) else None
            elif type(v) is _Member and v.__objclass__ is c:
                if made:
                    slots.append(v)
                elif k == "__dict__" and getdict is None:
                    getdict = v.__get__
    if payload is None:
        name = str(_MODULE(cls)) + "." + _QUALNAME(cls)
        # A class of the program may have this name, and comparing names could run its code.
        written = [c for c in mro if not python_made(c)]
        ndarray = next((c for c in written if (_MODULE(c), _QUALNAME(c)) == ("numpy", "ndarray")), None)
        kids = referents if ndarray is None else array_parts(ndarray)
        return _unserializable(cls, "type " + (name[9:] if name.startswith("builtins.") else name), kids)
    owned = None
    if getdict is not None and setdict is None:
        owned, getdict = getdict, None
    unread, first = slot_of(cls)
    kind = Instance(cls, payload, getdict, [slot for slot in slots if slot.__name__ != unread], mro)
    kind.unread = next(((slot, first) for slot in slots if slot.__name__ == unread), None)
    kind.owned, kind.mutable = owned, kind.mutable or owned is not None
    kind.setdict = setdict
    if base is not object and base is not cls and payload.late and kind.mutable:
        kind.sure = False
    if not made_plainly(mro):
        kind.sure = False
    if any(["__del__" in MAPPING(c) for c in mro if python_made(c)]):
        kind.unserializable, kind.opaque = "finalizer", False     # a trial copy would run it
    elif _SIZE(type(cls)) > _SIZE(type):
        # Its class is not stored. What it holds is known nevertheless.
        kind.unserializable, kind.opaque = "type " + str(_MODULE(cls)) + "." + _QUALNAME(cls), False
    return kind


def made_plainly(mro):
    return all(c is object or python_made(c) for c in mro)


def referents(walk, o):
    """What an opaque object refers to, for sharing, without the interpreter's machinery."""
    found = get_referents(o)
    if (_MODULE(type(o)), _NAME(type(o))) == ("xml.etree.ElementTree", "TreeBuilder"):
        # A list of it has places without an object, which no code may look at.
        found = [v for v in found if type(v) is not list]
    return [v for v in found if is_content(walk, v)]


def is_content(walk, v):
    t = type(v)
    if t is types.BuiltinFunctionType:      # of a module it is machinery, of an object it refers to the object
        return v.__self__ is not None and not issubclass(type(v.__self__), (types.ModuleType, type))
    return not issubclass(t, type) and id(t) not in _MACHINERY and not walk.world.is_space(v)


_MACHINERY = frozenset(map(id, (types.FrameType, types.CodeType, types.ModuleType)))
_PLAIN = frozenset((str, bytes, int, float, complex, bool, type(None)))


def array_parts(ndarray):
    """What a numpy array refers to beyond the collector's view: the owner of its memory, and its
    elements if they are objects."""
    names = ("base", "dtype", "view", "ravel", "tolist")
    base, dtype, view, ravel, tolist = (MAPPING(ndarray)[name] for name in names)

    def kids(walk, o):
        owner, of = base.__get__(o), dtype.__get__(o)
        found = referents(walk, o)
        if owner is not None:
            found.append(owner)
        if of.hasobject:
            cells = tolist(ravel(view(o, ndarray)))     # a class of the program would run its code
            if of.names is not None:
                cells = [v for cell in cells for v in cell]
            if not _PLAIN.issuperset(map(type, cells)):
                found += [v for v in cells if type(v) not in _PLAIN and is_content(walk, v)]
        return found

    return kids
