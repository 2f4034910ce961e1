"""One step: compiled, run under tracker and channels, and told about."""

import builtins
from linecache import cache
from sys import getprofile, gettrace, setprofile, setrecursionlimit, settrace
from time import perf_counter_ns

from _harness_endings import OK, file_of, raised
from _harness_wire import parse

BLOB_BYTES = 256 << 20

# What the module `__main__` is put back to after each step.
_MODULE = {
    "__name__": "__main__",
    "__doc__": None,
    "__loader__": None,
    "__spec__": None,
    "__package__": None,
}


def remember(step, source):
    """Lets tracebacks, warnings and `inspect` find the source of a step."""
    file = file_of(step)
    # Without a time it stays, though there is no such file.
    cache[file] = (len(source), None, source.splitlines(True), file)


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
        self._put_back()

    def run(self, request):
        """The reply to `run`, its blobs, and the keys of the units that are the channels'."""
        seq, bind = request["seq"], request.get("bind")
        self._streams.install()
        # What was printed between two steps belongs to none.
        self._streams.take("stdout")
        self._streams.take("stderr")
        code, ending = (None, OK) if bind else self._compile(request["step"], request["source"])
        # What binds a value, or does not compile, is to the channels a step without a line.
        empty = code or compile("", file_of(request["step"]), "exec", dont_inherit=True)
        self._channels.begin(empty, request.get("readings"), seq)
        self._tracker.begin(code)
        begun = perf_counter_ns()
        if bind:
            ending = self._bind(bind)
        elif ending is OK:
            ending = self._execute(code, request["step"])
        ran = perf_counter_ns()
        reads = self._tracker.end()
        self._channels.stop()
        self._streams.install()
        untracked = self._guard.restore()
        self._put_back()
        reply, parts, keys = self._tell(seq, ending, reads)
        reply["untracked"] = reply["untracked"] + untracked
        reply["micros"] = {
            "run": (ran - begun) // 1000,
            "probe": (perf_counter_ns() - ran) // 1000,
        }
        return reply, parts, keys

    def _compile(self, step, source):
        remember(step, source)
        try:
            return compile(source, file_of(step), "exec", dont_inherit=True), OK
        except BaseException as error:
            return None, raised(error, step, self._guard.recursion, syntax=True)

    def _execute(self, code, step):
        self._lifeline.hold()
        try:
            try:
                exec(code, self._namespace)
                ending = OK
            finally:
                # Not in a function: its call would be traced, or be one too many.
                setrecursionlimit(self._guard.recursion)
                if gettrace() is not None:
                    settrace(None)
                if getprofile() is not None:
                    setprofile(None)
        except BaseException as error:
            ending = raised(error, step, self._guard.recursion)
        self._guard.quiet()
        self._lifeline.let_go()
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
        """The names of the module that are none of the program's."""
        namespace = self._namespace
        for name in ("__warningregistry__", "__file__", "__cached__"):
            dict.pop(namespace, name, None)
        for name, value in _MODULE.items():
            dict.__setitem__(namespace, name, value)
        # `exec` puts it in if it is not there, and takes whatever is.
        dict.__setitem__(namespace, "__builtins__", builtins)

    def _tell(self, seq, ending, reads):
        """The reply, once what ran is over."""
        ok = ending is OK
        names = dict.keys(self._namespace)
        looked = {"n:" + name for name in reads.names | reads.bound if name in names}
        codes = [*reads.executed, *self._graph.codes(looked)]
        self._tracker.late(reads, self._graph.codes)
        world = self._channels.end(ok, codes, reads, self._graph.modules_met)
        bound = {"n:" + name for name in reads.bound}
        gone = {"n:" + name for name in reads.gone}
        looked = {"n:" + name for name in reads.names if name in names}
        touched = looked | bound | set(world.modules)
        modules = set(world.modules)
        absent = [name for name in reads.names if name not in names and name not in reads.gone]
        if not all(map(self._guard.builtin, absent)):
            # Found among what a step has added to the builtins, or missed there.
            modules.add("m:builtins")
        parts = _Parts()
        reply = {
            "ending": ending,
            "reads": sorted(
                {"n:" + name for name in reads.names}
                | set(world.reads)
                | modules
                | ({"*"} if reads.everything else set())
            ),
            "external": world.external,
            "wrote": {},
            "units": [],
            "readings": world.readings,
            "clock": world.clock,
        }
        for name in ("stdout", "stderr"):
            data, dropped = self._streams.take(name)
            self._channels.output(data)
            reply[name] = {"at": parts.add(data), "dropped": dropped}
        reply["untracked"] = list(world.untracked)
        if not ok:
            dirty = bound | gone | set(self._graph.dirty(touched, bound)) | set(world.dirty)
            reply["dirty"] = sorted(dirty)
            return reply, parts.parts, []
        settled = self._graph.settle(seq, touched, bound, gone)
        reply["untracked"] += [{"what": note, "line": None} for note in settled.notes]
        wrote = dict(world.wrote)
        # Classes and functions met for the first time, and modules that differ by now or again do
        # not.
        for unit in settled.units:
            for member in unit["members"]:
                entity = member["entity"]
                if entity in settled.created:
                    wrote[entity] = "bound"
                elif entity[0] == "m" and entity in settled.met:
                    wrote[entity] = "mutated"
        wrote.update((entity, "deleted") for entity in settled.back)
        wrote.update((entity, "mutated") for entity in settled.mutated)
        wrote.update((entity, "deleted") for entity in gone)
        wrote.update((entity, "bound") for entity in bound)
        reply["wrote"] = wrote
        reply["units"] = [parts.unit(unit) for unit in (*settled.units, *world.units)]
        return reply, parts.parts, [unit["key"] for unit in world.units]


class _Parts:
    """The blob part of a reply."""

    def __init__(self):
        self.parts = []
        self._length = 0

    def add(self, data):
        """Appends the bytes. Answers where they lie."""
        at = [self._length, len(data)]
        self._length += len(data)
        self.parts.append(data)
        return at

    def unit(self, unit):
        """The unit with its blob appended, or as a hole if there is no room for it."""
        blob = unit["blob"]
        if blob is None:
            return unit
        if self._length + len(blob) > BLOB_BYTES:
            return {**unit, "blob": None, "hole": "too large"}
        return {**unit, "blob": self.add(blob)}
