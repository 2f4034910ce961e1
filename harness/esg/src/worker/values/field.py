"""Values of packages: arrays, frames, estimators, images, symbolic expressions.

Their classes know how to be pickled. A list of packages is trusted to do that well: an object of one
is written as its pickle, protocol 5, with its buffers beside it, so it is read and hashed at the speed
of memory. The pickle does not depend on which immutable parts are one object, and caches are not in
it. An array is written by itself, and a view of one refers to the array that owns the memory.

What an object shares with others is found by counting references: a part that nothing else refers to
has no identity. A part that is met twice is written by itself, and the pickles refer to it (`Walk.apart`).
"""
import io
import pickle
import sys
from hashlib import sha256
from _pickle import Pickler

from _harness.values import dtypes
from _harness.values.arrays import char_of, is_builtin, is_lent, is_record, is_ufunc, ndarray, overlap, owner_of
from _harness.values.compat import get_referents, getrefcount
from _harness.values.drawings import DRAWING
from _harness.values.dtypes import Restricted
from _harness.values.reductions import is_plain, laid_out, masked, packed, reductions, unmasked
from _harness.values.shapes import ATOM_IDS, MAPPING, Kind, Unloadable, by_address, lookup, register
from _harness.values.trusted import DRAWINGS, PACKAGES, Sort, copies_on_write, is_constant, is_frame, may_be_held, \
    proper, top_of
from _harness.values.views import LENT, PART, RECORD

_modules = sys.modules
_MODULE = type.__dict__["__module__"].__get__
_NAME = type.__dict__["__name__"].__get__
_CONTAINERS = frozenset(map(id, (list, dict, set, bytearray)))
# What no step can change.
_FIXED = frozenset(map(id, (tuple, frozenset, type, type(len), type(lambda: 0), complex, range, slice)))
_LIMIT = 1 << 62
_MANY = 64              # objects in a container, from which on it is written by itself if it is plain data
_SHARED = "a part of an object of a package that is shared"


class Unstorable(Exception):
    """An object that holds what only the program's steps can make."""


