"""Blobs: a unit's objects by value, restored without running code of the program.

A blob is the stream of a walk over all members, followed by data that is stored but not hashed.
Kinds that are not faithful by construction are loaded once as a trial and walked again before the
blob is kept.
"""
import io
import pickle
import struct
import sys
import types
from hashlib import sha256
from itertools import compress, count, repeat
from operator import is_
from _pickle import Unpickler

from _harness.values.codeforms import calm
from _harness.values.funcs import Function
from _harness.values.joint import parted
from _harness.values.levels import MET, picked
from _harness.values.shapes import ATOM_IDS, BY_TAG, Unloadable, atomic, lookup
from _harness.values.variables import apart
from _harness.values.walk import Walk

_ENDS = frozenset(("r", "b", "g", "x", "v"))
_module_dict = vars(types.ModuleType)["__dict__"].__get__
_HEAD = struct.Struct("<I")
_dumps, _loads = pickle.dumps, pickle.loads
_BASES = type.__dict__["__bases__"]
_CYCLE = "a cycle of objects that cannot be made in parts"


class _Reader(Unpickler):
    """Plain data only: a stream names no class and no function."""

    def find_class(self, module, name):
        raise Unloadable("a stream that names " + module)


class Group:
    """The objects of one kind on one level."""
    __slots__ = ("mark", "n", "kids", "head", "kind", "objs", "ords")


class Mixed:
    """A level written in bulk: for each object 0 if it is an atom, or else the number of its mark."""
    __slots__ = ("codes", "marks", "atoms")

    def __init__(self, codes, marks, atoms):
        self.codes, self.marks, self.atoms = codes, marks, atoms


class Met(Mixed):
    """One with objects that were met before, in place of which `codes` has `MET`. `met`: their ordinals."""
    __slots__ = ("met",)


def check_keys(keys):
    """Rejects keys whose hashing would run code of the program that does more than read."""
    for key in keys:
        t = type(key)
        if id(t) in ATOM_IDS:
            continue
        if t is tuple or t is frozenset:
            check_keys(key)
            continue
        for name in ("__hash__", "__eq__"):
            f = lookup(t, name)
            if type(f) is Function and (f.__module__ == "__main__" or f.__code__.co_filename[:6] == "<step:"
                                        or f.__code__.co_filename == "<string>"):
                if not calm(f.__code__, t.__name__):
                    raise Unloadable("a key whose " + name + " runs code")


