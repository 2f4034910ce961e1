"""Ambient channels: named state inside packages that programs set on purpose.

Everything else inside a package counts as its caches and constants. A channel says how its state is
read, restored and written down, and which steps depend on it. Its code runs once its module is
loaded; what the module set while it was loaded is the initial state.
"""

import importlib
import marshal
import sys
from _pickle import Pickler, Unpickler
from hashlib import sha256
from io import BytesIO
from types import CellType, CodeType, FunctionType

from _harness.world.settings import ALL, TABLE, Ambient, Unstorable

_modules = sys.modules
PREFIX = "ambient/"


class _Writer(Pickler):
    def persistent_id(self, value):
        """A function of the program, such as one that formats numbers, without the lines of its source."""
        if type(value) is not FunctionType or value.__globals__ is not vars(_modules["__main__"]):
            return None
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return marshal.dumps(_bare(value.__code__), 2), value.__name__, value.__defaults__, value.__kwdefaults__, cells

    def reducer_override(self, value):
        """Classes of the program are no plain data."""
        if getattr(value, "__module__", None) == "__main__":
            raise Unstorable("an object of the program")
        return NotImplemented


class _Reader(Unpickler):
    def persistent_load(self, packed):
        code, name, defaults, named, cells = packed
        made = FunctionType(marshal.loads(code), vars(_modules["__main__"]), name, defaults, tuple(map(CellType, cells)))
        made.__kwdefaults__ = named
        return made


def _bare(code):
    """The code as if it stood nowhere."""
    inner = tuple([_bare(one) if type(one) is CodeType else one for one in code.co_consts])
    return code.replace(co_consts=inner, co_firstlineno=1, co_linetable=b"")


def encode(state):
    """The state as bytes. Equal states give equal bytes, whatever objects they share."""
    into = BytesIO()
    pickler = _Writer(into, 4)
    pickler.fast = True
    try:
        pickler.dump(state)
    except Unstorable:
        raise
    except Exception as why:
        raise Unstorable(f"type {type(state).__name__}: {why}") from None
    return into.getvalue()


def decode(blob):
    """The state."""
    return _Reader(BytesIO(blob)).load()


def fingerprint(name, blob):
    """The fingerprint of stored state."""
    return sha256(f"p:{name}\0".encode() + blob).hexdigest()


class Given:
    """The functions `read` and `restore` of a user's source."""

    def __init__(self, name, source):
        self.scope = {"__name__": "_harness.given"}
        exec(compile(source, f"<ambient:{name}>", "exec", dont_inherit=True), self.scope)

    def read(self):
        """The state."""
        return self.scope["read"]()

    def restore(self, state):
        """Sets it."""
        self.scope["restore"](state)


