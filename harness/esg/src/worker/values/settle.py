"""What a step did: probes entities, groups changed ones into units, and describes these.

Only what a step used is inspected: names it read or bound, the members of their units, and the
classes, functions and modules they refer to. Everything else is known from its last inspection.
"""
import gc
import types

from _harness.values import pickles
from _harness.values import plain
from _harness.values.groups import by_sharing, join_circles
from _harness.values.bynames import module_dict
from _harness.values.owners import Owners
from _harness.values.joint import continued, in_turn
from _harness.values.fingerprints import Entry, add_same, is_part, module_root, probe, share, unchanged
from _harness.values.shapes import MRO
from _harness.values.walk import TooLarge, Walk, World

_names = type.__dict__["__dict__"].__get__

_Module = types.ModuleType
_module_dict = vars(_Module)["__dict__"].__get__
MISSING = object()
# Names of every module; not names of the program.
MODULE_NAMES = frozenset(("__name__", "__builtins__", "__doc__", "__loader__", "__spec__", "__package__",
                          "__file__", "__cached__", "__warningregistry__"))


_collects, _pause, _resume = gc.isenabled, gc.disable, gc.enable


def undisturbed(work):
    """Runs without the cycle collector, which would traverse every new object repeatedly."""
    def run(*args, **named):
        if not _collects():
            return work(*args, **named)
        _pause()
        try:
            return work(*args, **named)
        finally:
            _resume()
    return run


class Unit:
    """Entities in one blob."""
    # `pairs`: what pairs of members share, so that a new member costs only its own pairs. `inner`: whether classes or
    # functions are in the blob, to which the others refer.
    __slots__ = ("key", "members", "refs", "live", "pairs", "inner")

    def __init__(self):
        self.pairs, self.inner = {}, False


def _still(unit, members):
    """What pairs of a former unit share that are in the new one as they were."""
    same = {e.entity for e in members if unit.members.get(e.entity) is e}
    return {pair: found for pair, found in unit.pairs.items() if same.issuperset(pair)}


class Settled:
    """What a step did."""

    def __init__(self):
        self.units, self.codes, self.notes = [], [], []
        self.mutated, self.created, self.back, self.met = set(), set(), set(), set()


