"""Imported modules: which the program uses, and how they differ from what importing them gave.

A module outside scratch is known by its difference from a copy of its dictionary, taken right
after it was loaded. A scratch module is state as a whole.
"""

import importlib
import os
import sys
import types

_MISSING = object()
_ModuleType = types.ModuleType
_bootstrap = sys.modules["_frozen_importlib"]
_type = type
_loaded = sys.modules

# Attributes that importing, warning and debugging set by themselves.
_OWN = frozenset(("__warningregistry__", "__cached__", "__builtins__"))
# Of `sys`: restored after each step, tracked elsewhere, or told of elsewhere.
_SYS = frozenset(
    "stdin stdout stderr __stdin__ __stdout__ __stderr__ argv path modules last_exc last_type "
    "last_value last_traceback displayhook excepthook unraisablehook ps1 ps2 meta_path path_hooks "
    "path_importer_cache tracebacklimit".split()
)
# What makes a scratch module a module is made anew with it.
_FRAME = frozenset("__name__ __loader__ __spec__ __file__ __package__ __path__".split()) | _OWN


class _Deleted:
    """Stands in a difference for an attribute that is gone."""

    def __reduce__(self):
        return "DELETED"

    def __repr__(self):
        return "DELETED"


DELETED = _Deleted()
# Keys of a scratch module's difference that are no attributes.
SOURCE = "\0source"
FILE = "\0file"


