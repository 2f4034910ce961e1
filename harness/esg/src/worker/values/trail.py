"""The result of a walk over a large plain value, so that the next walk can reuse it.

Between two walks most of a value stays the same. A level is written as before if its atoms are the same
objects and its containers have the same addresses, types and number of parts. If some atoms differ,
only their pieces are written again, unless the level has objects that were met before. From the first level with
another shape on, the walk continues without the trail.

The trail keeps atoms, dates and decimals, addresses and the stream. It keeps no container, so objects
that a program drops are freed at once. An atom that is held cannot share its address with another one. A
container can, and then counts as the former one: its content is the same.

A trail takes eight bytes for each atom and each container, and the size of the stream. Atoms that a step replaces live
until the step has been described.
"""
from collections import defaultdict
from itertools import chain, compress, repeat
from operator import countOf, is_, is_not

from _harness.values.klass import MEMBER
from _harness.values.layouts import Instance
from _harness.values.levels import CHUNK, MET, Met, picked, put_atoms
from _harness.values.shapes import ATOM_IDS, KINDS

_FEW = 512              # values with fewer objects keep no trail
_LONG = 64              # most bytes of the stream for each object
_MOST = 1 << 26         # most bytes of the stream
_SLOW = 64              # most objects of a level that was inspected one by one
_PLAIN = frozenset(map(id, (KINDS[list], KINDS[tuple], KINDS[dict], KINDS[defaultdict], KINDS[set], KINDS[frozenset])))
_DICT = KINDS[dict]


class Level:
    """One level. `cut`: how containers are distinguished from atoms. None: there are none; a number
    and a step: one column of them; bytes: for each object 0, the number of its group, or `MET`. `named`: whether
    classes or functions are among the atoms. `met`: where objects were met before, for each object whether its
    identity counts, and the addresses of these."""
    __slots__ = ("n", "cut", "atoms", "marks", "starts", "parts", "groups", "heads", "ids", "width", "named", "met")


class Group:
    """The containers of one kind on a level."""
    __slots__ = ("kind", "types", "mark", "head", "n", "held")


def kept(walk):
    """The levels of a finished walk that are worth keeping, or None."""
    found, walk.levels = walk.levels, None
    if found is None or walk.unserializable is not None or walk.notes or walk.codes or walk.extras or not walk.sure:
        return None
    number = sum([level.n if type(level) is Level else len(level[2]) for level in found])
    if number < _FEW or walk.sink.size > min(_LONG * number, _MOST):
        return None
    out, met = [], 0
    for level in found:
        if type(level) is not Level:
            level = _level(walk, *level)
            if level is None:
                return None
            number = sum([group.n for group in level.groups if group.kind.mutable])
            level.ids = walk.order[met:met + number]
        out.append(level)
        met += len(level.ids)
    return out


def _level(walk, begin, end, flat, summary, groups, width):
    """One level as recorded by the walk, or None if it cannot be followed."""
    level = Level()
    level.n, level.width, level.groups, level.named, level.met = len(flat), width, [], False, None
    if type(summary) is Met:
        level.met, summary = (summary.picks, summary.ids), (bytes(summary.codes), summary.atoms, None, ())
    level.cut, level.atoms, level.marks, level.starts = summary
    level.heads = [at - begin for *_, at in groups] + [end - begin]
    for kind, objs, head, kids, _ in groups:
        group = Group()
        group.kind, group.types, group.head, group.n = kind, _types(objs) if kind is MEMBER else [type(objs[0])], head, len(objs)
        group.held = objs[:] if kind.fixed else None
        if kind.fixed and kids:
            return None
        if not _alike(walk, group, objs) or not _follows(walk, group, objs):
            return None
        group.mark = kind.mark(walk)
        if len(group.mark) > 1 and group.mark[1][0] == "b":
            return None
        level.groups.append(group)
    if level.marks is not None:
        numbers = {group.mark: at for at, group in enumerate(level.groups, 1)}
        if level.n > _SLOW or len(numbers) < len(level.groups):
            return None
        level.named = any([_is_name(mark) for mark in level.marks])
        numbers.update([(mark, MET) for mark in level.marks if type(mark) is tuple and mark[0] == "b"])
        codes = [0 if type(mark) is not tuple or _is_name(mark) else numbers.get(mark) for mark in level.marks]
        if None in codes:
            return None
        level.cut = bytes(codes)
        level.atoms = list(compress(flat, picked(level.cut, 0)))
        if MET in codes:
            mutable = {at for at, group in enumerate(level.groups, 1) if group.kind.mutable} | {MET}
            picks = bytes([at in mutable for at in codes])
            level.met = picks, list(map(id, compress(flat, picks)))
    elif level.atoms is flat:
        # It may be a list of the program.
        level.atoms = flat[:]
    level.starts = [at - begin for at in level.starts]
    level.parts = walk.sink.parts[begin:end]
    return level


