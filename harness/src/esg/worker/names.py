"""Which names the instructions of a code object load, from Python 3.12 on."""

from dis import _inline_cache_entries, opname

# The builtins that answer with the namespace, wholly or in part.
_WHOLE = frozenset(("globals", "locals", "vars", "dir"))
# Those of them that answer something else if they are given an argument.
_BY_ARGUMENT = frozenset(("vars", "dir"))

_GLOBAL = frozenset(("LOAD_GLOBAL", "DELETE_GLOBAL"))
_LOCAL = frozenset(("LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))


def _instructions(code):
    """Offset, name and argument of each instruction, caches left out, with the offset at which the
    prefixes of its argument begin."""
    data = code.co_code
    at, argument, begin = 0, 0, 0
    while at < len(data):
        op = opname[data[at]]
        argument = argument << 8 | data[at + 1]
        if op == "EXTENDED_ARG":
            at += 2
            continue
        yield begin, at, op, argument
        at += 2 + 2 * _caches(data[at], op)
        argument, begin = 0, at


def _caches(number, op):
    """How many units follow the instruction that are none."""
    if isinstance(_inline_cache_entries, dict):
        return _inline_cache_entries.get(op, 0)
    return _inline_cache_entries[number]


def name_loads(code):
    """By offset: the name, whether it is looked up in the locals first, whether loading it may mean
    that the whole namespace is looked at.

    "only" instead of true: it is looked up nowhere else. An instruction with a prefix is listed at
    the prefix too.
    """
    loads = {}
    names = code.co_names
    listed = list(_instructions(code))
    spreads = any(op == "CALL_FUNCTION_EX" for _, _, op, _ in listed)
    for index, (begin, at, op, argument) in enumerate(listed):
        pushes_null = False
        if op == "LOAD_GLOBAL":
            pushes_null = bool(argument & 1)
            name, local = names[argument >> 1], False
        elif op in _GLOBAL:
            name, local = names[argument], False
        elif op in _LOCAL:
            name, local = names[argument], True
        elif op == "DELETE_NAME":
            name, local = names[argument], "only"
        elif op == "SETUP_ANNOTATIONS":
            name, local = "__annotations__", "only"
        else:
            continue
        whole = name in _WHOLE
        if whole and name in _BY_ARGUMENT and not spreads:
            whole = not _has_argument(listed, index, pushes_null)
        for offset in range(begin, at + 2, 2):
            loads[offset] = (name, local, whole)
    return loads


def _has_argument(listed, index, pushes_null):
    """Whether the builtin loaded here is called at once and with an argument.

    What is called has a null pushed beside it, before it or after it as the version has it.
    """
    following = listed[index + 1 : index + 3]
    called = pushes_null or (index and listed[index - 1][2] == "PUSH_NULL")
    if following and following[0][2] == "PUSH_NULL":
        called = True
        following = following[1:]
    return bool(called and following and following[0][2].startswith("LOAD_"))
