"""Which submodules exist: the import system binds each on its package, where any code finds it.

A submodule that its package loads itself, at once or when it is looked for, exists whenever the
package does. Any other is process state, `import/a.b`: written by each step that imports it or
something that loads it, even if it is loaded already, and read by steps that may look for it on the
package. If the state does not have a loaded submodule, it is hidden: removed from the package and from
`sys.modules` until it is imported again. It stays the same object, because references to it cannot be
redirected.
"""

import hashlib
import importlib
import os
import sys
import types
from itertools import islice

from _harness.world.imports import early
from _harness.values.compat import bootstrap as _bootstrap, caller
from _harness.values.bytecode import numbers, operations

_loaded = sys.modules
_ModuleType = types.ModuleType
_inside = vars(_ModuleType)["__dict__"].__get__
_listdir = os.listdir
_sha = hashlib.sha256
_NONE = frozenset()
PREFIX = "import/"
# Functions that look up attributes by strings.
BY_TEXT = frozenset(
    "getattr hasattr attrgetter __getattribute__ getattr_static eval exec __dict__ vars dir getmembers "
    "getmembers_static __dir__".split()
)
_IMPORTS = numbers("IMPORT_NAME")
# Functions written in C that import what their input names, each time. Others import only for themselves,
# and some only once.
_READING = frozenset(("load", "loads", "Unpickler"))
# How many imports of one loaded module by C code are worth a look at what it leaves.
_OFTEN = 16
# Instructions that look up an attribute.
_LOOKING = numbers("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM")