class _Writer(Pickler):
    """Pickles objects of packages, and notes the parts that something else may refer to."""

    def __init__(self, walk, into, buffers, constant):
        super().__init__(into, 5, buffer_callback=buffers.append)
        self.fast = True
        self.walk, self.count, self.root, self.kids = walk, 0, None, []
        # Nothing in a constant changes, except for caches.
        self.constant, self.copies, self.frame = constant, False, False
        # The object that was met last, and the ids of attributes: in a copy of its dict, or of its class.
        self.last, self.copied, self.classes = None, set(), set()
        # The ids of the parts that were noted, and of those that are kept as views, too.
        self.noted, self.viewed = [], set()

    def persistent_id(self, o):
        """Called for each object."""
        kind = type(o)
        if id(kind) in ATOM_IDS:
            return None
        if self.root is None:
            self.root, self.copies, self.frame = o, copies_on_write(kind), is_frame(kind)
        if id(kind) in _CONTAINERS:
            self.count += 1
            if kind is dict and self.last is not None:
                self.state(o)
            elif not self.constant and o is not self.root and len(o) >= _MANY and is_plain(o):
                # Such as the nodes of a graph: without a call for each object in it.
                self.kids.append(o)
                return len(self.kids) - 1
            # What frames keep of this kind is not copied before a write, nor are their cells.
            return self.part(o, getrefcount(o), False)
        if id(kind) in _FIXED:
            return self.foreign(o) if _MODULE_OF(o) == "__main__" else None
        sort = self.walk.sorts.get(id(kind))
        if sort is None:
            sort = self.walk.sorts[id(kind)] = Sort(self.walk, kind)
        if not sort.package and sort.program:
            return self.foreign(o)
        self.count += 1
        if not sort.package:
            return self.part(o, getrefcount(o), False) if sort.mutable else None
        if sort.ufunc:
            return self.walk.world.names.of(o)
        if sort.constant:
            if sort.dtype and is_builtin(o):
                return "numpy", "dtype", char_of(o)
            if sort.aside and o is not self.root:
                return dumps(self.walk, o, True)[:2]
        else:
            if sort.held and (name := self.walk.world.names.constant(o)) is not None:
                return name
            if sort.mapping and _attributes(o) is o:
                raise Unstorable(f"type {_NAME(kind)}: its attributes are itself")
            self.last = o
            if sort.reduced:
                self.dispatch_table = reductions(kind, sort.reduced)
            # Frames copy when they are written to. What holds one, such as its groups, sees each change of it.
            whole = sort.frame and not self.frame
            at = self.part(o, getrefcount(o), self.copies and not whole) if whole or not sort.copies else None
            if at is not None:
                return at
            if sort.masked:
                return masked(o)
            owner = owner_of(o)
            if owner is not o and not self.constant:
                # Frames copy before they write to what other frames have, but not before what is beside them.
                # Views of an object that is a view itself refer to that.
                if id(owner) in self.walk.arrays() if self.copies else getrefcount(owner) > _VIEWED or o is self.root:
                    self.walk.inside[id(owner)] = self.count
                    if not self.copies:
                        self.view(o, owner)
        if kind is not ndarray():
            return None
        if not MAPPING(kind)["flags"].__get__(o).forc:
            self.dispatch_table = reductions(kind, laid_out)
        return packed(o, None if self.constant else self.kids)

    def foreign(self, o):
        """An object of the program is written by itself. One that has a hash of its own could not be a key
        before it has its content."""
        if self.constant or not (by_address(o) or lookup(type(o), "__hash__") is None):
            raise Unstorable(f"an object of type {_NAME(type(o))} of the program")
        return self.beside(o)

    def beside(self, o):
        """Writes an object by itself. Whether that can be restored is to be tried."""
        self.walk.sure = False
        self.kids.append(o)
        return len(self.kids) - 1

    def state(self, held):
        """A dict that may be what an object keeps, or a copy of it."""
        owner, self.last = self.last, None
        own = _attributes(owner)
        if own is not None and own is not held:
            self.copied.update(map(id, held.values()))
            self.classes.update([id(v) for name, v in held.items() if v is not None and lookup(type(owner), name) is v])

    def view(self, o, owner):
        """A view of an array that something else refers to. Views that overlap would be restored apart."""
        views = self.walk.views.setdefault(id(owner), [])
        if id(owner) in self.walk.parts or any(overlap(o, one) for one in views):
            self.walk.fail(_SHARED)
        views.append(o)
        self.viewed.add(id(o))

    def part(self, o, references, copies):
        """Notes a part that something else may refer to. Returns its number if it is written by itself.
        `copies`: the part is copied before a write."""
        walk = self.walk
        if self.constant or o is self.root or references - (id(o) in self.copied) <= _ALONE or id(o) in self.classes:
            return None
        if id(o) in walk.apart:
            if id(o) not in walk.once:
                walk.once.add(id(o))
            elif not copies:
                walk.again.add(id(o))
        if id(o) in walk.apart or id(o) in walk.seen or id(o) in walk.known:
            return self.beside(o)
        if id(o) in walk.parts and not copies:
            walk.twice.add(id(o))
        if id(o) in walk.views:
            walk.fail(_SHARED)
        # It stays alive, or another object could get its address.
        walk.parts[id(o)] = o
        walk.inside[id(o)] = self.count
        self.noted.append(id(o))
        return None

    def finish(self):
        """Parts that were made only to be pickled have no identity. The outer ones come first, and keep the
        others alive."""
        self.last, walk = None, self.walk
        for at in self.noted:
            if at in walk.parts and getrefcount(walk.parts[at]) - (at in self.viewed) <= _UNUSED:
                del walk.parts[at]
                walk.inside.pop(at, None)
                walk.twice.discard(at)


def _attributes(o):
    """The dict of an object, or None."""
    try:
        return object.__getattribute__(o, "__dict__")
    except Exception:
        return None


def _MODULE_OF(o):
    kind = type(o)
    if issubclass(kind, type):
        return _MODULE(o)
    return getattr(o, "__module__", None) if kind is _Function or kind is _Builtin else None


_Function, _Builtin = type(lambda: 0), type(len)


def _calibrated():
    """The references to an object that only one container refers to, as the pickler sees it."""
    seen = []

    class Probe(Pickler):
        def persistent_id(self, o):
            seen.append(getrefcount(o))

    Probe(io.BytesIO(), 5).dump([[]])
    return seen[-1]


_ALONE = _calibrated()
_made = {0: []}
# The references to an object that only one dict refers to.
_UNUSED = getrefcount(_made[0])


def _viewed():
    """The references to an array that only one view refers to."""
    owner = _made[0]
    return getrefcount(owner)


_VIEWED = _viewed()


