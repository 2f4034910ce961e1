"""Names bound to plain values: their description and blob need no walk.

A number or a string has no relevant identity and no references: its entry, its unit and its blob are
those that a walk would give.
"""

from hashlib import sha256
from _pickle import Pickler
from io import BytesIO

from _harness.values.pickles import join
from _harness.values.shapes import ATOM_IDS

# Larger ones are walked, because the buffer keeps its largest size.
_MOST = 1 << 16
_SIZED = (str, bytes)
_get = dict.get
_MISSING = object()

_buffer = BytesIO()
_pickler = Pickler(_buffer, 4)
_pickler.fast = True
_put = _pickler.dump


class Leaf:
    """The walk over a plain value, as far as a completed walk is used."""

    __slots__ = ("parts", "size")
    unserializable, opaque, blind, sure, loads, turns = None, False, False, True, None, None
    # Never changed.
    refs, order, extras, codes, notes = [], [], [], [], []

    def __init__(self, data):
        self.parts, self.size = (data,), len(data)

    @property
    def sink(self):
        """The holder of the stream."""
        return self

    def stream(self):
        return self.parts[0]


def leaf(value):
    """The walk over a plain value, and its fingerprint. None if it needs a real walk."""
    if type(value) in _SIZED and len(value) > _MOST:
        return None
    _buffer.seek(0)
    _buffer.truncate()
    # One level with one value, as a walk writes it.
    _put([value])
    data = _buffer.getvalue()
    return Leaf(data), sha256(data).hexdigest()


def others(namespace, entities):
    """The entities that are not names of plain values."""
    return [
        entity
        for entity in entities
        if entity[0] != "n" or id(type(_get(namespace, entity[2:]))) not in ATOM_IDS
    ]


def settle(standing, probe, make, out, touched, bound):
    """Describes what a step did, if it used only names of plain values that share with no other.
    Returns whether it did. `probe` inspects an entity, `make` makes an empty unit."""
    entries, space = standing.entries, standing.namespace
    for entity in (*touched, *bound):
        if entity[0] != "n" or id(type(_get(space, entity[2:], entries))) not in ATOM_IDS:
            return False
        known = entries.get(entity)
        if known is not None and (known.refs or known.unit is None or len(known.unit.members) > 1):
            return False
    for entity in sorted({*touched, *bound}):
        known, value = entries.get(entity), _get(space, entity[2:])
        if known is not None and known.value is value:
            continue
        new = probe(standing.world, entity, value)
        if known is not None and known.same(new):
            continue
        if known is None:
            out.met.add(entity)
        elif entity not in bound:
            out.mutated.add(entity)
        entries[entity] = new
        if known is not None and known.ids:
            standing.release(known)
        out.units.append(_unit(standing, make(), new))
    return True


def _unit(standing, unit, entry):
    blob, reason = join(entry.walk), None
    size = len(blob)
    if not standing.blobs:
        blob = None
    elif size > standing.limits.get("unit_bytes", 1 << 62):
        blob, reason = None, "too large"
    unit.key = "%s.%d" % (standing.seq, standing.keys)
    standing.keys += 1
    unit.live, unit.members, unit.refs = True, {entry.entity: entry}, []
    entry.unit, entry.walk = unit, None
    member = {"entity": entry.entity, "own": entry.own, "refs": [], "opaque": False}
    found = {"key": unit.key, "members": [member], "refs": [], "unserializable": reason, "blob": blob, "share": []}
    return found if reason is None else {**found, "size": size}
