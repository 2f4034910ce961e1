"""Reads of names from Python 3.12 on: `sys.monitoring` reports the first run of an instruction.

The namespace is a plain dict. Code belongs to the step by the globals of its frame, not by its file:
code that `exec` compiles, functions defined by earlier steps and generators resumed by this one all
count.

An instruction that has been judged is disabled until the next step. This is correct because of the
definition of a read, see `_harness.track.reads`. It is not correct where a name may be found outside the
globals, so there the instruction stays enabled.

Enabling instructions again makes the interpreter instrument all code again. A step that ran only its
own code, which never runs again, needs none of this: the events stay enabled, and only library code
is disabled. If such code may run with the program's names, everything is enabled again at once.
"""

from sys import modules, monitoring
from types import FunctionType, ModuleType

from _harness.track.identity import distinguishes, watched
from _harness.track.names import LOAD, STAR, STORE, names_of
from _harness.track.reads import Ledger, main_module, starred
from _harness.values.bytecode import FAST_LOCALS
from _harness.values.compat import caller, frame_of

_NAME = "harness"
_DISABLE = monitoring.DISABLE
_EVENTS = monitoring.events
_STARTS = _EVENTS.PY_START | _EVENTS.PY_RESUME
_restart_events, _set_events = monitoring.restart_events, monitoring.set_events
_get_local_events, _set_local_events = monitoring.get_local_events, monitoring.set_local_events
_get_tool = monitoring.get_tool
_MOST_TABLES = 20_000
_IS = "is"
# The type of `f_locals` in a function: a dict in 3.12, a view in 3.13.
_LOCALS: type = (lambda: type(frame_of().f_locals))()
_VIEW = None if _LOCALS is dict else _LOCALS


def _pulse():
    # Run at the end of each step: its events show whether the step took the tool away.
    return __name__  # noqa: F821


