"""State inside library modules that is neither an attribute of a module nor the program's: classes
written in Python, and lists, dictionaries and objects held by modules and their classes.

It is not tracked, so a change is reported. What a module changes while it is loaded belongs to its
loading.
"""

import operator
import re
import sys
import types
from collections import OrderedDict, defaultdict, deque

from _harness.values.bytecode import names_in
from _harness.values.compat import FIXED as _IMMUTABLE, FLAGS as _FLAGS, HEAP as _HEAP

_MAPPING = type.__dict__["__dict__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__
_inside = vars(types.ModuleType)["__dict__"].__get__
_attribute = object.__getattribute__
_MISSING = object()
_Function = types.FunctionType
_loaded = sys.modules
_type = type
_is = operator.is_
_MAPPINGS = frozenset((dict, OrderedDict, defaultdict))
_CONTAINERS = _MAPPINGS | {list, set, deque}
_MOST = 4096
# The depth to which containers are compared.
_DEEP = 2
_OBJECTS = 512
# State that is tracked, restored, or filled in by the modules themselves.
_OURS = frozenset(("sys", "warnings", "builtins", "linecache", "os", "re", "copyreg", "typing"))
# Of these only exports that the program names count. The rest is implementation, or is reported by the
# functions that the program calls.
_KNOWN = _OURS | frozenset(
    "enum functools inspect tokenize token abc _abc _py_abc _weakrefset weakref threading contextlib types "
    "dataclasses ast dis opcode encodings codecs zipimport traceback site sysconfig posixpath genericpath "
    "ntpath stat io _pyio random time importlib struct logging subprocess signal selectors asyncio "
    "concurrent queue multiprocessing decimal _pydecimal fnmatch glob sre_compile sre_parse _strptime "
    "tempfile".split()
)
# Tables that are loaded on first use.
_TABLES = frozenset(("mimetypes.suffix_map", "mimetypes.encodings_map", "mimetypes.types_map",
                     "mimetypes.common_types", "pyclbr._modules"))
_CACHE = re.compile("cache|memo|lazy|lazily|warned|inited|initiali[sz]ed|registry_weak|finali[sz]e|lock", re.IGNORECASE)


class Library:
    """What library modules held when they were loaded."""

    def __init__(self):
        self.classes = []
        # By module: what its containers hold, by name.
        self.held = {}

    def note(self, name, names):
        """Records the content of a module that was just loaded."""
        held = {}
        known = name.partition(".")[0] in _KNOWN
        for key, value in names.items():
            if issubclass(type(value), type):
                # Types that have not been used yet may have none.
                inside = None if _FLAGS(value) & _IMMUTABLE else _MAPPING(value)
                if inside is not None and inside.get("__module__") == name:
                    self.classes.append((value, dict(inside)))
                    if not known:
                        for inner, one in inside.items():
                            if type(one) in _CONTAINERS and not _is_cache_name(inner):
                                held[f"{key}.{inner}"] = one, _content(one)
            elif known and (key[:1] == "_" or name in _OURS or type(value) not in _CONTAINERS):
                continue
            elif not _is_cache_name(key) and _holds(value):
                held[key] = value, _content(value)
        if held:
            self.held[name] = held

    def changed(self, traits, modules):
        """What the step changed: in classes that its code names, and in containers of modules that
        it reaches."""
        changes = []
        stored = traits.stored | traits.words if traits.dynamic_store else traits.stored
        if stored:
            for cls, known in self.classes:
                now = _MAPPING(cls)
                for key in stored:
                    value = now.get(key, _MISSING)
                    if value is not known.get(key, _MISSING):
                        changes.append(f"{now.get('__module__')}.{_QUALNAME(cls)}.{key} was replaced")
                        known[key] = value
        return changes + [
            f"{name}.{key} was changed in place"
            for name, key in self.differing(modules)
            if key in traits.names or not is_cache(name, key)
        ]

    def differing(self, modules):
        """The containers of some modules that changed. Records their current content."""
        found = []
        for name in sorted(modules & self.held.keys()):
            held = self.held[name]
            for key, (value, known) in held.items():
                now = _content(value)
                if len(now) != len(known) or not all(map(_is, now, known)):
                    found.append((name, key))
                    held[key] = value, now
        return found

    def sweep(self):
        """Classes whose methods changed since they were loaded."""
        changes = []
        for cls, known in self.classes:
            now = _MAPPING(cls)
            for key, value in known.items():
                if now.get(key, _MISSING) is not value and key[:1] != "_":
                    changes.append(f"{now.get('__module__')}.{_QUALNAME(cls)}.{key} was replaced")
        return changes


def is_cache(module, key):
    """Whether a variable of a library is a cache that the library fills in."""
    return module.partition(".")[0] in _KNOWN or _is_cache_name(key) or f"{module}.{key}" in _TABLES


def _is_cache_name(key):
    return key[:2] == "__" or key[:5] == "_abc_" or _CACHE.search(key) is not None


def _holds(value):
    """Whether a value is mutable: a container, or an object of a class written in Python."""
    kind = type(value)
    if kind in _CONTAINERS:
        return len(value) <= _MOST
    return bool(_FLAGS(kind) & _HEAP) and _names_of(value) is not None


def _names_of(value):
    """The attributes of an object, without running its code."""
    kind = type(value)
    if not _FLAGS(kind) & _HEAP or issubclass(kind, (type, types.ModuleType, BaseException)):
        return None
    try:
        names = _attribute(value, "__dict__")
    except Exception:
        return None
    return names if type(names) is dict else None


def _content(value):
    """The content of a container or an object, in order and recursively, without running its code."""
    found, todo, seen = [], [(value, 0)], {id(value)}
    for value, depth in todo:
        kind = type(value)
        if kind in _MAPPINGS:
            items = [*dict.keys(value), *dict.values(value)]
        elif kind in _CONTAINERS or kind is tuple:
            items = list(value)
        else:
            names = _names_of(value)
            items = list(names.values()) if names else ()
        found += items
        if depth < _DEEP and len(todo) < _OBJECTS:
            for item in items:
                kind = type(item)
                if (kind in _CONTAINERS or kind is tuple or _FLAGS(kind) & _HEAP) and id(item) not in seen:
                    if kind is tuple or _holds(item):
                        seen.add(id(item))
                        todo.append((item, depth + 1))
        if len(found) > _MOST:
            break
    return found


class Reach:
    """The modules that the code of a library function refers to, where its state may be."""

    def __init__(self):
        self._known = {}

    def of(self, function):
        """The names of the modules of the function and of those it calls, and of those that they
        name."""
        known = self._known.get(id(function))
        if known is None or known[0] is not function:
            known = self._known[id(function)] = function, self._find(function)
        return known[1]

    def _find(self, function):
        top = _top(function)
        found, todo, seen = set(), [(function, 0)], set()
        for function, depth in todo:
            names = function.__globals__
            home = names.get("__name__")
            if type(home) is str:
                found.add(home)
            if depth > 3 or len(todo) > 200:
                continue
            for name in names_in(function.__code__):
                value = names.get(name)
                if issubclass(_type(value), types.ModuleType):
                    other = _inside(value).get("__name__")
                    if type(other) is str and other.partition(".")[0] == top:
                        found.add(other)
                    continue
                if issubclass(_type(value), type) and not _FLAGS(value) & _IMMUTABLE:
                    other = _MAPPING(value).get("__module__")
                    if type(other) is str and other.partition(".")[0] == top:
                        found.add(other)
                elif type(value) is _Function and id(value) not in seen and _top(value) == top:
                    seen.add(id(value))
                    todo.append((value, depth + 1))
        return frozenset(found)


def _top(function):
    name = function.__globals__.get("__name__")
    return name.partition(".")[0] if type(name) is str else None


def users(module, key):
    """Functions of libraries that use an attribute of a module. One is enough."""
    owner = _inside(_loaded[module])
    for name, other in list(_loaded.items()):
        names = _inside(other) if issubclass(_type(other), types.ModuleType) else None
        if names is None or name == "__main__" or name.startswith("_harness."):
            continue
        if names is not owner and not any(value is _loaded[module] for value in names.values()):
            continue
        for value in list(names.values()):
            inside = [value]
            if issubclass(_type(value), type):
                inside = list((_MAPPING(value) or {}).values())
            for function in inside:
                if _type(function) is _Function and function.__globals__ is names:
                    if key in function.__code__.co_names:
                        return [f"{name}.{function.__qualname__}"]
    return []
