"""What is known of an entity: its fingerprint, its mutable objects, its references."""
import sys
from array import array
from hashlib import sha256
from itertools import compress, count, repeat
from operator import is_, is_not

from _harness.values.funcs import Function
from _harness.values.joint import is_held, parted
from _harness.values.plain import leaf
from _harness.values.shapes import ATOM_IDS
from _harness.values.trail import Follower, kept
from _harness.values.trusted import is_query
from _harness.values.walk import TooLarge, Walk


_LARGE = 512            # mutable objects, from which on others that lead to them are not walked to their ends
_KEPT = 200_000         # most ordinals of an entry that are kept


class Entry:
    """An entity as last seen."""
    __slots__ = ("entity", "value", "ids", "_own", "refs", "unserializable", "opaque", "codes", "loads", "notes",
                 "unit", "walk", "sign", "blind", "_known", "_at", "trail", "inside", "apart", "held", "decimals")

    @property
    def own(self):
        """The fingerprint. For a loaded atom it is computed on demand."""
        if self._own is None:
            self._own = Walk(None).run([self.value]).own()
        return self._own

    @own.setter
    def own(self, print):
        self._own = print

    @property
    def known(self):
        """`ids` as a set."""
        if self._known is None or len(self._known) != len(self.ids):
            self._known = set(self.ids)
        return self._known

    @property
    def at(self):
        """The ordinals by `ids`. Kept, as what shares with this changes more often."""
        found = self._at
        if found is None or len(found) != len(self.ids):
            found = dict(zip(self.ids, range(len(self.ids))))
            self._at = found if len(found) <= _KEPT else None
        return found

    def alone(self):
        """The same in no unit."""
        made = Entry()
        for name in Entry.__slots__:
            setattr(made, name, getattr(self, name))
        made.unit = made.walk = made.trail = None
        return made

    def same(self, other):
        """Whether nothing changed, including sharing."""
        return self.own == other.own and self.ids == other.ids and self.alike(other)

    def alike(self, other):
        """Whether the content is the same, regardless of which objects hold it."""
        return self.own == other.own and len(self.refs) == len(other.refs) and \
            all(map(is_, self.refs, other.refs)) and not self.blind and self.held is other.held


def _parts(held):
    return [v for pair in held.items() for v in pair]


def sign(f):
    """A cheap signature of a function. Its parts are compared by identity."""
    if f.__closure__ or f.__dict__:
        return None
    return (f.__code__, f.__defaults__, f.__doc__, f.__module__, f.__name__, f.__qualname__, f.__globals__,
            *_parts(f.__kwdefaults__ or {}), f.__kwdefaults__ is None, *_parts(f.__annotations__))


def _own(f):
    """What the signature of a function covers. Other mutable objects, in a default or an annotation, may
    change behind it."""
    return f, f.__dict__, f.__kwdefaults__, f.__annotations__


def unchanged(entry, value):
    """Whether an entity is surely unchanged, without a walk."""
    if entry.sign is not None:
        if entry.value is not value:
            return False
        now = sign(value)
        return now is not None and len(now) == len(entry.sign) and all(map(is_, now, entry.sign))
    return entry.value is value and (id(type(value)) in ATOM_IDS or is_query(type(value)))


def has_decimals(part):
    """Whether a part of a stream may be that of a value with decimals, or with a class or function for them."""
    return b"ecimal" in part


def add_same(same, entry):
    """Notes that an entry is as it was, for the others of its unit."""
    if len(entry.ids) >= _LARGE and entry.unit is not None:
        same.setdefault(entry.unit, []).append(entry.known)


def is_part(world, entry, value, beside):
    """Whether an entity's value is one of those objects whose content is known to be as it was."""
    return bool(beside) and entry.value is value and any([id(value) in ids for ids in beside]) and \
        entry.held is is_held(world, entry)


