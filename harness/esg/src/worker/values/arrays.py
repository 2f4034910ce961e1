"""What numpy has: arrays, and the functions for them."""

import sys

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