def _owned(view):
    """Makes an array that owns its memory, like the one that was written: not a view of what was read."""
    def make(*given):
        made = view(*given)
        whole = _modules["numpy"].empty_like(made)
        if made.nbytes:
            # With what is between the fields of records.
            whole.ravel("K").view("u1")[:] = made.ravel("K").view("u1")
        whole.flags.writeable = made.flags.writeable
        return whole
    return make


class _Reader(Restricted):
    """Reads what the writer has written."""

    parts: list | tuple = ()

    def find_class(self, module, name):
        found = super().find_class(module, name)
        return _owned(found) if name == "_frombuffer" and module.startswith("numpy.") else found

    def cells(self, shape, at):
        """An array of objects that are written by themselves."""
        made = (_modules.get("numpy") or __import__("numpy")).empty(shape, object)
        flat = made.reshape(-1)
        # One by one, as some may be sequences.
        for place in range(made.size):
            flat[place] = self.parts[at + place]
        return made

    def persistent_load(self, packed):
        """A function, a dtype, an array of plain objects, an index, or a part that is written by itself."""
        if type(packed) is int:
            return self.parts[packed]
        if packed[0] == "masked":
            return unmasked(*packed[1:])
        if packed[0] == "cells":
            return self.cells(*packed[1:])
        if type(packed[0]) is str:
            found = self.find_class(*packed[:2])
            return found(packed[2]) if len(packed) > 2 else found
        if type(packed[0]) is bytes:
            data, buffers = packed
            return _Reader(io.BytesIO(data), buffers=[restored(*one) for one in buffers]).load()
        numpy, (shape, cells) = _modules.get("numpy") or __import__("numpy"), packed
        made = numpy.empty(shape, object)
        cells = pickle.loads(cells)
        if cells:
            made.reshape(-1)[:] = cells
        return made


def dumps(walk, o, constant):
    """`(pickle, buffers, parts)`: each buffer as its bytes and whether it may be written to, and the parts
    that are written by themselves."""
    into, buffers = io.BytesIO(), []
    writer = _Writer(walk, into, buffers, constant)
    writer.dump(o)
    out = [contents(walk, view, view.readonly) for view in map(pickle.PickleBuffer.raw, buffers)]
    # Each refers to its array.
    buffers.clear()
    writer.finish()
    return into.getvalue(), out, writer.kids


def contents(walk, view, fixed):
    """The bytes of a buffer; or their hash, if it is too large to be stored."""
    if view.nbytes > getattr(walk.world, "limit", _LIMIT):
        walk.fail("too large")
        walk.beside += view.nbytes
        return sha256(view).digest(), None
    return bytes(view), fixed


def restored(data, fixed):
    """A buffer."""
    if fixed is None:
        raise Unloadable("too large")
    return data if fixed else bytearray(data)


class Field(Kind):
    """Objects of one class of a package."""

    early, held = False, False

    def __init__(self, cls, constant, sure):
        self.tag, self.cls, self.mutable, self.sure = ("pc" if constant else "pm"), cls, not constant, sure

    def mark(self, walk):
        return (self.tag, walk.name(self.cls))

    def split(self, walk, objs):
        head, kids = [], []
        for o in objs:
            before = dict(walk.inside)
            try:
                data, buffers, parts = dumps(walk, o, not self.mutable)
            except Exception as why:
                walk.inside = before
                # It may change what it holds: a drawing board its image.
                walk.inside.update((id(held), 0) for held in _held(o))
                name = f"{_MODULE(type(o))}.{_NAME(type(o))}"
                walk.fail(str(why) if type(why) is Unstorable else f"type {name}: {type(why).__name__}")
                walk.opaque = walk.blind = True
                head.append((name, None))
            else:
                kids += parts
                head.append((data, buffers, len(parts)) if parts else (data, buffers))
        return head, kids

    def build(self, load, head, kids, n):
        out, at = [], 0
        for data, buffers, *number in head:
            reader = _Reader(io.BytesIO(data), buffers=[restored(*one) for one in buffers])
            if number:
                reader.parts = kids[at:at + number[0]]
                at += number[0]
            out.append(reader.load())
        return out


def _held(o):
    """The objects of packages that an object has as attributes, and that may change."""
    found = []
    for one in get_referents(o):
        found += get_referents(one) if type(one) is dict else [one]
    return [one for one in found if top_of(type(one)) in PACKAGES and not is_constant(type(one))]