class Ambients:
    """The channels whose modules are loaded, as entities `p:ambient/...`."""

    def __init__(self, events, given=()):
        self.events = events
        self.waiting = {PREFIX + one.name: one for one in TABLE}
        for name, module, source in given:
            self.waiting[PREFIX + name] = Ambient(name, module, *_lazy(name, source))
        self.active = {}
        # By entity: the state as bytes, or the object that cannot be written down.
        self.known, self.initial = {}, {}
        # What the step used beyond what its code shows.
        self.used = set()
        # The objects of the program that the state refers to, and whether the step used that. None where they are as
        # they were.
        self.held = None
        self._restored = False
        # The module of a name, in sight or not.
        self.find = _modules.get
        # By entity: what was before an import.
        self._before = {}
        self.discover()

    def importing(self):
        """A package will be imported."""
        self._before = {
            name: one.imports[0]() if one.imports is not None else self._now(name)
            for name, one in self.active.items()
            if one.module in _modules and (one.imports is not None or self.known[name] == self.initial[name])
        }

    def imported(self):
        """It was imported."""
        # What it refers to would look as if the program held it.
        before, self._before = self._before, {}
        while before:
            name, was = before.popitem()
            one = self.active[name]
            if one.imports is not None:
                one.imports[1](was)
            elif was == self.known[name]:
                self.known[name] = self.initial[name] = self._now(name)
        self.discover()

    def discover(self):
        """Modules were loaded."""
        if not self.waiting:
            return
        for name, one in list(self.waiting.items()):
            if one.module in _modules and not _loading(one.module):
                del self.waiting[name]
                self.active[name] = one
                if one.start is not None:
                    one.start()
                if one.observe is not None and one.observe(self._noting(name)) is False:
                    # Any step may use it.
                    one.packages = ALL
                self.known[name] = self.initial[name] = self._now(name)

    def appeared(self, name):
        """A module was loaded. What the step sets in it from here on is no initial state."""
        if any([one.module == name for one in self.waiting.values()]):
            self.discover()

    def _noting(self, name):
        """Makes functions that note the use of a channel, whichever code calls them."""
        events, used = self.events, self.used

        def noting(real):
            def method(*args, **named):
                if events.running:
                    used.add(name)
                return real(*args, **named)

            method.__name__, method.__qualname__ = real.__name__, real.__qualname__
            method.__module__, method.__doc__, method.__wrapped__ = real.__module__, real.__doc__, real  # type: ignore[attr-defined]
            return method

        return noting

    def _now(self, name):
        state = self.active[name].read()
        try:
            return encode(state)
        except Unstorable as why:
            return why

    def begin(self):
        """Right before a step. Loading its values may have imported modules."""
        self.used.clear()
        self.discover()

    def end(self, tops, names):
        """`(reads, changed)` of the step, which used these top-level packages and names."""
        self.discover()
        reads, changed = [], []
        self.held = None
        for name, one in self.active.items():
            uses = name in self.used or one.uses(tops, names)
            # A module that is out of sight, as before the import of a later step, has no state to see.
            if one.module not in _modules:
                continue
            if one.holds is not None and (uses or self._restored):
                self.held, self._restored = (one.holds(), uses), False
            if not uses and one.packages:
                continue
            try:
                now = self._now(name)
            except Exception as failure:
                self.events.failures.append(f"{name}: {failure!r}")
                continue
            was = self.known[name]
            same = type(now) is bytes and now == was
            self.known[name] = now
            if uses or not same:
                reads.append(name)
            if not same:
                changed.append(name)
        return reads, changed

    def uses(self, name):
        """Code uses a channel without naming it."""
        if self.events.running:
            self.used.add(PREFIX + name)

    def still(self):
        """Whether nothing used a channel."""
        return not self.used

    def member(self, name):
        """`(own, blob, reason)` of the state as recorded."""
        state = self.known[name]
        if type(state) is bytes:
            return fingerprint(name, state), state, None
        return sha256(name.encode()).hexdigest(), None, str(state)

    def is_open(self, name):
        """Whether only the code that made the state can make it again."""
        return type(self.known.get(name)) is not bytes

    def keep(self, name):
        """The state, to be set again in this process."""
        state = self.known[name]
        if type(state) is not bytes and self.active[name].keep is not None:
            return self.active[name].keep()
        return state

    def drop(self, name):
        """Resets the state to that after the import."""
        if name in self.active:
            self.set(name, self.initial[name])

    def load(self, name, blob):
        """Restores stored state."""
        if name in self.waiting:
            was, self.events.running = self.events.running, False
            try:
                importlib.import_module(self.waiting[name].module)
            finally:
                self.events.running = was
            self.discover()
        self.set(name, bytes(blob))

    def set(self, name, state):
        """Makes the state what it was."""
        module = self.active[name].module
        if module in _modules:
            self._set(name, state)
            return
        # Out of sight, as before the import of a later step. It has its state there, too.
        _modules[module] = self.find(module)
        try:
            self._set(name, state)
        finally:
            del _modules[module]

    def _set(self, name, state):
        self._restored = self._restored or self.active[name].holds is not None
        if callable(state):
            state()
        elif type(state) is not bytes:
            raise ValueError(f"{name} is lost: {state}")
        elif state != self._now(name):
            self.active[name].restore(decode(state))
        self.known[name] = self._now(name)

    def changed_outside(self):
        """Channels that changed while no step ran."""
        found = []
        for name, one in self.active.items():
            if one.module not in _modules:
                continue
            now = self._now(name)
            if type(now) is bytes and now != self.known[name]:
                self.known[name] = now
                found.append(name)
        return found


def _lazy(name, source):
    given = []

    def of():
        if not given:
            given.append(Given(name, source))
        return given[0]

    return (lambda: of().read()), (lambda state: of().restore(state))


def _loading(name):
    spec = getattr(_modules[name], "__spec__", None)
    return spec is not None and spec.__dict__.get("_initializing", False)
