"""Whether code distinguishes equal immutable values: `is` between strings, numbers, tuples.

A read is recorded by content. Two names that hold one tuple and two that hold equal ones are the
same to every step, except to one that tests identity. Such tests are reported where they could make
a difference: where the operands are equal, or may be. From Python 3.12 on the tracker shows the operands
that code of the program compares, so only those that were equal count.
"""

import builtins
import datetime
import weakref
from types import MemberDescriptorType

from _harness.values.compat import FLAGS as _FLAGS, HEAP as _HEAP, OFFSET as _OFFSET, frame_of
from _harness.values.bytecode import FAST_LOCALS, instructions as get_instructions, operations, opmap, pairs

_IS = opmap["IS_OP"]
_CONST = opmap["LOAD_CONST"]
_type = type
_SCALARS = (str, bytes, int, float, complex, range, slice, datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo)
_BASES = (*_SCALARS, tuple, frozenset)
_DICT = type.__dict__["__dict__"].__get__
_MRO = type.__dict__["__mro__"].__get__
_Module = _type(builtins)
_attribute = object.__getattribute__
_NAMES = frozenset(("LOAD_NAME", "LOAD_GLOBAL"))
_FILLER = frozenset(("CACHE", "EXTENDED_ARG", "PRECALL", "PUSH_NULL", "NOP", "COPY_FREE_VARS"))
_MOST = 5000
# Ends of attribute chains that are classes.
_CLASSES = frozenset(("__class__",))
# Functions that compare by identity.
FUNCTIONS = frozenset(("is_", "is_not", "assertIs", "assertIsNot"))
_UNKNOWN = object()
_memo = {}
# What the methods that `dataclasses` makes compare with.
_SENTINELS = frozenset(("__dataclass_HAS_DEFAULT_FACTORY__", "_HAS_DEFAULT_FACTORY"))


class Operand:
    """An operand of `is`: a constant, a chain of a name, attributes and constant keys, or anything. `local`: the chain
    starts at a variable of the function, whose value only its frame shows."""

    __slots__ = ("kind", "value")

    def __init__(self, kind, value=None):
        self.kind, self.value = kind, value


_never = {}
_Member = MemberDescriptorType
_slot = _Member.__get__
# The types of `f_locals`: a dict, and from 3.13 on a view in functions.
_SCOPES = frozenset((dict, (lambda: _type(frame_of().f_locals))()))
_ANY = Operand("any")
_SURE = Operand("sure")


def comparisons(code):
    """`(line, offset, left, right)` for each `is` in a code object, without nested code."""
    known = _memo.get(id(code))
    if known is None or known[0] is not code:
        if len(_memo) > 2048:
            _memo.clear()
        known = _memo[id(code)] = code, _comparisons(code) if _asks(code) else ()
    return known[1]


def _asks(code):
    """Whether an operand is compared with anything but a singleton constant."""
    if _IS not in operations(code):
        return False
    last, at = None, 0
    for _, _, op, argument in pairs(code):
        if op == _IS:
            const = code.co_consts[at] if last == _CONST else ""
            if not (const is None or const is True or const is False or const is ...):
                return True
        last, at = op, argument
    return False


def _comparisons(code):
    found, before, line = [], [], None
    for one in get_instructions(code):
        if one.positions is not None and one.positions.lineno is not None:
            line = one.positions.lineno
        if one.opname in _FILLER:
            continue
        if one.opname == "IS_OP":
            right, rest = _operand(code, before)
            left = _operand(code, rest)[0] if rest is not None else _ANY
            found.append((line, one.offset, left, right))
        before.append(one)
    return found


