"""Scalar steps: they read names of plain values, compute with them, and bind the results.

Such a step runs only its own code, and none of a library. So its reads and bindings follow from its
code, and the other channels need no inspection.
"""

from re import compile as _pattern

from _harness.world.calm import LOOKED_FOR
from _harness.track.reads import ABSENT, DUNDERS
from _harness.values.bytecode import arguments, numbers, operations, opmap
from _harness.values.shapes import ATOM_IDS, ATOMS
from _harness.world.watch import ATTRIBUTES

# Without jumps or calls. On plain values these run no Python code, issue no warnings, and produce plain
# values. Not `~`, which warns for a bool, and not `is`, which tests identity.
_QUIET = numbers(
    *(
        "CACHE RESUME NOP COPY SWAP POP_TOP LOAD_CONST LOAD_NAME STORE_NAME BINARY_OP COMPARE_OP "
        "CONTAINS_OP UNARY_NEGATIVE UNARY_POSITIVE RETURN_VALUE RETURN_CONST"
    ).split()
)
_BINARY = opmap["BINARY_OP"]
# `**` and `**=` may produce a complex number, which is not a plain value here.
_POWERS = frozenset((8, 21))
# What a compiler may warn about, even in code that it then leaves out: a backslash, `~True`, a keyword
# right after a number, a literal that is called, indexed or compared with `is`, an assertion. A warning
# runs the program's hooks, and prints.
_may_warn = _pattern(r"[\\~\[:]|[0-9.][^\W\d]|[\w'\")}]\s*\(|\b(?:is|assert)\b").search
LOAD, STORE = opmap["LOAD_NAME"], opmap["STORE_NAME"]
_STR = frozenset((id(str),))
_get, _keys, _set = dict.get, dict.keys, dict.__setitem__


def foresee(source, code, namespace):
    """If module code is scalar: its uses of names, in order, as `(LOAD or STORE, name, where)`, and
    the values of the names that are bound. None if it may do anything else."""
    names, constants, ops = code.co_names, code.co_consts, operations(code)
    if not (
        _QUIET.issuperset(ops)
        and ATOMS.issuperset(map(type, constants))
        and LOOKED_FOR.isdisjoint(names)
        and ATTRIBUTES.isdisjoint(constants)
        and DUNDERS.isdisjoint(names)
        and not _may_warn(source)
        # A key that is not a plain string could run code when compared.
        and _STR.issuperset(map(id, map(type, _keys(namespace))))
    ):
        return None
    uses, found, at = [], {}, 0
    for op, arg in zip(ops, arguments(code)):
        if op == LOAD or op == STORE:
            uses.append((op, names[arg], at))
        elif op == _BINARY and arg in _POWERS:
            return None
        at += 2
    stored = set()
    for op, name, _ in uses:
        value = _get(namespace, name, ABSENT)
        if value is not ABSENT:
            # Releasing the old value may run code.
            if id(type(value)) not in ATOM_IDS:
                return None
            found[name] = value
        elif op == LOAD and name not in stored:
            # A builtin, or a missing name.
            return None
        if op == STORE:
            stored.add(name)
    return uses, found


def read_and_bound(uses, before, after):
    """The names that were read, and those that were bound. A step that read a name and leaves it
    unchanged does not bind it."""
    read, bound = set(), set()
    for op, name, _ in uses:
        if op == STORE:
            bound.add(name)
        elif name not in bound:
            read.add(name)
    for name in read & bound:
        if before[name] is after[name]:
            bound.discard(name)
    return read, bound


def bind(uses, after, namespace):
    """Applies the bindings to the namespace, in order."""
    for op, name, _ in uses:
        if op == STORE:
            _set(namespace, name, after[name])


def done(uses, error):
    """The uses of names up to the exception."""
    inner = error.__traceback__.tb_next
    at = -1 if inner is None else inner.tb_lasti
    return [use for use in uses if use[2] <= at]
