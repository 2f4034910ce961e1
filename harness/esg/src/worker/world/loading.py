"""Module loading: observed as it happens, with the files that the search for modules depended on."""

import os
import sys
from functools import partial

from _harness.values.compat import FileFinder as _FileFinder, bootstrap as _bootstrap, caller
from _harness.world.boundary import Boundary
from _harness.world.submodules import by_itself, reads

_type = type
_loaded = sys.modules
_lexists = os.path.lexists


# Its frames count as those of the code that imports.
_IMPORTING = ("importlib", "importlib._bootstrap", "importlib._bootstrap_external", "_frozen_importlib",
              "_frozen_importlib_external")
_HERE = ("_harness.world.loading", "_harness.world.submodules")


def look_again():
    """Clears directory listings that the import system caches by a coarse time stamp.

    Only these: finders of other kinds may load modules when their caches are cleared."""
    kept = sys.path_importer_cache
    for place, finder in list(kept.items()):
        if finder is None:
            del kept[place]
        elif _type(finder) is _FileFinder:
            finder.invalidate_caches()


def _hidden(code):
    """The code as of the import system, whose frames tracebacks leave out."""
    return code.replace(co_filename="<frozen importlib._bootstrap>")


def _by_package():
    """Whether a module of a package asks for an import, not the worker."""
    frame = caller(2)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if name not in _IMPORTING and name not in _HERE:
            return type(name) is str and not name.startswith("_harness.")
        frame = frame.f_back
    return False


def _imports():
    """Whether the innermost code outside of the worker imports. Otherwise a function written in C, which it
    calls, does so for itself."""
    frame = caller(2)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if name == "importlib":
            return True
        if name not in _IMPORTING and not (type(name) is str and name.startswith("_harness.")):
            return by_itself(frame.f_code, frame.f_lasti) or reads(frame.f_code)
        frame = frame.f_back
    return False


class Loading:
    """The part of `Modules` that stands in the import system."""

    def _install(self):
        """Replaces the function that loads a missing module.

        Its frame counts as one of the import system, which tracebacks leave out."""
        real = _bootstrap._find_and_load
        load = self._load

        def _find_and_load(name, import_):
            return load(real, name, import_)

        for function in (_find_and_load, Loading._load, Loading._load_beside, Loading._load_package, Boundary.apart):
            function.__code__ = _hidden(function.__code__)
        _bootstrap._find_and_load = _find_and_load

    def _load(self, real, name, import_):
        events, submodules = self.events, self.submodules
        if name in _loaded:
            submodules.imported(name)
            return real(name, import_)
        if not events.running or events.busy:
            return self._load_beside(real, name, import_)
        boundary = self.boundary
        if not boundary.strict and boundary.is_package(name):
            return self._load_package(real, name, import_)
        with_it = {name}
        if not self.imports and boundary.strict:
            self._quietly(self.before_load)
        self.imports.append(with_it)
        self._quietly(self._search, name)
        try:
            return submodules.load(real, name, import_)
        finally:
            self.imports.pop()
            if self.imports:
                self.imports[-1] |= with_it
            self._with[name] = with_it
            self._quietly(self._note_new)
            if not self.imports and boundary.strict:
                self._quietly(self.after_load)

    def _load_beside(self, real, name, import_):
        """Loads a module while no code of a step runs. A value that is restored is of a package, or a
        function of one imports another, such as those that give the content of a value. The latter is no
        part of the state: only the first value that is read in this worker loads it."""
        boundary, submodules = self.boundary, self.submodules
        if submodules.loading():
            return submodules.load(real, name, import_)
        before, by_package = set(_loaded), _by_package()
        if by_package or not boundary.strict and boundary.is_package(name):
            real = partial(boundary.apart, real)
        try:
            return submodules.load(real, name, import_, not by_package)
        finally:
            if by_package:
                submodules.lazy.update(one for one in _loaded if one not in before)

    def _load_package(self, real, name, import_):
        """Loads a package, or a module of one."""
        boundary, submodules = self.boundary, self.submodules
        before = set(_loaded)
        # A package that is loaded on the way to a module of it is wanted by the same code.
        direct = self.direct[-1] if self.direct else bool(
            self.imports or _imports() and self.events.asker(_IMPORTING)[0])
        self._quietly(self._search, name)
        apart = partial(boundary.apart, real)
        self.direct.append(direct)
        try:
            return submodules.load(apart, name, import_, direct)
        finally:
            self.direct.pop()
            # Those that are searched for where the program's own modules may be.
            self._with[name] = {name} | {one for one in _loaded if type(one) is str and "." not in one and one not in before}
            if not direct:
                submodules.lazy.update(one for one in _loaded if one not in before)
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
        """Records the files that the search for a module depends on: those of its name, whether they
        exist or not, in each searched scratch directory."""
        if name in sys.builtin_module_names or name.startswith("_harness."):
            return
        parent, _, last = name.rpartition(".")
        if parent:
            places = getattr(_loaded.get(parent), "__path__", ())
        else:
            self.process.read("path")
            places = sys.path
        files = self.files
        if files.stirred:
            look_again()
        for place in list(places):
            if _type(place) is not str:
                continue
            if place and not place.startswith((files.scratch, files.alias)) and place[0] == "/":
                continue
            base = place + "/" + last if place else last
            found = False
            for tail in ("", ".py", "/__init__.py"):
                rel = files.look(base + tail)
                found = found or (rel is not None and tail != "" and _lexists(files.tree.full(rel)))
            if found:
                return