class Submodules:
    """The entities `p:import/...`."""

    def __init__(self, modules):
        self.modules = modules
        self.events = modules.events
        self.preloaded = frozenset(_loaded)
        # Those in the state, whether loaded here or not.
        self.present = set()
        self.hidden = {}
        # What loading a module imported, by name, and the submodules that this loads.
        self._needs = {}
        self._reached = {}
        self._brought = {}
        # How often C code imported each loaded module.
        self._met = {}
        # What packages held under the names of submodules before those were loaded.
        self._under = {}
        self._loading = []
        self._files = {}
        self._children = {}
        self._offers = {}
        self._counted = len(_loaded)
        # Those with nothing hidden among what their loading loads.
        self._clear = set()
        # Those that functions of packages loaded for themselves.
        self.lazy = set()
        self._stirred = False
        # What the step imported, and what it may only have looked for.
        self.asked = set()
        self.doubted = set()
        self._watch()

    # The import system.

    def _watch(self):
        """An import of a loaded module asks its spec whether the import is still in progress."""
        note, usual = self._again, _bootstrap.ModuleSpec

        def initializing(spec):
            held = spec.__dict__
            in_progress = held.get("_initializing", False)
            if not in_progress:
                note(held.get("name"))
            return in_progress

        def set_initializing(spec, value):
            spec.__dict__["_initializing"] = value

        # Those that the worker itself has loaded need no look: functions of `datetime` import `time` in each call.
        unwatched = type("ModuleSpec", (usual,), {"__module__": usual.__module__, "_initializing": False})
        for name in self.preloaded:
            spec = getattr(_loaded[name], "__spec__", None)
            if type(spec) is usual:
                spec.__class__ = unwatched
        usual._initializing = property(initializing, set_initializing)
        real = _bootstrap._handle_fromlist
        listed = self._listed

        def _handle_fromlist(module, fromlist, import_, *, recursive=False):
            listed(module, fromlist)
            return real(module, fromlist, import_, recursive=recursive)

        code = _handle_fromlist.__code__
        _handle_fromlist.__code__ = code.replace(co_filename="<frozen importlib._bootstrap>")
        _bootstrap._handle_fromlist = _handle_fromlist

    def _again(self, name):
        """A loaded module is imported, or an attribute was not found in it."""
        if type(name) is not str or name.startswith("_harness."):
            return
        if not self._loading and (not self.hidden or name in self._clear) and \
                (name in self.asked or not self._brought.get(name, True)):
            return
        frame = caller(2)
        code, at = frame.f_code, frame.f_lasti
        if by_itself(code, at):
            self.imported(name)
        elif operations(code)[at // 2] not in _LOOKING and code.co_name != "_find_and_load":
            # Called from C, or not an import.
            self._uncover(name)
            if reads(code):
                self._note(self.doubted, name)
            # Where it leaves nothing, it makes no difference who imports it. To find that out is worth it where the
            # code does so often.
            self._met[name] = self._met.get(name, 0) + 1
            if self._met[name] == _OFTEN:
                self.brings(name)

    def _listed(self, module, fromlist):
        """`from a import b`, which finds an existing binding, or loads it."""
        if type(module) is not _ModuleType or type(fromlist) not in (tuple, list):
            return
        package = _inside(module).get("__name__")
        if type(package) is not str:
            return
        for name in fromlist:
            full = f"{package}.{name}" if type(name) is str else None
            if full in self._under:
                # It would find that binding if the submodule had not been loaded.
                self._note(self.doubted, full)
            elif full in self.hidden or full in _loaded and full not in self.preloaded:
                self.imported(full)

    def _note(self, where, name):
        if self._loading:
            self._needs[self._loading[-1]].add(name)
        elif self.events.running and not self.events.busy:
            where.add(name)

    def imported(self, name):
        """The module is imported, whether it was loaded or not."""
        self._uncover(name)
        self._note(self.asked, name)

    def load(self, real, name, import_, asked=True):
        """Loads a missing module, using `real`. `asked`: for the program."""
        if asked:
            self.imported(name)
        else:
            self._uncover(name)
        if name in _loaded:
            return real(name, import_)
        parent, _, last = name.rpartition(".")
        if parent and parent not in _loaded:
            _bootstrap._call_with_frames_removed(import_, parent)
        held = inside(parent)
        if held is not None and last in held and name not in _loaded:
            self._under[name] = held[last]
        needs = self._needs.setdefault(name, set())
        if parent:
            needs.add(parent)
        before = len(_loaded)
        self._loading.append(name)
        try:
            return real(name, import_)
        finally:
            self._loading.pop()
            # The newest come last. Some are added by other means than imports.
            needs.update(islice(reversed(_loaded), max(len(_loaded) - before, 0)))
            # What does not reach it is as before.
            self._reached = {at: found for at, found in self._reached.items() if name not in found}
            self._brought.clear()
            self._met.clear()
            self._children.clear()
            self._offers.clear()
            if not self._loading:
                self._clear.clear()
                if self.present:
                    self._bring()

    # Queries.

    def loading(self):
        """Whether a module is being loaded."""
        return bool(self._loading)

    def is_own(self, name):
        """Whether it is a submodule that exists only if some code loads it."""
        parent, _, last = name.rpartition(".")
        if not parent or name in self.preloaded or name in self.lazy or self.modules.is_scratch(name):
            return False
        if last in self._offered(parent):
            return False
        # The interpreter caches codecs: only the first use loads one.
        return parent != "encodings" and name not in self.reach(parent)

    def _offered(self, package):
        """The names that a package offers through its `__getattr__`, which loads a submodule as soon as
        any code looks for it. So it makes no difference whether one is loaded."""
        known = self._offers.get(package)
        if known is None:
            known, held = _NONE, inside(package)
            if held is not None and type(held.get("__getattr__")) is types.FunctionType:
                names = held.get("__all__")
                if type(names) in (list, tuple):
                    known = frozenset(name for name in names if type(name) is str)
            self._offers[package] = known
        return known

    def reach(self, name):
        """What loading the module loads, including itself."""
        known = self._reached.get(name)
        if known is None:
            found, todo = {name}, [name]
            while todo:
                for other in self._needs.get(todo.pop(), ()):
                    if other not in found and other not in self.preloaded:
                        found.add(other)
                        todo.append(other)
            known = self._reached[name] = found
        return known

    def brings(self, name):
        """The submodule entities that importing the module leaves."""
        known = self._brought.get(name)
        if known is None:
            there = [one for one in self.reach(name) if one in _loaded or one in self.hidden]
            known = self._brought[name] = frozenset(filter(self.is_own, there))
        return known

    # One step.

    def begin(self):
        """Right before the step: it may find what the state has."""
        self.asked = set()
        self.doubted = set()
        self.settle()

    def writes(self):
        """The submodules that also exist because of the step."""
        found = set()
        for name in self.asked | self.doubted:
            if name not in found:
                found |= self.reach(name)
        return [name for name in found if name in _loaded and self.is_own(name)]

    def reads(self, packages, traits, own, nested):
        """The submodules that the code may have looked for on packages. `own`: the step's code,
        `nested`: it and its nested code."""
        found = set()
        for name in self.doubted:
            found |= self.brings(name)
        names = traits.names
        every = not BY_TEXT.isdisjoint(names)
        for package in packages:
            held = inside(package)
            if held is None or "__path__" not in held:
                continue
            starred = "*" in traits.strings and package in traits.imports
            children = self._listing(package, held)
            unseen = every or starred
            for last in children if unseen else children & names:
                full = f"{package}.{last}"
                if self.is_own(full) and not self._excused(full, last, traits, own, nested, unseen):
                    found.add(full)
        return found

    def _excused(self, full, last, traits, own, nested, unseen):
        """Whether the step itself imports it before it could look for it. `unseen`: it may do so
        without naming it."""
        if own is None:
            return False
        for one in early(own):
            if last in one.looked or full not in self.brings(one.module):
                continue
            if one.first:
                return True
            if not unseen and not any(last in code.co_names for code in traits.codes if id(code) not in nested):
                return True
        return False

    def _listing(self, package, held):
        """Possible submodules, by the files in the folders of the package."""
        known = self._children.get(package)
        if known is None:
            files = self._files.get(package)
            if files is None:
                files = self._files[package] = set()
                for folder in list(held["__path__"]):
                    try:
                        files.update(file.partition(".")[0] for file in _listdir(folder))
                    except (OSError, TypeError, ValueError):
                        pass
            start, known = package + ".", set(files)
            for name in (*_loaded, *self.hidden):
                if type(name) is str and name.startswith(start) and "." not in name[len(start):]:
                    known.add(name[len(start):])
            known = self._children[package] = frozenset(known)
        return known

    # Restoring the state.

    def member(self, name):
        """`(own, blob)` of a submodule in the state."""
        return _sha(b"p:import/" + name.encode()).hexdigest(), name.encode()

    def put(self, name):
        """Adds it to the state."""
        self.present.add(name)
        self._stirred = True

    def drop(self, name):
        """Removes it from the state."""
        self.present.discard(name)
        self._stirred = True

    def settle(self):
        """Makes the loaded submodules match the state."""
        if not self._stirred and len(_loaded) == self._counted:
            return
        if len(_loaded) != self._counted:
            self.modules.loaded_by_itself()
        for name in sorted(self.hidden):
            if self._is_there(name):
                self._show(name)
        self._bring()
        for name in [name for name in _loaded if type(name) is str and "." in name]:
            if name in _loaded and not self._is_there(name):
                self._hide(name)
        self._stirred = False
        self._counted = len(_loaded)

    def _is_there(self, name):
        """Whether a loaded module is visible in this state."""
        parent = name.rpartition(".")[0]
        if not parent or name in self.preloaded or name in self.present or name in self.lazy:
            return True
        if parent == "encodings" or name.rpartition(".")[2] in self._offered(parent):
            return True
        if self.modules.is_scratch(name) or name.startswith("_harness.") or name not in self._needs:
            return True
        return self._is_there(parent) and name in self.reach(parent)

    def _bring(self):
        """Loads what the state has, once its package is loaded. This is not an action of the step."""
        events = self.events
        missing = [
            name
            for name in self.present
            if name not in _loaded and name.partition(".")[0] in _loaded
        ]
        if not missing:
            return
        was, events.running = events.running, False
        try:
            for name in sorted(missing):
                try:
                    importlib.import_module(name)
                except Exception as failure:
                    events.failures.append(f"import of {name}: {failure!r}")
        finally:
            events.running = was

    def _hide(self, name):
        module = _loaded.pop(name)
        parent, _, last = name.rpartition(".")
        held = inside(parent)
        bound = held is not None and held.get(last) is module
        if bound:
            under = (self._under[name],) if name in self._under else ()
            self.modules.rebind(parent, last, *under)
        self.hidden[name] = module, bound
        self._clear.clear()

    def _show(self, name):
        module, bound = self.hidden.pop(name)
        _loaded[name] = module
        parent, _, last = name.rpartition(".")
        if bound and inside(parent) is not None:
            self.modules.rebind(parent, last, module)

    def _uncover(self, name):
        """The module is imported: it becomes visible, with what its loading loaded."""
        if not self.hidden or name in self._clear:
            return
        reach = self.reach(name)
        covered = sorted([other for other in self.hidden if other in reach])
        for other in covered:
            if other.rpartition(".")[0] in _loaded:
                self._show(other)
        if covered:
            self._stirred = True
        self._clear.add(name)

    def at(self, name):
        """The module of that name, hidden or not."""
        found = self.hidden.get(name)
        return _loaded.get(name) if found is None else found[0]


def by_itself(code, at):
    """Whether the instruction there imports. Otherwise a function that it calls does."""
    return operations(code)[at // 2] in _IMPORTS or "__import__" in code.co_names


def reads(code):
    """Whether the code reads what names modules, such as a pickle."""
    return not _READING.isdisjoint(code.co_names)


def inside(name):
    """The dictionary of a loaded module, or None."""
    module = _loaded.get(name) if name else None
    return _inside(module) if issubclass(type(module), _ModuleType) else None


def nested_in(reader, own):
    """The addresses of a code object and of those nested in it."""
    return {id(code) for code in reader.one(own).codes} if own is not None else _NONE


# Its frame counts as one of the import system.
Submodules.load.__code__ = Submodules.load.__code__.replace(co_filename="<frozen importlib._bootstrap>")