def _operand(code, before):
    """The operand that the last instructions load, and the instructions before it; None for those if
    its start is unknown."""
    if not before:
        return _ANY, None
    last = before[-1]
    if last.opname == "LOAD_CONST" or last.opname == "RETURN_CONST":
        return Operand("const", last.argval), before[:-1]
    attributes, at = [], len(before) - 1
    while at > 0:
        if before[at].opname == "LOAD_ATTR":
            attributes.append(before[at].argval)
            at -= 1
        elif before[at].opname == "BINARY_SUBSCR" and at > 1 and before[at - 1].opname == "LOAD_CONST":
            attributes.append((before[at - 1].argval,))
            at -= 2
        else:
            break
    first = before[at]
    if attributes and attributes[0] in _CLASSES:
        return _SURE, before[:at] if first.opname.startswith("LOAD") else None
    if first.opname in _NAMES:
        return Operand("chain", (first.argval, *reversed(attributes))), before[:at]
    if first.opname == "STORE_FAST_LOAD_FAST":
        # What is stored comes from the stack, so the instructions before it are not those of the left side.
        return _local(first.argval[1], attributes), None
    if first.argval in _SENTINELS and code.co_filename == "<string>":
        return _SURE, before[:at]
    if first.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE")):
        if type(first.argval) is tuple:
            # Two at once. What comes before the second one is the first one.
            one, two = first.argval
            own = code.co_varnames[:1] == (two,) == ("self",)
            rest = before[:at] + [first._replace(argval=one)]
            return _SURE if own and not attributes else _local(two, attributes), rest
        if not attributes and code.co_varnames[:1] == (first.argval,) and first.argval in ("self", "cls"):
            return _SURE, before[:at]
        return _local(first.argval, attributes), before[:at]
    if first.opname == "CALL" and not attributes and first.arg == 1 and at >= 2:
        if before[at - 2].opname in _NAMES and before[at - 2].argval == "type":
            return _SURE, before[: at - 2]
    return _ANY, None


def _local(name, attributes):
    return Operand("local", (name, *reversed(attributes)))


def watched(code):
    """By offset the operands of each `is` that only the running code shows. The one that is easier to find
    comes first: often its value settles the question."""
    return {offset: sorted((left, right), key=_effort) for _, offset, left, right in comparisons(code)
            if left.kind != "sure" and right.kind != "sure" and "local" in (left.kind, right.kind)}


def _effort(operand):
    return 9 if operand.kind == "any" else len(operand.value) if operand.kind == "local" else 3


def distinguishes(left, right, frame):
    """Whether an `is` that is about to run may compare equal immutable values. None: that depends on a
    value that the frame does not show."""
    one = _now(left, frame)
    if id(_type(one)) in _never or one is not _UNKNOWN and not _may_count(one):
        return False
    other = _now(right, frame)
    if id(_type(other)) in _never or other is not _UNKNOWN and not _may_count(other):
        return False
    if one is _UNKNOWN or other is _UNKNOWN:
        return None
    return one is other or _type(one) is _type(other) and key(one) == key(other)


def _may_count(value):
    """Whether the value is risky. Remembers classes none of whose instances are."""
    kind = _type(value)
    if risky(value):
        return True
    if _HEAP & _FLAGS(kind) and not issubclass(kind, (*_BASES, type)) and kind.__module__ != "decimal" and len(_never) < 1000:
        at = id(kind)
        _never[at] = weakref.ref(kind, lambda _: _never.pop(at, None))
    return False


def _now(operand, frame):
    """The value of an operand. Runs no code of the program."""
    if operand.kind == "const":
        return operand.value
    if operand.kind == "any":
        return _UNKNOWN
    name, *attributes = operand.value
    scope = frame.f_locals
    if operand.kind == "local" or not frame.f_code.co_flags & FAST_LOCALS:
        if _type(scope) not in _SCOPES:
            return _UNKNOWN
        value = scope.get(name, _UNKNOWN)
    else:
        value = _UNKNOWN
    if value is _UNKNOWN and operand.kind == "chain":
        value = dict.get(frame.f_globals, name, _UNKNOWN)
        if value is _UNKNOWN:
            value = vars(builtins).get(name, _UNKNOWN)
    for attribute in attributes:
        value = _loaded(value, attribute)
    return value


