"""State inside of library modules that is neither an attribute of a module nor the program's: classes
written in Python, and the lists and dictionaries that modules export.

It is not tracked, so a change is to be told of.
"""

import operator
import sys
import types

_MAPPING = type.__dict__["__dict__"].__get__
_FLAGS = type.__dict__["__flags__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__
_IMMUTABLE = 1 << 8
_inside = types.ModuleType.__dict__["__dict__"].__get__
_MISSING = object()
_Function = types.FunctionType
_loaded = sys.modules
_type = type
_is = operator.is_
_CONTAINERS = (dict, list, set)
_MOST = 4096
# State that is tracked, restored, or filled in by the modules themselves.
_KNOWN = frozenset(("sys", "warnings", "builtins", "linecache", "os", "re", "copyreg", "typing"))


class Library:
    """What library modules held when they were loaded."""

    def __init__(self):
        self.classes = []
        self.containers = {}

    def note(self, name, names):
        """Remembers the inside of a module that has just been loaded."""
        held = {}
        for key, value in names.items():
            kind = type(value)
            if kind in _CONTAINERS:
                if key[:1] != "_" and name not in _KNOWN and len(value) <= _MOST:
                    held[key] = value, _shallow(value)
            elif issubclass(kind, type) and not _FLAGS(value) & _IMMUTABLE:
                # Types that nothing has used yet may have none.
                inside = _MAPPING(value)
                if inside is not None and inside.get("__module__") == name:
                    self.classes.append((value, dict(inside)))
        if held:
            self.containers[name] = held

    def changed(self, traits, touched):
        """What the step changed, as far as its code names it."""
        told = []
        stored = traits.stored | traits.words if traits.dynamic_store else traits.stored
        if stored:
            for cls, known in self.classes:
                now = _MAPPING(cls)
                for key in stored:
                    value = now.get(key, _MISSING)
                    if value is not known.get(key, _MISSING):
                        told.append(f"{now.get('__module__')}.{_QUALNAME(cls)}.{key} was replaced")
                        known[key] = value
        for name in touched & self.containers.keys() if touched else ():
            held = self.containers[name]
            for key in traits.names & held.keys():
                value, known = held[key]
                now = _shallow(value)
                if len(now) != len(known) or not all(map(_is, now, known)):
                    told.append(f"{name}.{key} was changed in place")
                    held[key] = value, now
        return told

    def sweep(self):
        """Classes that have other methods than when they were loaded."""
        told = []
        for cls, known in self.classes:
            now = _MAPPING(cls)
            for key, value in known.items():
                if now.get(key, _MISSING) is not value and key[:1] != "_":
                    told.append(f"{now.get('__module__')}.{_QUALNAME(cls)}.{key} was replaced")
        return told


def _shallow(value):
    """What a container holds, in order, without asking any of it."""
    if type(value) is dict:
        return [*value, *value.values()]
    return list(value)


def users(module, key):
    """Functions of libraries that use an attribute of a module: one is enough to know."""
    owner = _inside(_loaded[module])
    for name, other in list(_loaded.items()):
        names = _inside(other) if issubclass(_type(other), types.ModuleType) else None
        if names is None or name == "__main__" or name.startswith("_harness_"):
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