class Array(Kind):
    """Arrays of numpy that own their memory, or whose owner nothing else can change."""

    tag = "nd"

    def split(self, walk, objs):
        head, kids = [], []
        array = ndarray()
        for o in objs:
            held = MAPPING(array)
            of, shape, flags = (held[name].__get__(o) for name in ("dtype", "shape", "flags"))
            order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
            owner = owner_of(o)
            if owner is not o:
                walk.inside[id(owner)] = 0
            if of.hasobject:
                cells = held["ravel"](o, order)
                if of.names is not None:
                    walk.fail("an array of records with objects")
                    walk.opaque = walk.blind = True
                    data = None, None
                    cells = []
                else:
                    data, cells = ("objects", None), held["tolist"](cells)
                kids += cells
                number = len(cells)
            else:
                number = 0
                whole = o if flags.forc else held["copy"](o, order)
                flat = held["view"](held["ravel"](whole, order), "u1") if whole.nbytes else b""
                data = contents(walk, memoryview(flat), not flags.writeable)
            head.append((dtypes.written(of), shape, order, flags.writeable, number, data))
        return head, kids

    def make(self, load, head, n):
        numpy, out = _modules.get("numpy") or __import__("numpy"), []
        for of, shape, order, writeable, _, (data, fixed) in head:
            of = dtypes.read(of)
            if of.hasobject:
                made = numpy.empty(shape, of, order)
            else:
                if type(data) is not bytes or fixed is None:
                    raise Unloadable("too large")
                made = numpy.empty(shape, of, order)
                if data:
                    # With what is between the fields of records.
                    made.ravel(order).view(numpy.uint8)[:] = numpy.frombuffer(data, numpy.uint8)
                made.flags.writeable = writeable
            out.append(made)
        return out

    def fill(self, load, objs, head, kids):
        at = 0
        for o, (_, shape, order, writeable, number, _) in zip(objs, head):
            if number:
                numpy = _modules["numpy"]
                cells = numpy.empty(number, object)
                for place in range(number):
                    cells[place] = kids[at + place]
                o[...] = cells.reshape(shape, order=order)
                at += number
            o.flags.writeable = writeable


class Logger(Kind):
    """A logger is known by its name."""

    tag, mutable, early = "log", False, False

    def split(self, walk, objs):
        return [object.__getattribute__(o, "__dict__")["name"] for o in objs], []

    def build(self, load, head, kids, n):
        logging = _modules.get("logging") or __import__("logging")
        return [logging.root if name == "root" else logging.getLogger(name) for name in head]


class _Class(Field):
    """As a blob names it: which class is in the pickle."""

    def __init__(self, constant):
        super().__init__(None, constant, True)


register(_Class(True))
register(_Class(False))
ARRAY, LOGGER = register(Array()), register(Logger())
_known = {}
_SURE = frozenset(("DataFrame", "Series"))


def pick(walk, o, t):
    """The kind of an object of a package, or None if it is treated as any other object."""
    t = proper(t)
    top = top_of(t)
    if top not in PACKAGES and top not in DRAWINGS and top != "logging":
        return None
    if walk.world.names.of(t) is None:
        name = walk.world.names.constant(o) if top in PACKAGES else None
        return name and ("g", *name)
    if top == "logging":
        return LOGGER if _NAME(t) in ("Logger", "RootLogger") and _MODULE(t) == "logging" else None
    if top in DRAWINGS:
        return DRAWING
    if is_ufunc(t):
        name = walk.world.names.of(o)
        if name is not None:
            return ("g", *name)
    if t is ndarray():
        if is_lent(o):
            return LENT
        if owner_of(o) is o:
            return ARRAY
        # Pandas gives out views that cannot be written to.
        fixed = not MAPPING(t)["flags"].__get__(o).writeable
        return ARRAY if fixed or type(owner_of(o)) is not t or MAPPING(t)["dtype"].__get__(o).hasobject else PART
    if is_record(t) and o.base is not None:
        return RECORD if type(owner_of(o.base)) is ndarray() and not o.dtype.hasobject else LENT
    kind = _known.get(id(t))
    if kind is None or kind.cls is not t:
        constant = is_constant(t)
        sure = constant and top in ("numpy", "pandas") or top == "pandas" and _NAME(t) in _SURE
        kind = _known[id(t)] = Field(t, constant, sure)
        kind.held = not constant and may_be_held(t)
    name = walk.world.names.constant(o) if kind.held else None
    return kind if name is None else ("g", *name)


def mixed(walk):
    """Whether a part is met twice: inside of objects, or inside of one and by itself."""
    if walk.parts:
        walk.twice |= walk.parts.keys() & walk.ordinals().keys()
    return bool(walk.twice) or bool(walk.inside) and not walk.inside.keys().isdisjoint(walk.ordinals())
