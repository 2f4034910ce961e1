"""Names that a step bound in an earlier run, bound again without running it.

A stored unit has a copy of everything that its members share. If only another member of it differs now, what the step
bound is the same but for its shared objects, which are those of the names that it read. What it read has the
content of then, so its walk is the same, and an ordinal of that walk means the same object in the stored copy and
in what is live.
"""
from _harness.values.pickles import Load, join
from _harness.values.walk import Walk


def graft(world, blob, refs, stored, onto, take):
    """The values of the names `take` of a blob. `stored`: all of its names. `onto`: those that were read, with
    their live values. None if it is not known which objects these share."""
    made = dict(zip(stored, Load(world, blob, refs).read(len(stored))))
    base, live = _walk(world, [made[name] for name in onto]), _walk(world, list(onto.values()))
    if base is None or live is None or base.stream() != live.stream() or list(map(id, base.refs)) != list(map(id, live.refs)):
        return None
    there = {id(o): o for o in _met(live)}
    rest = Walk(world, extras=True)
    rest.order, rest.known = [*base.order], {*base.order}
    rest.inside, rest.parts, rest.views = base.inside, base.parts, base.views
    for ref in base.refs:
        rest.ref(ref)
    for name in take:
        rest.run([made[name]])
    rest.turns = tuple(range(len(take)))
    if not _whole(rest) or not there.keys() >= set(live.order):
        return None
    others = [made[name] for name in stored if name not in onto and name not in take]
    beside = Walk(world).run(others) if others else None
    if beside is not None and not (_whole(beside) and beside.ordinals().keys().isdisjoint(rest.order[len(base.order):])):
        return None
    load = Load(world, join(rest), rest.refs)
    load.nodes = [there[at] for at in live.order]
    return dict(zip(take, load.read(len(take))))


def _walk(world, roots):
    """The walk over the roots, with its levels; None if what it meets is not all it is about."""
    walk = Walk(world, extras=True)
    walk.levels = []
    walk.run(roots)
    return walk if _whole(walk) else None


def _whole(walk):
    """Whether every object that is met twice has an ordinal of its own."""
    return walk.unserializable is None and not walk.twice


def _met(walk):
    """The objects that have ordinals."""
    for *_, noted, _width in walk.levels:
        for kind, objs, *_ in noted:
            yield from objs
            if kind.owned is not None:
                yield from map(kind.owned, objs)
