"""The parts of each type of value, and how a value is restored from them.

A `Kind` handles a batch of objects at once: `split` returns their head (plain data) and one flat
list of the objects they refer to; `make` and `fill` (or `build`, for immutable objects) are the
reverse. The fingerprint hashes exactly what is stored, so a loss in a blob cannot go unnoticed. Runs
no code of the program: no `__eq__`, `__hash__`, `__reduce__`.
"""
import collections
import sys
import types
from itertools import chain, cycle, islice
from operator import is_

from _harness.values.compat import SIZE
from _harness.values.orders import arranged
from _harness.values.rows import fill_lists, fill_rows, in_runs, new_rows, same_length

ATOMS = frozenset((type(None), bool, int, float, str, bytes))
ATOM_IDS = frozenset(map(id, ATOMS))     # types are known by id: hashing one may run code of its metaclass
MAPPING = type.__dict__["__dict__"].__get__
MRO = type.__dict__["__mro__"].__get__
_MODULE, _QUALNAME = type.__dict__["__module__"].__get__, type.__dict__["__qualname__"].__get__
_STRINGS = {str, id(str)}   # as types, or as their ids
_NONE_BY_ADDRESS = sys.version_info < (3, 12)
_flat = chain.from_iterable
_object_hash = object.__hash__
_OrderedDict, _defaultdict, _deque = collections.OrderedDict, collections.defaultdict, collections.deque
_FACTORY = _defaultdict.__dict__["default_factory"]
_odict_set = _OrderedDict.__setitem__


class Unloadable(Exception):
    """A blob cannot be turned into objects that equal the originals."""


class Kind:
    """How the objects of one type are taken apart and restored."""
    tag: str | None = None          # names the kind in marks
    mutable = True      # identity counts
    early = True        # `make` then `fill`; otherwise `build` once the parts are there
    unserializable: str | None = None   # why it cannot be serialized
    opaque = False      # its content cannot be read
    blind = False       # nor whether it changed
    owned = None        # receives the dict that is a fixed part of an object
    sure = True         # faithful without a trial
    fixed = False       # an object that is plain data cannot change, so the same object has the same content

    def mark(self, walk):
        return (self.tag,)

    def width(self, head):
        """The number of parts of each object, if it is the same for all."""
        return 0


def lookup(cls, name):
    """An attribute of a class as written in the dicts of its ancestry. Runs no descriptor."""
    for base in MRO(cls):
        held = MAPPING(base)
        if name in held:
            return held[name]
    return None


def atomic(objs):
    """Whether all are atoms."""
    return set(map(id, map(type, objs))) <= ATOM_IDS


def by_address(o):
    """Whether an object is hashed by its address, or like a struct of msgspec by that of its class."""
    t = type(o)
    if o is None:
        return _NONE_BY_ADDRESS
    return id(t) not in ATOM_IDS and (lookup(t, "__hash__") is object.__dict__["__hash__"] or SIZE(type(t)) > SIZE(type))


def cuts(objs, lens, kids):
    """Pairs each object with its share of the flat list."""
    at = 0
    for o, n in zip(objs, lens):
        yield o, kids[at:at + n]
        at += n


class List(Kind):
    tag = "l"

    def split(self, walk, objs):
        return list(map(len, objs)), objs[0] if len(objs) == 1 else list(_flat(objs))

    def width(self, head):
        return same_length(head) or 0

    def make(self, load, head, n):
        return [[] for _ in range(n)]

    def fill(self, load, objs, head, kids):
        n = same_length(head)
        if n:
            fill_lists(objs, n, kids)
            return
        for o, part in cuts(objs, head, kids):
            o[:] = part


class Tuple(Kind):
    tag, mutable, early = "t", False, False

    def split(self, walk, objs):
        return list(map(len, objs)), list(_flat(objs))

    width = List.width

    def build(self, load, head, kids, n):
        size = same_length(head)
        return list(in_runs(kids, size)) if size else [tuple(part) for _, part in cuts(head, head, kids)]


