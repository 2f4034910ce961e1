"""What the code of Python 3.11 tells about names that no access to the namespace does.

Stores by module code are not watched as they happen, since that would slow every loop down: the
code tells which stores have happened for certain in a step that ended well.
"""

from dis import EXTENDED_ARG, get_instructions, hasjabs, hasjrel, opmap
from types import CodeType

_JUMPS = frozenset(hasjabs) | frozenset(hasjrel)
_LEAVES = frozenset(("RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS"))
_GLOBALS = frozenset((opmap["STORE_GLOBAL"], opmap["DELETE_GLOBAL"]))
_STORE_NAME = opmap["STORE_NAME"]
_RETURN = opmap["RETURN_VALUE"]
# Without any of these, code runs through to its end, and each argument is one byte.
_ODD = _GLOBALS | _JUMPS | {EXTENDED_ARG, opmap.get("IMPORT_STAR", 0), opmap["RERAISE"], opmap["RAISE_VARARGS"]}


def may_load(code):
    """The names that code with locals of its own may find in the globals.

    A name is left out if it is bound on the way to its first load, before anything could jump.
    """
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


def changes_globals(code):
    """The names that the code binds as globals, and those that it deletes; with nested code's."""
    stored, deleted = own_changes(code)
    for const in code.co_consts:
        if type(const) is CodeType:
            more = changes_globals(const)
            stored |= more[0]
            deleted |= more[1]
    return stored, deleted


def own_changes(code):
    """The names that the code itself binds as globals, and those that it deletes.

    Module code does so for names that it declares global, or that a comprehension in it binds.
    """
    stored, deleted = set(), set()
    if _GLOBALS.isdisjoint(code.co_code[::2]):
        return stored, deleted
    for instruction in get_instructions(code):
        if instruction.opname == "STORE_GLOBAL":
            stored.add(instruction.argval)
        elif instruction.opname == "DELETE_GLOBAL":
            deleted.add(instruction.argval)
    return stored, deleted


def nested(code):
    """The code objects in module code, each with the name that its function is bound to at once.

    A function that is only bound can be called by that name alone; no name is told for others.
    """
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
    data = code.co_code
    ops = data[::2]
    if (
        not _ODD.isdisjoint(ops)
        or code.co_exceptiontable
        or ops.find(_RETURN) != len(ops) - 1
        or CodeType in map(type, code.co_consts)
    ):
        return None
    found, names, at = [], code.co_names, ops.find(_STORE_NAME)
    while at >= 0:
        found.append(names[data[2 * at + 1]])
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
    """The ranges of instructions that may be left out: a jump forward, or into the handler of an
    exception, leaves out what lies between."""
    doubtful = [
        (one.offset, one.argval)
        for one in instructions
        if one.opcode in _JUMPS and one.argval > one.offset
    ]
    for start, _end, target in _handlers(code):
        doubtful.append((start - 1, target))
    return doubtful


def leaves(instruction):
    """Whether what follows is reached by a jump or a handler only."""
    return instruction.opname in _LEAVES


def _handlers(code):
    """The ranges of the exception table, each with where it is handled."""
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