def _loaded(value, name):
    """What loading an attribute of an instance gives, where that runs no code."""
    kind = _type(value)
    if _type(name) is tuple:
        return _item(value, name[0])
    if value is _UNKNOWN or issubclass(kind, (type, _Module)) or _looked_up(kind, "__getattribute__") is not _attribute:
        return _UNKNOWN
    held = _looked_up(kind, name)
    if _type(held) is _Member:
        try:
            return _slot(held, value)
        except AttributeError:
            return _UNKNOWN
    if held is not _UNKNOWN and not _is_data(held):
        return _UNKNOWN
    try:
        own = _attribute(value, "__dict__")
    except AttributeError:
        own = {}
    return own.get(name, held) if _type(own) is dict else _UNKNOWN


def _item(held, at):
    """What a plain container has under a constant."""
    kind = _type(held)
    if kind is dict and len(held) <= _MOST:
        # A look at it could compare keys by code of the program.
        return next((value for one, value in held.items() if _type(one) is _type(at) and one == at), _UNKNOWN)
    if (kind is list or kind is tuple) and _type(at) is int and -len(held) <= at < len(held):
        return held[at]
    return _UNKNOWN


def _looked_up(cls, name):
    """An attribute as written in a class or its ancestors."""
    for base in _MRO(cls):
        found = _DICT(base).get(name, _UNKNOWN)
        if found is not _UNKNOWN:
            return found
    return _UNKNOWN


def _is_data(held):
    """Whether an attribute of a class is a value, which does nothing when it is loaded."""
    return _looked_up(_type(held), "__get__") is _UNKNOWN


class Identity:
    """Checks one step after another."""

    def __init__(self, namespace):
        self._namespace = namespace

    def tests(self, own, traits, names, start, compared=None):
        """Lines with untracked identity tests; None for lines of other steps. `names` were read;
        `start` has the bindings at the start of the step. `compared`: what the tracker saw of the
        watched tests that ran, if it saw all of them: by code and offset whether the values were equal,
        None if that is unknown."""
        found, pool = [], None
        by_function = [(None, None, _ANY, _ANY)] if not FUNCTIONS.isdisjoint(traits.names) else ()
        for code in traits.codes:
            seen = watched(code) if compared is not None and code.co_filename.startswith("<step:") else ()
            for line, offset, left, right in (*comparisons(code), *by_function):
                if _same(left, right):
                    continue
                if offset in seen:
                    equal = compared.get((id(code), offset), False)
                    if equal is not None:
                        if equal:
                            found.append(line if code.co_filename == own.co_filename else None)
                        continue
                ones, others = self._values(left, start), self._values(right, start)
                if ones is not None and not ones or others is not None and not others:
                    continue
                if ones is not None and others is not None:
                    hit = any(key(one) == key(other) for one in ones for other in others)
                else:
                    if pool is None:
                        pool = _pool(self._bound(names, start))
                    known = ones if ones is not None else others
                    hit = pool.any(known)
                if hit:
                    found.append(line if code.co_filename == own.co_filename else None)
        return found

    def _bound(self, names, start):
        """The bindings of the names before and after."""
        for name in names:
            now, then = self._namespace.get(name, _UNKNOWN), start.get(name, _UNKNOWN)
            if now is not _UNKNOWN:
                yield now
            if then is not _UNKNOWN and then is not now:
                yield then

    def _values(self, operand, start):
        """The possible immutable values of the operand; None if unknown."""
        if operand.kind == "sure":
            return []
        if operand.kind == "any" or operand.kind == "local":
            return None
        if operand.kind == "const":
            return [operand.value] if risky(operand.value) else []
        name, *attributes = operand.value
        found = []
        for names in (self._namespace, start):
            value = names.get(name, _UNKNOWN)
            if value is _UNKNOWN:
                value = vars(builtins).get(name, _UNKNOWN)
            if value is _UNKNOWN:
                if name not in self._namespace:
                    return None
                continue
            for attribute in attributes:
                value = _get(value, attribute)
            if value is _UNKNOWN:
                return None
            if risky(value) and not any(value is one for one in found):
                found.append(value)
        return found


