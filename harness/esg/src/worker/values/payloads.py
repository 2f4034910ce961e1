"""What C types store besides a dict and slots, and how to restore it."""
import types
from collections import OrderedDict

from _harness.values.compat import get_referents
from _harness.values.shapes import MAPPING, MRO, Unloadable, atomic, frozen_set, refill_set, table_of

_Member = types.MemberDescriptorType


class Payload:
    """What a C type stores besides dict and slots. `heads`: plain data; `kids`: objects it refers
    to."""
    late, mutable, sure = False, True, True
    has_dict = False    # whether it has a dict, which can be replaced

    def head(self, o):
        return None

    def kids(self, o):
        return ()

    def new(self, cls, head):
        return object.__new__(cls)

    def fill(self, load, o, head, part):
        pass


class OfSequence(Payload):
    def __init__(self, base):
        self.base, self.items = base, base.__iter__

    def kids(self, o):
        return list(self.items(o))

    def new(self, cls, head):
        return self.base.__new__(cls)

    def fill(self, load, o, head, part):
        self.base.extend(o, part)


class OfDeque(OfSequence):
    def head(self, o):
        return o.maxlen if type(o) is self.base else self.base.__dict__["maxlen"].__get__(o)

    def new(self, cls, head):
        made = self.base.__new__(cls)
        self.base.__init__(made, (), head)
        return made


class OfDict(Payload):
    sure = False

    def __init__(self, base):
        self.base, self.items, self.put = base, base.items, base.__setitem__
        self.factory = base.__dict__.get("default_factory")

    def kids(self, o):
        found = [v for pair in self.items(o) for v in pair]
        return found if self.factory is None else [self.factory.__get__(o)] + found

    def new(self, cls, head):
        return self.base.__new__(cls)

    def fill(self, load, o, head, part):
        if self.factory is not None:
            self.factory.__set__(o, part[0])
            part = part[1:]
        put = dict.__setitem__ if self.base is not OrderedDict else self.put

        def later():
            load.check(part[::2])
            for k, v in zip(part[::2], part[1::2]):
                put(o, k, v)
        later() if atomic(part[::2]) else load.later(later)


class OfSet(Payload):
    sure = False

    def head(self, o):
        return table_of(o)

    def kids(self, o):
        return list(set.__iter__(o))

    def new(self, cls, head):
        return set.__new__(cls)

    def fill(self, load, o, head, part):
        def later():
            load.check(part)
            refill_set(o, part, head)
        load.later(later)


class OfValue(Payload):
    """Numbers and strings: the value is plain data, given when the object is made."""
    mutable = False

    def __init__(self, base):
        self.base = base

    def head(self, o):
        if self.base is int:
            return int.__add__(o, 0)
        if self.base is float:
            return float.__pos__(o)
        if self.base is str:
            return str.__str__(o)
        if self.base is bytes:
            return bytes.__getitem__(o, slice(None))
        return (complex.__dict__["real"].__get__(o), complex.__dict__["imag"].__get__(o))

    def new(self, cls, head):
        return self.base.__new__(cls, *head) if self.base is complex else self.base.__new__(cls, head)


class OfBytearray(Payload):
    def head(self, o):
        return bytes(bytearray.__getitem__(o, slice(None)))

    def new(self, cls, head):
        made = bytearray.__new__(cls)
        bytearray.extend(made, head)
        return made


class OfTuple(Payload):
    late, mutable = True, False

    def kids(self, o):
        return list(tuple.__iter__(o))

    def new(self, cls, head, part):
        return tuple.__new__(cls, part)


class OfFrozen(OfTuple):
    sure = False

    def head(self, o):
        return frozenset.__sizeof__(o)

    def kids(self, o):
        return list(frozenset.__iter__(o))

    def new(self, cls, head, part):
        return frozen_set(cls, part, head)


class OfError(Payload):
    """Exceptions without a traceback. One with a traceback is unserializable."""
    sure = False
    _names = ("args", "__cause__", "__context__", "__suppress_context__")

    def __init__(self, base):
        self.base = base
        self.fields = [BaseException.__dict__[n] for n in self._names]
        for cls in reversed(MRO(base)):
            if cls is not BaseException and cls is not object:
                self.fields += [v for v in MAPPING(cls).values() if type(v) is _Member]
        self.trace = BaseException.__dict__["__traceback__"].__get__

    def kids(self, o):
        out = []
        for field in self.fields:
            try:
                out.append(field.__get__(o))
            except AttributeError:
                out.append(None)
        return out

    def head(self, o):
        trace, lines = self.trace(o), []
        while trace is not None:
            lines.append((trace.tb_frame.f_code.co_name, trace.tb_lineno))
            trace = trace.tb_next
        return lines

    def new(self, cls, head):
        if head:
            raise Unloadable("a traceback")
        return self.base.__new__(cls)

    def fill(self, load, o, head, part):
        for field, value in zip(self.fields, part):
            if value is not None or field.__get__(o) is not None:
                field.__set__(o, value)


class OfNamespace(Payload):
    """`SimpleNamespace`: nothing but its dict."""
    sure = False

    def __init__(self, base):
        self.base = base

    def new(self, cls, head):
        return self.base.__new__(cls)


class OfElement(Payload):
    """Elements of XML: their fields, and the elements in them. Whether one has a dict of attributes is
    looked up in what it refers to, as the attribute itself would make the dict."""
    sure = False

    def __init__(self, base):
        self.base, held = base, MAPPING(base)
        self.fields = [held[name] for name in ("tag", "text", "tail")]
        self.attributes, self.size, self.at = held["attrib"], held["__len__"], held["__getitem__"]

    def _has_attributes(self, o):
        return any([type(v) is dict for v in get_referents(o)])

    def head(self, o):
        return self._has_attributes(o)

    def kids(self, o):
        found = [field.__get__(o) for field in self.fields]
        if self._has_attributes(o):
            found.append(self.attributes.__get__(o))
        return found + [self.at(o, i) for i in range(self.size(o))]

    def new(self, cls, head):
        return self.base.__new__(cls)

    def fill(self, load, o, head, part):
        fields = self.fields + [self.attributes] if head else self.fields
        for field, value in zip(fields, part):
            field.__set__(o, value)
        self.base.extend(o, part[len(fields):])


class OfReduced(Payload):
    """C types whose own `__reduce__` is a call with plain arguments: dates, decimals, patterns."""
    late, mutable, sure = True, False, False

    def __init__(self, base, args, make=None):
        self.base, self.args = base, args
        self.make = make or (lambda cls, part: base.__new__(cls, *part))

    def kids(self, o):
        return list(self.args(o))

    def new(self, cls, head, part):
        return self.make(cls, part)


class OfState(Payload):
    """C types whose state is plain data and can be set: text buffers, arrays, random generators."""
    sure = False

    def __init__(self, base, get, put, args=lambda head: ()):
        self.base, self.get, self.put, self.args = base, get, put, args

    def head(self, o):
        return self.get(o)

    def new(self, cls, head):
        made = self.base.__new__(cls, *self.args(head))
        self.put(made, head)
        return made
