"""Clock and entropy readings: recorded in order, replayed on request.

What a step learns from outside this way is a list of plain values. With this list the step can run
again with the same result.
"""

import os
import random
import sys
import time
import warnings

from _harness.values.compat import get_referents
from _harness.values import standins

_hex = bytes.hex
_unhex = bytes.fromhex
# The message of the C implementation.
_UTCNOW = (
    "datetime.datetime.utcnow() is deprecated and scheduled for removal in a future version. "
    "Use timezone-aware objects to represent datetimes in UTC: datetime.datetime.now(datetime.UTC)."
)

# What makes names that no program sees, once for each process: those of semaphores.
_NAMES = "multiprocessing.synchronize"
# The most readings of a step that are kept, and their most bytes.
_MOST = 20_000
_MOST_BYTES = 1 << 20

# Functions without arguments that return a number, or a tuple of numbers.
_TIME = (
    "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns "
    "process_time process_time_ns thread_time thread_time_ns"
).split()
# Functions that read the clock if no time is passed, with the number of arguments before it.
_CALENDAR = {"gmtime": 0, "localtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}


class Clock:
    """The readings of the current step."""

    def __init__(self, events):
        self.events = events
        self.taken = []
        self.misfit = False
        # Whether the limit was exceeded.
        self.overflow = False
        self._bytes = 0
        self.given = None
        # The imports in progress.
        self.loading = ()
        self._depth = 0
        self._next = 0
        # Identifiers of earlier processes that the step was given as this one's.
        self.replayed = set()
        self._install()

    def begin(self, readings):
        """Starts a step. `readings`, if given, are replayed."""
        self.replayed = set()
        self.taken = []
        self.misfit = self.overflow = False
        self._bytes = 0
        self.given = readings
        self._next = 0
        forget_lazy_names()

    def end(self):
        """The readings, in order."""
        if self.given is not None and self._next != len(self.given):
            self.misfit = True
        return self.taken

    def read(self, kind, real):
        """One reading: `real()` as JSON, or the next one to replay."""
        if not self.events.running or self._depth:
            return real()
        if self.loading and not self.events.calls()[0]:
            # A reading by a library while it is loaded: whether it is loaded now depends on the
            # process.
            return real()
        if self.given is not None and not self.misfit:
            if self._next < len(self.given):
                entry = self.given[self._next]
                if type(entry) is list and len(entry) == 2 and entry[0] == kind:
                    self._next += 1
                    self.taken.append(entry)
                    return _unpack(entry[1])
            self.misfit = True
        self._depth += 1
        try:
            value = real()
        finally:
            self._depth -= 1
        if len(self.taken) < _MOST and self._bytes < _MOST_BYTES:
            self._bytes += len(value) if type(value) is str else 16
            self.taken.append([kind, _pack(value)])
        else:
            self.overflow = True
        return value

    def entropy(self, real, count):
        """Random bytes as a reading. A replayed reading of another length does not fit."""
        if self.events.running and self.events.within(_NAMES):
            return real(count)
        got = _unhex(self.read(f"entropy {count}", lambda: _hex(real(count))))
        return got

    def _install(self):
        put = standins.install
        for name in _TIME:
            if hasattr(time, name):
                real = getattr(time, name)
                schedules = name == "monotonic"
                put(time, name, (self._scheduling if schedules else self._plain)(real, name), raw=True)
        real_time = standins.original(time.time)
        self.seconds = lambda: self.read("time", real_time)
        for name, least in _CALENDAR.items():
            put(time, name, self._calendar(getattr(time, name), least), raw=True)
        real_gettime = time.clock_gettime
        put(time, "clock_gettime", lambda which: self.read("clock_gettime", lambda: real_gettime(which)))
        real_ns = time.clock_gettime_ns
        put(time, "clock_gettime_ns", lambda which: self.read("clock_gettime_ns", lambda: real_ns(which)))
        real_sleep = time.sleep

        def sleep(seconds, /):
            if self.events.running and self.given is not None and not self.misfit:
                # Validates its argument.
                return real_sleep(seconds * 0)
            return real_sleep(seconds)

        put(time, "sleep", sleep)
        self._install_entropy()
        self._install_datetime()

    def _plain(self, real, name):
        read = self.read

        def call(_self, /):
            return read(name, real)

        return call

    def _scheduling(self, real, name):
        """The clock of event loops, locks and queues. How often they read it depends on waiting
        times, which the program does not see, so their own readings do not count."""
        read = self.read
        events = self.events

        def call(_self, /):
            if events.running and events.waits():
                return real()
            return read(name, real)

        return call

    def _calendar(self, real, least):
        def call(_self, /, *args):
            if len(args) > least and args[least] is not None:
                return real(*args)
            if not self.events.running:
                return real(*args)
            now = self.seconds()
            if real.__name__ in ("asctime", "strftime"):
                return real(*args[:least], _LOCAL(now))
            return real(now)

        return call

    def _install_entropy(self):
        put = standins.install
        real_urandom = os.urandom

        def urandom(size, /):
            if type(size) is not int or size < 0:
                return real_urandom(size)
            return self.entropy(real_urandom, size)

        put(os, "urandom", urandom)
        if hasattr(os, "getrandom"):
            real_getrandom = os.getrandom
            put(
                os,
                "getrandom",
                lambda size, flags=0: self.entropy(lambda n: real_getrandom(n, flags), size),
            )
        for name in ("getpid", "getppid", "times", "getloadavg"):
            if hasattr(os, name):
                put(os, name, self._answer(getattr(os, name), name))
        self._install_kill(put)
        # `random` bound it at its import, which may have been earlier.
        random._urandom = os.urandom
        real_seed = random.Random.seed

        def seed(rng, a=None, version=2):
            if a is None and self.events.running:
                # The entropy that the C code takes from the system without a hook.
                a = int.from_bytes(self.entropy(real_urandom, 32), "big")
            return real_seed(rng, a, version)

        seed.__doc__ = real_seed.__doc__
        seed.__qualname__ = real_seed.__qualname__
        seed.__module__ = real_seed.__module__
        random.Random.seed = seed

    def _install_kill(self, put):
        """A recorded identifier may be another process by now: a signal to it is one to this process."""
        real, own = os.kill, standins.original(os.getpid)

        def kill(pid, signal, /):
            return real(own() if type(pid) is int and pid in self.replayed else pid, signal)

        put(os, "kill", kill)

    def _answer(self, real, name):
        """A stand-in for a function without arguments that returns numbers."""
        pid = standins.original(os.getpid)
        own = pid()

        def call():
            # Which process it is in, a library asks to distinguish parent and child; and a child has no readings.
            if name in ("getpid", "getppid") and self.events.running:
                events = self.events
                if events.waits() or events.within(_NAMES) or pid() != own:
                    return real()
            if name == "times":
                if not self.events.running:
                    return real()
                return os.times_result(self.read(name, lambda: list(real())))
            value = self.read(name, real if name != "getloadavg" else lambda: list(real()))
            if name == "getpid" and value != real():
                self.replayed.add(value)
            return tuple(value) if name == "getloadavg" else value

        return call

    def _install_datetime(self):
        """Replaces `now` and `utcnow` in the class itself, so that the class keeps its identity.

        The dictionary of a C class is accessible, and these two methods have not been looked up
        before, so no method cache holds the old ones."""
        import datetime

        kind = datetime.datetime
        inside = [d for d in get_referents(kind.__dict__) if type(d) is dict and "now" in d]
        if not inside:
            self.blind = ["datetime.now"]
            return
        self.blind = []
        inside = inside[0]
        from_stamp = inside["fromtimestamp"]
        real_now = inside["now"]
        real_utc = inside["utcnow"]
        real_ns = standins.original(time.time_ns)
        utc = datetime.timezone.utc
        read = self.read
        events = self.events

        def now(_self, cls, tz=None):
            if not events.running:
                return real_now.__get__(None, cls)(tz)
            micros = read("now", lambda: real_ns() // 1000)
            made = from_stamp.__get__(None, cls)(micros // 1000000, tz)
            return made.replace(microsecond=micros % 1000000)

        def utcnow(_self, cls):
            if not events.running:
                return real_utc.__get__(None, cls)()
            if sys.version_info >= (3, 12):
                warnings.warn(_UTCNOW, DeprecationWarning, stacklevel=2)
            micros = read("now", lambda: real_ns() // 1000)
            made = from_stamp.__get__(None, cls)(micros // 1000000, utc)
            return made.replace(microsecond=micros % 1000000, tzinfo=None)

        for name, call, real in (("now", now, real_now), ("utcnow", utcnow, real_utc)):
            inside[name] = classmethod(standins.finish(call, real, "datetime", f"datetime.{name}"))

    def imported(self, name, module):
        """Called for each module right after its first import."""
        if name == "uuid":
            self._install_uuid(module)

    def _install_uuid(self, module):
        real_uuid1 = module.uuid1
        real_node = module.getnode

        def uuid1(node=None, clock_seq=None):
            value = self.read("uuid1", lambda: str(real_uuid1(node, clock_seq).int))
            return module.UUID(int=int(value))

        standins.install(module, "uuid1", uuid1)
        standins.install(module, "getnode", lambda: self.read("getnode", lambda: real_node()))


def _pack(value):
    """Floats as hexadecimal text: JSON parsers preserve every bit."""
    if type(value) is float:
        return ["f", value.hex()]
    if type(value) is list:
        return ["l", *map(_pack, value)]
    return value


def _unpack(value):
    if type(value) is list:
        if value[0] == "f":
            return float.fromhex(value[1])
        return list(map(_unpack, value[1:]))
    return value


_LOCAL = time.localtime


def forget_lazy_names():
    """Library modules draw temporary names from a kept sequence. Each step starts its own, from
    recorded entropy."""
    module = sys.modules.get("tempfile")
    if module is not None:
        module._name_sequence = None
