"""Modules whose file is in scratch: they are part of the state."""

import importlib.util
import os
import sys
import types

_MISSING = object()
_ModuleType = types.ModuleType
_type = type
_loaded = sys.modules
_dirname = os.path.dirname

# Keys of a scratch module's difference that are not attributes.
SOURCE = "\0source"
FILE = "\0file"


class Scratch:
    """The part of `Modules` that creates, removes and restores whole modules."""

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

    def _forget(self, name):
        module = self.scratch.pop(name, None) or _loaded.get(name)
        self.events.programs.pop(name, None)
        self.sources.pop(name, None)
        self.base.pop(name, None)
        self.seen.pop(name, None)
        self.altered.pop(name, None)
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

    def take(self, name):
        """Removes a scratch module as it is, to be restored with `give`."""
        source = self.sources.get(name)
        module = self._forget(name)
        return module, source

    def give(self, name, taken):
        """Restores what `take` removed."""
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
        the module are restored with its dictionary as their globals before `apply` is called."""
        rel, source = diff[FILE], diff[SOURCE]
        module = _ModuleType(name)
        file = self.files.tree.full(rel) if rel else None
        package = file is None or file.endswith("/__init__.py")
        where = [_dirname(file)] if package and file else None
        if file is not None:
            spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=where)
            module = importlib.util.module_from_spec(spec)
        else:
            # A folder without a file of its own.
            module.__path__ = [self.files.scratch + "/" + name.replace(".", "/")]
        self._adopt(name, module, (rel, source))
        return module
