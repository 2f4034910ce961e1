"""What code names: imports, attributes, constants. Found once per code object."""

import types

from _harness.values.bytecode import instructions as _instructions, numbers, operations
from _harness.world.inside import changes

_CodeType = types.CodeType
_address = object.__hash__
_type = type
_STORES = numbers("STORE_ATTR", "DELETE_ATTR")
_DETAILED = _STORES | numbers("IMPORT_NAME")
_MAX_MEMO = 4096

# Functions that set attributes by string.
_DYNAMIC_STORE = frozenset("setattr delattr __dict__ vars __setattr__ __delattr__ exec eval reload patch".split())
_DYNAMIC_IMPORT = frozenset("__import__ import_module modules exec eval reload".split())

# Names with further consequences.
LOOKED_INTO = _DYNAMIC_STORE | _DYNAMIC_IMPORT
# Instructions with further consequences.
WATCHED = _DETAILED | numbers("IS_OP")


class Traits:
    """What one or several code objects name."""

    __slots__ = ("names", "strings", "words", "imports", "stored", "assigned", "changes", "codes")

    def __init__(self):
        self.names = set()
        self.strings = set()
        self.words = set()
        # Module names of import statements.
        self.imports = set()
        # Attributes set or deleted on anything but a method's own instance; and on anything.
        self.stored = set()
        self.assigned = set()
        # With its code, what may change a package.
        self.changes = []
        # Every code object, including nested ones.
        self.codes = []

    def add(self, other):
        self.names |= other.names
        self.strings |= other.strings
        self.words |= other.words
        self.imports |= other.imports
        self.stored |= other.stored
        self.assigned |= other.assigned
        self.changes += other.changes
        self.codes += other.codes

    @property
    def stores(self):
        """Whether attributes of modules may have been set."""
        return bool(self.stored) or self.dynamic_store

    @property
    def dynamic_store(self):
        return not _DYNAMIC_STORE.isdisjoint(self.names)

    @property
    def dynamic_import(self):
        return not _DYNAMIC_IMPORT.isdisjoint(self.names)


class Reader:
    """Finds traits, and caches them."""

    def __init__(self):
        self._memo = {}

    def of(self, codes):
        """The traits of all of them together. The result must not be changed."""
        if len(codes) == 1:
            return self.one(codes[0])
        total = Traits()
        for code in {_address(code): code for code in codes}.values():
            total.add(self.one(code))
        return total

    def one(self, code):
        """The traits of a code object and of those nested in it."""
        key = _address(code)
        known = self._memo.get(key)
        if known is not None:
            return known[1]
        if len(self._memo) > _MAX_MEMO:
            self._memo.clear()
        found = Traits()
        found.codes.append(code)
        found.names.update(code.co_names)
        for constant in code.co_consts:
            self._constant(constant, found)
        if not _DETAILED.isdisjoint(operations(code)):
            _details(code, found)
        found.changes += [(code, change) for change in changes(code)]
        # Holding the code keeps its address from being reused.
        self._memo[key] = code, found
        return found

    def _constant(self, constant, found):
        kind = _type(constant)
        if kind is str:
            found.strings.add(constant)
            found.words.update(constant.split(".") if "." in constant and len(constant) < 200 else (constant,))
        elif kind is _CodeType:
            found.add(self.one(constant))
        elif kind is tuple or kind is frozenset:
            for item in constant:
                self._constant(item, found)


def _details(code, found):
    """Import statements, and the objects on which attributes are stored."""
    before = None
    own = code.co_varnames[0] if code.co_argcount else None
    level_at = []
    module = None
    for step in _instructions(code):
        name = step.opname
        if name == "CACHE":
            continue
        if name in ("STORE_ATTR", "DELETE_ATTR"):
            found.assigned.add(step.argval)
            if not (before is not None and before.opname.startswith("LOAD_FAST") and _last(before.argval) == own and own):
                found.stored.add(step.argval)
        elif name == "IMPORT_NAME":
            module = step.argval
            if module:
                found.imports.add(module)
        elif name == "IMPORT_FROM" and module is not None:
            found.imports.add(f"{module}.{step.argval}")
        level_at.append(name)
        before = step


def _last(value):
    """Some instructions load two variables."""
    return value[-1] if _type(value) is tuple else value


def uses(code, name):
    """Yields `(line, before, instruction)` for each use of `name` as an attribute, or imported."""
    before = None
    line = None
    module = None
    for step in _instructions(code):
        if step.opname == "CACHE":
            continue
        if step.positions is not None and step.positions.lineno is not None:
            line = step.positions.lineno
        if step.opname == "IMPORT_NAME":
            module = step.argval
        if step.argval == name and step.opname in ATTRIBUTE_OPS:
            yield line, (module if step.opname == "IMPORT_FROM" else before and _last(before.argval)), step.opname
        before = step


ATTRIBUTE_OPS = frozenset(
    "LOAD_ATTR LOAD_METHOD STORE_ATTR DELETE_ATTR IMPORT_FROM LOAD_SUPER_ATTR LOAD_SUPER_METHOD".split()
)


def line_of(code, name):
    """The first line of the code that names `name`."""
    line = None
    for step in _instructions(code):
        if step.positions is not None and step.positions.lineno is not None:
            line = step.positions.lineno
        if step.argval == name:
            return line
        if step.opname == "IMPORT_NAME" and _type(step.argval) is str and step.argval.partition(".")[0] == name:
            return line
    return None
