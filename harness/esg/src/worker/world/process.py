"""State of the whole process that steps share: the `random` module, working directory, environment,
`sys.path`, warning filters.

Stand-ins for the functions that read or replace it record its use, so a step that uses none of them
has no overhead.
"""

import hashlib
import json
import operator
import os
import random
import re
import struct
import sys
import warnings

from _harness.values import standins
from _harness.world.ambient import PREFIX, Ambients
from _harness.world.settings import CAPTURED

_dumps = json.dumps
_loads = json.loads
_sha = hashlib.sha256
_is = operator.is_
_fsdecode = os.fsdecode
_join = os.path.join
_RNG = struct.Struct("<625I")
_sys, _warnings = vars(sys), vars(warnings)


class Process:
    """The `p:` entities."""

    NAMES = ("rng", "cwd", "env", "path", "warn")

    def __init__(self, events, scratch, ambient=()):
        self.events = events
        self.scratch = scratch
        self.untracked = []
        # By entity, how the step first used it: "read", or "replaced" without a read.
        self.first = {}
        self._get = {name: getattr(self, f"_get_{name}") for name in self.NAMES}
        self._put = {name: getattr(self, f"_put_{name}") for name in self.NAMES}
        self._real_getcwd = standins.original(os.getcwd)
        # What packages set while they were imported.
        self._own_env, self._before_import = {}, set()
        self._own_filters, self._filters_before = [], []
        random.seed(0)
        self.known = {name: self._get[name]() for name in self.NAMES}
        self.initial = dict(self.known)
        # What the working directory is to be, which may not exist yet.
        self._cwd = self.known["cwd"]
        self.ambient = Ambients(events, ambient)
        self._path_list = sys.path
        self._install_random()
        self._install_environment()
        self._install_rest()

    # What steps do.

    def begin(self):
        self.first = {}
        self.untracked = []
        self.ambient.begin()
        warnings.onceregistry.clear()

    def read(self, name):
        """The step read this state."""
        if self.events.running:
            self.first.setdefault(name, "read")

    def replaced(self, name):
        """The step replaced this state. If it had not read it before, its former value is not an
        input."""
        if self.events.running:
            self.first.setdefault(name, "replaced")

    def inherited(self):
        """The step started a process, which began with the environment and the working directory."""
        for name in ("env", "cwd"):
            self.first.setdefault(name, "read")

    def warned(self, namespace):
        """If code of the step issued a warning, visible or not, the filters were used."""
        if dict.__contains__(namespace, "__warningregistry__"):
            self._warns()

    def _warns(self):
        self.read("warn")
        self.ambient.uses(CAPTURED)

    def end(self, tops=(), names=frozenset()):
        """`(reads, wrote)`. `wrote` maps entities to how they were written. `tops` and `names`: the
        packages that the step used, and what its code names."""
        reads, wrote = self._end()
        more, changed = self.ambient.end(tops, names)
        reads += [f"p:{name}" for name in more]
        wrote.update((f"p:{name}", "mutated") for name in changed)
        return reads, wrote

    def _end(self):
        first = self.first
        # State that was replaced without a read counts as written even if it is unchanged: its former
        # value is not an input, so nothing else records that this step made it so.
        changed = []
        if first:
            changed = [
                name
                for name in ("rng", "cwd", "env")
                if name in first and (self._refresh(name) or first[name] == "replaced")
            ]
        if not _same(sys.path, self.known["path"]) or sys.path is not self._path_list:
            if self._refresh("path"):
                changed.append("path")
        if not _same(self._filters(), self.known["warn"]):
            if self._refresh("warn"):
                changed.append("warn")
        if not first and not changed:
            return [], {}
        reads = [f"p:{name}" for name, how in first.items() if how == "read"]
        wrote = {}
        for name in changed:
            wrote[f"p:{name}"] = "bound" if first.get(name) == "replaced" else "mutated"
        return reads, wrote

    def still(self):
        """Whether state that changes without an event is unchanged."""
        path, filters = _sys.get("path"), self._filters()
        same = path is self._path_list and _same(path, self.known["path"]) and _same(filters, self.known["warn"])
        return same and self.ambient.still()

    def _refresh(self, name):
        now = self._get[name]()
        was = self.known[name]
        if name in ("path", "warn"):
            self._path_list = sys.path
            same = _same(now, was) or self._equal(name, now, was)
        else:
            same = type(now) is type(was) and now == was
        self.known[name] = now
        if name == "cwd":
            self._cwd = now
        return not same

    def _equal(self, name, now, was):
        try:
            return self._encode(name, now) == self._encode(name, was)
        except (TypeError, ValueError):
            return False

    # Storing and restoring.

    def member(self, name):
        """`(own, blob, reason)` of the state as recorded."""
        if name.startswith(PREFIX):
            return self.ambient.member(name)
        try:
            blob = self._encode(name, self.known[name])
        except (TypeError, ValueError, struct.error) as failure:
            return _sha(repr(type(self.known[name])).encode()).hexdigest(), None, f"value {failure}"
        return _sha(f"p:{name}\0".encode() + blob).hexdigest(), blob, None

    def names(self):
        """All there are."""
        return (*self.NAMES, *self.ambient.active)

    def is_open(self, name):
        """Whether the content of the state has no fingerprint."""
        return name.startswith(PREFIX) and self.ambient.is_open(name)

    def keep(self, name):
        """The state, to be set again in this process."""
        return self.ambient.keep(name) if name.startswith(PREFIX) else self.known[name]

    def drop(self, name):
        """Resets the state to that of the start of the process."""
        if name.startswith(PREFIX):
            self.ambient.drop(name)
            return
        self.set(name, self.initial[name])

    def load(self, name, blob):
        """Restores stored state."""
        if name.startswith(PREFIX):
            self.ambient.load(name, blob)
            return
        self.set(name, self._decode(name, blob))

    def set(self, name, state):
        """Makes the state what it was in this process."""
        if name.startswith(PREFIX):
            self.ambient.set(name, state)
            return
        self._put[name](state)
        self.known[name] = self._get[name]()
        if name == "cwd":
            self._cwd = state

    def settle(self):
        """A directory that was removed and made again is another one: the process enters that."""
        if self._get_cwd() != self._cwd:
            self._put_cwd(self._cwd)
            self.known["cwd"] = self._get_cwd()

    def unattributed(self):
        """Changes outside any step."""
        changed = [name for name in self.NAMES if self._refresh(name)]
        return [f"p:{name}" for name in changed + self.ambient.changed_outside()]

    def _encode(self, name, state):
        if name == "rng":
            version, words, gauss = state
            if version != 3:
                raise ValueError("random state of an unknown version")
            return _RNG.pack(*words) + (b"" if gauss is None else struct.pack("<d", gauss))
        if name == "warn":
            return _dumps([_encode_filter(entry) for entry in state]).encode()
        if name == "path" and any(type(entry) is not str for entry in state):
            raise TypeError("an entry of sys.path is no text")
        if name == "env":
            state = [[key.hex(), value.hex()] for key, value in state]
        return _dumps(state).encode()

    def _decode(self, name, blob):
        if name == "rng":
            rest = blob[_RNG.size :]
            gauss = struct.unpack("<d", rest)[0] if rest else None
            return 3, _RNG.unpack(blob[: _RNG.size]), gauss
        state = _loads(blob)
        if name == "warn":
            return [_decode_filter(entry) for entry in state]
        if name == "env":
            return [(bytes.fromhex(key), bytes.fromhex(value)) for key, value in state]
        return state

    def _get_rng(self):
        return _getstate()

    def _put_rng(self, state):
        _setstate(state)

    def _get_cwd(self):
        try:
            now = self._real_getcwd()
        except OSError:
            return None
        if now == self.scratch or now.startswith(self.scratch + "/"):
            return "./" + now[len(self.scratch) + 1 :]
        return now

    def _put_cwd(self, state):
        where = self.scratch if state is None else _join(self.scratch, state)
        try:
            os.chdir(where)
        except OSError:
            os.chdir(self.scratch)

    def importing(self):
        """A package will be imported. The step may have changed the environment before."""
        self._before_import = set(os.environ._data.items())
        self._filters_before = list(warnings.filters)

    def imported(self):
        """A package was imported. What it set in the environment, and its warning filters, are no state
        of the program."""
        before = set(map(id, self._filters_before))
        self._own_filters += [entry for entry in warnings.filters if id(entry) not in before]
        for key, value in os.environ._data.items():
            if (key, value) not in self._before_import and key not in self._own_env:
                self._own_env[key] = value
        self.known["env"] = [(key, value) for key, value in self.known["env"] if key not in self._own_env]

    def _get_env(self):
        own = self._own_env
        return [(key, value) for key, value in os.environ._data.items() if own.get(key) != value]

    def _put_env(self, state):
        have = os.environ._data
        if self._get_env() == state:
            return
        state = [*state, *((key, value) for key, value in self._own_env.items() if key not in dict(state))]
        for key in list(have):
            os.unsetenv(key)
        have.clear()
        for key, value in state:
            os.putenv(key, value)
            have[key] = value

    def _get_path(self):
        return list(sys.path)

    def _put_path(self, state):
        if sys.path is not self._first_path:
            sys.path = self._first_path
        sys.path[:] = state

    def _get_warn(self):
        now = self._filters()
        return list(now)

    def _filters(self):
        """The warning filters, without those of packages."""
        now = _warnings.get("filters")
        if not self._own_filters or type(now) is not list:
            return now
        own = set(map(id, self._own_filters))
        return [entry for entry in now if id(entry) not in own]

    def _put_warn(self, state):
        warnings.filters[:] = [*self._own_filters, *state]
        warnings._filters_mutated()

    # The stand-ins.

    def _install_random(self):
        """The functions of the module are methods of one hidden generator."""
        self._first_path = sys.path
        hidden = random._inst
        for name, method in list(vars(random).items()):
            if getattr(method, "__self__", None) is not hidden:
                continue
            replaces = name in ("seed", "setstate")
            # Of the current class: the module's own methods were bound at its import.
            method = getattr(hidden, name)
            standins.install(random, name, self._drawing(method, replaces), raw=True)

    def _drawing(self, method, replaces):
        events = self.events
        first = self

        def draw(_self, /, *args, **named):
            if events.running:
                first.first.setdefault("rng", "read")
            return method(*args, **named)

        def replace(_self, /, *args, **named):
            try:
                answer = method(*args, **named)
            except BaseException:
                first.read("rng")
                raise
            first.replaced("rng")
            return answer

        return replace if replaces else draw

    def _install_environment(self):
        """All access to the environment, including `environb`, uses one class."""
        kind = type(os.environ)
        for name in ("__getitem__", "__iter__", "__len__", "__repr__", "copy", "setdefault"):
            setattr(kind, name, _noting(kind.__dict__[name], lambda: self.read("env")))
        for name in ("__setitem__", "__delitem__"):
            setattr(kind, name, _noting(kind.__dict__[name], lambda: self.read("env")))

    def _install_rest(self):
        real_cwd, real_cwdb = self._real_getcwd, os.getcwdb

        def getcwd():
            self.read("cwd")
            return real_cwd()

        def getcwdb():
            self.read("cwd")
            return real_cwdb()

        standins.install(os, "getcwd", getcwd)
        standins.install(os, "getcwdb", getcwdb)
        real_warn = warnings.warn

        def warn(message, category=None, stacklevel=1, source=None, **named):
            self._warns()
            # This function and the stand-in's add two frames.
            return real_warn(message, category, max(stacklevel, 1) + 2, source, **named)

        standins.install(warnings, "warn", warn)
        real_explicit = warnings.warn_explicit

        def warn_explicit(*args, **named):
            self._warns()
            return real_explicit(*args, **named)

        standins.install(warnings, "warn_explicit", warn_explicit)
        self.events.listen("os.chdir", self._chdir)

    def _chdir(self, _event, args):
        path = args[0]
        if type(path) is int:
            self.replaced("cwd")
            return
        path = _fsdecode(path)
        (self.replaced if path.startswith("/") else self.read)("cwd")