class Standing:
    """The live entities of the namespace, and their dependencies."""

    def __init__(self, namespace, modules, limits):
        self.namespace, self.modules, self.limits = namespace, modules, limits
        self.world = World(namespace, modules)
        self.world.deleted = getattr(modules, "DELETED", None)
        self.world.limit = limits.get("unit_bytes", 1 << 62)
        self.objects = {}       # t: entity -> object
        self.entries = {}       # entity -> Entry
        self.owners = Owners()
        self.aside = {}         # key -> {entity: (value, entry)}
        self.seq, self.count, self.keys, self.blobs = 0, 0, 0, True
        self.seen = {}          # entity -> (value, entry): probed since the step, used once more
        self.pairs = {}         # what pairs of entities share that are not in a unit yet

    # -- names of things ------------------------------------------------------------------
    def entity(self, o):
        """The entity of a reference. An identity object met for the first time gets a token."""
        if issubclass(type(o), _Module):
            return "m:" + _module_dict(o)["__name__"]
        token = self.world.tokens.get(id(o))
        if token is None:
            token = "t:%s.%d" % (self.seq, self.count)
            self.count += 1
            self.name(token, o)
        return token

    def name(self, token, o):
        self.objects[token] = o
        self.world.tokens[id(o)] = token

    def value(self, entity):
        """The current value of an entity: an object, or for a module its difference; `MISSING` if
        there is none."""
        kind, name = entity[0], entity[2:]
        if kind == "n":
            return dict.get(self.namespace, name, MISSING)
        if kind == "t":
            return self.objects.get(entity, MISSING)
        diff = self.modules.diff(name) if module_dict(name) is not None else None
        return diff if diff else MISSING

    # -- probing --------------------------------------------------------------------------
    def look(self, start, discover=True, memo=True, rebound=()):
        """Probes entities and everything that belongs to them. Returns fresh entries, affected
        units, and all entities seen. `rebound`: names of which the former values were not used."""
        todo, done, fresh, drawn, same = list(start), {}, {}, set(), {}
        while todo:
            e = todo.pop()
            if e in done or e[1] != ":":
                continue
            known, value = self.entries.get(e), self.value(e)
            if known is not None and known.unit is not None and (e not in rebound or known.value is value):
                todo.extend(known.unit.members)
            if value is MISSING:
                done[e] = None
                todo += self.left(known)
                continue
            beside = same.get(known.unit, ()) if memo and known is not None else ()
            if memo and known is not None and (unchanged(known, value) or is_part(self.world, known, value, beside)):
                new = known
            else:
                seen = self.seen.pop(e, None)
                if seen is not None and seen[0] is value and e[0] != "m":
                    new = seen[1]
                else:
                    new = probe(self.world, e, value, known if memo else None, self.blobs, beside)
                if not discover:
                    self.seen[e] = (value, new)
                if known is not None and memo and known.same(new):
                    known.trail, new = new.trail, known
                    add_same(same, known)
                else:
                    fresh[e] = new
                    todo += self.left(known)
                    for unit in self.owners.of(new, known.unit if known is not None else None):
                        drawn.add(unit)
                        todo.extend(unit.members)
            done[e] = new
            for r in new.refs:
                if discover or issubclass(type(r), _Module) or id(r) in self.world.tokens:
                    todo.append(self.entity(r))
        return fresh, drawn, done

    def left(self, known):
        """What an entity referred to before. A step may have changed a class and then dropped it.
        Other references to it, current or after an edit, see the change."""
        if known is None or not known.refs:
            return []
        return [self.entity(r) for r in known.refs
                if issubclass(type(r), _Module) or id(r) in self.world.tokens]

    @undisturbed
    def settle(self, seq, touched, bound, gone):
        """After a successful step: the changes, as units with blobs. `touched`: what it read, or may have changed."""
        if seq != self.seq:
            self.seq, self.count, self.keys = seq, 0, 0
        out, affected = Settled(), set()
        bound = set(bound)
        if not gone and plain.settle(self, probe, Unit, out, touched, bound):
            self.seen = {}
            return out
        behind = [r for e in sorted(gone) for r in self.left(self.entries.get(e))]
        for e in gone:
            affected |= self.leave(e)
        before = set(self.objects)
        start = sorted(bound) + sorted(touched) + sorted(affected) + behind
        fresh, drawn, done = self.look(start, rebound=bound.difference(touched))
        self.seen = {}
        out.created = set(self.objects) - before if len(self.objects) != len(before) else set()
        for e, new in done.items():
            if new is None and e in self.entries and e[0] == "m":
                affected |= self.leave(e)
                out.back.add(e)
            elif new is not None:
                out.codes += new.codes
                out.notes += [n for n in new.notes if n not in out.notes]
        for e, new in list(fresh.items()):
            known = self.entries.get(e)
            if known is None:
                continue
            alone = known.unit is not None and len(known.unit.members) == 1 and drawn <= {known.unit}
            if e not in bound and alone and known.alike(new):
                # The same content in other objects that are not shared: no effect.
                new.unit, new.walk, new.value = known.unit, None, new.value
                self.entries[e] = new
                known.unit.members[e] = new
                self.owners.leave(known)
                self.owners.add(new)
                del fresh[e]
            elif e not in bound:
                out.mutated.add(e)
        out.met = {e for e in fresh if e not in self.entries}
        self.regroup(out, fresh, drawn, affected)
        return out

    def hold(self, objects):
        """What state of packages refers to from now on, such as handlers of logging. Returns the entities that
        share objects with it, now or before."""
        e = Entry()
        e.ids, e._known = [*self.world.held], None
        walk = Walk(self.world)
        try:
            walk.run([tuple(objects)] if objects else [])
        except (TooLarge, MemoryError):
            pass
        if self.world.held != walk.ordinals().keys():
            # What was probed since the step was not compared with these.
            self.world.held, self.seen = frozenset(walk.ordinals()), {}
        e.ids += self.world.held
        return {entity for unit in self.owners.of(e) for entity in unit.members}

    def regroup(self, out, fresh, drawn, affected):
        """Forms the units around the changes again."""
        if not fresh and not affected:
            return
        units = {u for u in drawn}
        for e in fresh:
            known = self.entries.get(e)
            if known is not None and known.unit is not None:
                units.add(known.unit)
        for e in affected:
            if e in self.entries and self.entries[e].unit is not None:
                units.add(self.entries[e].unit)
        entries = dict(fresh)
        for unit in units:
            for e in unit.members:
                if e in self.entries:
                    entries.setdefault(e, self.entries[e])
        groups = by_sharing(entries.values()) if len(entries) > 1 else [set(entries)]

        def find(e):
            return entries.get(e) or self.entries.get(e)

        def group_of(e):
            known = find(e)
            return known.unit.members if known is not None and known.unit is not None else (e,)

        def refs_of(e):
            known = find(e)
            return [self.entity(r) for r in known.refs] if known is not None else ()

        if any([e[0] != "n" for e in entries]):
            groups = join_circles(groups, group_of, refs_of)
        replaced = [self.entries[e] for e in fresh if e in self.entries]
        self.entries.update(fresh)
        for group in self.ordered(groups, find):
            members = [self.entries[e] for e in group if e in self.entries]
            old = members[0].unit if members else None
            # Without the others of its unit a member is what it was, unless its class was one of them.
            if not members or (old is not None and old.live and not old.inner
                               and all([e.unit is old and e.entity[0] == "n" for e in members])
                               and not any([e in fresh for e in group])):
                continue
            out.units.append(self.unit(members))
        for known in replaced:
            self.release(known)
        self.owners.tidy(self.entries.values())

    def release(self, known):
        """Releases a replaced entry, so that it does not keep former values alive."""
        self.owners.leave(known)
        unit = known.unit
        if unit is not None and unit.members.get(known.entity) is known:
            del unit.members[known.entity]
            unit.live = bool(unit.members)

    def ordered(self, groups, find):
        """Sorts groups by their references, referenced groups first."""
        home = {e: n for n, g in enumerate(groups) for e in g}
        out, state = [], {}
        for start in range(len(groups)):
            work = [start]
            while work:
                n = work[-1]
                if state.get(n) == 2:
                    work.pop()
                    continue
                if state.get(n) == 1:
                    state[n] = 2
                    out.append(groups[n])
                    work.pop()
                    continue
                state[n] = 1
                for e in groups[n]:
                    known = find(e)
                    for r in known.refs if known is not None else ():
                        m = home.get(self.entity(r))
                        if m is not None and m not in state:
                            work.append(m)
        return out

    def unit(self, members):
        """Makes a unit of entries, with its description and blob."""
        members.sort(key=self.rank)
        unit = Unit()
        unit.key = "%s.%d" % (self.seq, self.keys)
        self.keys += 1
        unit.live = True
        unit.pairs.update(self.pairs)
        for former in {e.unit for e in members if e.unit is not None and e.unit.live}:
            unit.pairs.update(_still(former, members))
        for e in members:
            if e.unit is not None and e.unit.live:
                e.unit.members.pop(e.entity, None)
                e.unit.live = bool(e.unit.members)
            e.unit = unit
        unit.members = {e.entity: e for e in members}
        reasons = [e.unserializable for e in members if e.unserializable is not None]
        reason, blob, joint = (reasons or [None])[0], None, members[0].walk
        inner = [i for i, e in enumerate(members) if e.entity[0] == "t"]
        unit.inner = bool(inner)
        # A sweep asks what the members are, and nothing of what they are together.
        if self.blobs and (len(members) > 1 or joint is None):
            roots = [self.root(e) for e in members]
            joint = continued(self.world, members, roots) or in_turn(self.world, members, roots)
            if joint is None:
                joint = Walk(self.world, {id(members[i].value) for i in inner}, extras=True)
                try:
                    joint.run(roots)
                except (TooLarge, MemoryError) as why:
                    reason = reason or str(why) or "too large"
            reason = reason or joint.unserializable
        refs = [self.entity(r) for r in joint.refs] if joint is not None else []
        size = joint.size() if reason is not None and joint is not None else None
        if reason is None and self.blobs:
            blob = pickles.join(joint)
            if len(blob) > self.limits.get("unit_bytes", 1 << 62):
                reason, blob, size = "too large", None, len(blob)
            elif not joint.sure:
                reason = pickles.trial(self.world, joint, blob, inner, len(members))
                blob = None if reason else blob
        at = {r: i for i, r in enumerate(refs)}
        described = []
        for e in members:
            own_refs = []
            for r in e.refs:
                r = self.entity(r)
                if r not in at:
                    at[r] = len(refs)
                    refs.append(r)
                own_refs.append(at[r])
            described.append({"entity": e.entity, "own": e.own, "refs": own_refs, "opaque": e.opaque})
            if e.loads is not None:
                described[-1]["loads"] = e.loads
            if e.entity[0] == "n" and any("__next__" in _names(base) for base in MRO(type(e.value))):
                described[-1]["iterates"] = True
            e.walk = None
            self.owners.add(e)
        unit.refs = refs
        found = {"key": unit.key, "members": described, "refs": refs, "unserializable": reason, "blob": blob,
                 "share": share(members, unit.pairs) if len(members) > 1 else []}
        if blob is None and size is not None:
            # It takes memory, wherever it is.
            found["size"] = size
        return found

    def rank(self, e):
        """Classes before their instances, bases first; then by name."""
        depth = len(MRO(e.value)) if e.entity[0] == "t" and issubclass(type(e.value), type) else 0
        return (0, depth) if depth else (1, 0), e.entity

    def root(self, e):
        if e.entity[0] != "m":
            return self.value(e.entity)
        return module_root(self.value(e.entity))

    def leave(self, e):
        """Removes an entity from its unit for good. The others need a new description."""
        known = self.entries.get(e)
        left = self.forget_entry(e)
        if known is not None and known.unit is not None:
            known.unit.live = False
        return left

    def forget_entry(self, e):
        """Removes an entity from its unit. Returns the remaining members."""
        known = self.entries.pop(e, None)
        if known is None or known.unit is None:
            return set()
        self.owners.leave(known)
        known.unit.members.pop(e, None)
        known.unit.live = bool(known.unit.members)
        return set(known.unit.members)
