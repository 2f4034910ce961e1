"""Levels with many objects, written at C speed: no line of Python runs for each object.

The output depends on the content alone: how many objects, of which types, in which order.
"""
from itertools import compress, count
from operator import countOf

from _harness.values.shapes import ATOM_IDS, ATOMS, KINDS, MAPPING, MRO

MANY = 16                       # a level of at least this many objects is written in bulk
CHUNK = 1024                    # objects in one piece of the stream
LIMIT = 1 << 30                 # bytes of one stream
MET = 255                       # in place of the number of a kind: an object that was met before
_MOST = 100                     # kinds of objects on a level
_ATOM = bytes([1]) + bytes(255)
_PICK = [bytes(at) + b"\1" + bytes(255 - at) for at in range(_MOST + 1)]
_HASH = object.__dict__["__hash__"]
_MODULE, _NAME = type.__dict__["__module__"].__get__, type.__dict__["__name__"].__get__
_PROTOCOLS = "typing_extensions", "_ProtocolMeta"
_DICT = KINDS[dict]


class TooLarge(Exception):
    """A value with more containers or more bytes than one walk supports."""


class Sink:
    """Collects the pieces of a stream. Limits its size, so that a repeated string cannot grow it
    indefinitely."""

    def __init__(self):
        self.parts, self.size = [], 0

    def write(self, data):
        self.size += len(data)
        if self.size > LIMIT:
            raise TooLarge("too large")
        self.parts.append(data)

    def extend(self, parts):
        """Writes pieces of an earlier stream."""
        self.size += sum(map(len, parts))
        if self.size > LIMIT:
            raise TooLarge("too large")
        self.parts += parts


def types_compare_plainly():
    """Whether types can be compared, and a set of them be made, without running code of the program: a metaclass
    may have its own `__eq__` and `__hash__`. Those of protocols are the usual ones, though written in Python."""
    todo = [type]
    while todo:
        meta = todo.pop()
        for base in MRO(meta):
            held = MAPPING(base)
            if base is not object and ("__eq__" in held or held.get("__hash__", _HASH) is not _HASH) and \
                    (_MODULE(base), _NAME(base)) != _PROTOCOLS:
                return False
        todo += type.__subclasses__(meta)
    return True


class Met:
    """A level with objects that were met before: `codes` has `MET` for them, `picks` has 1 for each object whose
    identity counts, and `ids` their addresses."""
    __slots__ = ("codes", "atoms", "picks", "ids")

    def __init__(self, codes, atoms, picks, ids):
        self.codes, self.atoms, self.picks, self.ids = codes, atoms, picks, ids


def put_atoms(walk, atoms):
    """Writes atoms: in pieces if there are many, because a piece is in memory twice. Returns the
    start of the pieces in the stream, and the end of the last one."""
    parts = walk.sink.parts
    if len(atoms) <= CHUNK:
        begin = len(parts)
        walk.put(atoms)
        return [begin, len(parts)]
    walk.put(len(atoms))
    starts = [len(parts)]
    for at in range(0, len(atoms), CHUNK):
        walk.put(atoms[at:at + CHUNK])
        starts.append(len(parts))
    return starts


def picked(codes, at):
    """For each object whether it is of a kind, or with 0 whether it is an atom, for `compress`."""
    return codes.translate(_PICK[at] if at else _ATOM)