_getstate = random.getstate
_setstate = random.setstate


def _noting(real, note):
    def method(self, /, *args, **named):
        note()
        return real(self, *args, **named)

    method.__name__ = real.__name__
    method.__qualname__ = real.__qualname__
    method.__module__ = real.__module__
    method.__doc__ = real.__doc__
    return method


def _same(now, was):
    """Whether two lists hold the same objects, without running their code."""
    return type(now) is list and len(now) == len(was) and all(map(_is, now, was))


def _encode_filter(entry):
    action, message, category, module, line = entry
    home = sys.modules.get(category.__module__)
    found = getattr(home, category.__qualname__, None) if home is not None else None
    if found is not category or category.__module__ == "__main__":
        raise TypeError("a warning filter names a class of the program")
    return [action, _pattern(message), category.__module__, category.__qualname__, _pattern(module), line]


def _decode_filter(entry):
    action, message, module, name, where, line = entry
    __import__(module)
    category = getattr(sys.modules[module], name)
    return action, _compiled(message), category, _compiled(where), line


def _pattern(pattern):
    if pattern is None or type(pattern) is str:
        return pattern
    return [pattern.pattern, pattern.flags]


def _compiled(pattern):
    if type(pattern) is list:
        return re.compile(*pattern)
    return pattern