def _is_name(mark):
    """Whether a mark stands for a class or a function that is known by its name or its reference."""
    return type(mark) is tuple and mark[0] in ("g", "r")


def _same_names(walk, level, flat):
    """Whether the names and references of a level are what they were, in their order among the marks of containers."""
    for o, mark, code in zip(flat, level.marks, level.cut):
        if code and code != MET:
            level.groups[code - 1].kind.mark(walk)
        elif _is_name(mark) and walk.pick(o, type(o)) != mark:
            return False
    return True


def _types(objs):
    """The types of objects: usually one, or a few."""
    return list(dict(zip(map(id, map(type, objs)), map(type, objs))).values())


def _alike(walk, group, objs):
    """Whether the objects are of the types that they were of."""
    if len(group.types) == 1:
        if walk.types_compare_plainly():
            return countOf(map(type, objs), group.types[0]) == len(objs)
        return all(map(is_, map(type, objs), repeat(group.types[0])))
    return set(map(id, map(type, objs))) <= set(map(id, group.types))


def _follows(walk, group, objs):
    """Whether only the parts of such containers need inspection."""
    kind = group.kind
    if kind.fixed:
        return True
    if id(kind) in _PLAIN:
        return _plain_head(kind, group.head)
    if kind is MEMBER:
        return _plain_head(kind, group.head) and all([walk.usual(t, objs) is kind for t in group.types])
    t = group.types[0]
    return type(kind) is Instance and kind.plain and (walk.settled(t) or walk.usual(t, objs)) is kind


def _plain_head(kind, head):
    """Whether keys, if there are any, are plain data, and members of enums are known by their names."""
    if kind is MEMBER:
        return all([name is not None for _, name, _ in head])
    return kind is not _DICT or type(head) is tuple


class Follower:
    """Follows the trail of an earlier walk over the same value, as long as it matches."""

    def __init__(self, world, entry, beside=()):
        self.entry, self.levels, self.depth, self.met, self.same = entry, entry.trail, 0, 0, True
        self.beside, self.cut_off = beside, False
        if not entry.known.isdisjoint(world.spaces()):
            self.levels = ()

    def follow(self, walk, flat):
        """The parts of a level's objects, their width and the number of containers, after writing
        the level to the walk. None, without effect, if the level differs."""
        number, names = len(walk.refs), dict(walk.names)
        found = self._follow(walk, flat)
        if found is None:
            for r in walk.refs[number:]:
                del walk.ref_at[id(r)]
            del walk.refs[number:]
            walk.names = names
        return found

    def _follow(self, walk, flat):
        if self.depth == len(self.levels):
            return None
        level = self.levels[self.depth]
        if len(flat) != level.n and level.cut is not None:
            return None
        atoms, sorted_out = _cut(level, flat)
        other = ()
        if len(flat) != level.n or not all(map(is_, atoms, level.atoms)):
            other = _others(level, atoms)
            if other is None:
                return None
        for group, objs in zip(level.groups, sorted_out):
            if not _alike(walk, group, objs) or not _follows(walk, group, objs):
                return None
        if level.met is not None:
            if other or list(map(id, compress(flat, level.met[0]))) != level.met[1]:
                return None
        elif level.ids and _ids(level, flat, sorted_out) != level.ids:
            return None
        # As in a walk, the marks of a level come before what its objects refer to.
        if level.named and (other or not _same_names(walk, level, flat)):
            return None
        if any([group.kind.mark(walk) != group.mark for group in level.groups]):
            return None
        if self.same and not other and self._leads_beside(level):
            self.cut_off = True
            return [], 0, 0
        found, heads = [], []
        for group, objs in zip(level.groups, sorted_out):
            if group.held is not None and all(map(is_, objs, group.held)):
                found.append([])
                heads.append(None)
                continue
            head, kids = group.kind.split(walk, objs)
            same = group.held is None and _same_head(group, head)
            if not same and (kids if group.held is not None else not _plain_head(group.kind, head)):
                return None
            found.append(kids)
            heads.append(None if same else head)
        if len(flat) == level.n and not other and not any(map(is_not, heads, repeat(None))):
            walk.sink.extend(level.parts)
            walk.repeats = walk.repeats or level.met is not None
        elif level.met is not None:
            return None
        else:
            self.same = False
            level = _rewritten(walk, level, atoms, other, heads, found, sorted_out)
        walk.levels.append(level)
        self.depth += 1
        self.met += len(level.ids)
        number = sum([group.n for group in level.groups])
        return found[0] if len(found) == 1 else list(chain.from_iterable(found)), level.width, number

    def _leads_beside(self, level):
        """Whether everything that follows from a level is a part of another member, and as it was."""
        return bool(level.ids) and all([group.kind.mutable for group in level.groups]) and \
            any([ids.issuperset(level.ids) for ids in self.beside])

    def leave(self, walk):
        """The walk continues without the trail, with what the earlier levels contain marked as met."""
        self.same = False
        walk.order = self.entry.ids[:self.met]
        walk.known = set(walk.order)

    def arrive(self, walk):
        """The walk is complete: it met the same objects as the earlier one. The members of two enums may have
        changed places."""
        self.same = self.same and (self.cut_off or len(walk.refs) == len(self.entry.refs)) and \
            all(map(is_, walk.refs, self.entry.refs))
        walk.order, walk.known = self.entry.ids, self.entry.known


