"""The walk over a unit of several names, each in a stream of its own whose ordinals continue, so that
later streams refer to objects of earlier ones by ordinals.

If one is large, as after a loop over its rows, what is known of it is the beginning of the stream: it is
not walked again. Objects of packages are made from their parts, so names that are parts of others come
first.
"""
from _harness.values.walk import TooLarge, Walk

_LARGE = 512            # mutable objects, from which on a walk costs more than it is worth
_ROUNDS = 8             # a part written by itself has parts of its own


def continued(world, members, roots):
    """The walk over all of the members. None if they need to be walked together."""
    if any([e.entity[0] != "n" for e in members]):
        return None
    at = max(range(len(members)), key=lambda at: len(members[at].ids) if _begins(members[at]) else -1)
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


def _begins(entry):
    """Whether what is known of an entry can be the beginning of a walk."""
    known = entry.walk
    if len(entry.ids) < _LARGE or entry.inside or known is None and entry.trail is None:
        return False
    return known is None or known.sure and known.unserializable is None


def _after(world, entry):
    """A walk that has met everything that an entry's walk met."""
    known = entry.walk
    if not _begins(entry):
        return None
    walk = Walk(world, extras=True)
    if known is None:
        # What a trail describes has nothing else to be stored.
        for level in entry.trail:
            walk.sink.extend(level.parts)
    else:
        walk.sink.extend(known.sink.parts)
        walk.extras, walk.temps = [*known.extras], known.temps
    walk.order = [*entry.ids]
    walk.seen.update(entry.at)
    for ref in entry.refs:
        walk.ref(ref)
    return walk


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
