"""One step: compiled, run under tracker and channels, and told about."""

import builtins
from gc import disable, enable
from linecache import cache
from sys import getprofile, gettrace, setprofile, setrecursionlimit, settrace
from time import perf_counter_ns

from _harness_endings import OK, file_of, raised
from _harness_shapes import ATOM_IDS
from _harness_wire import parse

BLOB_BYTES = 256 << 20

# What the module `__main__` is put back to after each step.
_MODULE = {
    "__name__": "__main__",
    "__doc__": None,
    "__loader__": None,
    "__spec__": None,
    "__package__": None,
    # `exec` puts it in if it is not there, and takes whatever is.
    "__builtins__": builtins,
}
_pop, _update, _get, _names = dict.pop, dict.update, dict.get, dict.keys
_NONE = frozenset()
_STREAMS = ("stdout", "stderr")


def remember(step, source):
    """Lets tracebacks, warnings and `inspect` find the source of a step. Answers its file."""
    file = file_of(step)
    # Without a time it stays, though there is no such file.
    cache[file] = (len(source), None, source.splitlines(True), file)
    return file


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
        # Whether anything was done since the last step.
        self._disturbed = True
        self._put_back()

    def disturb(self):
        """Something else than a step may run code of the program."""
        self._disturbed = True

    def run(self, request):
        """The reply to `run`, its blobs, and the keys of the units that are the channels'."""
        code, ending = self._begin(request)
        # From here to the tracker's end little code of ours runs, and little lies on the stack: the
        # interpreter may have to prepare all of it for events, twice.
        self._tracker.begin(code)
        begun = perf_counter_ns()
        if code is not None:
            ending = self._execute(code, request["step"])
        elif ending is None:
            ending = self._bind(request["bind"])
        ran = perf_counter_ns()
        reads = self._tracker.end()
        return self._end(request["seq"], ending, reads, begun, ran)

    def _begin(self, request):
        """The code to run, if there is any; and the ending, if nothing is to run any more."""
        bind = request.get("bind")
        if self._disturbed:
            self._disturbed = False
            self._streams.install()
            # What was printed between two steps belongs to none.
            self._streams.take("stdout")
            self._streams.take("stderr")
        code, ending = (None, None) if bind else self._compile(request["step"], request["source"])
        # What binds a value, or does not compile, is to the channels a step without a line.
        empty = code or compile("", file_of(request["step"]), "exec", dont_inherit=True)
        self._lifeline.hold()
        self._channels.begin(empty, request.get("readings"), request["seq"])
        # Garbage is looked for while steps run, and at no other time: what is made between them is
        # not theirs, and its look would go through all of theirs.
        enable()
        return code, ending

    def _end(self, seq, ending, reads, begun, ran):
        disable()
        self._channels.stop()
        self._streams.install()
        untracked = self._guard.restore()
        self._put_back()
        reply, parts, keys = self._tell(seq, ending, reads)
        if untracked:
            reply["untracked"] = reply.get("untracked", []) + untracked
        reply["micros"] = {"run": (ran - begun) // 1000}
        return reply, parts, keys

    def _compile(self, step, source):
        try:
            return compile(source, remember(step, source), "exec", dont_inherit=True), None
        except BaseException as error:
            return None, raised(error, step, self._guard.recursion, syntax=True)

    def _execute(self, code, step):
        try:
            try:
                exec(code, self._namespace)
                return OK
            finally:
                # Not in a function: its call would be traced, or be one too many.
                setrecursionlimit(self._guard.recursion)
                if gettrace() is not None:
                    settrace(None)
                if getprofile() is not None:
                    setprofile(None)
        except BaseException as error:
            ending = raised(error, step, self._guard.recursion)
        # To tell of it may have run code of the step.
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
        """The names of the module that are none of the program's."""
        namespace = self._namespace
        for name in ("__warningregistry__", "__file__", "__cached__"):
            _pop(namespace, name, None)
        _update(namespace, _MODULE)

    def _tell(self, seq, ending, reads):
        """The reply, once what ran is over."""
        ok = ending is OK
        namespace, graph = self._namespace, self._graph
        names = _names(namespace)
        # The usual step has to do with plain values only.
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
        touched = {*bound, *world.modules}
        for name in reads.names:
            if name in names:
                touched.add("n:" + name)
            elif name not in reads.gone and not self._guard.builtin(name):
                # Found among what a step has added to the builtins, or missed there.
                read.add("m:builtins")
        read.update(world.modules, world.reads)
        if reads.everything:
            read.add("*")
        parts = _Parts()
        # What is nothing is left out, but for what the host must not miss.
        reply = {"ending": ending, "reads": sorted(read), "wrote": {}, "units": []}
        if world.external:
            reply["external"] = world.external
        if world.readings:
            reply["readings"], reply["clock"] = world.readings, True
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
        if not touched and not gone and not world.wrote:
            graph.seen = {}
            return reply, parts.parts, _NONE
        settled = graph.settle(seq, touched, bound, gone)
        if settled.notes:
            untracked += [{"what": note, "line": None} for note in settled.notes]
            reply["untracked"] = untracked
        wrote = reply["wrote"] = {**world.wrote}
        # Classes and functions met for the first time, and modules that differ by now or again do
        # not.
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
        reply["units"] = [parts.unit(unit) for unit in (*settled.units, *world.units)]
        return reply, parts.parts, [unit["key"] for unit in world.units]

    def _plain(self, reads):
        """Whether what the step read and bound is bound to plain values, or not bound."""
        namespace = self._namespace
        for name in (*reads.names, *reads.bound):
            if id(type(_get(namespace, name))) not in ATOM_IDS:
                return False
        return True


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
