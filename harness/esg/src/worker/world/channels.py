"""All channels except names: files, process state, modules, the clock, and untracked state.

The order of construction matters for modules loaded later: from then on they see the stand-ins for
functions of `os`, `time` and `random`.
"""

import sys
import types

from _harness.world.calm import Calm
from _harness.world.clock import Clock
from _harness.world.effects import Effects, nothing
from _harness.world.events import Events
from _harness.world.files import Files
from _harness.world import lookups
from _harness.world.handles import unwritten
from _harness.track.identity import Identity
from _harness.world.loading import look_again
from _harness.world.modules import Modules, home, inside_of
from _harness.world.native import opens
from _harness.world.packages import Packages
from _harness.world.paths import Paths
from _harness.world.process import Process
from _harness.world.submodules import BY_TEXT, PREFIX, nested_in
from _harness.world.traits import Reader, Traits
from _harness.world.watch import Watch

_dict_get = dict.get
_MAPPING = type.__dict__["__dict__"].__get__
_Function = types.FunctionType
_FIRST_KEY = 1_000_000
_IMPORTED = "p:" + PREFIX


class Channels:
    """The interface to all channels."""

    def __init__(self, scratch, namespace, limits):
        limit = (limits or {}).get("value_bytes", 64 << 20)
        self.namespace = namespace
        self.events = Events(namespace)
        self.files = Files(self.events, scratch, limit)
        self.clock = Clock(self.events)
        self.process = Process(self.events, self.files.scratch, (limits or {}).get("ambient", ()))
        self.files.on_cwd = lambda: self.process.read("cwd")
        self.paths = Paths(self.events, self.files)
        self.watch = Watch(self.events, namespace)
        # Modules of every process. Whether another one is loaded depends on earlier steps.
        self._always = frozenset(sys.modules)
        for name in self._always:
            self.clock.imported(name, sys.modules[name])
        strict = (limits or {}).get("strictness") == "everything"
        self.modules = Modules(self.events, namespace, self.files, self.process, strict)
        self.process.ambient.find = self.modules.submodules.at
        self.modules.boundary.importing += (self.process.importing, self.process.ambient.importing)
        self.modules.boundary.imported += (self.process.imported, self.process.ambient.imported)
        self.modules.appeared += (self.clock.imported, self._appeared)
        # Names that functions of packages looked up in the namespace of their callers.
        self.looked = set()
        self.clock.loading = self.modules.imports
        self.packages = Packages(self.files)
        self.reader = Reader()
        self.identity = Identity(namespace)
        self.calm = Calm(self)
        self._nothing = nothing()
        # The version of each live `f:` and `p:` entity: its unit's key, and the stashed ones.
        self.keys = {}
        self._stash = {}
        self._minted = _FIRST_KEY
        self._seq = 0
        self._pending = set()
        self._code = None

    def attach(self, streams, tracker):
        """The streams that steps and imports write to, and what tracks the code that runs."""
        boundary = self.modules.boundary
        boundary.streams = streams
        boundary.importing.append(tracker.importing)
        boundary.imported.append(tracker.imported)

    def unwritten(self):
        """A block in which values leave. What open files have in their buffers is not written."""
        return unwritten(self.files.handles)

    # Steps.

    def begin(self, code, readings=None, seq=0):
        """Called right before the step runs. `code` is None for a binding. `seq` becomes part of the
        keys of units, which are unique without it too."""
        self._seq = seq
        self._code = code
        if self.looked:
            self.looked = set()
        self.process.begin()
        self.files.begin()
        self.paths.begin()
        self.modules.begin()
        self.modules.submodules.begin()
        self.clock.begin(readings)
        self.watch.begin()
        events = self.events
        events.failures.clear()
        events.filename = None if code is None else code.co_filename
        events.running = True

    def stop(self):
        """The step is over: later reads are not its own. Called before the namespace is cleaned up."""
        if self.events.running:
            self.process.warned(self.namespace)
        self.events.running = False

    def uses(self, name):
        """Code uses an ambient channel without naming it."""
        self.process.ambient.uses(name)

    def usual(self, reads):
        """Called right after a successful step. Returns its world if it only read and bound names of
        plain values. None if it did more and needs `end`."""
        own = self._code
        for code in reads.executed.values():
            if code is not own:
                return None
        self.stop()
        if own is None or not self.calm.holds(own):
            return None
        world = self._nothing
        # Its output may still add to this.
        world.untracked = self.watch.found
        return world

    def end(self, ok, codes, reads, packages=()):
        """Called right after a step. `codes`: code objects that ran or may be called; `reads`: the
        tracker's result, of which `names` counts; `packages`: modules that values refer to."""
        self.stop()
        world = Effects()
        namespace = self.namespace
        values = []
        for name in reads.names:
            value = _dict_get(namespace, name, self)
            if value is not self:
                values.append(value)
        own = self._code
        codes = [code for code in codes if code is not own and self._is_own(code)]
        if own is not None:
            codes.insert(0, own)
        traits = self.reader.of(codes)
        if self.modules.scratch:
            traits = self._scratch_code(traits, values)
        self.events.running = True
        try:
            # Its accesses to files are dependencies of the step.
            touched = self.modules.end(traits, values)
            if touched or not _RANDOM.isdisjoint(traits.names):
                self._hints(traits, touched)
        finally:
            self.events.running = False
        tops = {name.partition(".")[0] for name in touched}
        reads.names.update(lookups.in_texts(tops.union(packages), traits))
        external, outside = self.watch.ended(self.modules.boundary.threads)
        native = opens(tops, traits.names)
        if outside or native:
            # Another process, or code that is not Python's, may have read everything.
            self.files.everything()
        if outside:
            self.process.inherited()
        listed = self.paths.scanned
        if listed and not _DETAILS.isdisjoint(traits.names):
            for rel in listed:
                self.files.children(rel)
        file_reads, file_writes = self.files.end()
        with_decimals = tops | {"decimal"} if "decimal" in packages else tops
        process_reads, process_writes = self.process.end(with_decimals, traits.names)
        world.held = self.process.ambient.held
        watch = self.watch
        if own is not None:
            watch.code(own, traits, values)
            for what in self.modules.inside(traits):
                watch.report(what)
            if not self.modules.boundary.strict:
                watch.packages(own, traits, self.modules)
            for line in self.identity.tests(own, traits, reads.names, reads.start, reads.compared):
                watch.report("identity of an immutable value", line)
        world.external = self._external() if touched or self.files.outside else {}
        for full, line in self.paths.listed_outside:
            if full is not None and not self.packages.is_python(full):
                watch.report(f"lists {full}", line)
        for what in self.files.tree.special:
            watch.report(what)
        for rel, line in self.files.uses_left:
            watch.report(f"uses what an import left: {rel}", line)
        for full, line in self.files.writes_outside:
            watch.report(f"writes {full}", line)
        for what in self.events.failures:
            watch.report(what)
        reads.everything = reads.everything or watch.sees_all()
        world.modules = {f"m:{name}" for name in touched}
        looked = self._submodules(touched.union(packages), traits)
        world.reads = [*file_reads, *process_reads, *looked]
        world.wrote = {f"f:{path}": how for path, how in file_writes.items()}
        if process_writes:
            world.wrote.update(process_writes)
        world.readings = self.clock.end()
        if self.clock.misfit:
            watch.report("the readings to replay do not fit")
        if self.clock.overflow:
            watch.report("more readings of the clock than are kept")
        world.clock = bool(world.readings) or external or native
        world.dirty = [] if ok else [*world.wrote, *(f"m:{name}" for name in self.modules.changed)]
        world.units = self._units(world.wrote) if ok else []
        self._imported(ok, world)
        if file_writes:
            self._shadows(file_writes)
            look_again()
        if not ok:
            for entity in world.wrote:
                self.keys.pop(entity, None)
        world.untracked = watch.found
        return world

    def _appeared(self, name, module):
        """A module was loaded. Some resolve names in the frames of their callers."""
        self.process.ambient.appeared(name)
        lookups.watch(module, name, self._look)

    def _look(self, names):
        if self.events.running:
            self.looked.update(name for name in names if type(name) is str)

    def _submodules(self, packages, traits):
        """Submodules that the step may have looked for, whether they exist or not."""
        nested = nested_in(self.reader, self._code)
        looked = self.modules.submodules.reads(packages, traits, self._code, nested)
        found = [f"p:{PREFIX}{name}" for name in looked]
        for package in packages & self.modules.scratch.keys():
            # These are modules of their own, which belong to the state.
            held = inside_of(self.modules.scratch[package])
            if "__path__" in held:
                names = traits.names
                if not BY_TEXT.isdisjoint(names) or "*" in traits.strings:
                    names = names | traits.words | self.files.stems(package.replace(".", "/"))
                names = names - held.keys()
                found += [f"m:{package}.{name}" for name in names if name.isidentifier()]
        return found

    def _imported(self, ok, world):
        """Submodules that exist because of the step. Those already in the state stay."""
        submodules = self.modules.submodules
        for name in submodules.writes():
            entity = f"p:{PREFIX}{name}"
            if entity in self.keys:
                if ok:
                    world.wrote[entity] = "bound"
            elif ok:
                world.wrote[entity] = "bound"
                submodules.put(name)
                world.units.append(self._unit(entity))
            else:
                world.dirty.append(entity)

    def output(self, data):
        """The step's output, to search for addresses. Called between `end` and the reply."""
        self.watch.output(data)

    def _is_own(self, code):
        """Whether it is code of the program, not of a library."""
        file = code.co_filename
        if file[:1] == "<":
            # Packages compile code under names of their own.
            return file[:6] == "<step:" or file == "<string>" or file in self.events.compiled
        return file[:1] != "/" or file.startswith(self.files.scratch)

    def _scratch_code(self, traits, values):
        """The traits, including those of functions of scratch modules: these are the program's code,
        whichever code calls them."""
        scratch = self.modules.scratch
        used = {home(value) for value in values}
        for code in list(traits.codes):
            for name, module in scratch.items():
                if code.co_filename == inside_of(module).get("__file__"):
                    used.add(name)
        used |= traits.imports
        used &= scratch.keys()
        # A scratch module's imports from scratch are used with it.
        pending = list(used)
        while pending:
            for value in list(inside_of(scratch[pending.pop()]).values()):
                name = home(value)
                if name in scratch and name not in used:
                    used.add(name)
                    pending.append(name)
        self.modules.touched |= used
        total = Traits()
        total.add(traits)
        for name in used:
            for value in list(inside_of(scratch[name]).values()):
                inner = [value]
                if issubclass(type(value), type):
                    inner = list(_MAPPING(value).values())
                for function in inner:
                    if type(function) is _Function:
                        total.add(self.reader.one(function.__code__))
        return total

    def _hints(self, traits, touched):
        """What only the code shows: `sys.path` and similar have no functions to hook."""
        names = traits.names
        if "sys" in touched and "path" in names:
            self.process.read("path")
        if "warnings" in touched:
            self.process.read("warn")
        if not _RANDOM.isdisjoint(names):
            self.process.read("rng")
        if "sys" in touched and "modules" in names:
            named = [text for text in traits.strings if text in self._always and text in sys.modules]
            if not named and "__name__" not in names:
                self.watch.report("sys.modules")

    def _external(self):
        external = {}
        for name in self.modules.touched:
            self.packages.module(name, sys.modules.get(name), external)
        for full, (direct, line) in self.files.outside.items():
            found, why = self.packages.file(full, external, direct)
            if why is not None:
                self.watch.report(f"{why}: {full}", line)
        return external

    def _units(self, entities):
        units = []
        for entity in entities:
            if self._present(entity):
                units.append(self._unit(entity))
            else:
                self.keys.pop(entity, None)
        return units

    def _present(self, entity):
        return entity[0] == "p" or entity[2:] in self.files.tree.entries

    def _unit(self, entity):
        key = f"{self._seq}.{self._minted}"
        self._minted += 1
        self.keys[entity] = key
        opaque = False
        if entity.startswith(_IMPORTED):
            own, blob = self.modules.submodules.member(entity[len(_IMPORTED) :])
            reason = None
        elif entity[0] == "p":
            own, blob, reason = self.process.member(entity[2:])
            opaque = self.process.is_open(entity[2:])
        else:
            own = self.files.tree.entries[entity[2:]].own()
            blob, reason = self.files.tree.blob(entity[2:])
        unit = {
            "key": key,
            "refs": [],
            "members": [{"entity": entity, "own": own, "refs": [], "opaque": opaque}],
            "share": [],
            "blob": blob,
        }
        if reason is not None:
            unit["unserializable"] = reason
        return unit

    # Syncs.

    def settle(self):
        """Applies puts and drops, as far as that happens for all at once."""
        self.modules.submodules.settle()
        self.process.settle()

    def drop(self, entity):
        """Removes the entity: a file is deleted, process state returns to its initial value. Empty
        directories are removed, now or after a later drop. Returns whether the entity belongs to a
        channel."""
        kind, name = entity[0], entity[2:]
        if entity.startswith(_IMPORTED):
            self.modules.submodules.drop(entity[len(_IMPORTED) :])
        elif kind == "p":
            self.process.drop(name)
        elif kind == "f":
            if not self.files.tree.remove(name):
                self._pending.add(name)
            elif self._pending:
                self._retry()
        else:
            return False
        self.keys.pop(entity, None)
        return True

    def _retry(self):
        for name in sorted(self._pending, reverse=True):
            if self.files.tree.remove(name):
                self._pending.discard(name)

    def _entities(self, key):
        return [entity for entity, held in self.keys.items() if held == key]

    def stash(self, key):
        """Stashes a unit and removes it from the world. False if the key is unknown."""
        found = self._entities(key)
        if not found:
            return False
        for entity in found:
            name = entity[2:]
            if entity.startswith(_IMPORTED):
                self._stash[key] = entity, None
            elif entity[0] == "p":
                self._stash[key] = entity, self.process.keep(name)
            else:
                self._stash[key] = entity, self.files.tree.blob(name)[0]
            self.drop(entity)
        return True

    def unstash(self, key, members=None):
        """Restores a stashed unit. False if the key is unknown."""
        if key not in self._stash:
            return False
        entity, content = self._stash.pop(key)
        if entity.startswith(_IMPORTED):
            self.modules.submodules.put(entity[len(_IMPORTED) :])
        elif entity[0] == "p":
            self.process.set(entity[2:], content)
        else:
            self._put(entity[2:], content)
        self.keys[entity] = key
        return True

    def forget(self, key):
        """Discards a stashed unit."""
        return self._stash.pop(key, None) is not None

    def load(self, unit, blob):
        """Restores a stored unit. Returns None, or the reason of a failure."""
        try:
            for member in unit["members"]:
                entity = member["entity"] if type(member) is dict else member
                take = unit.get("take")
                if take is not None and entity not in take:
                    continue
                if entity.startswith(_IMPORTED):
                    self.modules.submodules.put(entity[len(_IMPORTED) :])
                elif entity[0] == "p":
                    self.process.load(entity[2:], blob)
                else:
                    self._put(entity[2:], bytes(blob))
                self.keys[entity] = unit["key"]
        except Exception as failure:
            return f"{type(failure).__name__}: {failure}"
        return None

    def _put(self, name, blob):
        self._pending.discard(name)
        self.files.tree.put(name, blob)
        look_again()

    def _shadows(self, paths):
        """Files named like a library module that is already loaded. Which of the two a later import
        finds depends on the order, which no entity records."""
        modules = self.modules
        for path in paths:
            name = path[:-3] if path.endswith(".py") else path
            if "/" in name or name in modules.preloaded or modules.is_scratch(name):
                continue
            if name in sys.modules and path in self.files.tree.entries:
                self.watch.report(f"{path} takes the name of a loaded module")

    def sweep(self, accounted=()):
        """Everything live, without relying on records: `(units, unattributed)`. `accounted`: the
        `m:` entities of the host's state."""
        unattributed = []
        before = self.files.tree.entries
        after = self.files.tree.rescan()
        for path in before.keys() | after.keys():
            was, now = before.get(path), after.get(path)
            if was is not now and (was is None or now is None or not was.same(now)):
                unattributed.append(f"f:{path} changed")
        unattributed += [f"{entity} changed" for entity in self.process.unattributed()]
        unattributed += self.modules.sweep(set(accounted))
        units = []
        imported = [entity for entity in self.keys if entity.startswith(_IMPORTED)]
        process = [f"p:{name}" for name in self.process.names()]
        for entity in [f"f:{path}" for path in after] + process + imported:
            held = self.keys.get(entity)
            if held is None and entity[0] == "p" and f"{entity} changed" not in unattributed:
                continue
            unit = self._unit(entity)
            if held is not None:
                unit["key"] = self.keys[entity] = held
            unit["blob"] = None
            units.append(unit)
        return units, unattributed


# Attributes that give access to the generator behind the module `random`.
_RANDOM = frozenset(("_inst", "_pickle"))
# Attributes of a directory entry beyond its name and kind.
_DETAILS = frozenset("stat st_size st_mode inode getsize walk_stat".split())