class Load:
    """Restores the objects of one blob. `refs`: the objects of its references; for a module that the
    blob itself holds, its name in a tuple. `shells`: such modules by the number of their root."""

    def __init__(self, world, blob, refs, shells=None):
        self.world, self.refs, self.shells = world, refs, shells or {}
        self.blob, (size,) = blob, _HEAD.unpack_from(blob)
        self.end_of_stream = _HEAD.size + size
        extras, self.turns = _loads(memoryview(blob)[self.end_of_stream:]), None
        if type(extras) is tuple:
            self.turns, extras = extras
        self.extras = iter(extras)
        self.nodes, self.levels, self.afterwards, self.stored = [], [], [], {}
        self.parsers = False

    # -- for kinds ------------------------------------------------------------------------
    def named(self, mark):
        """The class (or end of the walk) behind a mark."""
        found = self.end(mark)
        if found is None:
            raise Unloadable("missing " + repr(mark))
        return found

    check = staticmethod(check_keys)

    def later(self, work):
        """Work for later, when every object has its content: filling containers that hash it."""
        self.afterwards.append(work)

    def keyed(self, kind, objs, head, kids):
        keys = kids[::2] if kind.tag in ("d", "od", "dd") else kids
        if atomic(keys):
            kind.refill(self, objs, head, kids)
            return

        def work():
            check_keys(keys)
            kind.refill(self, objs, head, kids)
        self.later(work)

    def made_codes(self):
        """The code objects of the restored functions."""
        return [o.__code__ for _, groups in self.levels for g in groups
                if g.kind.tag == "f" for o in g.objs if self.world.is_programs(o)]

    # -- reading --------------------------------------------------------------------------
    def end(self, mark):
        tag = mark[0]
        if tag == "b":
            return self.nodes[mark[1]]
        if tag == "r" or tag == "v":
            found = self.refs[mark[1]]
            if type(found) is tuple:
                found = self.world.module(*found)
            return found if tag == "r" or found is None else _module_dict(found)
        if tag == "x":
            return self.world.deleted
        self.parsers = self.parsers or mark[1] == "argparse"
        if mark[1] == "<main>":
            return self.world.namespace if mark[2] else self.world.main()
        found = self.world.names.lookup(mark[1], mark[2])
        if found is None:
            __import__(mark[1])
            found = self.world.names.lookup(mark[1], mark[2])
            if found is None:
                raise Unloadable("no " + mark[1] + "." + mark[2])
        return found

    def read(self, number=1):
        """All roots in their order. `number`: how many there are, if each has a stream."""
        stream = io.BytesIO(self.blob)
        stream.seek(_HEAD.size)
        load = _Reader(stream).load
        made = self.read_stream(load)
        if self.turns is not None:
            for _ in range(number - 1):
                self.levels, self.afterwards = [], []
                made += self.read_stream(load)
            out = [None] * len(made)
            for at, one in zip(self.turns, made):
                out[at] = one
            made = out
        if self.parsers:
            _known_suppress(self.nodes)
        return made

    def read_stream(self, load):
        """The roots of one stream."""
        while True:
            record = self.record(load)
            groups = self.groups(record)
            self.levels.append((record, groups))
            if not groups:
                break
            for g in groups:
                g.n, g.kids, g.head = load()
            self.make(groups)
            for g in groups:
                if g.kind.owned is not None:
                    self.nodes.extend(map(g.kind.owned, g.objs))
        self.make_shells()
        for functions in (True, False):
            for at in range(len(self.levels) - 2, -1, -1):
                if any([g.objs is None and g.kind.early and (g.kind.tag == "f") is functions
                        for g in self.levels[at][1]]):
                    self.make_late(at, functions)
        for at in range(len(self.levels) - 2, -1, -1):
            self.fill(at)
        for work in self.afterwards:
            work()
        return self.resolve(0)

    def own(self):
        """The fingerprint of what was read."""
        return sha256(memoryview(self.blob)[_HEAD.size:self.end_of_stream]).hexdigest()

    def make_shells(self):
        """Creates the blob's modules, empty, before functions use their dicts as globals."""
        for root, name in self.shells.items():
            at = 0
            for g in self.levels[0][1]:
                if g.kind.tag == "t":
                    break
                at += g.kids
            before = sum([mark == ("t",) for mark in self.roots(0)[:root]])
            at += sum(g.head[:before])
            flat = self.roots(1)[at:at + g.head[before]]
            self.world.shell(name, dict(zip(flat[::2], flat[1::2])))

    def roots(self, at):
        """The marks and atoms of a level, one by one."""
        record = self.levels[at][0]
        if isinstance(record, Mixed):
            atoms, met = iter(record.atoms), iter(record.met if type(record) is Met else ())
            return [next(atoms) if code == 0 else ("b", next(met)) if code == MET else record.marks[code - 1]
                    for code in record.codes]
        return [mark for mark, n in record.items() for _ in range(n)] if type(record) is dict else list(record)

    def record(self, load):
        """The record of a level: atoms, or the number of objects of one kind, or individual marks,
        or the positions of objects of which kinds among atoms."""
        record = load()
        if type(record) is int:
            return self.atoms(load, record)
        if record is None:
            codes, met = load(), load()
            found = Met(codes, *self.marks(load))
            found.met = met
            return found
        return Mixed(record, *self.marks(load)) if type(record) is bytes else record

    def marks(self, load):
        """The marks and atoms of a level that was written in bulk."""
        marks, atoms = load(), load()
        return marks, self.atoms(load, atoms) if type(atoms) is int else atoms

    def atoms(self, load, n):
        """Atoms that were written in pieces."""
        out = []
        while len(out) < n:
            out += load()
        return out

    def groups(self, record):
        """The groups of new objects in a level's record, in order of first appearance."""
        if type(record) is list:
            return []
        if type(record) is Mixed:
            return [self.run_of(mark, record.codes.count(at)) for at, mark in enumerate(record.marks, 1)]
        if type(record) is Met:
            return self.between(record)
        found = {}
        if type(record) is dict:
            (mark, n), = record.items()
            return [self.run_of(mark, n)]
        for mark in record:
            if type(mark) is tuple and mark[0] not in _ENDS:
                g = found.get(mark)
                if g is None:
                    g = found[mark] = self.group(mark)
                    g.ords = [] if self.mutable(g, mark) else None
                if g.ords is not None:
                    g.ords.append(len(self.nodes))
                    self.nodes.append(None)
        return list(found.values())

    def run_of(self, mark, n):
        """A group whose ordinals follow each other."""
        g = self.group(mark)
        g.ords = (len(self.nodes), n) if self.mutable(g, mark) else None
        if g.ords:
            self.nodes.extend([None] * n)
        return g

    def between(self, record):
        """The groups of a level with objects that were met before. Their ordinals are in its order."""
        groups = [self.group(mark) for mark in record.marks]
        numbered = list(enumerate(groups, 1))
        without = bytes([0, MET, *[at for at, g in numbered if not self.mutable(g, g.mark)]])
        codes = record.codes.translate(None, without)
        for at, g in numbered:
            g.ords = list(compress(count(len(self.nodes)), picked(codes, at))) if at not in without else None
        self.nodes.extend([None] * len(codes))
        return groups

    def group(self, mark):
        g = Group()
        g.mark, g.objs, g.kind = mark, None, None
        return g

    def mutable(self, g, mark):
        if mark[0] != "i":
            g.kind = BY_TAG.get(mark[0])
            if g.kind is None:
                raise Unloadable("kind " + repr(mark))
            return g.kind.mutable
        if mark[1][0] == "b" and self.nodes[mark[1][1]] is None:
            return mark[2]      # an instance next to its class: its kind is known once the class exists
        g.kind = self.world.kind(self.named(mark[1]))
        return g.kind.mutable

    def place(self, g):
        if g.ords is None:
            return
        if type(g.ords) is tuple:
            self.nodes[g.ords[0]:g.ords[0] + g.ords[1]] = g.objs
        else:
            for at, o in zip(g.ords, g.objs):
                self.nodes[at] = o

    def make(self, groups):
        for g in groups:
            if g.kind is not None and g.kind.tag in ("f", "T"):
                self.stored[id(g)] = [next(self.extras) for _ in range(g.n)]
        for g in groups:
            if g.kind is not None and g.kind.tag == "T":
                self.make_classes(g)
        for g in groups:
            if g.kind is None:
                g.kind = self.world.kind(self.named(g.mark[1]))
            if g.objs is None and g.kind.early:
                if g.kind.unserializable is not None:
                    raise Unloadable(g.kind.unserializable)
                g.objs = g.kind.make(self, g.head, g.n)
                if g.objs is not None:
                    self.place(g)

    def make_classes(self, g):
        """Makes the classes of a level: bases and metaclasses before the classes that are made from them."""
        ords = range(g.ords[0], sum(g.ords)) if type(g.ords) is tuple else g.ords
        made, todo = {}, dict(zip(ords, g.head))
        while todo:
            # If none can be made, the first one says what is missing.
            ready = [at for at, head in todo.items() if g.kind.can_be_made(self, head)] or [*todo][:1]
            for at in ready:
                made[at] = self.nodes[at] = g.kind.make_class(self, todo.pop(at))
        g.objs = [made[at] for at in ords]
        for cls, line in zip(g.objs, self.stored[id(g)]):
            if line is not None:
                # From Python 3.13 on, where `inspect` looks for it. A class that gets a module loses it.
                self.later(lambda cls=cls, line=line: type.__setattr__(cls, "__firstlineno__", line))

    def make_late(self, at, functions):
        """Restores functions, once every cell exists, then their wrappers: deeper levels first."""
        kids = self.resolve(at + 1, lenient=True)
        done = 0
        for g in self.levels[at][1]:
            part = kids[done:done + g.kids]
            done += g.kids
            if g.objs is not None or not g.kind.early or (g.kind.tag == "f") is not functions:
                continue
            g.objs, k = [], 0
            for i, head in enumerate(g.head):
                n = 8 + head[4] if g.kind.tag == "f" else g.kids // g.n
                g.objs.append(g.kind.make_one(self, head, part[k:k + n], self.stored[id(g)][i]
                                              if g.kind.tag == "f" else None))
                k += n
            self.place(g)

    def resolve(self, at, lenient=False):
        record, groups = self.levels[at]
        if type(record) is list:
            return record
        if type(record) is dict:
            objs = groups[0].objs
            return list(objs) if objs is not None else [None] * groups[0].n
        if isinstance(record, Mixed):
            sources = [iter(record.atoms)] + [iter(g.objs if g.objs is not None else [None] * g.n) for g in groups]
            if type(record) is Met:
                met = list(map(self.nodes.__getitem__, record.met))
                if not lenient and any(map(is_, met, repeat(None))):
                    raise Unloadable(_CYCLE)
                sources += [iter(())] * (MET - len(sources)) + [iter(met)]
            return list(map(next, map(sources.__getitem__, record.codes)))
        cursors = {g.mark: iter(g.objs if g.objs is not None else [None] * g.n) for g in groups}
        out = []
        for mark in record:
            if type(mark) is not tuple:
                out.append(mark)
            elif mark[0] in _ENDS:
                found = self.end(mark)
                if found is None and not lenient:
                    raise Unloadable(_CYCLE)
                out.append(found)
            else:
                out.append(next(cursors[mark]))
        return out

    def fill(self, at):
        kids, done = self.resolve(at + 1), 0
        groups = self.levels[at][1]
        for g in groups:
            part = kids if len(groups) == 1 else kids[done:done + g.kids]
            done += g.kids
            if g.kind.early:
                g.kind.fill(self, g.objs, g.head, part)
            else:
                g.objs = g.kind.build(self, g.head, part, g.n)
                self.place(g)


