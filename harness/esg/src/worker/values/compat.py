"""Everything of CPython that no documentation promises, in one place, and a test of it.

The worker starts only if the interpreter behaves as here. If it does not, `check` says what differs, and the
host refuses the interpreter: a read that goes unseen would be worse.
"""

import _collections  # type: ignore[import-not-found]
import sys
import types
from functools import lru_cache
from gc import get_referents
from sys import _getframe as frame_of
from sys import getrefcount

from _harness.values.bytecode import handlers, instructions, loaded, numbers, opname, pairs

__all__ = ("frame_of", "get_referents", "getrefcount", "bootstrap")

_TYPE = type.__dict__
# Of a class: its flags, the size of its objects, where their dict is.
FLAGS = _TYPE["__flags__"].__get__
SIZE = _TYPE["__basicsize__"].__get__
OFFSET = _TYPE["__dictoffset__"].__get__
HEAP, FIXED = 1 << 9, 1 << 8    # Py_TPFLAGS_HEAPTYPE, Py_TPFLAGS_IMMUTABLETYPE
# The import system, whose functions the worker replaces.
bootstrap = sys.modules["_frozen_importlib"]
FileFinder = sys.modules["_frozen_importlib_external"].FileFinder
# What makes the fields of a `namedtuple`.
TUPLE_GETTER: type | None = type(_collections._tuplegetter(0, "")) if hasattr(_collections, "_tuplegetter") else None


class Unsuitable(Exception):
    """The interpreter differs from what the worker relies on."""


class _Here(BaseException):
    """Raised and caught at once, see `caller`."""


def caller(depth):
    """The frame `depth` calls above the caller.

    `sys._getframe` notifies every audit hook, which is slow and would look like an action of the
    step."""
    try:
        raise _Here
    except _Here as here:
        frame = here.__traceback__.tb_frame.f_back
    while depth:
        frame = frame.f_back
        depth -= 1
    return frame


def threads():
    """The running threads by their numbers, if the program has loaded `threading`."""
    threading = sys.modules.get("threading")
    return dict(threading._active) if threading is not None else {}


def cached(function, number, bounded):
    """The keys and values that a `functools.lru_cache` has, of which there are this many, the oldest first. It visits
    its type, and if it has a bound each key with its value and the type of what links them, otherwise the dict of all."""
    held = get_referents(function)
    end = 1 + 3 * number
    return list(zip(held[1:end:3], held[2:end:3])) if bounded else list(held[1].items())


def start_threads_by(function):
    """Lets `threading` start its threads by a function."""
    sys.modules["threading"]._start_new_thread = function  # type: ignore[attr-defined]


_SAMPLE = """
import os
from os import path as p
a = b
def f(x):
    global g
    g = h
    try:
        return x.y is z
    except k:
        pass
"""
_LOADS = numbers("LOAD_NAME", "LOAD_GLOBAL")
_STORES = numbers("STORE_NAME", "STORE_GLOBAL")


def _decoded(code, ops):
    return {code.co_names[loaded(op, argument)] for _, _, op, argument in pairs(code) if op in ops}


def _bytecode():
    code = compile(_SAMPLE, "<sample>", "exec", dont_inherit=True)
    inner = next(const for const in code.co_consts if type(const) is types.CodeType)
    known = [opname[op] for _, _, op, _ in pairs(inner)]
    listed = [one.opname for one in instructions(inner) if one.opname not in ("CACHE", "EXTENDED_ARG")]
    return (
        _decoded(code, _LOADS) == {"b"}
        and _decoded(code, _STORES) == {"os", "p", "a", "f"}
        and _decoded(inner, _LOADS) >= {"h", "z", "k"}
        and _decoded(inner, _STORES) == {"g"}
        and known == listed
        and "IS_OP" in known
        and any(begin < target for begin, _, target in handlers(inner))
    )


def _frames():
    def above():
        return caller(0), caller(1)

    own, other = above()
    names = {"__name__": "<sample>", "f": lambda: frame_of(1).f_globals}
    return (
        own.f_code is above.__code__
        and other.f_code is _frames.__code__
        and other is frame_of()
        and eval("f()", names) is names
        and type(other.f_lasti) is int
    )


def _layouts():
    class Plain:
        pass

    class Slots:
        __slots__ = ("a", "b")

    return (
        bool(FLAGS(Plain) & HEAP)
        and not FLAGS(Plain) & FIXED
        and bool(FLAGS(int) & FIXED)
        and SIZE(Slots) - SIZE(object) == 16
        and SIZE(Plain) - SIZE(object) in (0, 8, 16)
        and bool(OFFSET(Plain))
        and not OFFSET(Slots)
    )


def _references():
    held = [0]
    one = [held]
    before = getrefcount(held)
    one.append(held)
    return getrefcount(held) == before + 1 and {*map(id, get_referents([held, one]))} == {id(held), id(one)}


def _caches():
    for most in (2, None):
        function = lru_cache(most)(lambda x: [x])
        want = [(x, id(function(x))) for x in "ab"]
        if [(key, id(value)) for key, value in cached(function, 2, most is not None)] != want:
            return False
    return True


def _imports():
    named = ("_find_and_load", "_handle_fromlist", "_call_with_frames_removed", "ModuleSpec")
    return all(callable(getattr(bootstrap, name, None)) for name in named)


def _modules():
    class module(types.ModuleType):
        pass

    made = module("sample")
    inside = vars(types.ModuleType)["__dict__"].__get__(made)
    inside["a"] = 1
    return type(inside) is dict and made.a == 1


def _monitoring():
    """From 3.12 on: an instruction is reported before it runs, with its offset."""
    if sys.version_info < (3, 12):
        return True
    from sys import monitoring

    code = compile("a = b", "<sample>", "exec", dont_inherit=True)
    tool = next((tool for tool in (4, 3, 1, 2, 0, 5) if monitoring.get_tool(tool) is None), None)
    if tool is None:
        return False
    seen = []
    event = monitoring.events.INSTRUCTION
    monitoring.use_tool_id(tool, "sample")
    try:
        monitoring.register_callback(tool, event, lambda code, offset: seen.append((caller(1).f_code, offset)))
        monitoring.set_local_events(tool, code, event)
        exec(code, {"b": 1})
    finally:
        monitoring.set_local_events(tool, code, 0)
        monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
    offsets = {at for _, at, op, _ in pairs(code) if op in _LOADS}
    return bool(offsets) and offsets <= {offset for ran, offset in seen if ran is code}


# What each test is about.
_TESTS = (
    ("bytecode", _bytecode), ("frames", _frames), ("the layout of objects", _layouts),
    ("references", _references), ("caches", _caches), ("the import system", _imports), ("modules", _modules),
    ("monitoring", _monitoring),
)


def check(tests=_TESTS):
    """Raises `Unsuitable` unless the interpreter behaves as the worker expects."""
    found = []
    for what, test in tests:
        try:
            holds = test()
        except Exception as why:
            found.append(f"{what} ({type(why).__name__}: {why})")
        else:
            if not holds:
                found.append(what)
    if found:
        version = "%d.%d.%d" % sys.version_info[:3]
        raise Unsuitable(f"CPython {version} differs in {', '.join(found)}")