def _get(value, name):
    """An attribute or item, if it can be read without running code."""
    kind = _type(value)
    if value is _UNKNOWN:
        return value
    if _type(name) is tuple:
        return _item(value, name[0])
    if issubclass(kind, _Module):
        return _attribute(value, "__dict__").get(name, _UNKNOWN)
    if issubclass(kind, type):
        for cls in _MRO(value):
            if name in _DICT(cls):
                return _DICT(cls)[name]
        return _UNKNOWN
    try:
        return _attribute(value, "__dict__").get(name, _UNKNOWN)
    except Exception:
        return _UNKNOWN


def _same(left, right):
    """Whether both sides load the same thing."""
    return left.kind == right.kind == "chain" and left.value == right.value


def risky(value):
    """Whether copies of a value exist that only identity distinguishes."""
    kind = _type(value)
    if kind is bool or value is None or value is ... or value is NotImplemented:
        return False
    if kind is int:
        return not -5 <= value <= 256
    if kind is str or kind is bytes:
        return len(value) > 1 or kind is str and value > "\xff"
    if kind is tuple or kind is frozenset:
        return len(value) > 0
    if issubclass(kind, type):
        return False
    return issubclass(kind, _BASES) and (kind in _BASES or _OFFSET(kind) == 0) or kind.__module__ == "decimal"


def key(value):
    """Equal for equal immutable values, without running code of the program."""
    kind = _type(value)
    if kind is tuple:
        return "t", *map(key, value)
    if kind is frozenset:
        return "f", frozenset(map(key, value))
    if kind in (float, complex, range, slice):
        return kind.__name__, repr(value)
    if kind in (str, bytes, int, bool):
        return kind.__name__, value
    if issubclass(kind, tuple):
        return id(kind), *map(key, tuple.__iter__(value))
    if risky(value):
        # Equal instances of such classes are not distinguished.
        return id(kind), 0
    return "o", id(value)


class _Pool:
    def __init__(self):
        self.counts, self.over = {}, False

    def any(self, known):
        """Whether two known values, or any two, could be the same object."""
        if self.over:
            return True
        if known is None:
            return any(count > 1 for count in self.counts.values())
        return any(self.counts.get(key(value), 0) > 1 for value in known)


def _slots(cls):
    """What reads the slots of a class, without those of types written in C."""
    written = [base for base in _MRO(cls) if _FLAGS(base) & _HEAP]
    return [held for base in written for held in _DICT(base).values() if _type(held) is _Member]


def _pool(values):
    """How often each immutable value occurs in the step's inputs."""
    pool, seen, todo = _Pool(), set(), list(values)
    while todo:
        value = todo.pop()
        kind = _type(value)
        if risky(value):
            one = key(value)
            pool.counts[one] = pool.counts.get(one, 0) + 1
        elif id(value) in seen:
            continue
        seen.add(id(value))
        if kind is dict or issubclass(kind, dict):
            todo += [*dict.keys(value), *dict.values(value)]
        elif issubclass(kind, (list, set, tuple, frozenset)):
            base = next(base for base in (list, set, tuple, frozenset) if issubclass(kind, base))
            todo += base.__iter__(value)
        elif not issubclass(kind, (type, _Module)):
            for held in _slots(kind):
                try:
                    todo.append(_slot(held, value))
                except AttributeError:
                    pass
            try:
                todo += _attribute(value, "__dict__").values()
            except Exception:
                pass
        if len(seen) + len(todo) > _MOST:
            pool.over = True
            break
    return pool
