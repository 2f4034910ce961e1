"""Imports in code: which submodules its own statements surely load before any lookup."""

from types import CodeType

from _harness.track.codes import leaves, skipped
from _harness.values.bytecode import instructions as get_instructions

# Between these, only imports run code of the program.
_PLAIN = frozenset(
    "RESUME NOP CACHE EXTENDED_ARG LOAD_CONST POP_TOP PUSH_NULL SWAP COPY ROT_TWO IMPORT_NAME IMPORT_FROM "
    "STORE_NAME SETUP_ANNOTATIONS".split()
)
_LOOKS = frozenset("LOAD_ATTR LOAD_METHOD STORE_ATTR DELETE_ATTR IMPORT_FROM".split())


class Early:
    """An import that surely happens: the names looked up before it, and whether only imports precede
    it."""

    __slots__ = ("module", "looked", "first")

    def __init__(self, module, looked, first):
        self.module, self.looked, self.first = module, looked, first


_memo = {}


def early(code):
    """The imports of module code that surely happen, in order."""
    known = _memo.get(id(code))
    if known is None or known[0] is not code:
        if len(_memo) > 1024:
            _memo.clear()
        known = _memo[id(code)] = code, _early(code)
    return known[1]


def _early(code):
    if not any(name == "IMPORT_NAME" for name in map(_opname, get_instructions(code))):
        return []
    instructions = list(get_instructions(code))
    doubtful = skipped(code, instructions)
    found, looked, first, over, before = [], set(), True, False, None
    for one in instructions:
        if one.opname == "IMPORT_NAME" and one.argval:
            sure = not over and not any(begin < one.offset < end for begin, end in doubtful)
            if sure:
                names = before.argval if before is not None and type(before.argval) is tuple else ()
                modules = [one.argval, *(one.argval + "." + name for name in names)]
                found += [Early(module, frozenset(looked), first) for module in modules]
        elif one.opname in _LOOKS:
            looked.add(one.argval)
        elif type(one.argval) is CodeType:
            looked |= all_names(one.argval)
        over = over or leaves(one)
        first = first and one.opname in _PLAIN and type(one.argval) is not CodeType
        if one.opname not in ("CACHE", "EXTENDED_ARG"):
            before = one
    return found


def _opname(instruction):
    return instruction.opname


def all_names(code):
    """The names of a code object and of those nested in it."""
    found = set(code.co_names)
    for const in code.co_consts:
        if type(const) is CodeType:
            found |= all_names(const)
    return found
