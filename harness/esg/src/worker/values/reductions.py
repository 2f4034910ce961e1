"""What the pickler of objects of packages writes instead of what these say of themselves."""
import copyreg
import io
import sys
from _pickle import Pickler

from _harness.values.shapes import ATOM_IDS as _ATOM_IDS, ATOMS as _ATOMS, MAPPING

_DEPTH = 6              # levels of containers
_modules = sys.modules


def without(names, emptied=frozenset()):
    """A function that says what makes an object again, without these attributes in its dict, and with these as
    empty dicts."""
    def left(held):
        return {name: {} if name in emptied else value for name, value in held.items() if name not in names}

    touched = names | emptied

    def reduce(o):
        reduced = o.__reduce_ex__(5)
        if type(reduced) is not tuple or len(reduced) < 3:
            return reduced
        make, given, state, *rest = reduced
        if type(state) is dict:
            state = left(state)
        elif type(state) is tuple and state and type(state[-1]) is dict and not touched.isdisjoint(state[-1]):
            held = left(state[-1])
            state = (*state[:-1], held) if held else state[:-1]
        return make, given, state, *rest

    return reduce


_reductions = {}


def reductions(cls, reduce):
    """How objects of some classes are reduced, with one class more. Packages register theirs when they are imported."""
    _reductions.setdefault(cls, reduce)
    return {**copyreg.dispatch_table, **_reductions}


def is_plain(o):
    """Whether a dict or a list holds nothing but dicts with plain keys, lists and plain values, to some depth."""
    open_ = [o]
    for _ in range(_DEPTH):
        held = []
        for one in open_:
            if type(one) is dict and _ATOM_IDS.issuperset(map(id, map(type, one))):
                held += one.values()
            elif type(one) is list:
                held += one
            else:
                return False
        if _ATOM_IDS.issuperset(map(id, map(type, held))):
            return True
        open_ = [one for one in held if id(type(one)) not in _ATOM_IDS]
    return False


def planted(o):
    """What makes a tree of points again: in what it says of itself there are addresses."""
    return type(o), (o.data, o.leafsize, True, False, True, o.boxsize)


def laid_out(o):
    """What makes an array again, as if its cells were next to each other: else it is another one that is
    restored."""
    held = MAPPING(type(o))
    flags = held["flags"].__get__(o)
    whole = o if flags.forc else held["copy"](o)
    return held["__reduce_ex__"](whole, 5)


def packed(o, kids):
    """An array of objects, without a call for each: of plain ones, such as a column of strings, as they are. Others
    are added to `kids`, unless that is None. None for any other array."""
    held = MAPPING(type(o))
    of = held["dtype"].__get__(o)
    if not of.hasobject or of.names is not None:
        return None
    cells = held["tolist"](held["ravel"](o))
    if _ATOMS.issuperset(map(type, cells)):
        return held["shape"].__get__(o), plain(cells)
    if kids is None:
        return None
    kids += cells
    return "cells", held["shape"].__get__(o), len(kids) - len(cells)


def masked(o):
    """A masked array as its attributes and its data: what its own pickle makes has another pickle."""
    held = dict(_attributes(o))
    fill = held.get("_fill_value")
    if fill is not None and fill.dtype == o.dtype and not fill.dtype.hasobject and \
            fill.tobytes() == _core()._check_fill_value(None, fill.dtype).tobytes():
        # It has been looked at.
        held["_fill_value"] = None
    return "masked", held, MAPPING(_base(o))["view"](o, _base(o))


def unmasked(held, data):
    """The masked array."""
    made = MAPPING(type(data))["view"](data, _core().MaskedArray)
    _attributes(made).update(held)
    return made


def _attributes(o):
    return object.__getattribute__(o, "__dict__")


def _base(o):
    return type(o).__base__


def _core():
    # Numpy loads it when it is looked for.
    __import__("numpy.ma.core")
    return _modules["numpy.ma.core"]


def plain(of):
    """Plain data as bytes, whatever is one object in it."""
    into = io.BytesIO()
    pickler = Pickler(into, 4)
    pickler.fast = True
    pickler.dump(of)
    return into.getvalue()
