"""Dates, times, time zones, decimals, fractions and UUIDs: written as plain data, many at once.

Nothing refers to parts of them, and their identity does not count. A time zone of a class of its own
is an object like any other.
"""
import datetime
import sys
from itertools import repeat
from operator import itemgetter

from _harness.values.compat import FIXED as _FIXED, FLAGS as _FLAGS
from _harness.values.shapes import MAPPING, TABLE, Kind, register
from _harness.values.variables import TOKEN, VARIABLE

_modules = sys.modules
_first, _second = itemgetter(0), itemgetter(1)
_MODULE = type.__dict__["__module__"].__get__
_NAME = type.__dict__["__name__"].__get__
_Zone, _Delta = datetime.timezone, datetime.timedelta
_offset = MAPPING(_Zone)["__getinitargs__"]


def _described(zone):
    """A time zone as plain data. None if it is an object like any other."""
    if type(zone) is not _Zone:
        return None
    delta, *name = _offset(zone)
    return (delta.days, delta.seconds, delta.microseconds, *name)


class Moment(Kind):
    """Objects of one class of `datetime`, by the arguments of their own reduction."""
    mutable, early, fixed = False, False, True

    def __init__(self, cls):
        self.tag, self.cls = "dt" + _NAME(cls), cls
        held = MAPPING(cls)
        # Protocol 4 distinguishes the two times of an hour that repeats. A date and a duration have none.
        self.reduce = (held["__reduce_ex__"], 4) if "__reduce_ex__" in held else (held["__reduce__"],)

    def split(self, walk, objs):
        reduce, *protocol = self.reduce
        head = list(map(_second, map(reduce, objs, *map(repeat, protocol))))
        lengths = set(map(len, head))
        if 2 not in lengths:
            return head, []
        found = list(map(_second, head if len(lengths) == 1 else [args for args in head if len(args) == 2]))
        known = {at: _described(zone) for at, zone in dict(zip(map(id, found), found)).items()}
        if len(lengths) == len(known) == 1 and None not in known.values():
            return list(zip(map(_first, head), repeat(*known.values()))), []
        kids = [args[1] for args in head if len(args) == 2 and known[id(args[1])] is None] \
            if None in known.values() else []
        return [(args[0], known[id(args[1])]) if len(args) == 2 else args for args in head], kids

    def build(self, load, head, kids, n):
        cls, kids, made = self.cls, iter(kids), []
        for args in head:
            if len(args) == 2:
                state, zone = args
                args = state, next(kids) if zone is None else _Zone(_Delta(*zone[:3]), *zone[3:])
            made.append(cls(*args))
        return made


class Late(Kind):
    """Objects of one class whose module may not be loaded, by a function that gives plain data and one
    that takes it."""
    mutable, early = False, False

    def __init__(self, module, name, take, make):
        self.tag, self.module, self.name, self.take, self.make = "lt" + name, module, name, take, make

    def split(self, walk, objs):
        return list(map(self.take, objs)), []

    def build(self, load, head, kids, n):
        cls = getattr(_modules.get(self.module) or __import__(self.module), self.name)
        return [self.make(cls, part) for part in head]


def _decimal(o):
    sign, digits, exponent = MAPPING(type(o))["as_tuple"](o)
    return sign, bytes(digits), exponent


_LATE = {(kind.module, kind.name): register(kind) for kind in (
    Late("decimal", "Decimal", _decimal, lambda cls, part: cls((part[0], tuple(part[1]), part[2]))),
    Late("fractions", "Fraction", lambda o: (o._numerator, o._denominator), lambda cls, part: cls(*part)),
    Late("uuid", "UUID", lambda o: (o.int, o.is_safe.value),
         lambda cls, part: cls(int=part[0], is_safe=_modules["uuid"].SafeUUID(part[1]))),
    # One from a file has no key.
    Late("zoneinfo", "ZoneInfo", lambda o: o.key, lambda cls, key: cls(key)),
)}
_LATE.update({(kind.module, kind.name): kind for kind in (VARIABLE, TOKEN)})
for _cls in (datetime.date, datetime.datetime, datetime.time, datetime.timedelta):
    register(Moment(_cls), _cls)


def late(t):
    """The kind of a class whose module was loaded meanwhile, or None."""
    kind = _LATE.get((_MODULE(t), _NAME(t)))
    if kind is None or vars(_modules.get(kind.module, kind)).get(kind.name) is not t:
        return None
    TABLE[id(t)] = kind
    # The table is by address.
    kind.cls = t
    # A class written in C: nothing can set the attributes of its objects.
    kind.fixed = not kind.mutable and bool(_FLAGS(t) & _FIXED)
    return kind