def probe(world, entity, value, known=None, keep=False, beside=()):
    """Walks an entity's content, along the trail of its entry if there is one. Returns its current
    entry, which is the old one if nothing changed. `keep`: keeps a trail where it is worth it. `beside`: sets of ids of
    objects whose content is known to be as it was, of other members of its unit."""
    e = Entry()
    e.entity, e.value, e.unit, e.sign, e.trail, e._at = entity, value, None, None, None, None
    kind = entity[0]
    if kind == "n" and id(type(value)) in ATOM_IDS:
        found = leaf(value)
        if found is not None:
            e.walk, e.own = found
            e.ids, e.refs, e.codes, e.notes, e._known, e.inside, e.apart = [], [], [], [], None, (), frozenset()
            e.unserializable, e.opaque, e.blind, e.loads, e.held, e.decimals = None, False, False, None, False, False
            return e
    inner = (id(value),) if kind == "t" else ()
    e.walk = walk = Walk(world, inner, extras=True)
    follower = None
    if known is not None and known.value is value:
        walk.apart = known.apart
    # Keeping a trail costs a quarter of a walk, and saves half of the next one: that of the first reader.
    if keep and kind == "n" and not walk.apart:
        walk.levels = []
        if known is not None and known.trail is not None and known.value is value:
            follower = Follower(world, known, beside)
    try:
        roots = [module_root(value)] if kind == "m" else [value]
        walk.run(roots, follower)
        if walk.twice or walk.apart:
            walk = e.walk = parted(world, inner, walk, lambda again: again.run(roots))
        if follower is not None and follower.cut_off and not follower.same:
            return probe(world, entity, value, known, keep)
        if follower is not None and follower.same:
            return known if known.held is is_held(world, known) else probe(world, entity, value, None, keep)
        e.own = walk.own()
    except (TooLarge, MemoryError) as why:
        if follower is not None:
            return probe(world, entity, value, None, keep)
        walk.unserializable, walk.opaque, walk.blind, e.own = str(why) or "too large", True, True, "0" * 64
    # The next walk begins with what is met twice, where that was not because of a whole that is.
    e.inside, e.apart = walk.inside, walk.apart if walk.apart <= walk.again else frozenset()
    e.ids, e.refs, e.unserializable, e.opaque, e.blind = walk.order, walk.refs, walk.unserializable, walk.opaque, walk.blind
    e.codes, e.notes, e._known = walk.codes, walk.notes, walk.everything()
    if walk.inside:
        # Parts whose identity counts only if something else refers to them.
        e.ids, e._known = [*walk.order, *(o for o in walk.inside if o not in walk.ordinals())], None
    e.held = is_held(world, e)
    if e.held:
        e.unserializable = e.unserializable or "a part of the state of a package"
    e.loads = walk.loads() if walk.codes else None
    e.decimals = walk.opaque or "decimal" in sys.modules and any([has_decimals(part) for part in walk.sink.parts])
    if kind == "t" and type(value) is Function and set(walk.order) <= set(map(id, _own(value))):
        e.sign = sign(value)
    if kind == "m":
        e.value = None
    e.trail = kept(walk)
    return e


def module_root(diff):
    """The differences of a module, as one value without identity."""
    return tuple([v for pair in diff.items() for v in pair])


def _places(e):
    at = e.at
    if e.inside:
        at = dict(at)
    for o in e.inside:
        if at.get(o, -1) >= len(e.ids) - len(e.inside):
            at[o] = -1 - e.inside[o]
    return at


def _outermost(at, there):
    """The common objects. Of shared parts inside objects of packages only the first counts, and none if whole objects
    are shared: how many more are noticed depends on what else refers to them."""
    common = at.keys() & there.keys()
    whole = [o for o in common if at[o] >= 0]
    return whole or [max(common, key=at.__getitem__)] if common else []


def share(entries, known):
    """For each pair of members that share objects, a digest of what they share: ordinals in both walks.

    A pair appears in the order of the names. The name of a token shows only when it was made, so a
    pair of tokens appears in both orders. `known`: the answers for pairs, which are added."""
    places, out = {}, []
    for i, a in enumerate(entries):
        for b in entries[i + 1:]:
            pair = a.entity, b.entity
            if pair not in known:
                known[pair] = _shared(a, b, places)
            out += known[pair]
    return sorted(out)


def _shared(a, b, places):
    """The digests for one pair."""
    ways = [(a, b), (b, a)]
    if a.entity[0] != "t" or b.entity[0] != "t":
        ways = ways[:1] if a.entity < b.entity else ways[1:]
    within = bool(a.inside or b.inside)
    for e in (a, b) if within else [y for _, y in ways]:
        if e.entity not in places:
            places[e.entity] = _places(e)
    inside = _outermost(places[a.entity], places[b.entity]) if within else None
    out = []
    for x, y in ways:
        if inside is None:
            found = _in_both(x, places[y.entity])
        else:
            at, there = places[x.entity], places[y.entity]
            which = sorted(inside, key=at.__getitem__)
            found = [*map(at.__getitem__, which)], [*map(there.__getitem__, which)]
        if not found[0]:
            return []
        digest = sha256(array("q", found[0]))
        digest.update(array("q", found[1]))
        out.append([x.entity, y.entity, digest.hexdigest()])
    return out


def _in_both(x, there):
    """The ordinals of common objects in both."""
    found = list(map(there.get, x.ids))
    if None not in found:
        return range(len(found)), found
    common = list(map(is_not, found, repeat(None)))
    return [*compress(count(), common)], [*compress(found, common)]