def _known_suppress(objs):
    """Parts of a parser of arguments are compared with `argparse.SUPPRESS`, which is a string, by identity."""
    suppress = sys.modules["argparse"].SUPPRESS
    for held in objs:
        if type(held) is dict:
            for key, value in held.items():
                if type(value) is str and value == suppress:
                    held[key] = suppress


def join(walk):
    """The blob of a finished walk that collected its extras."""
    extras = walk.extras if walk.turns is None else (walk.turns, walk.extras)
    return b"".join((_HEAD.pack(walk.sink.size), *walk.sink.parts, _dumps(extras, 4)))


def trial(world, walk, blob, inner, number):
    """None if loading the blob of a number of members gives the same stream, or else why the unit is
    unserializable."""
    return apart(_try, world, walk, blob, inner, number)


def _try(world, walk, blob, inner, number):
    load = Load(world, blob, walk.refs)
    try:
        made = load.read(number)

        def run(again):
            for roots in [made] if walk.turns is None else [[made[at]] for at in walk.turns]:
                again.run(roots)

        again = Walk(world, {id(made[i]) for i in inner}, extras=False)
        again.apart = frozenset([id(o) for o, was in zip(load.nodes, walk.order) if was in walk.apart])
        again.heirs = {id(o): walk.heirs[was] for o, was in zip(load.nodes, walk.order) if was in walk.heirs}
        run(again)
        again = parted(world, again.inner, again, run)
        if again.stream() != walk.stream():
            return "unfaithful"
        if [id(r) for r in again.refs] != [id(r) for r in walk.refs] or again.order != [id(o) for o in load.nodes]:
            return "unfaithful"
    except Unloadable as why:
        return str(why)
    except Exception as why:    # a class that cannot be restored is unserializable, whatever the reason
        return "unfaithful: " + type(why).__name__
    finally:
        _let_go(load.nodes)
    return None


class _Gone:
    """What classes derive from that were made to see whether they can be."""


def _let_go(objs):
    """Takes classes out of the subclasses of their bases, which hold them until the collector runs."""
    for cls in objs:
        if issubclass(type(cls), type) and lookup(type(cls), "mro") is type.__dict__["mro"]:
            try:
                _BASES.__set__(cls, (_Gone,))
            except TypeError:
                # Its instances have another layout.
                pass
