"""Which units own mutable objects."""

LARGE = 20_000         # entities with at least this many objects keep them in a set of their own
_STALE = 50_000


class Owners:
    """Finds units by the ids of objects. A few entities have very many objects. Writing these into a
    table would cost more than searching their sets."""

    def __init__(self):
        self.units = {}         # id -> Unit, with stale ones
        self.large = []         # entries

    def add(self, entry):
        """Records that the objects of an entry belong to its unit."""
        if len(entry.ids) < LARGE:
            self.units.update(dict.fromkeys(entry.ids, entry.unit))
        elif entry not in self.large:
            self.large = [e for e in self.large if stands(e)] + [entry]

    def leave(self, entry):
        """Releases a replaced entry, and with it the value it describes."""
        if self.large and len(entry.ids) >= LARGE:
            self.large = [e for e in self.large if e is not entry]

    def of(self, entry, besides=None):
        """The live units that objects of an entry belong to; `besides` may be left out."""
        found = {besides}
        if len(entry.ids) < LARGE:
            found.update(map(self.units.get, entry.ids))
        else:
            found.update(map(self.units.get, self.units.keys() & entry.known))
        for e in self.large:
            if e.unit not in found and stands(e) and not e.known.isdisjoint(entry.known):
                found.add(e.unit)
        return [unit for unit in found if unit is not None and unit is not besides and unit.live]

    def tidy(self, entries):
        """Removes stale entries, if they are the majority."""
        if len(self.units) <= _STALE:
            return
        small = [e for e in entries if e.unit is not None and len(e.ids) < LARGE]
        if len(self.units) > 2 * sum([len(e.ids) for e in small]):
            self.units = {}
            for e in small:
                self.add(e)


def stands(entry):
    """Whether an entry is still the current one of its entity."""
    return entry.unit is not None and entry.unit.live and entry.unit.members.get(entry.entity) is entry
