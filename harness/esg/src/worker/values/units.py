"""The graph of live entities, and how the host moves it from one state to another.

Beyond the common interface: `Settled.created` (identity objects found), `Settled.back` (modules that
no longer differ from their baseline) and `Settled.notes` (untracked things seen by a walk). Blobs
are bytes here. The order of a unit's members and refs is part of it and is passed to `load`.
"""
import importlib

from _harness.values.bynames import module_dict
from _harness.values.graft import graft
from _harness.values.pickles import Load, Unloadable
from _harness.values.plain import others
from _harness.values.fingerprints import Entry, add_same, has_decimals, is_part, probe
from _harness.values.shapes import ATOM_IDS
from _harness.values.settle import MISSING, MODULE_NAMES, Settled, Standing, Unit, undisturbed


class Graph(Standing):
    """The live and the stashed entities."""

    @undisturbed
    def dirty(self, touched, bound):
        """After a failed step: every changed or created entity, and those that share with one. Sorted."""
        fresh, drawn, done = self.look(list(bound) + list(touched), discover=False)
        self.seen = {}
        found = set(bound)
        for e in fresh:
            known = self.entries.get(e)
            found.add(e)
            if known is not None and known.unit is not None:
                found |= set(known.unit.members)
        found |= {e for e, new in done.items() if new is None and e in self.entries}
        return sorted(found)

    def codes(self, entities):
        """Code objects of the functions and classes reachable from some entities.

        Called after a step has run and before `settle`, which then does not probe again."""
        # The modules that they refer to, by name.
        self.modules_met = set()
        entities = others(self.namespace, entities)
        if not entities:
            return []
        _, _, done = self.look(entities, discover=False)
        if any([e is not None and e.decimals for e in done.values()]):
            self.modules_met.add("decimal")
        found, seen, todo = {}, set(), [e for e in done.values() if e is not None]
        while todo:
            e = todo.pop()
            for code in e.codes:
                found[id(code)] = code
            for r in e.refs:
                if type(r).__name__ == "module":
                    self.modules_met.add(self.entity(r)[2:])
                elif id(r) not in seen and id(r) not in self.world.tokens and r is not e.value:
                    seen.add(id(r))
                    todo.append(probe(self.world, "t:", r))
        return list(found.values())

    # -- moving ---------------------------------------------------------------------------
    def drop(self, entities):
        """Unbinds entities. Ignores unknown ones."""
        self.seen = {}
        for e in entities:
            self.forget_entry(e)
            self.unbind(e)
        if entities:
            self.world.let_go()

    def unbind(self, e):
        kind, name = e[0], e[2:]
        if kind == "n":
            dict.pop(self.namespace, name, None)
        elif kind == "t":
            o = self.objects.pop(e, None)
            if o is not None and self.world.tokens.get(id(o)) == e:
                del self.world.tokens[id(o)]
        elif module_dict(name) is not None:
            self.modules.reset(name)

    def stash(self, keys):
        """Stashes units: their live members leave the namespace."""
        self.seen = {}
        for key in keys:
            members = {e: x for e, x in list(self.entries.items()) if x.unit is not None and x.unit.key == key}
            kept = {}
            for e, x in members.items():
                value = self.value(e)
                if value is not MISSING:
                    kept[e] = (value, x)
                    x.trail = None
                del self.entries[e]
                self.unbind(e)
            for x in members.values():
                # `Owners` may keep the unit, which must not keep the values.
                x.unit.live, x.unit.members = False, {}
            if kept:
                self.aside[key] = kept

    def unstash(self, items):
        """Restores members of stashed units to the namespace. The others stay stashed."""
        self.seen = {}
        for item in items:
            kept = self.aside.get(item["key"], {})
            unit = self.unit_of(item["key"])
            for e in list(item["members"]):
                if e not in kept:
                    continue
                value, x = kept.pop(e)
                self.install(e, value)
                self.enter(unit, e, x)
            if not kept:
                self.aside.pop(item["key"], None)

    def forget(self, keys):
        """Discards stashed units."""
        for key in keys:
            self.aside.pop(key, None)
        if keys:
            self.world.let_go()

    def alias(self, pairs):
        """The first token of each pair now means the object of the second."""
        self.seen = {}
        for first, second in pairs:
            if second not in self.objects or first == second:
                continue
            x = self.entries.pop(second, None)
            self.forget_entry(first)
            self.unbind(first)
            o = self.objects.pop(second)
            self.name(first, o)
            if x is not None:
                x.unit.members.pop(second, None)
                x.entity = first
                x.unit.members[first] = x
                x.unit.refs = [first if r == second else r for r in x.unit.refs]
                self.entries[first] = x

    def unit_of(self, key):
        for x in self.entries.values():
            if x.unit is not None and x.unit.key == key:
                return x.unit
        unit = Unit()
        unit.key, unit.members, unit.refs, unit.live = key, {}, [], True
        return unit

    def install(self, e, value):
        if e[0] == "n":
            dict.__setitem__(self.namespace, e[2:], value)
        elif e[0] == "t":
            self.unbind(e)
            self.name(e, value)
        else:
            self.modules.apply(e[2:], value)

    def enter(self, unit, e, x):
        self.forget_entry(e)
        unit.inner = unit.inner or x.unit is not None and x.unit.inner
        x.unit, unit.live = unit, True
        unit.members[e] = x
        self.entries[e] = x
        self.owners.add(x)

    @undisturbed
    def load(self, items):
        """Restores units from blobs. Returns [[key, reason]] for those that fail to load; nothing of
        these is installed."""
        self.seen = {}
        failed = []
        for item in items:
            try:
                self.load_one(item)
            except Unloadable as why:
                failed.append([item["key"], str(why)])
            except Exception as why:    # a damaged blob may fail in any way
                failed.append([item["key"], type(why).__name__ + ": " + str(why)[:200]])
        return failed

    def load_one(self, item):
        entities = [m["entity"] for m in item["members"]]
        take = set(item.get("take") or entities)
        refs = [self.object_of(r, entities) for r in item["refs"]]
        shells = {i: e[2:] for i, e in enumerate(entities) if e[0] == "m" and module_dict(e[2:]) is None}
        load = Load(self.world, item["blob"], refs, shells)
        made = load.read(len(entities))
        if len(made) != len(entities):
            raise Unloadable("another number of members")
        values = {}
        for e, value in zip(entities, made):
            if e[0] == "m":
                value = dict(zip(value[::2], value[1::2]))
            values[e] = value
        unit = self.unit_of(item["key"])
        unit.inner = any([e[0] == "t" for e in entities])
        for e in entities:
            if e in take:
                self.install(e, values[e])
        for e in entities:
            if e not in take:
                continue
            if len(entities) == 1:
                x = self.known(e, values[e], load)
            else:
                x = probe(self.world, e, values[e], keep=True)
                x.walk = None
            x.decimals = has_decimals(item["blob"])
            self.enter(unit, e, x)

    @undisturbed
    def graft(self, seq, items, onto):
        """Binds the members `take` of stored units as the step did that made these, to the objects of `onto` that
        are live. Returns the changes; None, without effect, if that is not possible."""
        self.seen = {}
        bound = {}
        for item in items:
            entities = [m["entity"] for m in item["members"]]
            there = {e: self.value(e) for e in entities if e in onto}
            if any([value is MISSING for value in there.values()]):
                return None
            try:
                refs = [self.object_of(r, ()) for r in item["refs"]]
                found = graft(self.world, item["blob"], refs, entities, there, item["take"])
            except Exception:   # a damaged blob may fail in any way
                return None
            if found is None:
                return None
            bound.update(found)
        for e, value in bound.items():
            self.install(e, value)
        return self.settle(seq, (), bound, ())

    def known(self, e, value, load):
        """The entry of a unit's only member follows from its blob, without a walk."""
        x = Entry()
        x.entity, x.value, x.sign, x.walk, x.unit = e, value if e[0] != "m" else None, None, None, None
        x.own = None if e[0] == "n" and id(type(value)) in ATOM_IDS else load.own()
        x.ids, x._known, x._at, x.trail = list(map(id, load.nodes)), None, None, None
        x.inside, x.apart, x.held = (), frozenset(), False
        x.refs, x.unserializable, x.opaque, x.blind, x.notes = [
            self.world.module(*r) if type(r) is tuple else r for r in load.refs], None, False, False, []
        x.codes = load.made_codes()
        x.loads = None
        return x

    def object_of(self, entity, members):
        """The object of a reference. Members of the blob itself are not looked up."""
        if entity[0] == "m":
            if entity in members:
                return (entity[2:],)
            if module_dict(entity[2:]) is None:
                importlib.import_module(entity[2:])
            return self.world.module(entity[2:])
        if entity in members:
            return None
        o = self.objects.get(entity)
        if o is None:
            raise Unloadable("missing " + entity)
        return o

    # -- sweep -------------------------------------------------------------------------------
    @undisturbed
    def sweep(self):
        """Describes everything live from scratch, without blobs and caches. Only what is found as its trail says, or
        is a part of that, is not written again."""
        twin = Graph(self.namespace, self.modules, self.limits)
        twin.seq, twin.blobs, twin.world.held = "sweep", False, self.world.held
        twin.objects, twin.world.tokens = dict(self.objects), dict(self.world.tokens)
        names = ["n:" + n for n in dict.keys(self.namespace) if type(n) is str and n not in MODULE_NAMES]
        start = names + list(self.objects) + [e for e in self.entries if e[0] == "m"]
        same = {}
        for e, known in sorted(self.entries.items(), key=lambda item: -len(item[1].ids)):
            value, beside = self.value(e), same.get(known.unit, ())
            if is_part(self.world, known, value, beside) or known.trail is not None and value is known.value and \
                    probe(self.world, e, value, known, True, beside) is known:
                twin.seen[e] = value, known.alone()
                add_same(same, known)
        for unit in same:
            if unit.members.keys() <= twin.seen.keys():
                twin.pairs.update(unit.pairs)
        fresh, drawn, _ = twin.look(start, memo=False)
        out = Settled()
        twin.regroup(out, fresh, drawn, set())
        for unit in out.units:
            members = {m["entity"] for m in unit["members"]}
            for x in [self.entries.get(m) for m in members]:
                if x is not None and x.unit is not None and set(x.unit.members) == members:
                    unit["key"] = x.unit.key
        # Entries and their units refer to each other, which would keep the values until the next collection.
        for x in twin.entries.values():
            x.unit.members = {}
        twin.entries.clear()
        return out.units
