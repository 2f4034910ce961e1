"""Which names the instructions of a code object load and bind, from Python 3.12 on."""

from dis import EXTENDED_ARG, _inline_cache_entries, opmap, opname

# What an instruction does with a name. `STAR`: it binds the names of the module of that name.
LOAD, STORE, DELETE, STAR = "load", "store", "delete", "star"

# The builtins that answer with the namespace, wholly or in part.
_WHOLE = frozenset(("globals", "locals", "vars", "dir"))
# Those of them that answer something else if they are given an argument.
_BY_ARGUMENT = frozenset(("vars", "dir"))

# The kind of use, and whether the locals are looked at first, or only.
_USES = {
    "DELETE_GLOBAL": (DELETE, False),
    "DELETE_NAME": (DELETE, True),
    "LOAD_FROM_DICT_OR_GLOBALS": (LOAD, True),
    "LOAD_NAME": (LOAD, True),
    "STORE_GLOBAL": (STORE, False),
    "STORE_NAME": (STORE, True),
}
_IMPORT_STAR = 2  # INTRINSIC_IMPORT_STAR

_LOAD_GLOBAL = opmap["LOAD_GLOBAL"]
# By number: those that stand for themselves.
_PLAIN = {opmap[name]: use for name, use in _USES.items() if name in opmap}
_PLAIN[_LOAD_GLOBAL] = LOAD, False
# Those that take more than a look at one instruction.
_CROOKED = frozenset(
    opmap[name] for name in ("SETUP_ANNOTATIONS", "CALL_INTRINSIC_1") if name in opmap
) | {EXTENDED_ARG}


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


def names_of(code):
    """By offset: the kind of use, the name, whether the locals are looked at first, and whether a
    load may mean that the whole namespace is looked at.

    An instruction with a prefix is listed at the prefix too.
    """
    uses = {}
    names = code.co_names
    data = code.co_code
    if _CROOKED.isdisjoint(data[::2]) and _WHOLE.isdisjoint(names):
        # Caches are zeros here, and no instruction that does something with a name is number zero.
        for at, op in enumerate(data[::2]):
            use = _PLAIN.get(op)
            if use is not None:
                argument = data[2 * at + 1]
                name = names[argument >> 1 if op == _LOAD_GLOBAL else argument]
                uses[2 * at] = (use[0], name, use[1], False)
        return uses
    listed = list(_instructions(code))
    spreads = any(op == "CALL_FUNCTION_EX" for _, _, op, _ in listed)
    for index, (begin, at, op, argument) in enumerate(listed):
        pushes_null = False
        if op == "LOAD_GLOBAL":
            pushes_null = bool(argument & 1)
            kind, name, local = LOAD, names[argument >> 1], False
        elif op in _USES:
            (kind, local), name = _USES[op], names[argument]
        elif op == "SETUP_ANNOTATIONS":
            # It makes the dict if there is none.
            kind, name, local = DELETE, "__annotations__", True
        elif op == "CALL_INTRINSIC_1" and argument == _IMPORT_STAR:
            kind, name, local = STAR, _imported(listed, index, names), True
        else:
            continue
        whole = name in _WHOLE and kind == LOAD
        if whole and name in _BY_ARGUMENT and not spreads:
            whole = not _has_argument(listed, index, pushes_null)
        for offset in range(begin, at + 2, 2):
            uses[offset] = (kind, name, local, whole)
    return uses


def _imported(listed, index, names):
    """The module that the star import imports from: the import stands right before it."""
    while index and listed[index][2] != "IMPORT_NAME":
        index -= 1
    return names[listed[index][3]]


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
