"""The texts of steps. Where a text moves and its code stays, functions get the new lines."""

from gc import get_objects
from linecache import cache
from types import CodeType, FunctionType

from _harness.loop.endings import file_of
from _harness.world.files import SOURCES


def remember(step, source):
    """Makes the source of a step available to tracebacks, warnings and `inspect`. Returns its file
    name."""
    file = file_of(step)
    SOURCES.add(file)
    # Without a time stamp it stays cached, although there is no such file.
    cache[file] = (len(source), None, source.splitlines(True), file)
    return file


class Moved:
    """By file name: the code of the present text, by the same code with the lines of an earlier one."""

    def __init__(self):
        self._codes = {}

    def to(self, step, source):
        """The step has this text now. Its code is the same."""
        file = file_of(step)
        shown = "".join(cache[file][2]) if file in cache else ""
        before, after = _codes(file, shown), _codes(file, source)
        if len(before) != len(after) or not all(map(_same, before, after)):
            return
        now, known = dict(zip(before, after)), self._codes.setdefault(file, {})
        for code, moved in known.items():
            known[code] = now.get(moved, moved)
        known.update(now)
        remember(step, source)

    def apply(self):
        """Gives the present lines to the functions that exist."""
        if not self._codes:
            return
        for one in get_objects():
            if type(one) is FunctionType:
                known = self._codes.get(one.__code__.co_filename)
                moved = known and known.get(one.__code__)
                if moved and moved is not one.__code__:
                    one.__code__ = moved


def _same(one, other):
    """Whether they differ at most in their lines, as far as the code itself shows."""
    return (one.co_qualname, one.co_code, one.co_names) == (other.co_qualname, other.co_code, other.co_names)


def _codes(file, source):
    """The code objects of a text, outermost first."""
    try:
        found = [compile(source, file, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for code in found:
        found += [inner for inner in code.co_consts if type(inner) is CodeType]
    return found
