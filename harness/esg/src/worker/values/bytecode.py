"""The instructions of code objects: the only module that knows how they are laid out.

`dis` is slow where every code object is inspected, so there are ways that read the bytes.
"""

import dis
from collections.abc import Iterator
from dis import _inline_cache_entries  # type: ignore[attr-defined]
from types import CodeType

# With names, arguments and positions. Where only few code objects are inspected.
instructions = dis.get_instructions
opmap, opname = dis.opmap, dis.opname
JUMPS = frozenset(dis.hasjabs) | frozenset(dis.hasjrel)
EXTENDED = dis.EXTENDED_ARG
FAST_LOCALS = 1     # `inspect.CO_OPTIMIZED`: the code has fast locals, so no mapping in which it looks up names
LOAD_GLOBAL = opmap["LOAD_GLOBAL"]
# The number of cache units after each instruction. By name from 3.13 on.
_CACHES = (
    [_inline_cache_entries.get(name, 0) for name in opname]
    if isinstance(_inline_cache_entries, dict)
    else list(_inline_cache_entries)
)


def numbers(*names):
    """The instructions of these names, as far as this version has them."""
    return frozenset(opmap[name] for name in names if name in opmap)


def operations(code):
    """The bytes of a code object that are instructions or their caches, which are zeros."""
    return code.co_code[::2]


def arguments(code):
    """The byte after each of these."""
    return code.co_code[1::2]


def pairs(code: CodeType) -> Iterator[tuple[int, int, int, int]]:
    """Offset of the prefixes, offset, number and argument of each instruction, without caches."""
    data = code.co_code
    at, argument, begin = 0, 0, 0
    while at < len(data):
        op = data[at]
        argument = argument << 8 | data[at + 1]
        if op == EXTENDED:
            at += 2
            continue
        yield begin, at, op, argument
        at += 2 + 2 * _CACHES[op]
        argument, begin = 0, at


def loaded(op, argument):
    """The index of the name that a load of a name has as its argument."""
    return argument >> 1 if op == LOAD_GLOBAL else argument


def handlers(code):
    """The ranges of the exception table, each with its handler."""
    table = iter(code.co_exceptiontable)

    def number():
        byte = next(table)
        value = byte & 63
        while byte & 64:
            byte = next(table)
            value = value << 6 | byte & 63
        return value

    while True:
        try:
            start = number()
        except StopIteration:
            return
        length, target, _depth = number(), number(), number()
        yield start * 2, (start + length) * 2, target * 2


def names_in(code: CodeType) -> set[str]:
    """The names that a code object and those in it look up anywhere but among their local variables."""
    return set(code.co_names).union(*[names_in(const) for const in code.co_consts if type(const) is CodeType])
