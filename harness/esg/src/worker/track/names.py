"""The names that the instructions of a code object load and bind, from Python 3.12 on."""

from _harness.values.bytecode import EXTENDED, LOAD_GLOBAL, arguments, loaded, numbers, operations, opmap, opname, pairs

# How an instruction uses a name. `STAR`: it binds the names of the module with that name.
LOAD, STORE, DELETE, STAR = "load", "store", "delete", "star"

# Builtins that return the namespace, or a part of it.
_WHOLE = frozenset(("globals", "locals", "vars", "dir"))
# Those that return something else if called with an argument.
_BY_ARGUMENT = frozenset(("vars", "dir"))

# The kind of use, and whether the locals are searched first, or exclusively.
_USES = {
    "DELETE_GLOBAL": (DELETE, False),
    "DELETE_NAME": (DELETE, True),
    "LOAD_FROM_DICT_OR_GLOBALS": (LOAD, True),
    "LOAD_NAME": (LOAD, True),
    "STORE_GLOBAL": (STORE, False),
    "STORE_NAME": (STORE, True),
}
_IMPORT_STAR = 2  # INTRINSIC_IMPORT_STAR

# By number: instructions that are independent of others.
_PLAIN = {opmap[name]: use for name, use in _USES.items() if name in opmap}
_PLAIN[LOAD_GLOBAL] = LOAD, False
# Instructions whose use depends on others.
_CROOKED = numbers("SETUP_ANNOTATIONS", "CALL_INTRINSIC_1") | {EXTENDED}


def names_of(code):
    """By offset: the kind of use, the name, whether the locals are searched first, and whether a load
    may read the whole namespace.

    An instruction with a prefix is also listed at the prefix."""
    uses = {}
    names = code.co_names
    ops = operations(code)
    if _CROOKED.isdisjoint(ops) and _WHOLE.isdisjoint(names):
        # Caches are zeros here, and instruction zero uses no name.
        bytes_after = arguments(code)
        for at, op in enumerate(ops):
            use = _PLAIN.get(op)
            if use is not None:
                name = names[loaded(op, bytes_after[at])]
                uses[2 * at] = (use[0], name, use[1], False)
        return uses
    listed = [(begin, at, opname[op], argument) for begin, at, op, argument in pairs(code)]
    spreads = any(op == "CALL_FUNCTION_EX" for _, _, op, _ in listed)
    for index, (begin, at, op, argument) in enumerate(listed):
        pushes_null = False
        if op == "LOAD_GLOBAL":
            pushes_null = bool(argument & 1)
            kind, name, local = LOAD, names[argument >> 1], False
        elif op in _USES:
            (kind, local), name = _USES[op], names[argument]
        elif op == "SETUP_ANNOTATIONS":
            # It creates the dict if necessary.
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
    """The module of the star import, from the import right before it."""
    while index and listed[index][2] != "IMPORT_NAME":
        index -= 1
    return names[listed[index][3]]


def _has_argument(listed, index, pushes_null):
    """Whether the builtin loaded here is called at once and with an argument.

    The callee has a null pushed before or after it, depending on the version."""
    following = listed[index + 1 : index + 3]
    called = pushes_null or (index and listed[index - 1][2] == "PUSH_NULL")
    if following and following[0][2] == "PUSH_NULL":
        called = True
        following = following[1:]
    return bool(called and following and following[0][2].startswith("LOAD_"))
