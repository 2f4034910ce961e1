"""Imported modules: which the program uses, and how they differ from their imported state.

A module outside scratch is represented by its difference from a copy of its dictionary, taken right
after it was loaded. A scratch module is state as a whole.
"""

import importlib
import sys
import types
from operator import is_ as _is

from _harness.values.compat import FIXED as _IMMUTABLE, FLAGS as _FLAGS
from _harness.track.codes import rebinds
from _harness.values import standins
from _harness.world.boundary import Boundary, set_on_packages
from _harness.values.library_state import Library, Reach, is_cache, users
from _harness.world.loading import Loading, look_again
from _harness.world.mocks import Mocks
from _harness.world.scratch import FILE, SOURCE, Scratch
from _harness.world.submodules import Submodules
from _harness.world.traits import uses

_MISSING = object()
_inside = vars(types.ModuleType)["__dict__"].__get__
_MAPPING = type.__dict__["__dict__"].__get__
_ModuleType = types.ModuleType
_type = type
_loaded = sys.modules

_CODE_LIKE = (type, types.FunctionType, types.BuiltinFunctionType, standins.StandIn)

# Attributes that importing, warning and debugging set themselves.
_OWN = frozenset(("__warningregistry__", "__cached__", "__builtins__"))
# Attributes of `sys` that are restored after each step, tracked elsewhere, or reported elsewhere.
_SYS = frozenset(
    "stdin stdout stderr __stdin__ __stdout__ __stderr__ argv path modules last_exc last_type "
    "last_value last_traceback displayhook excepthook unraisablehook ps1 ps2 meta_path path_hooks "
    "path_importer_cache tracebacklimit".split()
)
# What makes a scratch module a module is created with it.
_FRAME = frozenset("__name__ __loader__ __spec__ __file__ __package__ __path__".split()) | _OWN


# Attributes through which the inside of functions changes.
INNER = frozenset(("__defaults__", "__kwdefaults__", "__code__", "register"))


class _Deleted:
    """Marks a deleted attribute in a difference."""

    def __reduce__(self):
        return "DELETED"

    def __repr__(self):
        return "DELETED"


DELETED = _Deleted()


