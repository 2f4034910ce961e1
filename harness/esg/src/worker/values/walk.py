"""The walk over a value: breadth first, level by level, in batches at C speed.

The result is one stream of plain data. It is hashed for the fingerprint and kept as the blob, so
both have the same content. Mutable objects get ordinals in the order in which they are met. Ends of
the walk (classes, stateless functions, modules) become indices into a list of references. Immutable
containers are written out wherever they are met, because their identity is not content.
"""
import sys
import types
from collections import defaultdict
from hashlib import sha256
from itertools import compress, repeat
from operator import is_
from _pickle import Pickler

from _harness.values.arrays import ndarray, owner_of
from _harness.values.compat import FLAGS as _FLAGS
from _harness.values import field
from _harness.values import klass
from _harness.values import layouts
from _harness.values import library
from _harness.values import moments
from _harness.values.codeforms import loads as code_loads
from _harness.values.funcs import BOUND_BUILTIN, CACHED, CACHED_TYPE, FUNC, Builtin, Function, stateless
from _harness.values.bynames import NAMED, Names, module_dict, ours, streams
from _harness.values.levels import MANY, Sink, TooLarge, put_atoms, put_level, types_compare_plainly
from _harness.values.shapes import ATOM_IDS, MAPPING, MRO, TABLE, Unserializable
from _harness.values.standins import StandIn
from _harness.values.trusted import DRAWINGS, PACKAGES, is_constant, proper, top_of

_modules = sys.modules
_Module = types.ModuleType
_module_dict = vars(_Module)["__dict__"].__get__
_NAME = type.__dict__["__name__"].__get__
_MODULE = type.__dict__["__module__"].__get__
_OPAQUE_MODULE = Unserializable("type module", kids=lambda walk, o: [_module_dict(o)])
_OURS = Unserializable("the worker's own", kids=lambda walk, o: [])
_ENTITY_LIMIT = 4_000_000       # containers written out in one walk


class World:
    """What a walk needs of the process: the program's modules and the kinds of its classes."""

    def __init__(self, namespace, modules):
        self.namespace = namespace
        self.shell = getattr(modules, "shell", None)    # makes an empty scratch module
        self.names = Names(lambda module: module == "__main__" or modules.is_scratch(module), modules.baseline)
        self.tokens = {}        # id -> entity of an identity object
        self.kinds = {}         # id of a class -> (ancestry, kind, class)
        self.held = frozenset()     # ids of what the state of packages refers to
        self.deleted = None     # marks a deleted attribute in the result of `Modules.diff`

    def module(self, name):
        """A loaded module, or None."""
        return _modules.get(name)

    def main(self):
        """The program's module object."""
        return _modules.get("__main__")

    def is_space(self, o):
        """Whether a dict is the namespace of a module."""
        if o is self.namespace:
            return True
        return type(o) is dict and type(o.get("__name__")) is str and module_dict(o["__name__"]) is o

    def is_programs(self, function):
        """Whether it is not code that a package made: it does not belong to the module of one."""
        space = function.__globals__
        return space is self.namespace or not self.is_space(space) or self.names.program(space["__name__"])

    def spaces(self):
        """The ids of all dicts that may be the namespace of a module."""
        held = {id(_module_dict(m)) for m in list(_modules.values()) if issubclass(type(m), _Module)}
        return held | {id(self.namespace)}

    def kind(self, cls):
        """The kind of the instances of a class. Determined again when its ancestry changes."""
        known = self.kinds.get(id(cls))
        if known is not None and known[0] is MRO(cls):
            return known[1]
        kind = library.late_kind(self.names, cls) or layouts.instance_kind(cls)
        self.kinds[id(cls)] = (MRO(cls), kind, cls)
        return kind


    def let_go(self):
        """Keeps no class or function of the program alive but those that are entities."""
        held = self.tokens
        self.kinds = {at: known for at, known in self.kinds.items() if at in held or self.names.of(known[2]) is not None}
        self.names.unnamed = {at: o for at, o in self.names.unnamed.items() if at in held}


