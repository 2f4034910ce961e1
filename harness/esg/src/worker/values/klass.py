"""Classes of the program, by value: first a skeleton, then the dict, so that a class may refer to
itself.

Recreating a class runs none of its code: no `__init_subclass__`, no `__set_name__`, no metaclass
hook.
"""
import _abc  # type: ignore[import-not-found]
import sys
import types
from collections import Counter

from _harness.values.compat import SIZE
from _harness.values.levels import TooLarge
from _harness.values.models import derived, remake
from _harness.values.shapes import MAPPING, MRO, Kind, Unloadable, lookup, register

_Getset, _Member = types.GetSetDescriptorType, types.MemberDescriptorType
_BASES = type.__dict__["__bases__"].__get__
_NAME = type.__dict__["__name__"].__get__
_MODULE = type.__dict__["__module__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__
# What Python maintains itself, or the position of a class in its file.
_SKIPPED = frozenset(("__dict__", "__weakref__", "__slotnames__", "_abc_impl", "__firstlineno__"))
_REVERSE = "_value2member_map_"
_PARAMS = "__type_params__" in type.__dict__


def own_slot(cls, name, value):
    """Whether an entry of a class is the descriptor that `__slots__` or the class itself made."""
    t = type(value)
    return (t is _Member or t is _Getset) and value.__objclass__ is cls


def virtual(cls):
    """The classes that are registered with an abstract class."""
    try:
        return [c for c in [ref() for ref in _abc._get_dump(cls)[0]] if c is not None]
    except TypeError:
        return []


def registered(walk, cls):
    """The virtual subclasses of an abstract class, in an order independent of addresses."""
    if "_abc_impl" not in MAPPING(cls):
        return []
    found = virtual(cls)
    names = {id(c): (str(_MODULE(c)), _QUALNAME(c)) for c in found}
    many = Counter(names.values())
    rank = {id(c): (names[id(c)], content(walk, c) if many[names[id(c)]] > 1 else "") for c in found}
    if len(set(rank.values())) < len(found):
        walk.note("registered classes ordered by address")
    return sorted(found, key=lambda c: rank[id(c)])


def of_heirs(walk, cls):
    """The names of the virtual subclasses that an abstract class has by its subclasses. They are no part of what
    is stored of it, so that a copy has those of its original."""
    found = walk.heirs.get(id(cls))
    if found is None and "_abc_impl" in MAPPING(cls):
        found, heirs = set(), type.__subclasses__(cls)
        for heir in heirs:
            heirs += type.__subclasses__(heir)
            if "_abc_impl" in MAPPING(heir):
                found.update((_QUALNAME(heir), str(_MODULE(c)), _QUALNAME(c)) for c in virtual(heir))
        found = walk.heirs[id(cls)] = sorted(found)
    return found


def content(walk, cls):
    """What distinguishes a class from others of its name; empty if unknown."""
    own = type(walk)(walk.world, (id(cls),))
    try:
        own.run([cls])
        return own.own() if own.unserializable is None else ""
    except (TooLarge, MemoryError):
        return ""


def _shown(o, cls):
    """What an object that is not written in Python shows of itself by descriptors of its class."""
    found = []
    for name, descriptor in MAPPING(cls).items():
        if type(descriptor) in (_Getset, _Member) and name != "__signature__":
            try:
                found.append((name, descriptor.__get__(o)))
            except Exception:
                found.append((name, None))
    return found


def _native(cls):
    """What a metaclass that is not written in Python keeps of a class, as far as it shows that."""
    found = []
    for meta in MRO(type(cls)):
        if SIZE(meta) > SIZE(type):
            for name, value in _shown(cls, meta):
                of_meta = str(_MODULE(type(value))).partition(".")[0] == str(_MODULE(meta)).partition(".")[0]
                found.append((name, tuple(_shown(value, type(value))) if of_meta else value))
    return found


class Class(Kind):
    tag, sure = "T", False
    first_make = True

    def split(self, walk, objs):
        head, kids = [], []
        for cls in objs:
            bases = [walk.name(b) for b in _BASES(cls)]
            keys, values, line = [], [], None
            left_out = derived(cls)
            for k, v in MAPPING(cls).items():
                if type(k) is not str or own_slot(cls, k, v) or k in _SKIPPED or k in left_out:
                    line = v if k == "__firstlineno__" else line
                    continue
                if k == "__static_attributes__" and type(v) is tuple:
                    v = tuple(sorted(v))
                elif k == _REVERSE and "_member_map_" in MAPPING(cls):
                    continue
                if k == "__del__":
                    walk.note("__del__")
                keys.append(k)
                values.append(v)
            if "_member_map_" in MAPPING(cls) and not _is_derived(cls, MAPPING(cls).get(_REVERSE)):
                # Its place among the attributes is another one where it was built again.
                keys.append(_REVERSE)
                values.append(MAPPING(cls)[_REVERSE])
            if SIZE(type(cls)) > SIZE(type):
                walk.fail("class " + _NAME(cls) + ": a metaclass with state of its own")
                for k, v in _native(cls):
                    keys.append(k)
                    values.append(v)
            slots = MAPPING(cls).get("__slots__")
            if slots is not None and type(slots) is not str:
                slots = [s for s in slots if type(s) is str]
            subs = registered(walk, cls)
            # A class with slots that is made from another may hold a descriptor of that one.
            held = MAPPING(cls)
            kept = [k for k in ("__dict__", "__weakref__") if k in held and own_slot(cls, k, held[k])]
            walk.extra(lambda line=line: line)
            head.append((_NAME(cls), _QUALNAME(cls), walk.name(type(cls)), bases, keys, slots, kept, len(subs),
                         of_heirs(walk, cls)))
            kids += values
            kids += subs
        return head, kids

    def make(self, load, head, n):
        return None

    def can_be_made(self, load, head):
        """Whether what a class is made from exists."""
        return all([load.end(mark) is not None for mark in (head[2], *head[3])])

    def make_class(self, load, head):
        name, qualname, meta, bases, keys, slots, kept, _, _ = head
        meta, bases = load.named(meta), tuple([load.named(b) for b in bases])
        if lookup(meta, "mro") is not type.__dict__["mro"]:
            raise Unloadable("a metaclass with an mro of its own")
        space = dict.fromkeys(keys)
        space["__qualname__"] = qualname
        if slots is not None:
            space["__slots__"] = slots if type(slots) is str else tuple(slots)
        generic = "__orig_bases__" in space
        space["__orig_bases__"] = (object,)     # keeps `Generic` from reading what does not exist yet
        if "__module__" not in space:
            space["__module__"] = "__main__"
        if "__init_subclass__" in space:
            space["__init_subclass__"] = _SILENT    # until the class gets its own, it may get subclasses
        muted = []
        try:
            for base in {id(b): b for top in bases for b in MRO(top)}.values():
                hook = MAPPING(base).get("__init_subclass__")
                if type(hook) is classmethod and base is not object:
                    type.__setattr__(base, "__init_subclass__", _SILENT)
                    muted.append((base, hook))
            cls = type.__new__(meta, name, bases, space)
        except TypeError as why:
            raise Unloadable("class " + name + ": " + str(why)) from None
        finally:
            for base, hook in muted:
                type.__setattr__(base, "__init_subclass__", hook)
        for k in list(MAPPING(cls)):
            if k not in keys and k not in _SKIPPED and not own_slot(cls, k, MAPPING(cls)[k]) and \
                    not (k == "__orig_bases__" and generic):
                type.__delattr__(cls, k)
        abstract = sys.modules.get("abc")
        if abstract is not None and issubclass(meta, abstract.ABCMeta):
            _abc._abc_init(cls)
        return cls

    def fill(self, load, objs, head, kids):
        at = 0
        for cls, (_, _, _, _, keys, _, _, subs, _) in zip(objs, head):
            for k, v in zip(keys, kids[at:at + len(keys)]):
                if k == "__abstractmethods__" or k not in ("__slots__", "__qualname__"):
                    type.__setattr__(cls, k, v)
            at += len(keys)
            if "_member_map_" in keys and _REVERSE not in keys:
                load.later(lambda cls=cls: members(cls))
            elif derived(cls) or "__is_pydantic_dataclass__" in keys:
                load.later(lambda cls=cls: remake(cls))
            for sub in kids[at:at + subs]:
                _abc._abc_register(cls, sub)
            at += subs


def _is_derived(cls, table):
    """Whether the reverse map of an enum has its members, and at most the combinations of flags beside them."""
    known = set(map(id, MAPPING(cls)["_member_map_"].values()))
    return any([(_MODULE(base), _NAME(base)) == ("enum", "Flag") for base in MRO(cls)]) or type(table) is not dict or \
        len(table) == len({id(o): None for o in table.values()}) and known.issuperset(map(id, table.values()))


def members(cls):
    """The reverse map of an enum is built again: members by value."""
    table = {}
    for member in MAPPING(cls)["_member_map_"].values():
        try:
            table.setdefault(object.__getattribute__(member, "__dict__").get("_value_"), member)
        except TypeError:
            pass
    type.__setattr__(cls, _REVERSE, table)

_SILENT = classmethod(lambda cls, **_: None)


class Member(Kind):
    """A member of an enum: known by its class and name, or by its value if it is a combination."""
    tag, mutable, early = "em", False, False

    def split(self, walk, objs):
        heads = {}
        for at, o in dict(zip(map(id, objs), objs)).items():
            held = MAPPING(type(o))["_member_map_"]
            name = object.__getattribute__(o, "__dict__").get("_name_")
            if type(name) is str and held.get(name) is o:
                heads[at] = walk.name(type(o)), name, None
            else:
                heads[at] = walk.name(type(o)), None, object.__getattribute__(o, "__dict__")["_value_"]
        return list(map(heads.__getitem__, map(id, objs))), []

    def build(self, load, head, kids, n):
        out = []
        for cls, name, value in head:
            cls = load.named(cls)
            made = MAPPING(cls)["_member_map_"].get(name) if name is not None else cls(value)
            if made is None:
                raise Unloadable("enum member")
            out.append(made)
        return out

CLASS = register(Class())
MEMBER = register(Member())
