"""Arrays and records in memory that another object owns."""
import sys

from _harness.values import dtypes
from _harness.values.arrays import ndarray, owner_of
from _harness.values.layouts import array_parts
from _harness.values.shapes import MAPPING, Kind, Unloadable, Unserializable, register

_modules = sys.modules


class Part(Kind):
    """A view of an array: it refers to the array that owns the memory."""

    tag = "nv"

    def memory(self, o):
        """The view as an array, and the array that owns its memory."""
        return o, owner_of(o)

    def split(self, walk, objs):
        head, kids = [], []
        held = MAPPING(ndarray())
        for o, owner in map(self.memory, objs):
            of, shape, strides, flags = (held[name].__get__(o) for name in ("dtype", "shape", "strides", "flags"))
            start = held["__array_interface__"].__get__(o)["data"][0] - held["__array_interface__"].__get__(owner)["data"][0]
            head.append((dtypes.written(of), shape, strides, start, flags.writeable))
            kids.append(owner)
        return head, kids

    def make(self, load, head, n):
        """Nothing, until all arrays that own their memory exist."""

    def make_one(self, load, head, kids, extra):
        (of, shape, strides, start, writeable), (owner,) = head, kids
        if owner is None:
            raise Unloadable("a view of an array that cannot be made first")
        of, array = dtypes.read(of), type(owner)
        made = array.__new__(array, shape, of, buffer=owner, offset=start, strides=strides)
        made.flags.writeable = writeable
        return made

    def fill(self, load, objs, head, kids):
        """Its cells are those of its owner."""


class Record(Part):
    """A record of an array: a write to one of its fields changes the array."""

    tag = "nr"

    def memory(self, o):
        return _modules["numpy"].asarray(o), owner_of(o.base)

    def make_one(self, load, head, kids, extra):
        return super().make_one(load, head, kids, extra)[()]


def _lenders(walk, o):
    return array_parts(ndarray())(walk, o) if issubclass(type(o), ndarray()) else [owner_of(o.base)]


LENT = Unserializable("an array in memory that another object may change", kids=_lenders)
PART, RECORD = register(Part()), register(Record())
