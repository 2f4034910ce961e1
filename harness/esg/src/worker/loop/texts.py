"""The texts of steps. Where a text moves and its code stays, functions get the new lines."""

import __future__

from gc import get_objects
from linecache import cache
from types import CodeType, FunctionType

from _harness.loop.endings import file_of, step_of
from _harness.world.files import SOURCES

_mapping, _QUALNAME = type.__dict__["__dict__"].__get__, type.__dict__["__qualname__"].__get__
_DEFERRED = __future__.annotations.compiler_flag


class Text(tuple):
    """What `linecache` keeps of a step. Notes whose lines are looked up, by `inspect.getsource` or for a traceback."""

    __slots__ = ()
    shown: set[str] = set()

    def __getitem__(self, at):
        if at == 2:
            Text.shown.add(step_of(tuple.__getitem__(self, 3)))
        return tuple.__getitem__(self, at)


def remember(step, source):
    """Makes the source of a step available to tracebacks, warnings and `inspect`. Returns its file
    name."""
    file = file_of(step)
    SOURCES.add(file)
    # Without a time stamp it stays cached, although there is no such file.
    cache[file] = Text((len(source), None, source.splitlines(True), file))
    return file


def deferred(step, source, namespace):
    """The code of a step whose annotations stay texts, as an earlier step has imported that from
    `__future__`. None if that makes no difference to it."""
    if dict.get(namespace, "annotations") is not __future__.annotations:
        return None
    file = file_of(step)
    plain, texts = _codes(file, source), _codes(file, source, _DEFERRED)
    return None if len(plain) == len(texts) and all(map(_same, plain, texts)) else texts[0]


class Moved:
    """By file name: the code of the present text, by the same code with the lines of an earlier one."""

    def __init__(self):
        self._codes = {}

    def to(self, step, source):
        """The step has this text now. Its code is the same."""
        file = file_of(step)
        shown = "".join(tuple.__getitem__(cache[file], 2)) if file in cache else ""
        before, after = ([*_codes(file, text), *_codes(file, text, _DEFERRED)] for text in (shown, source))
        if len(before) != len(after) or not all(map(_same, before, after)):
            return
        now, known = dict(zip(before, after)), self._codes.setdefault(file, {})
        for code, moved in known.items():
            known[code] = now.get(moved, moved)
        known.update(now)
        remember(step, source)

    def apply(self):
        """Gives the present lines to the functions and classes that exist."""
        if not self._codes:
            return
        lines = {(code.co_qualname, code.co_firstlineno): moved.co_firstlineno
                 for known in self._codes.values() for code, moved in known.items()}
        for one in get_objects():
            if type(one) is FunctionType:
                known = self._codes.get(one.__code__.co_filename)
                moved = known and known.get(one.__code__)
                if moved and moved is not one.__code__:
                    one.__code__ = moved
            elif issubclass(type(one), type) and _mapping(one).get("__module__") == "__main__":
                # From Python 3.13 on.
                line = _mapping(one).get("__firstlineno__")
                now = lines.get((_QUALNAME(one), line), line)
                if now is not line:
                    type.__setattr__(one, "__firstlineno__", now)


def _same(one, other):
    """Whether they differ at most in their lines, as far as the code itself shows."""
    return (one.co_qualname, one.co_code, one.co_names) == (other.co_qualname, other.co_code, other.co_names)


def _codes(file, source, flags=0):
    """The code objects of a text, outermost first."""
    try:
        found = [compile(source, file, "exec", flags, dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for code in found:
        found += [inner for inner in code.co_consts if type(inner) is CodeType]
    return found