def put_level(walk, flat, groups, width=0):
    """Writes a level, and sorts its new objects into groups. Returns None, without effect, if some
    need individual inspection. `width`: of the rows that the level consists of. Returns how containers
    are distinguished from atoms, the atoms, None, and the position of their pieces; a `Met` if some objects were
    met before."""
    plain = walk.types_compare_plainly()

    def types(objs):
        return map(type, objs) if plain else map(id, map(type, objs))

    def met_in(objs):
        # Most columns have one type, which is counted in half the time that a set takes.
        first = type(objs[0])
        if plain and type(objs[-1]) is first and countOf(map(type, objs), first) == len(objs):
            return {first}
        return set(types(objs))

    columns = [flat[at::width] for at in range(width)] if 1 < width * 64 < len(flat) else [flat]
    types_met = [met_in(column) for column in columns]
    met = set().union(*types_met)
    found = met - (ATOMS if plain else ATOM_IDS)
    if not found:
        return None, flat, None, put_atoms(walk, flat)
    if len(found) > _MOST:
        return None
    kinds, number = [], dict.fromkeys(met, 0)
    by_key = {t: t for t in found} if plain else dict(zip(map(id, map(type, flat)), map(type, flat)))
    for key in by_key.keys() & found:
        kind = walk.settled(by_key[key]) or walk.usual(by_key[key], flat)
        if kind is None:
            return None
        if kind not in kinds:
            kinds.append(kind)
        number[key] = kinds.index(kind) + 1
    codes, by_number = None, kinds
    whole = [at for at, there in enumerate(types_met) if not there.isdisjoint(found)]
    alone = len(kinds) == 1 and len(met) == len(found)
    if alone:
        cut, sorted_out, atoms = (0, 1), [flat], []
    elif len(kinds) == 1 and len(whole) == 1 and types_met[whole[0]] <= found:
        # One column of containers. The atoms are what remains without it.
        at, step = whole[0], len(columns)
        codes = bytearray((bytes(at) + b"\1" + bytes(step - at - 1)) * len(columns[0]))[:len(flat)]
        cut, sorted_out, atoms = (at, step), [columns[at]], list(flat)
        del atoms[at::step]
    else:
        codes = _numbered(flat, columns, types_met, number, types)
        # After the first that is met again there are usually more.
        if walk.repeats:
            picks = _with_identity(codes, kinds)
            ids = list(map(id, compress(flat, picks)))
            if not walk.are_new(ids):
                return _put_met(walk, flat, codes, kinds, picks, ids, groups)
        cut, order = _in_order(codes)
        kinds = [by_number[at - 1] for at in order]
        sorted_out = [list(compress(flat, picked(cut, at))) for at in range(1, len(kinds) + 1)]
        atoms = list(compress(flat, picked(cut, 0)))
    ids = []
    for kind, objs in zip(kinds, sorted_out):
        if kind.mutable:
            ids += map(id, objs)
    if not walk.meet(ids, spaces=_DICT in kinds):
        codes = codes or bytearray(b"\1") * len(flat)
        picks = _with_identity(codes, by_number)
        return _put_met(walk, flat, codes, by_number, picks, list(map(id, compress(flat, picks))), groups)
    marks = tuple([kind.mark(walk) for kind in kinds])
    starts = ()
    if alone:
        walk.put({marks[0]: len(flat)})
    else:
        walk.put(cut if type(cut) is bytes else bytes(codes))
        walk.put(marks)
        starts = put_atoms(walk, atoms)
    groups.update(zip(kinds, sorted_out))
    return cut, atoms, None, starts


def _numbered(flat, columns, types_met, number, types):
    """For each object 0, or the number of its kind."""
    codes = bytearray(len(flat))
    for at, (column, there) in enumerate(zip(columns, types_met)):
        numbers = {number[t] for t in there}
        codes[at::len(columns)] = bytes(numbers) * len(column) if len(numbers) == 1 else \
            bytes(map(number.__getitem__, types(column)))
    return codes


def _in_order(codes):
    """The kinds numbered by first appearance. -> (codes, the kinds' earlier numbers in that order)"""
    order = sorted(set(codes) - {0, MET}, key=codes.index)
    return bytes(codes.translate(bytes.maketrans(bytes(order), bytes(range(1, len(order) + 1))))), order


def _with_identity(codes, kinds):
    """For each object whether its identity counts, for `compress`."""
    numbers = {at for at, kind in enumerate(kinds, 1) if kind.mutable}
    return codes.translate(bytes([at in numbers for at in range(256)]))


def _put_met(walk, flat, codes, kinds, picks, ids, groups):
    """Writes a level with objects that were met before, or that it has twice. `codes`: the numbers of their
    kinds. `picks`: which have an identity, `ids`. None, without effect, if one is the namespace of a module."""
    if _DICT in kinds and not walk.has_no_space(ids):
        return None
    walk.repeats, seen = True, walk.ordinals()
    first = len(seen)
    # Each new one gets the next ordinal where it is met for the first time.
    seen.default_factory = seen.__len__
    at = list(map(seen.__getitem__, ids))
    seen.default_factory = None
    met, number = bytearray(map(first.__gt__, at)), first
    for place in compress(count(), met.translate(_ATOM)) if met.count(0) > len(seen) - first else ():
        if at[place] == number:
            number += 1
        else:
            met[place] = True
    walk.order += compress(ids, met.translate(_ATOM))
    for place in compress(compress(count(), picks), met):
        codes[place] = MET
    codes, order = _in_order(codes)
    walk.put(None)
    walk.put(codes)
    walk.put(list(compress(at, met)))
    walk.put(tuple([kinds[number - 1].mark(walk) for number in order]))
    atoms = list(compress(flat, picked(codes, 0)))
    put_atoms(walk, atoms)
    groups.update((kinds[number - 1], list(compress(flat, picked(codes, now)))) for now, number in enumerate(order, 1))
    return Met(codes, atoms, bytes(picks), ids)