def _cut(level, flat):
    """The atoms of a level, and the containers of each group."""
    cut = level.cut
    if cut is None:
        return flat, ()
    if type(cut) is bytes:
        return list(compress(flat, picked(cut, 0))), \
            [list(compress(flat, picked(cut, at))) for at in range(1, len(level.groups) + 1)]
    at, step = cut
    if step == 1:
        return (), [flat]
    atoms = flat[:]
    del atoms[at::step]
    return atoms, [flat[at::step]]


def _others(level, atoms):
    """The numbers of the pieces with changed atoms. None if not all are atoms."""
    found, size = set(), CHUNK if level.marks is None else _SLOW
    for at in range(0, len(atoms), size):
        piece, before = atoms[at:at + size], level.atoms[at:at + size]
        if len(piece) != len(before) or not all(map(is_, piece, before)):
            if not set(map(id, map(type, piece))) <= ATOM_IDS:
                return None
            found.add(at // size)
    return found


def _ids(level, flat, sorted_out):
    """The addresses of mutable objects, in the order in which the walk met them."""
    if level.marks is not None:
        mutable = [False] + [group.kind.mutable for group in level.groups]
        return [id(o) for o, at in zip(flat, level.cut) if mutable[at]]
    ids = []
    for group, objs in zip(level.groups, sorted_out):
        if group.kind.mutable:
            ids += map(id, objs)
    return ids


def _same_head(group, head):
    """Whether containers have as many parts as before, under the same keys."""
    old = group.head
    if group.kind is not _DICT:
        return head == old      # numbers, or nothing
    if type(head) is not tuple or len(head) != len(old):
        return False
    if len(head) == 2:
        return head == old      # numbers and strings
    return head[0] == old[0] and len(head[2]) == len(old[2]) and all(map(is_, head[2], old[2]))


def _rewritten(walk, old, atoms, other, heads, found, sorted_out):
    """Writes a level with other atoms in some pieces, and other heads of some groups. -> the level"""
    sink, level = walk.sink, Level()
    begin = len(sink.parts)
    level.cut, level.ids, level.marks, level.atoms = old.cut, old.ids, old.marks, old.atoms
    level.named, level.met = old.named, None
    level.n = old.n if old.cut is not None else len(atoms)
    if other or level.n != old.n:
        level.atoms = atoms[:]
        _write_atoms(walk, level, old, other, begin)
    else:
        level.starts = old.starts
        sink.extend(old.parts[:old.heads[0]])
    level.groups, level.heads = [], []
    for at, (group, head) in enumerate(zip(old.groups, heads)):
        level.heads.append(len(sink.parts) - begin)
        if head is None:
            sink.extend(old.parts[old.heads[at]:old.heads[at + 1]])
        else:
            walk.put((group.n, len(found[at]), head))
            group = _with_head(group, head, sorted_out[at])
        level.groups.append(group)
    level.heads.append(len(sink.parts) - begin)
    level.parts = sink.parts[begin:]
    level.width = level.groups[0].kind.width(level.groups[0].head) if len(level.groups) == 1 else 0
    return level


def _write_atoms(walk, level, old, other, begin):
    """Writes what comes before the heads of a level."""
    sink, starts = walk.sink, old.starts
    if level.n != old.n:
        if min(level.n, old.n) <= CHUNK:
            level.starts = [at - begin for at in put_atoms(walk, level.atoms)]
            return
        walk.put(level.n)
    else:
        sink.extend(old.parts[:starts[0]])
    level.starts, pieces = [], range(0, len(level.atoms), CHUNK)
    if old.marks is not None:
        rest = iter(level.atoms)
        level.marks = tuple([mark if code else next(rest) for mark, code in zip(old.marks, old.cut)])
        pieces = (0,)
    for number, at in enumerate(pieces):
        level.starts.append(len(sink.parts) - begin)
        if number in other:
            walk.put(level.atoms[at:at + CHUNK] if level.marks is None else level.marks)
        else:
            sink.extend(old.parts[starts[number]:starts[number + 1]])
    level.starts.append(len(sink.parts) - begin)


def _with_head(old, head, objs):
    group = Group()
    group.kind, group.types, group.mark, group.n, group.head = old.kind, old.types, old.mark, old.n, head
    group.held = objs[:] if old.held is not None else None
    return group
