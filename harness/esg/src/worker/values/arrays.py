"""What numpy has: arrays, and the functions for them."""

import sys

from _harness.values.compat import get_referents, getrefcount
from _harness.values.shapes import MAPPING

_modules = sys.modules


def _inside(name):
    numpy = _modules.get("numpy")
    return vars(numpy).get(name) if numpy is not None else None


def ndarray():
    """The class of arrays, or None if there are none."""
    return _inside("ndarray")


def owner_of(o):
    """The array that owns the memory of an array."""
    array = ndarray()
    while array is not None and issubclass(type(o), array):
        base = MAPPING(array)["base"].__get__(o)
        if type(base).__name__ == "DummyArray":
            # Between a view with strides of its own and its array.
            base = base.base
        if base is None or not issubclass(type(base), array):
            break
        o = base
    return o


def is_record(kind):
    """Whether it is the class of records of arrays."""
    return kind is _inside("void") or kind is _inside("record")


def is_lent(o):
    """Whether something else may change an array without numpy: it is in a buffer that something else refers
    to."""
    base = MAPPING(ndarray())["base"].__get__(owner_of(o))
    if type(base) is bytearray or (type(base).__module__, type(base).__name__) in _BUFFERS:
        return getrefcount(base) > _ALONE
    if type(base) is not memoryview or not get_referents(base):
        return False
    # A buffer is held by an object that all its memory views share.
    held = get_referents(base)[0]
    return type(base.obj) is not bytes and (getrefcount(held) > _ALONE or getrefcount(base.obj) >= _ALONE)


def _references(held):
    base = held[0]
    return getrefcount(base)


# Those to an object that only one object refers to, and a function.
_ALONE = _references([bytearray(1)])
_BUFFERS = frozenset((("array", "array"), ("mmap", "mmap"), ("torch", "Tensor")))


def overlap(one, other):
    """Whether a write to one of two arrays may change the other."""
    try:
        return _modules["numpy"].shares_memory(one, other, max_work=1000)
    except Exception:
        # It cannot be found out in that time.
        return True


def is_ufunc(kind):
    """Whether a class is that of functions for arrays."""
    return kind is _inside("ufunc")


def is_builtin(of):
    """Whether a dtype is one of those that exist once."""
    return MAPPING(_inside("dtype"))["isbuiltin"].__get__(of) == 1


def singular(of):
    """The same dtype, made of those that exist once: in its pickle they are copies, which functions for arrays treat
    as others."""
    numpy = _modules["numpy"]
    if of.metadata is not None or is_builtin(of):
        return of
    if of.names is not None:
        fields = [of.fields[name] for name in of.names]
        if any(len(field) > 2 for field in fields):
            return of
        parts = {"names": of.names, "formats": [singular(field[0]) for field in fields],
                 "offsets": [field[1] for field in fields], "itemsize": of.itemsize}
        made = numpy.dtype(parts, align=of.isalignedstruct)
    elif of.subdtype is not None:
        made = numpy.dtype((singular(of.subdtype[0]), of.subdtype[1]))
    else:
        made = numpy.dtype(of.str)
    return made if made == of else of


def char_of(of):
    """The character by which numpy finds such a dtype."""
    return MAPPING(_inside("dtype"))["char"].__get__(of)
