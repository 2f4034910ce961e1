"""What the code of the program changes inside packages: their settings and registries.

Which function of a package changes its state is not known. But a call whose result is dropped is made
for an effect, and functions for settings have names like `set_options`, `add_constructor` or `seed`. So a
call counts if it is a statement of its own, begins with a module or class of a package,
ends with such a name, and is not given an object that it may change instead. What is stored in a
container of a package counts, too. Channels hold the settings of some packages; of the standard
library the functions are listed one by one.
"""

import re
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType

from _harness.values.bytecode import instructions, numbers, operations
from _harness.values.shapes import ATOM_IDS, MRO

_type = type
_inside = vars(ModuleType)["__dict__"].__get__
_MAPPING = type.__dict__["__dict__"].__get__
_LIBRARY = sys.stdlib_module_names
# Their settings are in channels, or listed one by one.
_HELD = frozenset("numpy pandas matplotlib mpl_toolkits seaborn pylab polars sklearn mpmath xarray".split())
# Channels hold what is in these.
_CHANNELS = frozenset("sys os logging warnings random locale builtins linecache".split())
_SETS = re.compile(
    r"(un)?(set|setup|add|register|enable|disable|use|init|initialize|install|config|configure|patch|monkey|"
    r"activate|deactivate|reset|seed|update|extension)(?![a-z])|.*seed$|pandas$|initjs$|seterr$"
)
_CHANGES = frozenset("append extend insert clear update pop popitem remove discard add setdefault".split())
_ROOTS = frozenset(("LOAD_NAME", "LOAD_GLOBAL"))
_LOCALS = ("LOAD_FAST", "LOAD_DEREF")
_PARTS = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
# What may follow a dotted name in a longer expression.
_LONGER = _PARTS | {"BINARY_SUBSCR", "BINARY_SLICE", "BINARY_OP"}
_STORES = frozenset(("STORE_SUBSCR", "DELETE_SUBSCR"))
_STORE_NUMBERS = numbers(*_STORES)
_FILLER = frozenset(("CACHE", "PUSH_NULL", "PRECALL", "EXTENDED_ARG", "NOP"))
_CONTAINERS = (dict, list, set)
_FUNCTIONS = (FunctionType, BuiltinFunctionType)


class Change:
    """A call or store that may change a package: the dotted name, the name of the first argument, and the
    line."""

    __slots__ = ("path", "given", "stores", "line")

    def __init__(self, path, given, stores, line):
        self.path, self.given, self.stores, self.line = path, given, stores, line


def changes(code):
    """The calls and stores of a code object that may change a package, whatever its names are bound to."""
    if _STORE_NUMBERS.isdisjoint(operations(code)) and not any(
        name in _CHANGES or _SETS.match(name) for name in code.co_names
    ):
        return ()
    steps = [step for step in instructions(code) if step.opname not in _FILLER]
    found = []
    for at, step in enumerate(steps):
        if step.opname in _STORES:
            found.append(_stored(steps, at))
        elif step.opname == "POP_TOP" and at and _is_call(steps[at - 1]):
            found.append(_called(steps, at - 1))
    return tuple([one for one in found if one is not None])


def _is_call(step):
    return step.opname.startswith("CALL") and "INTRINSIC" not in step.opname


def _start(step):
    where = step.positions
    return None if where is None or where.col_offset is None else (where.lineno, where.col_offset)


def _path(steps, at):
    """The dotted name at the beginning of the expression that ends here, and where it ends. None if the
    expression is of another form."""
    start = _start(steps[at])
    begins = at - 1
    # Every part of such a name begins where the expression does, and none of the expression before that.
    while start is not None and begins >= 0 and (_start(steps[begins]) or start) >= start:
        if steps[begins].opname in _ROOTS and _start(steps[begins]) == start:
            break
        begins -= 1
    else:
        return None
    path, last = [steps[begins].argval], begins + 1
    while last < at and steps[last].opname in _PARTS and _start(steps[last]) == start:
        path.append(steps[last].argval)
        last += 1
    longer = any([_start(step) == start and (step.opname in _LONGER or _is_call(step)) for step in steps[last:at]])
    return None if longer else (path, last)


def _called(steps, at):
    found = _path(steps, at)
    if found is None:
        return None
    path, after = found
    first = steps[after]
    given = first.argval if after < at and first.opname in _ROOTS else None
    if len(path) > 2 and path[-1] in _CHANGES:
        return Change(path[:-1], None, True, _start(steps[at])[0])
    if first.opname.startswith(_LOCALS) and not path[-1].endswith("seed"):
        # What a function was given may be what is changed.
        return None
    return Change(path, given, False, _start(steps[at])[0]) if _SETS.match(path[-1]) else None


def _stored(steps, at):
    found = _path(steps, at)
    if found is None or len(found[0]) < 2:
        return None
    return Change(found[0], None, True, _start(steps[at])[0])


def settings(modules, traits):
    """Yields `(what, code, line)` for each change inside a package."""
    for code, change in traits.changes:
        path, namespace = change.path, modules.namespace
        value = dict.get(namespace, path[0], settings)
        top = _top(value, modules)
        if top is None or change.given is not None and _is_data(dict.get(namespace, change.given)):
            continue
        if change.stores:
            if top not in _CHANNELS and _is_registry(value, path[1:], modules.base):
                yield f"{_home(value)}.{'.'.join(path[1:])} was changed", code, change.line
        elif top not in _LIBRARY and top not in _HELD:
            yield ".".join([_home(value), *path[1:]]) + " changes a package", code, change.line


def _home(value):
    if _type(value) is ModuleType:
        return _inside(value).get("__name__")
    return f"{value.__module__}.{value.__qualname__}"


def _top(value, modules):
    """The package of a module, a class or a function; None if it is none of a package."""
    if issubclass(_type(value), ModuleType):
        home = _inside(value).get("__name__")
    elif issubclass(_type(value), type):
        home = _MAPPING(value).get("__module__")
    elif issubclass(_type(value), _FUNCTIONS):
        home = value.__module__
    else:
        return None
    known = _type(home) is str and home in modules.base and home not in modules.scratch
    return home.partition(".")[0] if known else None


def _is_data(value):
    """Whether the value is an object that a function may be called to change."""
    kind = _type(value)
    return id(kind) not in ATOM_IDS and not issubclass(kind, (type, ModuleType, *_FUNCTIONS))


def _is_registry(value, path, base):
    """Whether the attributes lead to a container of a package, and no code runs on the way. What the program
    has set on a module is a state of its own."""
    for name in path:
        kind = _type(value)
        if issubclass(kind, ModuleType):
            names = _inside(value)
            known = base.get(names.get("__name__"), names)
            value = known.get(name)
            if names.get(name) is not value:
                return False
        elif issubclass(kind, type):
            value = next((_MAPPING(one)[name] for one in MRO(value) if name in _MAPPING(one)), None)
        else:
            value = _held(value).get(name)
    return issubclass(_type(value), _CONTAINERS) and _type(value).__name__ != "RcParams"


def _held(value):
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