def pairs(objs):
    """Keys and values in turn, for dicts whose keys are not all strings."""
    return list(_flat(_flat(map(dict.items, objs))))


def put_pairs(o, part):
    """Fills a dict whose keys were written as objects."""
    for k, v in zip(part[::2], part[1::2]):
        dict.__setitem__(o, k, v)
    if len(o) != len(part) // 2:
        raise Unloadable("keys that are equal")


class Dict(Kind):
    """Rows with the same string keys share one list of keys. Keys that are not atoms are written as
    parts."""
    tag = "d"

    def split(self, walk, objs):
        first = tuple(objs[0])
        if set(map(id, map(type, first))) <= _STRINGS and sum(map(len, objs)) == len(first) * len(objs) and \
                all(map(is_, _flat(objs), cycle(first))):
            return (0, [first]), list(_flat(map(dict.values, objs)))
        keys = list(_flat(objs))
        types = set(map(type, keys)) if walk.types_compare_plainly() else set(map(id, map(type, keys)))
        if types <= _STRINGS:
            values = list(_flat(map(dict.values, objs)))
            if keys == list(first) * len(objs):
                return (0, [first]), values
            rows = list(map(tuple, objs))
            shapes = dict.fromkeys(rows)
            shapes.update(zip(shapes, range(len(shapes))))
            return (list(map(shapes.__getitem__, rows)), list(shapes)), values
        if types <= ATOMS or types <= ATOM_IDS:
            return (list(map(len, objs)), None, keys), list(_flat(map(dict.values, objs)))
        walk.sure = False
        return list(map(len, objs)), pairs(objs)

    def width(self, head):
        return len(head[1][0]) if type(head) is tuple and head[0] == 0 else 0

    def make(self, load, head, n):
        return new_rows(head[1][0], n) if type(head) is tuple and head[0] == 0 else [{} for _ in range(n)]

    def fill(self, load, objs, head, kids):
        if type(head) is list:
            load.keyed(self, objs, head, kids)
        elif head[0] == 0:
            fill_rows(objs, head[1][0], kids)
        elif head[1] is None:
            keys, values = iter(head[2]), iter(kids)
            for o, n in zip(objs, head[0]):
                o.update(zip(islice(keys, n), values))
        else:
            at, shapes = head
            values = iter(kids)
            for o, row in zip(objs, map(shapes.__getitem__, at)):
                o.update(zip(row, values))

    def refill(self, load, objs, head, kids):
        for o, part in cuts(objs, [2 * n for n in head], kids):
            put_pairs(o, part)


class Set(Kind):
    """Iteration order and table size are observable (the size through later order), so both count. Classes,
    and objects without a hash of their own, are in the order of their addresses, which differs from run to run:
    those of a set are ordered by their names, and by their content."""
    tag = "s"

    def split(self, walk, objs):
        kids = list(_flat(objs))
        sizes = [table_of(o) if type(o) is set else frozenset.__sizeof__(o) for o in objs]
        are_atoms = atomic(kids)
        walk.sure = walk.sure and are_atoms and self.are_kept(objs, sizes)
        if not are_atoms or (_NONE_BY_ADDRESS and any([k is None for k in kids])):
            rows = [_in_order(walk, o) for o in objs]
            kids = list(_flat(rows))
            for at, (o, row) in enumerate(zip(objs, rows)):
                if row is not o:
                    sizes[at] = 0
                # A program may show the order, which a plain run repeats more often than not.
                if len(o) > 1 and any([by_address(k) and not issubclass(type(k), type) for k in o]):
                    walk.note("a set ordered by address")
        return list(zip(map(len, objs), sizes)), kids

    def are_kept(self, objs, sizes):
        """Whether sets of atoms with the same members iterate in the same order. Most sets of a list have those of
        others, or equal ones, which are where they are."""
        try:
            for part, size in dict.fromkeys(zip(map(tuple, objs), sizes)):
                self.made_of(list(part), size)
        except Unloadable:
            return False
        return True

    @staticmethod
    def made_of(part, size):
        """Makes a set with these members."""
        refill_set(set(), part, size)

    def make(self, load, head, n):
        return [set() for _ in range(n)]

    def fill(self, load, objs, head, kids):
        load.keyed(self, objs, head, kids)

    def refill(self, load, objs, head, kids):
        for (o, part), (_, size) in zip(cuts(objs, [n for n, _ in head], kids), head):
            refill_set(o, part, size)


