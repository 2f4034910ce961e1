"""Name accesses that bypass the namespace on Python 3.11, determined from the code.

Stores by module code are not watched as they happen, because that would slow down every loop. The
code shows which stores have surely happened in a successful step.
"""

from types import CodeType, FunctionType

from _harness.values.bytecode import EXTENDED, FAST_LOCALS, JUMPS as _JUMPS, arguments, handlers, numbers, operations, opmap
from _harness.values.bytecode import instructions as get_instructions

_LEAVES = frozenset(("RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS"))
_GLOBALS = numbers("STORE_GLOBAL", "DELETE_GLOBAL")
_STORE_NAME = opmap["STORE_NAME"]
_RETURN = opmap["RETURN_VALUE"]
# Code without any of these runs straight through, and each argument has one byte.
_ODD = _GLOBALS | _JUMPS | {EXTENDED} | numbers("IMPORT_STAR", "RERAISE", "RAISE_VARARGS")


def may_load(code):
    """The names that code with its own locals may find in the globals.

    Leaves out a name that is bound before its first load and before any jump."""
    loads, stored, straight = set(), set(), True
    for instruction in get_instructions(code):
        name = instruction.argval
        if instruction.opcode in _JUMPS:
            straight = False
        elif instruction.opname == "SETUP_ANNOTATIONS":
            stored.add("__annotations__")
        elif instruction.opname == "STORE_NAME" and straight:
            stored.add(name)
        elif instruction.opname == "DELETE_NAME":
            stored.discard(name)
        elif instruction.opname == "LOAD_NAME" and name not in stored:
            loads.add(name)
    return loads


def bodies(code):
    """The bodies of the classes that the code itself defines: other nested code has fast locals."""
    return [const for const in code.co_consts if type(const) is CodeType and not const.co_flags & FAST_LOCALS]


def of_classes(code):
    """The bodies of all classes in the code."""
    found = []
    for const in code.co_consts:
        if type(const) is CodeType:
            if not const.co_flags & FAST_LOCALS:
                found.append(const)
            found += of_classes(const)
    return found


def changes_globals(code):
    """The names that the code, including nested code, binds and deletes as globals."""
    stored, deleted = own_changes(code)
    for const in code.co_consts:
        if type(const) is CodeType:
            more = changes_globals(const)
            stored |= more[0]
            deleted |= more[1]
    return stored, deleted


def own_changes(code):
    """The names that the code itself binds and deletes as globals.

    Module code does so for names that it declares global, or that a comprehension in it binds."""
    stored, deleted = set(), set()
    if _GLOBALS.isdisjoint(operations(code)):
        return stored, deleted
    for instruction in get_instructions(code):
        if instruction.opname == "STORE_GLOBAL":
            stored.add(instruction.argval)
        elif instruction.opname == "DELETE_GLOBAL":
            deleted.add(instruction.argval)
    return stored, deleted


def rebinds(inside, key):
    """Whether a function of a module, which another may wrap, rebinds one of its variables."""
    functions = [value for value in list(inside.values()) if type(value) is FunctionType]
    functions = [value.__dict__.get("__wrapped__", value) for value in functions]
    return any(
        type(value) is FunctionType
        and value.__globals__ is inside
        and key in value.__code__.co_names
        and key in own_changes(value.__code__)[0]
        for value in functions
    )


def nested(code):
    """The code objects in module code, each with the name that its function is bound to at once.

    A function that is only bound can be called by that name alone. For others there is no name."""
    if not any([type(const) is CodeType for const in code.co_consts]):
        return []
    found, instructions = [], list(get_instructions(code))
    for one, after, then in zip(instructions, instructions[1:], instructions[2:]):
        if one.opname == "LOAD_CONST" and type(one.argval) is CodeType:
            simple = after.opname == "MAKE_FUNCTION" and then.opname == "STORE_NAME"
            found.append((one.argval, then.argval if simple else None))
    return found


def straight(code):
    """The names that module code binds, if it runs through to its end and has no other code in it;
    None if it may do otherwise."""
    ops = operations(code)
    if (
        not _ODD.isdisjoint(ops)
        or code.co_exceptiontable
        or ops.find(_RETURN) != len(ops) - 1
        or CodeType in map(type, code.co_consts)
    ):
        return None
    found, names, which, at = [], code.co_names, arguments(code), ops.find(_STORE_NAME)
    while at >= 0:
        found.append(names[which[at]])
        at = ops.find(_STORE_NAME, at + 1)
    return found


def of_module(code):
    """What `stores`, `own_changes` and `nested` answer for module code."""
    return stores(code), own_changes(code), nested(code)


def stores(code):
    """The names that module code binds: those that it does for certain if it runs to its end, and
    those that it may. Then the modules it imports all names from, likewise."""
    instructions = list(get_instructions(code))
    doubtful = skipped(code, instructions)
    surely, perhaps, stars, maybe_stars = set(), set(), set(), set()
    over, module = False, None
    for one in instructions:
        sure = not over and not any(begin < one.offset < end for begin, end in doubtful)
        if one.opname == "IMPORT_NAME":
            module = one.argval
        elif one.opname == "IMPORT_STAR":
            (stars if sure else maybe_stars).add(module)
        elif one.opname in ("STORE_NAME", "STORE_GLOBAL"):
            (surely if sure else perhaps).add(one.argval)
        elif leaves(one):
            # What follows is reached by a jump or a handler only.
            over = True
    return surely, perhaps - surely, stars, maybe_stars - stars


def skipped(code, instructions):
    """The ranges of instructions that may be skipped: a forward jump, or a jump to an exception
    handler, skips what lies between."""
    doubtful = [
        (one.offset, one.argval)
        for one in instructions
        if one.opcode in _JUMPS and one.argval > one.offset
    ]
    for start, _end, target in handlers(code):
        doubtful.append((start - 1, target))
    return doubtful


def leaves(instruction):
    """Whether the next instruction is reached only by a jump or a handler."""
    return instruction.opname in _LEAVES
