"""Restores the interpreter's own settings after each step.

They are not state of a program: hooks, limits, builtins. A step that changes them changes them for
itself only. A replaced builtin is reported, because a function of the step may keep using the
replacement.
"""

import builtins
import sys
import threading
from fcntl import F_SETFL, F_SETOWN, fcntl
from itertools import islice
from operator import is_, itemgetter
from os import O_ASYNC, getpid
from select import POLLERR, poll
from sys import (
    getprofile,
    getrecursionlimit,
    getswitchinterval,
    gettrace,
    setprofile,
    setrecursionlimit,
    setswitchinterval,
    settrace,
)
from threading import setprofile as setprofile_of_threads
from threading import settrace as settrace_of_threads

try:
    from fcntl import F_SETSIG
    from signal import SIGKILL
except ImportError:
    # Without it, the end of the host is noticed only between two steps.
    F_SETSIG = None  # type: ignore[misc,assignment]

_SYS = (
    "breakpointhook displayhook excepthook meta_path orig_argv path_hooks "
    "path_importer_cache unraisablehook __displayhook__ __excepthook__ dont_write_bytecode"
).split()
_LISTS = "meta_path path_hooks".split()
# What a step sets there would count in later steps of a plain run.
_SEEN = frozenset("breakpointhook displayhook excepthook unraisablehook".split())
_MISSING = object()


class Guard:
    """The interpreter's settings before the first step."""

    def __init__(self):
        self._builtins = dict(vars(builtins))
        self._sys = {name: getattr(sys, name) for name in _SYS}
        # All of them at once, for the usual case without changes.
        self._now_sys = itemgetter(*_SYS)
        self._sys_values = tuple(self._sys.values())
        self._builtins_names, self._builtins_values = tuple(self._builtins), tuple(self._builtins.values())
        self._lists = [(getattr(sys, name), list(getattr(sys, name))) for name in _LISTS]
        self._hooks = threading.excepthook
        # Read from dictionaries: objects that a step puts there run no code.
        self._threading, self._vars, self._names = vars(threading), vars(sys), vars(builtins)
        self.recursion = getrecursionlimit()
        self._interval = getswitchinterval()

    def quiet(self):
        """Disables what would run code of the step after its end.

        Touches only what was set, because setting it is an event that others watch."""
        setrecursionlimit(self.recursion)
        if gettrace() is not None:
            settrace(None)
        if getprofile() is not None:
            setprofile(None)

    def restore(self):
        """Restores everything. Returns what to report."""
        self.quiet()
        threads = self._threading
        if threads.get("_trace_hook", self) is not None:
            settrace_of_threads(None)
        if threads.get("_profile_hook", self) is not None:
            setprofile_of_threads(None)
        reports = []
        if threads.get("excepthook") is not self._hooks:
            threads["excepthook"] = self._hooks
            reports.append({"what": "threading.excepthook replaced", "line": None})
        found = self._vars
        if not _as_before(self._now_sys, found, self._sys_values):
            for name, value in self._sys.items():
                if found.get(name, _MISSING) is not value:
                    found[name] = value
                    if name in _SEEN:
                        reports.append({"what": f"sys.{name} replaced", "line": None})
        for value, items in self._lists:
            if len(value) != len(items) or not all(map(is_, value, items)):
                value[:] = items
        if getswitchinterval() != self._interval:
            setswitchinterval(self._interval)
        return reports + self._restore_builtins()

    def builtin(self, name):
        """Whether every program finds the name among the builtins."""
        return name in self._builtins

    def _restore_builtins(self):
        found, reports = self._names, []
        # What steps added comes last. An equal key also answers lookups of the name.
        names = tuple(islice(found, len(self._builtins_names)))
        if names != self._builtins_names or not all(map(is_, found.values(), self._builtins_values)):
            for name, value in self._builtins.items():
                if found.get(name, _MISSING) is not value:
                    found[name] = value
                    reports.append({"what": "builtins.%s replaced" % name, "line": None})
        # Left by interactive use.
        found.pop("_", None)
        return reports


def _as_before(now, found, known):
    """Whether what `now` gets from `found` are the objects of `known`."""
    try:
        return all(map(is_, now(found), known))
    except KeyError:
        return False


class Lifeline:
    """The pipe whose closing shows that the host has ended. Once armed, that ends this process.

    A thread cannot do this: a loop in C holds the interpreter's lock. The kernel can. It signals
    everything that happens to a pipe, so this uses the pipe with no traffic: the interpreter's
    standard error, which is not written or read while the worker lives."""

    def __init__(self, fd):
        self._fd = fd
        self._held = F_SETSIG is None

    def hold(self):
        """From now on the end of the host ends this process. Called once the host has received the
        first reply, after which it does not read errors any more."""
        if self._held:
            return
        self._held = True
        fcntl(self._fd, F_SETOWN, getpid())
        fcntl(self._fd, F_SETSIG, SIGKILL)
        fcntl(self._fd, F_SETFL, O_ASYNC)
        looking = poll()
        looking.register(self._fd, 0)
        for _, event in looking.poll(0):
            if event & POLLERR:
                # The host ended before the signal was set up.
                raise EOFError("the host has closed the pipe")