def table_of(o):
    """The size of the table of a set. One that was emptied keeps the slots of its members, which nothing shows but
    the order of later ones: it becomes like a new one."""
    if not set.__len__(o):
        set.clear(o)
    return set.__sizeof__(o)


def _without_order(members):
    """Whether members of a set are only in the order of their addresses."""
    return len(members) > 1 and all(map(by_address, members))


def attributes(kind, o):
    """The attributes of an object and their values, without running code of the program."""
    read, found = getattr(kind, "getdict", None), []
    if read is not None:
        found += [(k, v) for k, v in read(o).items() if type(k) is str]
    for slot in getattr(kind, "slots", ()):
        try:
            found.append((slot.__name__, slot.__get__(o)))
        except AttributeError:
            pass    # it is empty
    return found


def _in_order(walk, o):
    """The members of a set that are in the order of their addresses, in one of their own: classes and functions by
    their names, other objects by their attributes that are plain data. Any other set, and one of which two members
    are alike, as it is."""
    if not _without_order(o):
        return o
    found = {}
    for member in o:
        t = type(member)
        if issubclass(t, (type, types.FunctionType)):
            key = str(member.__module__ if t is types.FunctionType else _MODULE(member)), \
                member.__qualname__ if t is types.FunctionType else _QUALNAME(member), ()
        else:
            held = attributes(walk.settled(t), member)
            key = str(_MODULE(t)), _QUALNAME(t), tuple([
                (k, type(v).__name__, repr(v)) for k, v in sorted(held, key=lambda pair: pair[0]) if id(type(v)) in ATOM_IDS])
        found[key] = member
    return [found[key] for key in sorted(found)] if len(found) == len(o) else o


def refill_set(o, part, size):
    """Fills a set so that it iterates in the order of `part` and has the same table size."""
    if _without_order(part):
        set.clear(o)
        set.update(o, part)
        return

    def made(way):
        set.clear(o)
        set.update(o, way)
        return o

    if arranged(made, part, size) is None:
        raise Unloadable("set order")


class Frozen(Set):
    tag, mutable, early = "z", False, False

    @staticmethod
    def made_of(part, size):
        return frozen_set(frozenset, part, size)

    def build(self, load, head, kids, n):
        return [frozen_set(frozenset, part, size)
                for (_, part), (_, size) in zip(cuts(head, [n for n, _ in head], kids), head)]


def frozen_set(cls, part, size):
    if _without_order(part):
        return frozenset.__new__(cls, part)
    made = arranged(lambda way: frozenset.__new__(cls, way), part, size)
    if made is None:
        raise Unloadable("set order")
    return made


class Bytes(Kind):
    tag = "y"

    def split(self, walk, objs):
        return [bytes(o) for o in objs], []

    def make(self, load, head, n):
        return list(map(bytearray, head))

    def fill(self, load, objs, head, kids):
        pass


class Complex(Kind):
    """Real and imaginary parts, bit by bit."""
    tag, mutable, early = "j", False, False

    def split(self, walk, objs):
        return [(o.real, o.imag) for o in objs], []

    def build(self, load, head, kids, n):
        return [complex(*v) for v in head]


class Range(Complex):
    tag = "n"

    def split(self, walk, objs):
        return [(o.start, o.stop, o.step) for o in objs], []

    def build(self, load, head, kids, n):
        return [range(*v) for v in head]


class Slice(Complex):
    tag = "k"

    def split(self, walk, objs):
        return None, [v for o in objs for v in (o.start, o.stop, o.step)]

    def build(self, load, head, kids, n):
        return [slice(*kids[3 * i:3 * i + 3]) for i in range(n)]


