"""The walk over a unit of several names one of which is large, as after a loop over its rows.

What is known of the large member is the beginning of the stream: it is not walked again. The other
members follow, each in a stream of its own whose ordinals continue, so they refer to objects of the
large one by ordinals.
"""
from _harness.values.walk import TooLarge, Walk

_LARGE = 512            # mutable objects, from which on a walk costs more than it is worth


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
    walk.first = at if len(members) > 1 else None
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
    walk.order, walk.known = [*entry.ids], {*entry.ids}
    for ref in entry.refs:
        walk.ref(ref)
    return walk