class Tracker:
    """Which names a step reads and binds."""

    # The audit events for `rebound` while a step runs.
    EVENTS = ("exec", "function.__new__", "object.__setattr__")

    def __init__(self, scratch=None):
        self._scratch = None if scratch is None else scratch.rstrip("/") + "/"
        self._ledger = ledger = Ledger()
        self.main = main_module(
            lambda main: ModuleType.__getattribute__(main, "__dict__"), ledger
        )
        self.namespace, self.did = ledger.namespace, ledger.did
        # How the instructions of a code object use names, by its address, because hashing is slow. The
        # last result is cached.
        self._tables = {}
        self._last = None, {}
        self._beats = set()
        self._pulse_code = _pulse.__code__
        self._pulse = FunctionType(_pulse.__code__, self.namespace)
        # The step's own code, and whether other code of the program may be disabled.
        self._own = self._alone = None
        self._again = True
        # Whether the program has ever given its names as a whole to other code.
        self._given = False
        # Whether library code may hold the program's names, to run with at any time.
        self._shared = False
        self._tool = None
        self._claim()

    def _claim(self):
        """Claims a tool of `sys.monitoring` and registers the callbacks."""
        if self._tool is None:
            # The middle ones have no customary user.
            self._tool = next(
                tool for tool in (4, 3, 1, 2, 0, 5) if monitoring.get_tool(tool) is None
            )
        elif monitoring.get_tool(self._tool) is not None:
            monitoring.free_tool_id(self._tool)
        monitoring.use_tool_id(self._tool, _NAME)
        monitoring.register_callback(self._tool, _EVENTS.PY_START, self._starts)
        monitoring.register_callback(self._tool, _EVENTS.PY_RESUME, self._starts)
        monitoring.register_callback(self._tool, _EVENTS.INSTRUCTION, self._runs)
        _set_local_events(self._tool, self._pulse.__code__, _EVENTS.INSTRUCTION)
        self._tables.clear()
        self._last = None, {}

    def importing(self):
        """A package is about to be imported. Its code runs with names of its own."""

    def imported(self):
        """It was imported."""

    def begin(self, code):
        """Records the bindings, and reports loads from here on."""
        if len(self._tables) > _MOST_TABLES:
            self._tables.clear()
        self._ledger.begin()
        self._ledger.reads.compared = {}
        self._own = code
        self._last = None, {}
        if self._again or self._shared:
            self._again = False
            # In this order the code on the stack is instrumented once, not twice.
            _restart_events()
            _set_events(self._tool, _STARTS)

    def forget(self):
        """Lets go of what the last step found."""
        self._ledger.forget()

    def alone(self, code):
        """Code is about to run outside the namespace, without reports."""
        self._alone = code

    def end(self):
        """What was read since `begin`, and which names were bound or unbound."""
        self._beats.clear()
        self._pulse()
        if len(self._beats) < 2 or _get_tool(self._tool) != _NAME:
            # It is unknown since when events are missing.
            self._ledger.everything()
            self._ledger.reads.compared = None
            self._claim()
            self._again = True
        if self._again:
            # Everything until the next step would be reported.
            _set_events(self._tool, 0)
        reads = self._ledger.end()
        self._given = self._given or reads.everything
        return reads

    def rebound(self, event, args):
        """An audit event: code may be about to run with other names.

        With the program's names it can only run if the program itself is the cause, or has given its
        names as a whole away. What libraries do among themselves costs nothing."""
        # The step's code is new.
        if event == "exec" and args[0] is self._own or event == "object.__setattr__" and args[1] != "__code__":
            return
        if not self._given and not self._ledger.reads.everything:
            frame = caller(1)
            while _is_ours(frame):
                frame = frame.f_back
            if not self._is_program(frame):
                return
        if event != "exec":
            self._shared = True
        _restart_events()

    def _is_program(self, frame):
        """Whether the frame runs code of a step, of a scratch module, or that such code compiled."""
        if frame.f_globals is self._ledger.namespace:
            return True
        file = frame.f_code.co_filename
        return file.startswith(("<step:", "<string>")) or self._scratch is not None and file.startswith(self._scratch)

    def late(self, reads, codes_of):
        """Nothing is left to determine from the code alone."""

    def _starts(self, code, _offset):
        """Code begins to run, or a generator resumes."""
        if code is self._alone:
            return None
        ledger = self._ledger
        if code is self._pulse_code:
            self._beats.add("start")
            return None
        scope = caller(1).f_globals
        if scope is ledger.namespace:
            if code is not self._own:
                self._again = True
            if ledger.active:
                ledger.reads.executed[id(code)] = code
                if not _get_local_events(self._tool, code):
                    _set_local_events(self._tool, code, _EVENTS.INSTRUCTION)
            return _DISABLE
        if code.co_filename.startswith("<step:") and not _get_local_events(self._tool, code):
            # Its names are not the program's here, but what it compares may be.
            _set_local_events(self._tool, code, _EVENTS.INSTRUCTION)
        if self._scratch is not None and code.co_filename.startswith(self._scratch):
            self._again = True
            if ledger.active:
                ledger.reads.executed[id(code)] = code
        # The same code may run again with the step's globals, unless it is a module's.
        return _DISABLE if _of_a_module(scope) and not self._shared else None

    def _compares(self, code, offset, left, right):
        """An `is` is about to run."""
        if self._ledger.active:
            equal = distinguishes(left, right, caller(2))
            if equal is not False:
                # One is enough, but what is unknown may still turn out to be equal.
                seen = self._ledger.reads.compared
                seen[id(code), offset] = equal or seen.get((id(code), offset))
                return _DISABLE if equal else None
        return None

    def _runs(self, code, offset):
        """An instruction is about to run."""
        last, uses = self._last
        if last is not code:
            if code is self._pulse_code:
                self._beats.add("instruction")
                return None
            if code is not self._own:
                # Also where code resumes that began before the step.
                self._again = True
            known = self._tables.get(id(code))
            if known is None:
                known = self._tables[id(code)] = code, _uses(code)
            self._last = known
            uses = known[1]
        use = uses.get(offset)
        if use is None:
            return _DISABLE
        ledger = self._ledger
        kind, name, local, whole = use
        if kind is _IS:
            return self._compares(code, offset, name, local)
        # The step's own code runs with the namespace as its globals and locals.
        own = code is self._own
        if not own or whole:
            frame = caller(1)
            if frame.f_globals is not ledger.namespace:
                return None
        if not ledger.active:
            return None
        if local and not own and not code.co_flags & FAST_LOCALS:
            scope = _elsewhere(frame, ledger.namespace)
            if scope is not None:
                # A class body, or code with locals of its own.
                if kind != LOAD:
                    return None
                if type(scope) is dict and dict.__contains__(scope, name):
                    return None
        if kind == LOAD:
            if whole and not dict.__contains__(ledger.namespace, name):
                if name == "globals" or not code.co_flags & FAST_LOCALS:
                    ledger.everything()
                ledger.load(name)
                return None
            ledger.load(name)
        elif kind == STORE:
            ledger.store(name)
        elif kind == STAR:
            for one in starred(name):
                ledger.store(one)
        else:
            ledger.load(name)
            ledger.store(name)
        return _DISABLE


def _uses(code):
    """By offset how an instruction uses names, and what an `is` compares."""
    uses = names_of(code)
    for offset, (left, right) in watched(code).items():
        uses[offset] = _IS, left, right, False
    return uses


def _elsewhere(frame, namespace):
    """The mapping in which the frame's names are looked up first. None if that is the namespace.

    While a comprehension runs in module code, the frame's locals are a copy (3.12) or a view (3.13)
    that includes the comprehension's variables."""
    scope = frame.f_locals
    if scope is namespace or type(scope) is _VIEW:
        return None
    if type(scope) is dict and dict.get(scope, "__builtins__") is namespace["__builtins__"]:
        return None
    return scope


def _is_ours(frame):
    name = dict.get(frame.f_globals, "__name__")
    return type(name) is str and name.startswith("_harness.")


def _of_a_module(scope):
    """Whether these are the globals of an imported module, or of a class made by `namedtuple`."""
    name = dict.get(scope, "__name__") if isinstance(scope, dict) else None
    if type(name) is not str:
        return False
    # The worker's own modules are not in `sys.modules`.
    if name.startswith(("namedtuple_", "_harness.")):
        return True
    module = dict.get(modules, name)
    return type(module) is ModuleType and module.__dict__ is scope
