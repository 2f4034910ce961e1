"""Fills many similar containers from one flat list, without a line of Python for each."""
from collections import deque
from itertools import islice

_FEW = 64               # below this many containers a function is not worth making
_WIDE = 40              # above this many keys a row is not worth it
_fillers = {}           # number of keys -> function


def same_length(lens):
    """The length of all, or None if the lengths differ."""
    return lens[0] if lens and lens.count(lens[0]) == len(lens) else None


def in_runs(values, n):
    """The values, `n` at a time, as tuples."""
    return zip(*[iter(values)] * n)


def fill_lists(objs, n, values):
    """Fills empty lists, each with the next `n` values."""
    deque(map(list.extend, objs, in_runs(values, n)), 0)


def new_rows(row, n):
    """Dicts with the keys of a row, to be filled."""
    if n < _FEW or not 0 < len(row) < _WIDE:
        return [{} for _ in range(n)]
    model = dict.fromkeys(row)
    return [model.copy() for _ in range(n)]


def fill_rows(objs, row, values):
    """Fills dicts that all get the keys of one row."""
    if len(objs) >= _FEW and 0 < len(row) < _WIDE:
        (_fillers.get(len(row)) or _filler(len(row)))(objs, row, iter(values))
        return
    values = iter(values)
    for o in objs:
        o.update(zip(row, islice(values, len(row))))


def _filler(n):
    """`for o, v0, v1 in zip(objs, values, values): o[k0] = v0; o[k1] = v1`, for `n` keys."""
    keys = "".join(["k%d, " % i for i in range(n)])
    parts = "".join(["v%d, " % i for i in range(n)])
    puts = "; ".join(["o[k%d] = v%d" % (i, i) for i in range(n)])
    source = "def fill(objs, row, values):\n    %s = row\n    for o, %s in zip(objs, %s): %s" % (
        keys, parts, "values, " * n, puts)
    made = {}
    exec(compile(source, "<_harness.values.rows>", "exec", dont_inherit=True), made)
    _fillers[n] = made["fill"]
    return made["fill"]
