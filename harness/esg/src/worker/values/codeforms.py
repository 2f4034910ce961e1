"""Code objects: a form independent of layout, and the names their instructions may load."""
import io
import types
from _blake2 import blake2b as _blake2b
from _pickle import Pickler as _Pickler

from _harness.values.bytecode import loaded, numbers, opmap, pairs

_Code = types.CodeType
_Buffer = io.BytesIO

_LOADS = numbers("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_STORES = frozenset(
    op for n, op in opmap.items()
    if n.startswith(("STORE_", "DELETE_", "IMPORT_")) and "FAST" not in n and n != "STORE_DEREF")

_digests = {}
_names = {}
_LIMIT = 4096


def plain(value):
    """A plain tuple for a constant of a code object. Distinguishes types, and ignores identity."""
    t = type(value)
    if t is tuple:
        return ("t", tuple([plain(v) for v in value]))
    if t is frozenset:
        return ("s", sorted([(type(v).__name__, repr(v)) for v in value]))
    if t is _Code:
        return ("c", digest(value))
    if t is complex:
        return ("j", value.real, value.imag)
    if value is ...:
        return ("e",)
    if t is slice:
        return ("l", plain(value.start), plain(value.stop), plain(value.step))
    return value


def digest(code):
    """The hash of a code object without lines, file names and inline caches: 16 bytes."""
    known = _digests.get(id(code))
    if known is not None and known[0] is code:
        return known[1]
    form = (
        code.co_name, code.co_qualname, code.co_code, code.co_exceptiontable, code.co_names,
        code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount,
        code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags,
        tuple([plain(c) for c in code.co_consts]))
    out = _Buffer()
    pickler = _Pickler(out, 4)
    pickler.fast = True
    pickler.dump(form)
    found = _blake2b(out.getvalue(), digest_size=16).digest()
    if len(_digests) > _LIMIT:
        _digests.clear()
    _digests[id(code)] = (code, found)
    return found


def loads(code):
    """Every global name that the code, including nested code, may load."""
    known = _names.get(id(code))
    if known is not None and known[0] is code:
        return known[1]
    found = set()
    names = code.co_names
    for _, _, op, argument in pairs(code):
        if op in _LOADS:
            found.add(names[loaded(op, argument)])
    for const in code.co_consts:
        if type(const) is _Code:
            found |= loads(const)
    if len(_names) > _LIMIT:
        _names.clear()
    _names[id(code)] = (code, frozenset(found))
    return _names[id(code)][1]


# What a `__hash__` or `__eq__` may call and still run when a set or dict is rebuilt.
_CALM = frozenset(("hash", "tuple", "frozenset", "isinstance", "type", "str", "int", "len", "NotImplemented", "id"))


def calm(code, classname):
    """Whether running the code changes nothing: it only reads attributes and calls builtins."""
    for _, _, op, argument in pairs(code):
        if op in _STORES:
            return False
        if op in _LOADS:
            name = code.co_names[loaded(op, argument)]
            if name not in _CALM and name != classname:
                return False
    return not any(type(c) is _Code for c in code.co_consts)
