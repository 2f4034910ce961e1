"""References by name: objects of the standard library, the builtins and installed packages.

An object is written as (module, qualified name) only if that name resolves to the same object. Every
other object belongs to the program and is written by value.
"""
import sys
import types
from itertools import compress, repeat
from operator import is_

from _harness.values.arrays import is_ufunc
from _harness.values.standins import reference

_MAPPING = type.__dict__["__dict__"].__get__
_MRO = type.__dict__["__mro__"].__get__
_TYPE_MODULE = type.__dict__["__module__"].__get__
_TYPE_NAME = type.__dict__["__name__"].__get__
_TYPE_QUALNAME = type.__dict__["__qualname__"].__get__
_modules = sys.modules
_get = dict.get
_Module = types.ModuleType
_Function = types.FunctionType
_Builtin = types.BuiltinFunctionType
_DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType,
                types.MemberDescriptorType, types.ClassMethodDescriptorType)
_module_dict = vars(_Module)["__dict__"].__get__

# Types of functions of packages that are compiled, or chosen by what they are given.
NAMED = frozenset(("cython_function_or_method", "_ArrayFunctionDispatcher"))
# Where programs have functions for arrays from.
_WITH_UFUNCS = ("numpy", "scipy.special")
# Constants without a name, found under the attribute that holds them.
_SINGLETONS = {id(...): ("builtins", "Ellipsis"), id(NotImplemented): ("builtins", "NotImplemented")}

# Types of the interpreter that no module exports, with names given here.
HIDDEN = {}
for _n, _o in (
    ("NoneType", None), ("NotImplementedType", NotImplemented), ("ellipsis", ...),
    ("dict_keys", {}.keys()), ("dict_values", {}.values()), ("dict_items", {}.items()),
    ("list_iterator", iter([])), ("tuple_iterator", iter(())), ("str_iterator", iter("")),
    ("set_iterator", iter(set())), ("range_iterator", iter(range(0))), ("bytes_iterator", iter(b"")),
    ("dict_keyiterator", iter({})), ("dict_itemiterator", iter({}.items())),
    ("list_reverseiterator", reversed([])), ("str_ascii_iterator", iter("a")),
    ("longrange_iterator", iter(range(1 << 70))), ("callable_iterator", iter(int, 1)),
):
    HIDDEN[_n] = type(_o)
_HIDDEN_IDS = {id(t): n for n, t in HIDDEN.items()}


def module_dict(name):
    """The dict of a loaded module, or None. Runs no code of the module."""
    module = _get(_modules, name)
    return _module_dict(module) if issubclass(type(module), _Module) else None


def ours(name):
    """Whether a module's name is one of the worker's own."""
    return type(name) is str and str.startswith(name, "_harness.")