class Cell(Kind):
    tag = "c"
    _get = types.CellType.__dict__["cell_contents"].__get__
    _set = types.CellType.__dict__["cell_contents"].__set__

    def split(self, walk, objs):
        full, kids = [], []
        for o in objs:
            try:
                kids.append(Cell._get(o))
                full.append(True)
            except ValueError:
                full.append(False)
        return full, kids

    def make(self, load, head, n):
        return [types.CellType() for _ in range(n)]

    def fill(self, load, objs, head, kids):
        kids = iter(kids)
        for o, full in zip(objs, head):
            if full:
                Cell._set(o, next(kids))


class Plain(Kind):
    """`object()`: nothing but identity."""
    tag = "o"

    def split(self, walk, objs):
        return None, []

    def make(self, load, head, n):
        return [object() for _ in range(n)]

    def fill(self, load, objs, head, kids):
        pass


class Deque(Kind):
    tag = "q"

    def split(self, walk, objs):
        return [(o.maxlen, len(o)) for o in objs], list(_flat(objs))

    def make(self, load, head, n):
        return [_deque((), maxlen) for maxlen, _ in head]

    def fill(self, load, objs, head, kids):
        for o, part in cuts(objs, [n for _, n in head], kids):
            _deque.extend(o, part)


class Ordered(Kind):
    """`OrderedDict`: it has an order of its own besides the dict's."""
    tag = "od"

    def split(self, walk, objs):
        walk.sure = walk.sure and all(map(atomic, objs))
        return [len(o) for o in objs], [v for o in objs for pair in _OrderedDict.items(o) for v in pair]

    def make(self, load, head, n):
        return [_OrderedDict() for _ in range(n)]

    def fill(self, load, objs, head, kids):
        load.keyed(self, objs, head, kids)

    def refill(self, load, objs, head, kids):
        for o, part in cuts(objs, [2 * n for n in head], kids):
            for k, v in zip(part[::2], part[1::2]):
                _odict_set(o, k, v)


class Default(Dict):
    tag = "dd"

    def split(self, walk, objs):
        kids = pairs(objs)
        walk.sure = walk.sure and all(map(atomic, objs))
        return list(map(len, objs)), [_FACTORY.__get__(o) for o in objs] + kids

    def make(self, load, head, n):
        return [_defaultdict() for _ in range(n)]

    def fill(self, load, objs, head, kids):
        for o, factory in zip(objs, kids):
            _FACTORY.__set__(o, factory)
        load.keyed(self, objs, head, kids[len(objs):])


class Unserializable(Kind):
    """An opaque object. What it refers to still counts for sharing, and so does its class if the program has it:
    whatever makes the object again makes that, too."""
    early = True
    cls = None

    def __init__(self, why, kids, tag="?", blind=True):
        self.unserializable, self.opaque, self.tag, self._kids, self.blind = why, True, tag, kids, blind

    def mark(self, walk):
        return (self.tag, self.unserializable) if self.cls is None else (self.tag, self.unserializable, walk.name(self.cls))

    def split(self, walk, objs):
        lens, kids = [], []
        for o in objs:
            found = self._kids(walk, o)
            lens.append(len(found))
            kids.extend(found)
        return lens, kids

KINDS = {
    list: List(), tuple: Tuple(), dict: Dict(), set: Set(), frozenset: Frozen(), bytearray: Bytes(),
    complex: Complex(), range: Range(), slice: Slice(), types.CellType: Cell(), object: Plain(),
    _deque: Deque(), _OrderedDict: Ordered(), _defaultdict: Default(),
}
TABLE = {id(cls): kind for cls, kind in KINDS.items()}      # by the id of exact types
BY_TAG = {kind.tag: kind for kind in KINDS.values()}


def register(kind, *classes):
    """Adds a kind, for exact types if any are given."""
    BY_TAG[kind.tag] = kind
    for cls in classes:
        KINDS[cls] = TABLE[id(cls)] = kind
    return kind
