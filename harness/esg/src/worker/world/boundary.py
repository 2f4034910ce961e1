"""The boundary of the program: what happens while a package is imported is the environment's.

A package is an installed distribution or a part of the standard library. Its import happens once in
a worker, whichever step comes first. So nothing that it does counts as an action of that step, and
what it leaves in state that steps share is no state of the program.
"""

import os
import random
import sys
import types

from _harness.values.compat import FIXED as _IMMUTABLE, FLAGS as _FLAGS, threads
from _harness.values.trusted import PACKAGES, may_be_held, top_of
from _harness.world.left import Left
from _harness.world.settings import SET
from _harness.world.traits import uses

_loaded = sys.modules
_lstat = os.lstat
_getstate, _setstate = random.getstate, random.setstate
_type = type
_ModuleType = types.ModuleType
_inside = vars(_ModuleType)["__dict__"].__get__
_MAPPING = type.__dict__["__dict__"].__get__
_MODULE = type.__dict__["__module__"].__get__
_NAME = type.__dict__["__name__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__

_APART = frozenset((("tqdm._monitor", "TMonitor"),))


class Boundary:
    """Distinguishes packages from the program's own modules, and keeps what their imports leave."""

    def __init__(self, events, files, strict):
        self.events = events
        self.files = files
        self.left = Left(events, files)
        # Whether state inside packages is compared, and what their imports do is the step's.
        self.strict = strict
        # Where packages are. Every other entry of `sys.path` is the program's.
        self.places = frozenset(sys.path) - {files.scratch, files.alias}
        # Threads that packages started while they were imported.
        self.threads = set()
        # Called before and after an import.
        self.importing, self.imported = [], []
        # The output of the step.
        self.streams = None

    def is_package(self, name):
        """Whether the module of this name, which is not loaded, does not belong to the program."""
        if self.strict:
            return False
        top, _, rest = name.partition(".")
        module = _loaded.get(top)
        if rest and module is not None:
            file = getattr(module, "__file__", None)
            return not (type(file) is str and self.is_own(file))
        for place in sys.path:
            if type(place) is str and place not in self.places:
                base = (place or os.curdir) + "/" + top
                if _exists(base) or _exists(base + ".py") or _exists(base + ".so"):
                    return False
        return True

    def is_own(self, file):
        """Whether a file lies where the program's modules are."""
        if file.startswith((self.files.scratch + "/", self.files.alias + "/")):
            return True
        return any(
            type(place) is str and place not in self.places and file.startswith(place.rstrip("/") + "/")
            for place in sys.path
        )

    def apart(self, real, name, import_):
        """Imports a package, outside the step."""
        events = self.events
        generator = _getstate()
        before, streams = _threads(), self.streams
        mark = streams.mark("stderr") if streams is not None else 0
        was, events.running = events.running, False
        self.left.begin()
        for notify in self.importing:
            notify()
        try:
            return real(name, import_)
        finally:
            events.running = was
            self.left.end()
            if streams is not None:
                # Such as that a cache is made, which no second import does.
                streams.forget("stderr", mark)
            if _getstate() != generator:
                _setstate(generator)
            self.threads |= _threads() - before
            for notify in self.imported:
                notify()


def _exists(path):
    try:
        _lstat(path)
    except (OSError, ValueError):
        return False
    return True


def _threads():
    return set(threads())


def alive(known):
    """Whether a thread runs that is not among `known`, after a moment for those that are about to
    end."""
    threading = _loaded.get("threading")
    if threading is None:
        return False
    own = threading.main_thread().ident
    found = [one for ident, one in threads().items() if ident != own and ident not in known and not _is_apart(one)]
    for one in found:
        # A pool that was shut down without waiting.
        one.join(0.05)
    return any(one.is_alive() for one in found)


def _is_apart(thread):
    """Whether a package keeps the thread for itself: it shows how far the program is, and runs none of it."""
    return (_MODULE(_type(thread)), _NAME(_type(thread))) in _APART


def children():
    """Whether a process that was started here still runs."""
    try:
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children") as listed:
                if listed.read().strip():
                    return True
        return False
    except OSError:
        return True


def sockets():
    """Whether a socket is open."""
    try:
        for number in os.listdir("/proc/self/fd"):
            try:
                if os.readlink(f"/proc/self/fd/{number}").startswith("socket:"):
                    return True
            except OSError:
                continue
        return False
    except OSError:
        return True


def set_on_packages(modules, traits):
    """Attributes that the step's code sets on classes of packages, and on what packages hold."""
    found = []
    for key in traits.stored:
        for code in traits.codes:
            if key not in code.co_names:
                continue
            for _, before, op in uses(code, key):
                if op in ("STORE_ATTR", "DELETE_ATTR"):
                    owner = _held(modules, before)
                    if owner is not None and f"{owner}.{key}" not in SET:
                        found.append(f"{owner}.{key} was replaced")
    return found


def _held(modules, name):
    """The name of a class of a package, or of what a package holds, which the program calls
    `name`."""
    if type(name) is not str:
        return None
    value = dict.get(modules.namespace, name, modules)
    if value is not modules:
        if not issubclass(_type(value), type):
            return _of_package(value)
        if _FLAGS(value) & _IMMUTABLE:
            return None
        home = _MAPPING(value).get("__module__")
        known = home in modules.base and home not in modules.scratch
        return f"{home}.{_QUALNAME(value)}" if known else None
    for module in sorted(modules.touched - modules.scratch.keys()):
        names = _names_of(_loaded.get(module))
        if names is not None and name in names and not issubclass(_type(names[name]), _ModuleType):
            return f"{module}.{name}"
    return None


def _of_package(value):
    """The name of an object that is known by it: the package holds it."""
    home = _MODULE(_type(value))
    if may_be_held(_type(value)) and top_of(_type(value)) in PACKAGES:
        for module in (home, home.partition(".")[0]):
            for name, held in (_names_of(_loaded.get(module)) or {}).items():
                if held is value:
                    return f"{module}.{name}"
    return None


def _names_of(module):
    return _inside(module) if issubclass(_type(module), _ModuleType) else None
