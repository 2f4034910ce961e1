"""The walk over a unit of several names, each in a stream of its own whose ordinals continue, so that
later streams refer to objects of earlier ones by ordinals.

If one is large, as after a loop over its rows, what is known of it is the beginning of the stream: it is
not walked again. Objects of packages are made from their parts, so names that are parts of others come
first.
"""
from array import array
from hashlib import sha256

from _harness.values.walk import TooLarge, Walk

_SEVERAL = 3            # such names, from which on one walk over all of them comes first
_LARGE = 512            # mutable objects, from which on a walk costs more than it is worth
_ROUNDS = 8             # a part written by itself has parts of its own


def continued(world, members, roots):
    """The walk over all of the members. None if they need to be walked together."""
    if any([e.entity[0] != "n" for e in members]):
        return None
    at = max(range(len(members)), key=lambda at: len(members[at].ids))
    try:
        walk = _after(world, members[at])
        if walk is None:
            return None
        for other, root in enumerate(roots):
            if other != at:
                walk.run([root])
    except (TooLarge, MemoryError):
        return None
    walk.turns = (at, *(other for other in range(len(members)) if other != at)) if len(members) > 1 else None
    return walk if walk.sure and walk.unserializable is None else None


def _after(world, entry):
    """A walk that has met everything that an entry's walk met."""
    known = entry.walk
    if len(entry.ids) < _LARGE or entry.inside or known is None and entry.trail is None:
        return None
    walk = Walk(world, extras=True)
    if known is None:
        # What a trail describes has nothing else to be stored.
        for level in entry.trail:
            walk.sink.extend(level.parts)
    else:
        if not known.sure or known.unserializable is not None:
            return None
        walk.sink.extend(known.sink.parts)
        walk.extras, walk.temps = [*known.extras], known.temps
    walk.order = [*entry.ids]
    walk.seen.update(entry.at)
    for ref in entry.refs:
        walk.ref(ref)
    return walk


def worth_whole(members):
    """Whether one walk over all members is to say that none has changed: not where each has its own trail, or a
    walk over one costs little."""
    return sum([e.trail is None and len(e.ids) >= _LARGE for e in members]) >= _SEVERAL and \
        not any([e.entity[0] != "n" or e.inside or e.apart or e.blind for e in members])


def as_found(own, ids, refs):
    """What a walk found: its fingerprint, the objects with ordinals, and the references."""
    return own, sha256(array("Q", ids)).digest(), [*map(id, refs)]


def is_whole(world, found, members):
    """Whether a walk over all members, as they were bound, finds the same. Then each of them has what it had."""
    names, turns, was = found
    if [e.entity for e in members] != names or any([e.held is not is_held(world, e) for e in members]):
        return False
    walk, roots = Walk(world), [e.value for e in members]
    try:
        for part in [roots] if turns is None else [[roots[at]] for at in turns]:
            walk.run(part)
    except (TooLarge, MemoryError):
        return False
    return as_found(walk.own(), walk.ordinals(), walk.refs) == was


def is_held(world, entry):
    """Whether state of a package refers to a part of it: another object with this content is not there."""
    return bool(world.held) and not world.held.isdisjoint(entry.known)


def in_turn(world, members, roots):
    """The walk over members that share parts of objects of packages. None if there are none."""
    if not any([e.inside for e in members]) or any([e.entity[0] != "n" for e in members]):
        return None
    turns = _parts_first([id(root) for root in roots], [e.known for e in members])

    def run(walk):
        for at in turns:
            walk.run([roots[at]])
        walk.turns = turns

    walk = Walk(world, extras=True)
    walk.apart = frozenset().union(*[e.apart for e in members])
    try:
        run(walk)
        return parted(world, (), walk, run)
    except (TooLarge, MemoryError):
        return None


def _parts_first(ids, met):
    """The numbers of objects, each after those that are a part of it."""
    turns, open_ = [], [*range(len(ids))]
    while open_:
        # In a cycle none is first.
        first = [at for at in open_ if not any([ids[other] in met[at] for other in open_ if other != at])]
        turns += first or open_
        open_ = [at for at in open_ if at not in turns]
    return tuple(turns)


def parted(world, inner, walk, run):
    """A walk that is run again, with each part of an object of a package that is met twice written by itself.
    `walk.apart` may be a guess: if one of these is not met twice, the walk is run without."""
    def once_more(apart):
        again = Walk(world, inner, extras=True)
        again.apart, again.heirs = apart, walk.heirs
        run(again)
        # The parts of the first walk must keep their addresses.
        again.temps += [walk.temps, walk.parts]
        return again

    if not walk.apart <= walk.again:
        walk = once_more(frozenset())
    for _ in range(_ROUNDS):
        if not walk.twice:
            break
        walk = once_more(walk.apart | walk.twice)
    return walk