class Modules(Loading, Scratch):
    """The `m:` entities."""

    DELETED = DELETED

    def __init__(self, events, namespace, files, process, strict=False):
        self.events = events
        self.boundary = Boundary(events, files, strict)
        self.namespace = namespace
        self.files = files
        self.process = process
        # Called as `appeared(name, module)` right after the first import of a module.
        self.appeared = []
        self.base = {}
        self.seen = {}
        self.scratch = {}
        self.sources = {}
        # Attributes that the program set or deleted, by module. Everything else changes by itself.
        self.altered = {}
        self._mocks = Mocks()
        self.unattributed = []
        # The modules that the loading of a module loaded.
        self._with = {}
        # The imports in progress, outermost first, each with the modules it has loaded so far.
        self.imports = []
        # Whether the program wants the packages that are being loaded, outermost first.
        self.direct = []
        self.touched = set()
        self.changed = set()
        self.library = Library()
        self.reach = Reach()
        # Containers that the step had changed when a module was loaded: `(module, name)`.
        self.inner = []
        self.bound_before = []
        # Whether the step has loaded any.
        self.loaded = False
        self._count = 0
        self._sizes = []
        self._dicts = []
        self._names = []
        self._note_new()
        self.preloaded = frozenset(self.base)
        self.submodules = Submodules(self)
        self._install()

    def _note_new(self):
        """Copies the dictionaries of new modules."""
        if len(_loaded) == self._count:
            return
        for name, module in list(_loaded.items()):
            if name in self.base or name == "__main__" or name.startswith("_harness."):
                continue
            if not issubclass(_type(module), _ModuleType) or module is _loaded.get("__main__"):
                # Multiprocessing gives `__main__` a second name. Its dict is not looked at: this would
                # count as a read of all names.
                continue
            spec = module.__dict__.get("__spec__")
            if getattr(spec, "_initializing", False):
                continue
            for notify in self.appeared:
                notify(name, module)
            names = module.__dict__
            if self._in_scratch(module):
                self.scratch[name] = module
                self.events.programs[name] = names
                self._remember_source(name, module)
                self.seen[name] = None
                self.base[name] = {}
                self.changed.add(name)
            else:
                self.base[name] = dict(names)
                self.seen[name] = dict(names)
                if self.boundary.strict:
                    self.library.note(name, names)
            self.loaded = True
            self._names.append(name)
            self._dicts.append(names)
            self._sizes.append(len(names))
        if not self.imports:
            self._count = len(_loaded)

    def is_scratch(self, name):
        """Whether the module's file lies in scratch."""
        return name in self.scratch

    # One step.

    def begin(self):
        self.touched = set()
        self.changed = set()
        self.unattributed = []
        self.inner = []
        self.bound_before = []
        self.loaded = False

    def end(self, traits, values):
        """Determines what the step used: `traits` describes what its code names, `values` are the
        objects its reads are bound to. Completes `touched` and `changed`."""
        if len(_loaded) != self._count:
            # That this looks at them is no look of the step.
            self._quietly(self._note_new)
        if self.loaded and not traits.dynamic_store:
            # What packages change in others while they are loaded is no change by the program.
            for name, key in self._rebound(self.seen):
                if key not in traits.assigned:
                    self._settle_key(name, key)
        touched = self.touched
        for name in traits.imports:
            self._touch(name)
        if traits.dynamic_import:
            for text in traits.strings:
                if text in _loaded:
                    self._touch(text)
        if traits.dynamic_store:
            # `patch("json.dumps", ...)`
            for text in traits.strings:
                head = text.rpartition(".")[0]
                if head in _loaded:
                    self._touch(head)
        for value in values:
            self._touch_value(value)
        if touched:
            self._touch_inside(traits.names)
        if self.boundary.strict:
            self.reached = self._reached(traits, values)
            self._by_itself(traits)
        sizes = list(map(len, self._dicts))
        suspects = set()
        if sizes != self._sizes:
            for name, now, was in zip(self._names, sizes, self._sizes):
                if now != was:
                    suspects.add(name)
            self._sizes = sizes
        if traits.stores:
            suspects |= touched
        if self._mocks.left():
            self.unattributed.append("a patch of unittest.mock that is at work in several steps")
        for name in suspects:
            if name not in self.scratch and self._compare(name, traits):
                self.changed.add(name)
        touched |= self.changed
        return touched

    def still(self):
        """Whether no module was added, and none holds more or fewer names than before."""
        return len(_loaded) == self._count and list(map(len, self._dicts)) == self._sizes

    def _touch(self, name):
        """An import of a loaded module. It and its parents are used, and the search for them and for
        what they loaded determined which module it is."""
        while name:
            if name in _loaded and name != "__main__":
                self.touched.add(name)
            if name not in self.preloaded and name not in self.scratch:
                for other in self._with.get(name, (name,)):
                    self._quietly(self._search, other)
            name = name.rpartition(".")[0]

    def _touch_value(self, value):
        name = home(value)
        if name is not None and name in self.base and name != "builtins":
            self.touched.add(name)

    def _touch_inside(self, names):
        """Modules reachable as attributes that the code names."""
        pending = list(self.touched)
        while pending:
            module = _loaded.get(pending.pop())
            inside = inside_of(module)
            if inside is None:
                continue
            for name in names:
                value = inside.get(name)
                if issubclass(_type(value), _ModuleType):
                    found = _inside(value).get("__name__")
                    if found in self.base and found not in self.touched and found != "builtins":
                        self.touched.add(found)
                        pending.append(found)

    def _reached(self, traits, values):
        """The modules in which functions called by the code may keep state: those of what it names
        in modules, or is bound to."""
        found, names = set(self.touched), traits.names
        for name in self.touched:
            inside = inside_of(_loaded.get(name))
            if inside is not None and name not in self.scratch:
                values = [*values, *map(inside.get, names & inside.keys())]
        inner = {(name, before) for name in INNER & names for code in traits.codes for _, before, _ in uses(code, name)}
        for value in values:
            if _type(value) is types.FunctionType:
                found |= self.reach.of(value)
                if inner and value.__globals__ is not self.namespace:
                    self._inner(value, inner)
            else:
                found.add(home(value))
        return found - self.scratch.keys() - {None, "__main__", "builtins"}

    def _inner(self, function, names):
        """The inside of a library function."""
        held = function.__module__
        inside = inside_of(_loaded.get(held)) if held in self.base else None
        if inside is None or inside.get(function.__name__) is not function or held in self.scratch:
            return
        for name, before in names:
            named = before == function.__name__ or dict.get(self.namespace, before) is function
            if named and (name != "register" or "registry" in function.__dict__):
                self.unattributed.append(f"{name} of {held}.{function.__qualname__}")

    def before_load(self):
        """Changes so far do not belong to the loading."""
        self.inner += self.library.differing(self.library.held.keys())
        self.bound_before = self._rebound(self.seen)

    def after_load(self):
        """Changes since then belong to the loading, in modules that existed before."""
        self.library.differing(self.library.held.keys())
        for name, key in set(self._rebound(self.seen)) - set(self.bound_before):
            self._settle_key(name, key)

    def loaded_by_itself(self):
        """Modules were loaded while no step ran."""
        self._note_new()
        if self.boundary.strict:
            self.after_load()

    def _rebound(self, modules):
        """Variables of modules that were rebound."""
        found = []
        for name in modules:
            seen, now = self.seen.get(name), inside_of(_loaded.get(name))
            if seen is None or now is None or len(seen) == len(now) and all(map(_is, now.values(), seen.values())):
                continue
            for key, value in list(now.items()):
                if value is not seen.get(key, _MISSING):
                    found.append((name, key))
        return found

    def _settle_key(self, name, key):
        value = _inside(_loaded[name]).get(key, _MISSING)
        _set(self.seen[name], key, value)
        if key not in self.altered.get(name, ()):
            _set(self.base[name], key, value)

    def _by_itself(self, traits):
        """Reports variables that functions of the modules have rebound. Filling in what was missing
        or None does not count."""
        for name, key in self._rebound(self.reached):
            value, was = _inside(_loaded[name]).get(key), self.seen[name].get(key)
            if _named(key, traits) or _ignored(name, key, value):
                continue
            if was is not None and not is_cache(name, key):
                self.unattributed.append(f"{name}.{key} was bound to something else")
            self._settle_key(name, key)

    def _compare(self, name, traits):
        """Whether the program changed the module. Changes by its own code, such as filled caches,
        belong to the module from now on."""
        now, seen, base = _loaded[name].__dict__, self.seen[name], self.base[name]
        altered = self.altered.setdefault(name, set())
        by_program = False
        replaced = []
        for key in list(seen.keys() | now.keys()):
            value = now.get(key, _MISSING)
            if value is seen.get(key, _MISSING):
                continue
            _set(seen, key, value)
            # A package binds names of its own when they are asked for.
            by_name = key in traits.assigned or traits.dynamic_store and (key in traits.names or key in traits.words)
            # A name that is not in the code may be computed, but the module's own functions rebind this one.
            computed = not by_name and traits.dynamic_store and (self.boundary.strict or not rebinds(now, key))
            if (by_name or computed) and not _ignored(name, key, value):
                by_program = True
                altered.add(key)
                if key in base:
                    replaced.append(key)
            elif key not in altered:
                _set(base, key, value)
        for key in replaced:
            # Callers of that code depend on the change without reading this module.
            for user in users(name, key):
                self.unattributed.append(f"{name}.{key} was replaced, which {user} uses")
        return by_program

    def inside(self, traits):
        """What the step changed inside library modules, where no entity accounts for it."""
        if not self.boundary.strict:
            return self.unattributed + set_on_packages(self, traits)
        changes = self.unattributed + self.library.changed(traits, self.reached)
        for name, key in self.inner:
            if name in self.reached and (key in traits.names or not is_cache(name, key)):
                changes.append(f"{name}.{key} was changed in place")
        return changes

    # The queries of `Graph`.

    def baseline(self, name):
        """The attributes of the module as imported, or None if it is not loaded."""
        return self.base.get(name)

    def diff(self, name):
        """The difference from the baseline, with `DELETED` for deleted attributes. None if there is
        none, or if the module is not loaded. For a scratch module everything that it holds."""
        module = self.submodules.at(name)
        if module is None or name not in self.base:
            return None
        now = module.__dict__
        if name in self.scratch:
            rel, source = self.sources.get(name, (None, b""))
            found = {FILE: rel, SOURCE: source}
            for key, value in now.items():
                if key not in _FRAME and not self._submodule(name, key, value):
                    found[key] = value
            return found
        base = self.base[name]
        found = {}
        # In the order of the names, which is independent of the order of steps.
        for key in sorted(self.altered.get(name, ())):
            value = now.get(key, _MISSING)
            if value is not base.get(key, _MISSING):
                found[key] = DELETED if value is _MISSING else value
        return found or None

    def _submodule(self, name, key, value):
        return issubclass(_type(value), _ModuleType) and _loaded.get(f"{name}.{key}") is value

    def reset(self, name):
        """Resets the module to its baseline. A scratch module is removed with its submodules."""
        if name in self.scratch:
            for other in list(self.scratch):
                if other == name or other.startswith(name + "."):
                    self._forget(other)
            look_again()
            return
        self.apply(name, {})

    def globals(self, name):
        """The dictionary of a loaded module: the globals of its functions."""
        return self.submodules.at(name).__dict__

    def apply(self, name, diff):
        """Makes the module differ from its baseline by exactly `diff`."""
        if name in self.scratch or (diff and FILE in diff):
            module = self.scratch.get(name) or self.shell(name, diff)
            inside = module.__dict__
            for key in list(inside):
                if key not in _FRAME and key not in diff and not self._submodule(name, key, inside[key]):
                    del inside[key]
            for key, value in diff.items():
                if key not in (FILE, SOURCE):
                    inside[key] = value
            self._resize(name)
            return
        if name not in self.base:
            importlib.import_module(name)
            self._note_new()
        inside, base = self.submodules.at(name).__dict__, self.base[name]
        seen = self.seen[name]
        altered = self.altered.setdefault(name, set())
        for key in altered | diff.keys():
            want = diff.get(key, base.get(key, _MISSING))
            want = _MISSING if want is DELETED else want
            _set(inside, key, want)
            _set(seen, key, want)
        altered.update(diff)
        self._resize(name)

    def rebind(self, name, key, value=_MISSING):
        """Binds or removes an attribute of a module, without counting as a change by the program."""
        _set(_inside(_loaded[name]), key, value)
        self._count = -1
        if name in self.base and name not in self.scratch:
            _set(self.seen[name], key, value)
            if key not in self.altered.get(name, ()):
                _set(self.base[name], key, value)
        if name in self.base:
            self._resize(name)

    def _resize(self, name):
        self._sizes[self._names.index(name)] = len(self.submodules.at(name).__dict__)

    def sweep(self, accounted):
        """Modules that differ although no entity accounts for it, and replaced modules."""
        unattributed = []
        for name in list(self._names):
            module = self.submodules.at(name)
            if module is None or module.__dict__ is not self._dicts[self._names.index(name)]:
                unattributed.append(f"sys.modules[{name!r}] was taken away or replaced")
            elif self.boundary.strict and name not in self.scratch and f"m:{name}" not in accounted:
                now, seen = module.__dict__, self.seen[name]
                for key in now.keys() | seen.keys():
                    value = now.get(key, _MISSING)
                    old = seen.get(key, _MISSING)
                    if value is old or key.startswith("_") or _ignored(name, key, value):
                        continue
                    # Modules fill in plain values lazily, but not functions.
                    if issubclass(_type(old), _CODE_LIKE):
                        unattributed.append(f"{name}.{key} was replaced")
        return unattributed + self.library.sweep() if self.boundary.strict else unattributed


def _named(key, traits):
    return key in traits.names or key in traits.words or traits.dynamic_store


def inside_of(module):
    """The dictionary of a module, or None for anything else."""
    return _inside(module) if issubclass(_type(module), _ModuleType) else None


def home(value):
    """The module of a value's code: itself, or that of its function or class. None for C code. Runs
    no code of the program."""
    kind = _type(value)
    if kind is int or kind is str or kind is list or kind is dict:
        return None
    if issubclass(kind, _ModuleType):
        name = _inside(value).get("__name__")
    elif kind is types.FunctionType:
        name = dict.get(value.__globals__, "__name__")
    else:
        # Instances depend on the code of their class.
        cls = value if issubclass(kind, type) else kind
        if _FLAGS(cls) & _IMMUTABLE:
            return None
        name = _MAPPING(cls).get("__module__")
    return name if _type(name) is str else None


def _set(names, key, value):
    if value is _MISSING:
        names.pop(key, None)
    else:
        names[key] = value


def _ignored(name, key, value):
    """Whether an attribute changes independently of the program."""
    if key in _OWN or (name == "sys" and key in _SYS):
        return True
    return issubclass(_type(value), _ModuleType) and _loaded.get(f"{name}.{key}") is value