class Modules:
    """The `m:` entities."""

    def __init__(self, events, namespace, files, process):
        self.events = events
        self.namespace = namespace
        self.files = files
        self.process = process
        # Called as `appeared(name, module)` right after the first import of a module.
        self.appeared = []
        self.base = {}
        self.seen = {}
        self.scratch = {}
        self.sources = {}
        # What loading a module loaded with it.
        self._with = {}
        self._loading = []
        self.touched = set()
        self.changed = set()
        self._count = 0
        self._sizes = []
        self._dicts = []
        self._names = []
        self._note_new()
        self.preloaded = frozenset(self.base)
        self._install()

    # Loading.

    def _install(self):
        """Takes the place of the function that loads what is not loaded yet.

        Its frame is taken for one of the import system, which leaves it out of tracebacks.
        """
        real = _bootstrap._find_and_load
        load = self._load

        def _find_and_load(name, import_):
            return load(real, name, import_)

        for function in (_find_and_load, Modules._load):
            function.__code__ = function.__code__.replace(co_filename="<frozen importlib._bootstrap>")
        _bootstrap._find_and_load = _find_and_load

    def _load(self, real, name, import_):
        events = self.events
        if not events.running or name in _loaded:
            return real(name, import_)
        with_it = {name}
        self._loading.append(with_it)
        self._quietly(self._search, name)
        try:
            return real(name, import_)
        finally:
            self._loading.pop()
            if self._loading:
                self._loading[-1] |= with_it
            self._with[name] = with_it
            self._quietly(self._note_new)

    def _quietly(self, function, *args):
        events = self.events
        was, events.busy = events.busy, True
        try:
            function(*args)
        except Exception as failure:
            events.failures.append(f"import: {failure!r}")
        finally:
            events.busy = was

    def _search(self, name):
        """Notes which files the search for a module depends on: those of its name, there or not,
        in each scratch directory that is searched."""
        if name in sys.builtin_module_names or name.startswith("_harness_"):
            return
        parent, _, last = name.rpartition(".")
        if parent:
            places = getattr(_loaded.get(parent), "__path__", ())
        else:
            self.process.read("path")
            places = sys.path
        files = self.files
        if files.stirred:
            # Listings that the import system keeps are told apart by time, which is too coarse.
            importlib.invalidate_caches()
        for place in list(places):
            if _type(place) is not str:
                continue
            if place and not place.startswith((files.scratch, files.alias)) and place[0] == "/":
                continue
            base = place + "/" + last if place else last
            found = False
            for tail in ("", ".py", "/__init__.py"):
                rel = files.look(base + tail)
                found = found or (rel is not None and tail != "" and os.path.lexists(files.tree.full(rel)))
            if found:
                return

    def _note_new(self):
        """Copies the dictionaries of modules that were not there before."""
        if len(_loaded) == self._count:
            return
        for name, module in list(_loaded.items()):
            if name in self.base or name == "__main__" or name.startswith("_harness_"):
                continue
            if not isinstance(_type(module), type) or not issubclass(_type(module), _ModuleType):
                continue
            spec = module.__dict__.get("__spec__")
            if getattr(spec, "_initializing", False):
                continue
            for told in self.appeared:
                told(name, module)
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
            self._names.append(name)
            self._dicts.append(names)
            self._sizes.append(len(names))
        if not self._loading:
            self._count = len(_loaded)

    def _in_scratch(self, module):
        names = module.__dict__
        file = names.get("__file__")
        if file is None:
            path = names.get("__path__")
            try:
                file = next(iter(path), None) if path is not None else None
            except Exception:
                file = None
        if _type(file) is not str:
            return False
        files = self.files
        return file.startswith((files.scratch + "/", files.alias + "/"))

    def _remember_source(self, name, module):
        file = module.__dict__.get("__file__")
        rel = self.files.resolve(file)[0] if file else None
        try:
            with open(file, "rb") as opened:
                self.sources[name] = rel, opened.read()
        except (OSError, TypeError):
            self.sources[name] = rel, b""

    def is_scratch(self, name):
        """Whether the module's file lies in scratch."""
        return name in self.scratch

    # One step.

    def begin(self):
        self.touched = set()
        self.changed = set()

    def end(self, traits, values):
        """Finds what the step used: `traits` says what its code names, `values` are the objects
        its reads are bound to. Afterwards `touched` and `changed` are complete."""
        self._note_new()
        touched = self.touched
        for name in traits.imports:
            self._touch(name)
        if traits.dynamic_import:
            for text in traits.strings:
                if text in _loaded:
                    self._touch(text)
        for value in values:
            self._touch_value(value)
        self._touch_inside(traits.names)
        sizes = list(map(len, self._dicts))
        suspects = set()
        if sizes != self._sizes:
            for name, now, was in zip(self._names, sizes, self._sizes):
                if now != was:
                    suspects.add(name)
            self._sizes = sizes
        if traits.stores:
            suspects |= touched
        for name in suspects:
            if name not in self.scratch and self._compare(name, traits):
                self.changed.add(name)
        touched |= self.changed
        return touched

    def _touch(self, name):
        """An import of a loaded module: it and its parents are used, and the search for them, and
        for what they loaded, decided which module it is."""
        while name:
            if name in _loaded and name != "__main__":
                self.touched.add(name)
            if name not in self.preloaded and name not in self.scratch:
                for other in self._with.get(name, (name,)):
                    self._quietly(self._search, other)
            name = name.rpartition(".")[0]

    def _touch_value(self, value):
        kind = _type(value)
        if kind is _ModuleType or issubclass(kind, _ModuleType):
            name = value.__dict__.get("__name__")
        elif kind is types.FunctionType:
            name = value.__globals__.get("__name__")
        elif issubclass(kind, type):
            name = type.__getattribute__(value, "__module__")
        else:
            name = type.__getattribute__(kind, "__module__")
        if _type(name) is str and name in self.base and name != "builtins":
            self.touched.add(name)

    def _touch_inside(self, names):
        """Modules reachable as attributes that the code names."""
        pending = list(self.touched)
        while pending:
            module = _loaded.get(pending.pop())
            inside = getattr(module, "__dict__", None)
            if inside is None:
                continue
            for name in names:
                value = inside.get(name)
                if isinstance(value, _ModuleType):
                    found = value.__dict__.get("__name__")
                    if found in self.base and found not in self.touched and found != "builtins":
                        self.touched.add(found)
                        pending.append(found)

    def _compare(self, name, traits):
        """Whether the program changed the module. What its own code changed, lazily filled caches
        and the like, belongs to it from now on."""
        now, seen, base = _loaded[name].__dict__, self.seen[name], self.base[name]
        by_program = False
        for key in list(seen.keys() | now.keys()):
            value = now.get(key, _MISSING)
            if value is seen.get(key, _MISSING):
                continue
            if value is _MISSING:
                seen.pop(key, None)
            else:
                seen[key] = value
            if _ignored(name, key, value):
                _set(base, key, value)
            elif key in traits.names or key in traits.words or traits.dynamic_store:
                by_program = True
            else:
                _set(base, key, value)
        return by_program

    # What `Graph` asks.

    def baseline(self, name):
        """The attributes that importing the module gave, or None if it is not loaded."""
        return self.base.get(name)

    def diff(self, name):
        """What differs from the baseline, `DELETED` for attributes that are gone; None if nothing
        does, or the module is not loaded. Of a scratch module all that it holds."""
        module = _loaded.get(name)
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
        if now is None:
            return None
        for key, value in now.items():
            if base.get(key, _MISSING) is not value and not _ignored(name, key, value):
                found[key] = value
        for key in base:
            if key not in now and not _ignored(name, key, None):
                found[key] = DELETED
        return found or None

    def _submodule(self, name, key, value):
        return isinstance(value, _ModuleType) and _loaded.get(f"{name}.{key}") is value

    def reset(self, name):
        """Takes the module back to its baseline; a scratch module leaves, and what is below it."""
        if name in self.scratch:
            for other in list(self.scratch):
                if other == name or other.startswith(name + "."):
                    self._forget(other)
            importlib.invalidate_caches()
            return
        self.apply(name, {})

    def _forget(self, name):
        module = self.scratch.pop(name, None) or _loaded.get(name)
        self.events.programs.pop(name, None)
        self.sources.pop(name, None)
        self.base.pop(name, None)
        self.seen.pop(name, None)
        if _loaded.get(name) is module:
            _loaded.pop(name, None)
        parent, _, last = name.rpartition(".")
        inside = getattr(_loaded.get(parent), "__dict__", {}) if parent else {}
        if inside.get(last, _MISSING) is module:
            del inside[last]
        at = self._names.index(name)
        del self._names[at], self._dicts[at], self._sizes[at]
        self._count = -1
        return module

    def unload(self, name):
        """A library module leaves, and what is below it: the next import searches for it again."""
        for other in list(self.base):
            if (other == name or other.startswith(name + ".")) and other not in self.preloaded:
                self._forget(other)

    def take(self, name):
        """Takes a scratch module away as it is, to be given back with `give`."""
        source = self.sources.get(name)
        module = self._forget(name)
        return module, source

    def give(self, name, taken):
        """Puts back what `take` took."""
        module, source = taken
        self._adopt(name, module, source)

    def _adopt(self, name, module, source):
        if name in self.scratch:
            self._forget(name)
        _loaded[name] = module
        parent, _, last = name.rpartition(".")
        if parent and parent in _loaded:
            setattr(_loaded[parent], last, module)
        self.scratch[name] = module
        self.events.programs[name] = module.__dict__
        self.sources[name] = source
        self.base[name] = {}
        self.seen[name] = None
        self._names.append(name)
        self._dicts.append(module.__dict__)
        self._sizes.append(len(module.__dict__))

    def shell(self, name, diff):
        """An empty scratch module for what `diff` holds, without running its source. Functions of
        the module are made with its dictionary as their globals before `apply` is called."""
        rel, source = diff[FILE], diff[SOURCE]
        module = _ModuleType(name)
        file = self.files.tree.full(rel) if rel else None
        package = file is None or file.endswith("/__init__.py")
        where = [os.path.dirname(file)] if package and file else None
        spec = importlib.machinery.ModuleSpec(name, None, origin=file, is_package=package)
        if file is not None:
            spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=where)
        elif package:
            spec.submodule_search_locations = [self.files.scratch + "/" + name.replace(".", "/")]
        if spec is not None:
            made = importlib.util.module_from_spec(spec) if spec.loader is not None else None
            if made is not None:
                module = made
        self._adopt(name, module, (rel, source))
        return module

    def globals(self, name):
        """The dictionary of a loaded module: the globals of its functions."""
        return _loaded[name].__dict__

    def apply(self, name, diff):
        """Makes the module differ from its baseline by `diff`, and by nothing else."""
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
        inside, base = _loaded[name].__dict__, self.base[name]
        for key in list(inside.keys() | base.keys()):
            want = diff.get(key, base.get(key, _MISSING))
            if want is DELETED:
                want = _MISSING
            if inside.get(key, _MISSING) is not want and not _ignored(name, key, inside.get(key)):
                _set(inside, key, want)
        for key, value in diff.items():
            if value is not DELETED and key not in base:
                inside[key] = value
        self.seen[name] = dict(inside)
        self._resize(name)

    def _resize(self, name):
        self._sizes[self._names.index(name)] = len(_loaded[name].__dict__)

    def sweep(self, accounted):
        """Modules that differ although no entity says so, and modules put in another's place."""
        strays = []
        for name in list(self._names):
            module = _loaded.get(name)
            if module is None or module.__dict__ is not self._dicts[self._names.index(name)]:
                strays.append(f"sys.modules[{name!r}] was taken away or replaced")
            elif name not in self.scratch and f"m:{name}" not in accounted:
                now, seen = module.__dict__, self.seen[name]
                for key in now.keys() | seen.keys():
                    value = now.get(key, _MISSING)
                    if value is not seen.get(key, _MISSING) and not _ignored(name, key, value):
                        if not key.startswith("_"):
                            strays.append(f"{name}.{key} was replaced")
        return strays


def _set(names, key, value):
    if value is _MISSING:
        names.pop(key, None)
    else:
        names[key] = value


def _ignored(name, key, value):
    """Whether an attribute comes and goes without the program's doing."""
    if key in _OWN or (name == "sys" and key in _SYS):
        return True
    return isinstance(value, _ModuleType) and _loaded.get(f"{name}.{key}") is value