class Names:
    """Finds the name of an object. Caches the results for types and functions."""

    def __init__(self, program, original):
        """`program(name)`: whether a module belongs to the program (`__main__`, scratch).
        `original(name)`: the attributes of the module as imported, or None."""
        self.program, self.original = program, original
        self.known = {}
        # Those without a name, which are the program's and may not be needed any more.
        self.unnamed = {}
        self.scanned = {}
        # The read-only views that packages keep, as of a number of loaded modules.
        self.views, self.views_of = {}, 0

    def lookup(self, module, qualname):
        """The object behind a name, or None. Skips what a program put in its place: that is a value
        of the module, and may be absent when the name is resolved again."""
        if module == "<hidden>":
            return _get(HIDDEN, qualname)
        if str.startswith(module, "<live>"):
            return _get(module_dict(module[6:]) or {}, qualname)
        # A submodule that this state does not have keeps its content, to which other modules refer.
        found, base = module_dict(module), self.original(module)
        if found is None and base is None:
            return None
        qualname, _, up = str.partition(qualname, "^")
        parts = str.split(qualname, ".")
        value = base[parts[0]] if base is not None and parts[0] in base else _get(found or {}, parts[0])
        for part in parts[1:]:
            if not issubclass(type(value), type):
                return None
            for cls in _MRO(value):
                if part in _MAPPING(cls):
                    value = _MAPPING(cls)[part]
                    break
            else:
                return None
        if up:
            # A class shadowed by another one of the same name: the n-th of its ancestry.
            return _MRO(value)[int(up)] if issubclass(type(value), type) and int(up) < len(_MRO(value)) else None
        if (type(value) is staticmethod or type(value) is classmethod) and len(parts) > 1:
            value = value.__func__
        return value

    def _verified(self, module, qualname, o):
        if type(module) is not str or type(qualname) is not str or self.program(module):
            return None
        return (module, qualname) if self.lookup(module, qualname) is o else None

    def of(self, o):
        """(module, qualified name) of a class, function or builtin that a module owns, or None."""
        known = self.known.get(id(o))
        if known is not None and known[0] is o:
            # After a patch, a name no longer leads to the object.
            if known[2] or self.lookup(*known[1]) is o:
                return known[1]
        elif self.unnamed.get(id(o), self) is o:
            return None
        name = self._find(o)
        if name is None:
            self.unnamed[id(o)] = o
        else:
            self.known[id(o)] = (o, name, name[0] == "<hidden>")
        return name

    def _find(self, o):
        t = type(o)
        if issubclass(type(o), type):
            hidden = _HIDDEN_IDS.get(id(o))
            if hidden is not None:
                return ("<hidden>", hidden)
            module, qualname = _TYPE_MODULE(o), _TYPE_QUALNAME(o)
            found = self._verified(module, qualname, o)
            if found is None and type(module) is str and str.startswith(module, "_"):
                found = self._verified(module[1:], qualname, o)
            if found is None and type(module) is str and not self.program(module):
                holder = self.lookup(module, qualname)
                if issubclass(type(holder), type):
                    for up, cls in enumerate(_MRO(holder)):
                        if cls is o:
                            return (module, "%s^%d" % (qualname, up))
            return found
        if t is _Function:
            return self._verified(o.__module__, o.__qualname__, o) or self._stand_in(o) or self._closure(o)
        if t is _Builtin:
            owner = o.__self__
            if issubclass(type(owner), _Module):
                name = _get(_module_dict(owner), "__name__")
                return self._verified(name, o.__name__, o) or self._verified(o.__module__, o.__name__, o)
            if owner is None:
                return self._verified(o.__module__, o.__qualname__, o)
            if issubclass(type(owner), type):
                # A classmethod of a builtin type, such as dict.fromkeys, or a `__new__`.
                held = _MAPPING(owner).get(o.__name__)
                name = self.of(owner)
                if held is o and name is not None:
                    return (name[0], name[1] + "." + o.__name__)
            return None
        if t in _DESCRIPTORS:
            owner = o.__objclass__
            if _MAPPING(owner).get(o.__name__) is o:
                name = self.of(owner)
                if name is not None:
                    return (name[0], name[1] + "." + o.__name__)
        if _TYPE_NAME(t) in NAMED:
            return self._verified(o.__module__, o.__qualname__, o)
        if is_ufunc(t):
            # It does not know its module. Pickle would ask each loaded one, whenever it is written.
            for module in (*_WITH_UFUNCS, *_modules):
                found = self._verified(module, o.__name__, o)
                if found is not None:
                    return found
        return None

    def _stand_in(self, o):
        """The name of a worker function that replaces the real one in a module."""
        if not ours(_get(o.__globals__, "__name__")):
            return None
        for name in (o.__module__, "os", "time", "random", "builtins"):
            for key, value in tuple((module_dict(name) or {}).items()) if type(name) is str else ():
                if value is o:
                    return self._verified(name, key, o) or ("<live>" + name, key)
        return self._verified("datetime", o.__qualname__, o)

    def _closure(self, o):
        """The name under which a package keeps a closure that it has made for itself."""
        module = o.__module__
        if type(module) is not str or "<locals>" not in o.__qualname__ or self.program(module):
            return None
        package = str.partition(module, ".")[0]
        for name in tuple(_modules):
            if name == package or str.startswith(name, package + "."):
                found = self._held(name, o)
                if found is not None:
                    return found
        return None

    def callable(self, o):
        """The name of a worker object that replaces a builtin function in a module."""
        held = object.__getattribute__(o, "__dict__")
        module, name = held.get("__module__"), held.get("__name__")
        if type(module) is not str or type(name) is not str:
            return None
        found = self._verified(module, name, o)
        if found is None and (module_dict(module) or {}).get(name) is o:
            found = ("<live>" + module, name)
        return found

    def constant(self, o):
        """(module, attribute) of an instance that a module outside the program holds, or None.

        Searches only the module of its class, and the package that this is in: `dataclasses.MISSING`,
        `typing.Optional`, `random._inst`, `mpmath.mp`. An instance held elsewhere is a value."""
        single = _SINGLETONS.get(id(o))
        if single is not None:
            return single
        if type(o) is types.MappingProxyType:
            return self._view(o)
        module = _TYPE_MODULE(type(o))
        if module == "builtins" and type(o).__name__ == "NoDefaultType":
            module = "typing"
        if type(module) is not str or module == "builtins" or self.program(module):
            return None
        package = str.partition(module, ".")[0]
        return self._held(module, o) or (self._held(package, o) if package != module else None)

    def held_with(self, t):
        """The ids of the instances of a class that `constant` or `streams` find. Not of others: an equal string
        might be another object."""
        module, found = _TYPE_MODULE(t), [..., NotImplemented, *standard()]
        if type(module) is str and module != "builtins" and not self.program(module):
            for name in {module, str.partition(module, ".")[0]}:
                for held in (self.original(name), module_dict(name)):
                    found += (held or {}).values()
        return frozenset(map(id, compress(found, map(is_, map(type, found), repeat(t)))))

    def _view(self, o):
        """(module, attribute) of a read-only view that a package keeps, or None: what it gives to each of
        the program's objects would join them otherwise."""
        if self.views_of != len(_modules):
            self.views_of = len(_modules)
            self.views = {
                id(value): name
                for name in sorted(_modules, reverse=True) if not self.program(name)
                for value in tuple((module_dict(name) or {}).values()) if type(value) is types.MappingProxyType
            }
        name = self.views.get(id(o))
        return self._held(name, o) if name is not None else None

    def _held(self, module, o):
        """(module, attribute) of an instance that this module holds, or None."""
        held = self.original(module)
        if held is None:
            held = module_dict(module)
        if held is None:
            return None
        at = self.scanned.get(module)
        if at is None or at[0] != len(held):
            index = {id(v): k for k, v in tuple(held.items()) if type(k) is str}
            self.scanned[module] = at = (len(held), index)
        name = at[1].get(id(o))
        return (module, name) if name is not None and _get(held, name) is o else None


_STREAMS = "stdout", "stderr", "stdin", "__stdout__", "__stderr__", "__stdin__"


def standard():
    """The standard streams, and the environment."""
    held = _module_dict(sys)
    return [*map(held.get, _STREAMS), (module_dict("os") or {}).get("environ")]


def streams(o):
    """The standard stream that an object is. Steps may keep `sys.stdout`, which is never stored as a
    value. The same holds for a stand-in of a builtin function."""
    name = reference(o)
    if name is not None:
        return name
    held = _module_dict(sys)
    for name in _STREAMS:
        if held.get(name) is o:
            return ("sys", name)
    environ = module_dict("os")
    if environ is not None and environ.get("environ") is o:
        return ("os", "environ")
    return None
