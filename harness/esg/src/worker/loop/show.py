"""The display of a value, without running its code.

A `__repr__` of the program could change what it displays. Containers are displayed here, instances
of the program's classes by their attributes. Only types written in C use their own `repr`.
"""

from collections import OrderedDict, defaultdict, deque
from types import FunctionType, ModuleType

from _harness.loop.endings import type_name
from _harness.loop.wire import dump

_mro = type.__dict__["__mro__"]
_dict = type.__dict__["__dict__"]
_WRAPPERS = (type(object.__repr__), type(list.append))
_BRACKETS = {
    list: "[]",
    tuple: "()",
    set: "{}",
    frozenset: ("frozenset({", "})"),
    deque: ("deque([", "])"),
}
_ITERATE = {kind: vars(kind)["__iter__"] for kind in _BRACKETS}
_MAPPINGS = (dict, OrderedDict, defaultdict)
_JSON = (type(None), bool, int, float, str)
DEEP = 40


class _Full(Exception):
    """The text has reached its limit."""


class _Text:
    def __init__(self, limit):
        self.left = limit
        self.parts = []
        self.open = set()

    def put(self, text):
        if len(text) > self.left:
            self.parts.append(text[: max(self.left, 0)] + "...")
            raise _Full
        self.left -= len(text)
        self.parts.append(text)


def show(value, limit):
    """The value's text, of at most about `limit` characters."""
    text = _Text(limit)
    try:
        _show(value, text, 0)
    except _Full:
        pass
    return "".join(text.parts)


def _show(value, text, depth):
    kind = type(value)
    if id(value) in text.open or depth > DEEP:
        return text.put("...")
    if kind is str or kind is bytes or kind is bytearray:
        # Only what fits is formatted, because a long text would be copied as a whole.
        return text.put(repr(value[: text.left + 1]))
    if kind is int:
        # Formatting a very long number takes quadratic time.
        return text.put(repr(value) if value.bit_length() < 10_000 else hex(value))
    text.open.add(id(value))
    try:
        if kind in _BRACKETS:
            _items(value, kind, text, depth)
        elif kind in _MAPPINGS:
            _mapping(dict.items(value), "{", "}", text, depth, _key)
        elif isinstance(kind, type) and _speaks(kind):
            text.put(repr(value))
        elif kind is FunctionType:
            text.put("<function %s>" % value.__qualname__)
        elif kind is ModuleType:
            text.put("<module %s>" % dict.get(vars(value), "__name__", "?"))
        elif issubclass(kind, type):
            text.put("<class %s>" % type_name(value))
        else:
            _instance(value, kind, text, depth)
    finally:
        text.open.discard(id(value))


def _items(value, kind, text, depth):
    opening, closing = _BRACKETS[kind]
    if kind is set and not value:
        return text.put("set()")
    text.put(opening)
    for index, item in enumerate(_ITERATE[kind](value)):
        if index:
            text.put(", ")
        _show(item, text, depth + 1)
    text.put(",)" if kind is tuple and len(value) == 1 else closing)


def _key(key, text, depth):
    _show(key, text, depth)
    text.put(": ")


def _field(key, text, depth):
    text.put("%s=" % key if type(key) is str else "?=")


def _mapping(items, opening, closing, text, depth, put_key):
    text.put(opening)
    for index, (key, item) in enumerate(items):
        if index:
            text.put(", ")
        put_key(key, text, depth + 1)
        _show(item, text, depth + 1)
    text.put(closing)


def _instance(value, kind, text, depth):
    try:
        fields = object.__getattribute__(value, "__dict__")
    except AttributeError:
        fields = None
    if type(fields) is not dict:
        return text.put("<%s>" % type_name(kind))
    _mapping(dict.items(fields), type_name(kind) + "(", ")", text, depth, _field)


def _speaks(kind):
    """Whether the text of this type comes from C code alone."""
    if issubclass(kind, (BaseException, type, FunctionType, ModuleType)):
        return False
    for base in _mro.__get__(kind):
        if "__repr__" in _dict.__get__(base):
            own = _dict.__get__(base)["__repr__"]
            return base is not object and isinstance(own, _WRAPPERS) and not _holds(base)
    return False


def _holds(kind):
    """Whether a C type holds objects whose `repr` it would call."""
    return kind in _BRACKETS or issubclass(kind, (dict, list, tuple, set, frozenset)) or (
        kind.__module__ in ("builtins", "functools", "itertools", "types", "collections")
        and kind not in (float, complex, bool, type(None), type(...), type(NotImplemented), range)
    )


def as_json(value, limit):
    """The value as plain data if JSON represents it exactly, in at most `limit` bytes. Returns a
    list with the value, or None, because the value itself may be None."""
    if not _plain(value, 0, [limit]):
        return None
    try:
        return [value] if len(dump(value)) <= limit else None
    except (TypeError, ValueError):
        return None


def _plain(value, depth, room):
    kind = type(value)
    room[0] -= 1
    if room[0] < 0 or depth > DEEP:
        return False
    if kind is str:
        room[0] -= len(value)
        return room[0] >= 0 and not any("\ud800" <= char <= "\udfff" for char in value)
    if kind is int:
        # Beyond this, most JSON parsers round.
        return -(1 << 63) <= value < 1 << 64
    if kind in _JSON:
        return True
    if kind is list:
        return all(_plain(item, depth + 1, room) for item in value)
    if kind is dict:
        return all(
            type(key) is str and _plain(key, depth, room) and _plain(item, depth + 1, room)
            for key, item in value.items()
        )
    return False
