"""Runs one step: compiles it, runs it under the tracker and the channels, and reports."""

import builtins
from gc import disable, enable
from sys import getprofile, getrecursionlimit, gettrace, setprofile, setrecursionlimit, settrace
from time import perf_counter_ns

from _harness.loop.endings import OK, ends_well, file_of, raised
from _harness.loop.scalar import LOAD, bind, done, foresee, read_and_bound
from _harness.values.settle import MODULE_NAMES
from _harness.values.shapes import ATOM_IDS
from _harness.loop.texts import Text, deferred, remember
from _harness.loop.wire import parse
from _harness.world.settings import RECURSION, Recursion

BLOB_BYTES = 256 << 20
# With a lower limit of recursion what watches a step could not run.
_LEAST_DEPTH = 100

# The attributes to which the module `__main__` is reset after each step.
_MODULE = {
    "__name__": "__main__",
    "__doc__": None,
    "__loader__": None,
    "__spec__": None,
    "__package__": None,
    # `exec` inserts it if it is missing, and uses whatever is there.
    "__builtins__": builtins,
}
_pop, _update, _get, _names = dict.pop, dict.update, dict.get, dict.keys
_NONE, _NOTHING = frozenset(), {}
_STREAMS = ("stdout", "stderr")


class Steps:
    """Runs steps in the worker's namespace."""

    def __init__(self, tracker, channels, graph, streams, guard, lifeline):
        self._tracker = tracker
        self._namespace = tracker.namespace
        self._channels = channels
        self._graph = graph
        self._streams = streams
        self._guard = guard
        self._lifeline = lifeline
        # Whether anything happened since the last step.
        self._disturbed = True
        # Whether code of the program may run at any time: a thread, a hook, a signal. Every way to
        # start such code is reported.
        self._has_background_code = False
        # Whether an earlier step's `from __future__ import annotations` holds for this one.
        self._inherits = False
        self._put_back()

    def disturb(self):
        """Something other than a step may run code of the program, and values leave."""
        self._disturbed = True
        self._tracker.forget()

    def run(self, request):
        """The reply to `run`, its blobs, and the keys of the units that belong to channels."""
        code, ending = self._begin(request)
        if code is not None and not (self._has_background_code or self._inherits) and request.get("readings") is None:
            foreseen = foresee(request["source"], code, self._namespace)
            if foreseen is not None:
                return self._scalar(request, code, *foreseen)
        self._watch(request, code)
        # From here to the end of tracking the worker runs little code with a shallow stack: the
        # interpreter may have to instrument all of it, twice.
        self._tracker.begin(code)
        begun = perf_counter_ns()
        if code is not None:
            ending = self._execute(code, request["step"])
        elif ending is None:
            ending = self._bind(request["bind"])
        ran = perf_counter_ns()
        reads = self._tracker.end()
        if self._channels.looked:
            reads.names.update(self._channels.looked)
        if self._inherits:
            reads.names.add("annotations")
        return self._end(request["seq"], ending, reads, ran - begun)

    def graft(self, request, blob):
        """The reply to `graft`, and its blobs: as to a step that binds the names of the units, and reads nothing."""
        items = [{**item, "blob": blob[item["blob"][0]:sum(item["blob"])]} for item in request["units"]]
        settled = self._graph.graft(request["seq"], items, frozenset(request["onto"]))
        self._channels.settle()
        if settled is None:
            return {}, []
        parts = _Parts()
        bound = {entity for item in items for entity in item["take"]}
        ran = {"ending": OK, "reads": [], "wrote": _wrote(_NOTHING, settled, bound, _NONE)}
        ran["untracked"] = [{"what": note, "line": None} for note in settled.notes]
        ran["units"] = [parts.unit(unit) for unit in settled.units]
        return {"ran": ran}, parts.parts

    def _begin(self, request):
        """The code to run, if any; and the ending, if nothing needs to run."""
        bind = request.get("bind")
        if self._disturbed:
            self._disturbed = False
            self._streams.install()
            # Output between two steps belongs to none.
            self._streams.take("stdout")
            self._streams.take("stderr")
        self._lifeline.hold()
        Text.shown.clear()
        return (None, None) if bind else self._compile(request["step"], request["source"])

    def _watch(self, request, code):
        """From here on everything counts as the step's action."""
        # To the channels, a binding or a source that does not compile is a step without code.
        empty = code or compile("", file_of(request["step"]), "exec", dont_inherit=True)
        self._channels.begin(empty, request.get("readings"), request["seq"])
        # The collector runs only during steps: objects made between steps are the worker's, and it
        # would traverse all of the steps' objects.
        enable()

    def _scalar(self, request, code, uses, before):
        """Runs a scalar step. The collector stays off, because freeing garbage could run code."""
        after = before.copy()
        self._tracker.alone(code)
        begun = perf_counter_ns()
        try:
            exec(code, after)
        except BaseException as error:
            took = perf_counter_ns() - begun
            return self._failed(request, code, done(uses, error), after, error, took)
        took = perf_counter_ns() - begun
        bind(uses, after, self._namespace)
        read, bound = read_and_bound(uses, before, after)
        read, bound = {"n:" + name for name in read}, {"n:" + name for name in bound}
        parts = _Parts()
        reply = {"ending": OK, "reads": sorted(read), "wrote": {}, "units": []}
        reply["micros"] = {"run": took // 1000}
        if not read and not bound:
            self._graph.seen = {}
            return reply, parts.parts, _NONE
        settled = self._graph.settle(request["seq"], read, bound, _NONE)
        if settled.notes:
            self._has_background_code = True
            reply["untracked"] = [{"what": note, "line": None} for note in settled.notes]
        reply["wrote"] = _wrote(_NOTHING, settled, bound, _NONE)
        _order(reply, self._namespace, bound)
        reply["units"] = [parts.unit(unit) for unit in settled.units]
        return reply, parts.parts, _NONE

    def _failed(self, request, code, uses, after, error, took):
        """Reports a scalar step that failed, in the way of any other step."""
        self._watch(request, code)
        self._tracker.begin(code)
        self._tracker.did(code, [(op == LOAD, name) for op, name, _ in uses])
        bind(uses, after, self._namespace)
        ending = raised(error, request["step"], self._guard.recursion)
        return self._end(request["seq"], ending, self._tracker.end(), took)

    def _end(self, seq, ending, reads, took):
        disable()
        self._channels.stop()
        # In a plain run later steps would write to what the step has put there.
        replaced = [{"what": f"sys.{name} replaced", "line": None} for name in self._streams.install() if name[0] != "_"]
        untracked = replaced + self._guard.restore()
        self._put_back()
        reply, parts, keys = self._reply(seq, ending, reads)
        if untracked:
            reply["untracked"] = reply.get("untracked", []) + untracked
        if "untracked" in reply:
            self._has_background_code = True
        if Text.shown:
            reply["shown"] = sorted(Text.shown)
        reply["micros"] = {"run": took // 1000}
        return reply, parts, keys

    def _compile(self, step, source):
        self._inherits = False
        try:
            code = compile(source, remember(step, source), "exec", dont_inherit=True)
            texts = deferred(step, source, self._namespace)
            self._inherits = texts is not None
            return texts or code, None
        except BaseException as error:
            return None, raised(error, step, self._guard.recursion, syntax=True)

    def _execute(self, code, step):
        given = max(Recursion.limit, _LEAST_DEPTH)
        try:
            setrecursionlimit(given)
            try:
                exec(code, self._namespace)
                return OK
            finally:
                # Not in a function, whose call would be traced, or exceed the limit.
                if getrecursionlimit() != given:
                    Recursion.limit = getrecursionlimit()
                setrecursionlimit(self._guard.recursion)
                if gettrace() is not None:
                    settrace(None)
                if getprofile() is not None:
                    setprofile(None)
        except BaseException as error:
            if issubclass(type(error), RecursionError):
                self._channels.uses(RECURSION)
            if ends_well(error):
                return OK
            ending = raised(error, step, self._guard.recursion)
        # Formatting the exception may have run code of the step.
        self._guard.quiet()
        return ending

    def _bind(self, bind):
        try:
            value = bind["json"]
            dict.__setitem__(
                self._namespace, bind["name"], parse(value) if type(value) is str else value
            )
            return OK
        except BaseException as error:
            return raised(error, "", self._guard.recursion)

    def _put_back(self):
        """Resets the names of the module that are not the program's."""
        namespace = self._namespace
        for name in ("__warningregistry__", "__file__", "__cached__"):
            _pop(namespace, name, None)
        _update(namespace, _MODULE)

    def _reply(self, seq, ending, reads):
        """The reply, after the code has run."""
        ok = ending is OK
        namespace, graph = self._namespace, self._graph
        names = _names(namespace)
        # The usual step uses plain values only.
        usual = ok and not reads.everything and self._plain(reads)
        codes, modules = [*reads.executed.values()], _NONE
        if not usual:
            looked = [name for name in (*reads.names, *reads.bound) if name in names]
            codes += graph.codes({"n:" + name for name in looked})
            modules = graph.modules_met
        graph.modules_met = _NONE
        self._tracker.late(reads, graph.codes)
        world = None
        if usual and not graph.modules_met and self._plain(reads):
            world = self._channels.usual(reads)
        if world is None:
            world = self._channels.end(ok, codes, reads, modules | graph.modules_met)
        read, bound = {"n:" + name for name in reads.names}, {"n:" + name for name in reads.bound}
        gone = {"n:" + name for name in reads.gone} if reads.gone else _NONE
        touched = {*world.modules}
        for name in reads.names:
            if name in names:
                touched.add("n:" + name)
            elif name not in reads.gone and not self._guard.builtin(name):
                # Found among what a step added to the builtins, or missing there.
                read.add("m:builtins")
        read.update(world.modules, world.reads)
        if reads.everything:
            read.add("*")
            # It may have changed whatever it found.
            touched.update(["n:" + name for name in names if type(name) is str and name not in MODULE_NAMES])
        if world.held is not None:
            objects, used = world.held
            held = graph.hold(objects) if objects or graph.world.held else _NONE
            if used:
                read |= {entity for entity in held if entity[0] == "n"}
                touched |= held - gone
        parts = _Parts()
        # Empty fields are left out, except those that the host requires.
        reply = {"ending": ending, "reads": sorted(read), "wrote": {}, "units": []}
        if world.external:
            reply["external"] = world.external
        if world.readings:
            reply["readings"] = world.readings
        if world.clock:
            reply["clock"] = True
        for name in _STREAMS:
            data, dropped = self._streams.take(name)
            if data:
                self._channels.output(data)
            if data or dropped:
                reply[name] = {"at": parts.add(data), "dropped": dropped}
        untracked = [*world.untracked]
        if untracked:
            reply["untracked"] = untracked
        if not ok:
            dirty = bound | gone | set(graph.dirty(touched | gone, bound)) | set(world.dirty)
            reply["dirty"] = sorted(dirty)
            return reply, parts.parts, _NONE
        if not touched and not bound and not gone and not world.wrote:
            graph.seen = {}
            return reply, parts.parts, _NONE
        settled = graph.settle(seq, touched, bound, gone)
        if settled.notes:
            untracked += [{"what": note, "line": None} for note in settled.notes]
            reply["untracked"] = untracked
        reply["wrote"] = _wrote(world.wrote, settled, bound, gone)
        _order(reply, namespace, bound)
        reply["units"] = [parts.unit(unit) for unit in (*settled.units, *world.units)]
        return reply, parts.parts, [unit["key"] for unit in world.units]

    def _plain(self, reads):
        """Whether everything the step read and bound is unbound or bound to a plain value."""
        namespace = self._namespace
        for name in (*reads.names, *reads.bound):
            if id(type(_get(namespace, name))) not in ATOM_IDS:
                return False
        return True


def _wrote(wrote, settled, bound, gone):
    """What was written and how, besides the channels' `wrote`."""
    wrote = {**wrote}
    # New classes and functions, and modules that now differ or no longer do.
    for unit in settled.units:
        for member in unit["members"]:
            entity = member["entity"]
            if entity in settled.created:
                wrote[entity] = "bound"
            elif entity[0] == "m" and entity in settled.met:
                wrote[entity] = "mutated"
    for entities, how in (
        (settled.back, "deleted"), (settled.mutated, "mutated"), (gone, "deleted"), (bound, "bound")
    ):
        for entity in entities:
            wrote[entity] = how
    return wrote


def _order(reply, namespace, bound):
    """Adds the names at the end of the namespace that a step bound, in its order, if there are several."""
    found = []
    if len(bound) > 1:
        for name in dict.__reversed__(namespace):
            if type(name) is not str or "n:" + name not in bound and name not in _MODULE:
                break
            if name not in _MODULE:
                found.append("n:" + name)
    if found:
        reply["order"] = found[::-1]


class _Parts:
    """The blob part of a reply."""

    def __init__(self):
        self.parts = []
        self._length = 0

    def add(self, data):
        """Appends the bytes. Returns their position."""
        at = [self._length, len(data)]
        self._length += len(data)
        self.parts.append(data)
        return at

    def unit(self, unit):
        """The unit with its blob appended, or as unserializable if there is no room for it."""
        blob = unit["blob"]
        if blob is None:
            return unit
        if self._length + len(blob) > BLOB_BYTES:
            return {**unit, "blob": None, "unserializable": "too large", "size": len(blob)}
        return {**unit, "blob": self.add(blob)}
