"""In which order members are inserted into a set, so that it iterates as another one did.

A member stands at its home slot, which its hash gives, unless another one stood there first. So those whose home
slots are in the order of the iteration come first, and the others behind them. One that then takes the place of
another is inserted later: CPython's `Objects/setobject.c`, `set_add_entry`.
"""
from bisect import bisect_left
from itertools import permutations
from operator import is_

_FEW = 4            # members, whose orders are all tried
_MOST = 512         # members of a set that is looked at one by one
_ROUNDS = 24        # how often one is inserted later
_SLOT = 16          # bytes of a slot
_NONE = set.__sizeof__(set())


def arranged(make, part, size):
    """What `make` makes of the members in an order in which it iterates like `part` and has this size. None if none
    is found."""
    for way in (part, set(part), part[::-1], set(part[::-1])):
        o = make(way)
        if _fits(o, part, size):
            return o
    if len(part) > _MOST:
        return None
    home, rest = ([], part) if len(part) <= _FEW else _at_home(part, max(size - _NONE, 8 * _SLOT) // _SLOT)
    for tail in permutations(rest) if len(rest) <= _FEW else (rest, rest[::-1]):
        way = [*home, *tail]
        for _ in range(_ROUNDS):
            o = make(way)
            if _fits(o, part, size):
                return o
            early = next((one for one, other in zip(o, part) if one is not other), None)
            if early is None or early is way[-1]:
                break
            way = [one for one in way if one is not early]
            way.append(early)
    return None


def _fits(o, part, size):
    return len(o) == len(part) and all(map(is_, o, part)) and o.__sizeof__() == size


def _at_home(part, slots):
    """The most members whose home slots are in the order of the iteration, and the others."""
    ends, last, before = [], [], []
    for at, one in enumerate(part):
        slot = hash(one) & (slots - 1)
        length = bisect_left(ends, slot)
        ends[length:length + 1], last[length:length + 1] = [slot], [at]
        before.append(last[length - 1] if length else None)
    home, at = set(), last[-1] if last else None
    while at is not None:
        home.add(at)
        at = before[at]
    return [one for at, one in enumerate(part) if at in home], [one for at, one in enumerate(part) if at not in home]