class Walk:
    """One walk from some roots. `inner`: ids of identity objects that are written out instead of
    referenced."""

    def __init__(self, world, inner=(), extras=False):
        self.world, self.inner = world, inner
        self.order = []         # ids of all mutable objects: the index is the ordinal
        self.known = set()      # those of them that are not in `seen`
        self.seen = defaultdict()   # id -> ordinal, updated by `ordinals`
        self.refs = []          # references, in order
        self.ref_at = {}
        self.names = {}         # id of a class -> its mark
        self.heirs = {}         # id of an abstract class -> what is registered with its subclasses
        self.extras = [] if extras else None
        self.codes, self.notes, self.temps = [], [], []
        self.unserializable, self.opaque, self.blind, self.sure = None, False, False, True
        self.sink = Sink()
        self.spaces = self.plain = None
        self.levels = None      # the content of each level, if it is recorded
        self.beside = 0         # the size of what is too large to be written
        self.repeats = False    # whether objects were met again
        self.turns = None       # the order of the roots, if each has a stream of its own
        self.inside = {}        # id of a part inside an object of a package -> its number there
        self.views = {}         # id of an array inside an object of a package -> views of it there
        self.parts = {}         # id -> such a part that may have an identity
        self.twice = set()      # ids of those that are met twice
        self.apart = frozenset()    # ids of those that are written by themselves
        self.once, self.again = set(), set()    # those of them that are met, and met twice
        self.shown = None       # ids, see `arrays`
        self.caches = set()     # ids of what is a part of a function, and no content
        self.same = {}          # id of a class -> the kind of all of its objects
        self.usuals = {}        # id of a class -> the kind of most of its objects, and which are not among these
        self.sorts = {}         # id of a class -> how objects of it are pickled
        pickler = Pickler(self.sink, 4)
        pickler.fast = True
        self.put = pickler.dump

    def arrays(self):
        """The ids of the arrays whose memory names of the program show."""
        if self.shown is None:
            array = ndarray()
            self.shown = {id(owner_of(v)) for v in dict.values(self.world.namespace) if type(v) is array}
        return self.shown

    def space(self, held):
        """How a function's globals are written: a module's mark, or None for a separate dict."""
        if held is self.world.namespace:
            return ("g", "<main>", "__dict__")
        return ("v", self.ref(_modules[held["__name__"]])[1]) if self.world.is_space(held) else None

    def note(self, what):
        if what not in self.notes:
            self.notes.append(what)

    def extra(self, get):
        """What is stored but not hashed: line numbers."""
        if self.extras is not None:
            self.extras.append(get())

    def ref(self, o):
        at = self.ref_at.get(id(o))
        if at is None:
            at = self.ref_at[id(o)] = len(self.refs)
            self.refs.append(o)
        return ("r", at)

    def name(self, cls):
        """The mark of a class in a description: by name, by reference, or within this walk."""
        known = self.names.get(id(cls))
        if known is None:
            at = self.ordinals().get(id(cls))
            if at is not None:
                return ("b", at)
            if id(cls) in self.inner:
                raise TooLarge("a cycle of classes")
            name = self.world.names.of(cls)
            known = self.names[id(cls)] = ("g",) + name if name is not None else self.ref(cls)
        return known

    def pick(self, o, t):
        """The kind of an object that is in no table, or its mark if the walk ends here."""
        if o is self.world.namespace:
            return ("g", "<main>", "__dict__")
        if t is Function:
            if id(o) in self.inner:
                return FUNC
            if id(o) in self.world.tokens:
                return self.ref(o)
            name = self.world.names.of(o)
            if name is not None:
                return ("g",) + name
            if ours(dict.get(o.__globals__, "__name__")):
                return _OURS
            return self.ref(o) if stateless(self, o) else FUNC
        if issubclass(t, type) and not (t is not type and is_constant(t)):
            if id(o) in self.inner:
                return klass.CLASS
            name = self.world.names.of(o)
            if name is None and not layouts.python_made(o):
                self.fail("type " + _NAME(o))
            return ("g",) + name if name is not None else self.ref(o)
        if issubclass(t, _Module):
            held = _module_dict(o)
            name = held.get("__name__")
            if held is self.world.namespace:
                return ("g", "<main>", "")
            return self.ref(o) if type(name) is str and module_dict(name) is held else _OPAQUE_MODULE
        if o is self.world.deleted and o is not None:
            return ("x",)
        if t is Builtin or id(t) in _DESCRIPTORS:
            name = self.world.names.of(o)
            if name is not None:
                return ("g",) + name
            if t is not Builtin:
                return library.HIDDEN
            return BOUND_BUILTIN if type(o.__self__) is not _Module else unserializable(t)
        if t is CACHED_TYPE:
            return CACHED.pick(self, o)
        if id(t) in library.PICKS:
            return library.PICKS[id(t)](self, o)
        if _NAME(t) in NAMED and (name := self.world.names.of(o)) is not None:
            return ("g",) + name
        found = field.pick(self, o, t) or moments.late(t)
        if found is not None:
            return found
        if "_member_map_" in MAPPING(t) and id(t) not in self.inner and \
                object.__getattribute__(o, "__dict__").get("_value_", self) is not self:
            return klass.MEMBER
        if not _FLAGS(t) & 512 or self.world.names.of(t) is not None:
            name = self.world.names.constant(o) or streams(o)
            kind = name is None and library.pick_type_var(self, o, t)
            if name is not None or kind:
                return kind or ("g",) + name
        elif ours(_MODULE(t)):
            name = streams(o) or self.world.names.callable(o)
            return ("g",) + name if name is not None else _OURS
        return self.world.kind(t)

    def fail(self, why):
        self.unserializable = self.unserializable or why

    def run(self, roots, follower=None):
        """Runs the walk. Afterwards `order`, `refs`, the stream and the flags are final."""
        flat, total, width = roots, 0, 0
        while True:
            if follower is not None:
                found = follower.follow(self, flat)
                if found is not None:
                    flat, width, number = found
                    total += number
                    if number:
                        continue
                    follower.arrive(self)
                    return self
                follower = follower.leave(self)
            begin, groups, noted = len(self.sink.parts), {}, []
            summary, above = self.marks(flat, groups, width), flat
            if not groups:
                if self.levels is not None:
                    self.levels.append((begin, len(self.sink.parts), above, summary, noted, 0))
                if field.mixed(self):
                    self.fail("a part of an object of a package that is shared")
                return self
            flat, width = [], 0
            for kind, objs in groups.items():
                total += len(objs)
                if total > _ENTITY_LIMIT:
                    raise TooLarge("too large")
                if kind.unserializable is not None:
                    self.fail(kind.unserializable)
                    self.opaque = self.opaque or kind.opaque
                    self.blind = self.blind or kind.blind
                self.sure = self.sure and kind.sure
                head, kids = kind.split(self, objs)
                noted.append((kind, objs, head, len(kids), len(self.sink.parts)))
                self.put((len(objs), len(kids), head))
                for o in objs if kind.owned is not None else ():
                    held = id(kind.owned(o))
                    if held in self.ordinals():
                        self.fail("a dict that is met before the object it is part of")
                    else:
                        self.seen[held] = len(self.seen)
                        self.order.append(held)
                if len(groups) == 1:
                    flat, width = kids, kind.width(head)
                else:
                    flat += kids
            if self.levels is not None:
                self.levels.append((begin, len(self.sink.parts), above, summary, noted, width))

    def marks(self, flat, groups, width):
        """Writes one level's objects: atoms as they are, others by marks, new ones into groups.
        Returns how containers are distinguished from atoms, the atoms, the marks, and their position
        in the stream."""
        if len(flat) >= MANY:
            summary = put_level(self, flat, groups, width)
            if summary is not None:
                return summary
        elif set(map(id, map(type, flat))) <= ATOM_IDS:
            return None, flat, None, put_atoms(self, flat)
        seen, order, marks, kind_marks, same = self.ordinals(), self.order, [], {}, self.same
        for o in flat:
            t = type(o)
            if id(t) in ATOM_IDS:
                marks.append(o)
                continue
            at = seen.get(id(o))
            if at is not None:
                marks.append(("b", at))
                continue
            kind = TABLE.get(id(t))
            if kind is None:
                kind = same.get(id(t)) or self.settled(t) or self.pick(o, t)
                if type(kind) is tuple:
                    marks.append(kind)
                    continue
            elif t is dict and self.world.is_space(o):
                marks.append(("g", "<main>", "__dict__") if o is self.world.namespace
                             else ("v", self.ref(_modules[o["__name__"]])[1]))
                continue
            if kind.mutable:
                seen[id(o)] = len(seen)
                order.append(id(o))
            mark = kind_marks.get(kind)
            if mark is None:
                mark = kind_marks[kind] = kind.mark(self)
            marks.append(mark)
            group = groups.get(kind)
            if group is None:
                groups[kind] = [o]
            else:
                group.append(o)
        begin, marks = len(self.sink.parts), tuple(marks)
        self.put(marks)
        return None, None, marks, (begin, len(self.sink.parts))

    # -- for levels written in bulk ----------------------------------------------------------
    def types_compare_plainly(self):
        if self.plain is None:
            self.plain = types_compare_plainly()
        return self.plain

    def settled(self, t):
        """The kind of all objects of a type, or None if they need individual inspection."""
        kind = TABLE.get(id(t)) or self.same.get(id(t)) or moments.late(t)
        if kind is not None:
            return kind
        if not _FLAGS(t) & 512 or id(t) in library.PICKS or "_member_map_" in MAPPING(t) or issubclass(t, type) or \
                issubclass(t, _Module) or self.world.names.of(t) is not None or ours(_MODULE(t)) or \
                _NAME(t) in NAMED or top_of(proper(t)) in PACKAGES or \
                t is type(self.world.namespace) or t is type(self.world.deleted):
            return None
        kind = self.same[id(t)] = self.world.kind(t)
        return kind

    def usual(self, t, objs):
        """The kind of all objects of a type that are among others, if each that needs individual inspection turns
        out to be like the rest: it is no constant and no stream that a module holds."""
        if "_member_map_" in MAPPING(t):
            members = set(map(id, dict.values(MAPPING(t)["_member_map_"])))
            alike = id(t) not in self.inner and members.issuperset(map(id, compress(objs, map(is_, map(type, objs), repeat(t)))))
            return klass.MEMBER if alike else None
        found = self.usuals.get(id(t))
        if found is None:
            found = self.usuals[id(t)] = self.kind_and_others(t)
        return found[0] if found[1].isdisjoint(map(id, objs)) else None

    def kind_and_others(self, t):
        """The kind of most objects of a type, and the ids of those that may have another. None, and no ids, if each
        may have its own."""
        if id(t) in _INDIVIDUAL or id(t) in _DESCRIPTORS or id(t) in library.PICKS or _NAME(t) in NAMED or ours(_MODULE(t)) or \
                issubclass(t, (type, _Module, StandIn)) or top_of(proper(t)) in _BY_OBJECT or \
                t is type(self.world.namespace) or t is type(self.world.deleted):
            return None, frozenset()
        return self.world.kind(t), self.world.names.held_with(t)

    def meet(self, ids, spaces):
        """Gives ordinals to mutable objects. Returns False, without effect, if one of them was met
        before, or, if there are dicts, is the namespace of a module."""
        new = set(ids)
        if len(new) != len(ids) or not self.seen.keys().isdisjoint(new) or not self.known.isdisjoint(new):
            return False
        if spaces and not self.has_no_space(new):
            return False
        self.order += ids
        if self.known:
            self.known.update(new)
        else:
            self.known = new
        return True

    def are_new(self, ids):
        """Whether each of these is met for the first time."""
        return not any(map(self.ordinals().__contains__, ids)) and len(set(ids)) == len(ids)

    def has_no_space(self, ids):
        """Whether none of these is the namespace of a module."""
        if self.spaces is None:
            self.spaces = self.world.spaces()
        return self.spaces.isdisjoint(ids)

    def ordinals(self):
        """The ordinals of all mutable objects met."""
        if self.known:
            self.seen.update(zip(self.order[len(self.seen):], range(len(self.seen), len(self.order))))
            self.known = set()
        return self.seen

    def everything(self):
        """The ids of all mutable objects met, if they are in one set already."""
        if not self.known or len(self.seen) > len(self.known):
            return None
        self.known.update(self.seen)
        return self.known

    # -- results --------------------------------------------------------------------------
    def stream(self):
        return b"".join(self.sink.parts)

    def size(self):
        """The approximate size of the content, written or not."""
        return self.beside + sum(map(len, self.sink.parts))

    def own(self):
        """The fingerprint: 32 bytes in hex."""
        print = sha256()
        for part in self.sink.parts:
            print.update(part)
        return print.hexdigest()

    def loads(self):
        found = set()
        for code in self.codes:
            found |= code_loads(code)
        return sorted(found)


def unserializable(t):
    return Unserializable("type " + t.__name__, kids=layouts.referents)

# Types of which each object has a kind of its own, and packages.
_INDIVIDUAL = frozenset(map(id, (Function, Builtin, CACHED_TYPE, types.MappingProxyType)))
_BY_OBJECT = frozenset((*PACKAGES, *DRAWINGS, "logging", "typing"))
_DESCRIPTORS = frozenset(map(id, (
    types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType)))
for _t in _DESCRIPTORS:
    TABLE.pop(_t, None)
