"""What the pickler of objects of packages writes instead of what these say of themselves."""
import copyreg
import io
from _pickle import Pickler

from _harness.values.shapes import ATOMS as _ATOMS, MAPPING


def _without_cache(o):
    """What makes an object again, without the cache in its dict."""
    reduced = o.__reduce_ex__(5)
    if type(reduced) is not tuple or len(reduced) < 3:
        return reduced
    make, given, state, *rest = reduced
    if type(state) is dict:
        state = {name: held for name, held in state.items() if name != "_cache"}
    elif type(state) is tuple and state and type(state[-1]) is dict and "_cache" in state[-1]:
        held = {name: held for name, held in state[-1].items() if name != "_cache"}
        state = (*state[:-1], held) if held else state[:-1]
    return make, given, state, *rest


_reductions = {}


def reduced_in_pandas(cls):
    """How objects of some classes are reduced, with one class more. Packages register theirs when they are imported."""
    _reductions[cls] = _without_cache
    return {**copyreg.dispatch_table, **_reductions}


def packed(o):
    """An array of plain objects, such as a column of strings, without a call for each. None for any
    other."""
    held = MAPPING(type(o))
    of = held["dtype"].__get__(o)
    if not of.hasobject or of.names is not None:
        return None
    cells = held["tolist"](held["ravel"](o))
    if not _ATOMS.issuperset(map(type, cells)):
        return None
    return held["shape"].__get__(o), plain(cells)


def plain(of):
    """Plain data as bytes, whatever is one object in it."""
    into = io.BytesIO()
    pickler = Pickler(into, 4)
    pickler.fast = True
    pickler.dump(of)
    return into.getvalue()
