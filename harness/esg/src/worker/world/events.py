"""The worker's audit hook, and the code that caused an event.

Hooks cannot be removed. This one does nothing while no step runs, and never raises.
"""

import sys

from _harness.values.compat import frame_of

_Any = BaseException
_get = dict.get


class Events:
    """Dispatches audit events to listeners while a step runs."""

    def __init__(self, namespace):
        self.namespace = namespace
        self.running = False
        self.busy = False
        self.filename = None
        # The frame that caused the current event.
        self.frame = None
        self.failures = []
        # Gets what packages do while they are imported, if set.
        self.aside = None
        # Dictionaries of scratch modules, whose code belongs to the program too.
        self.programs = {}
        self._handlers = {}
        self._families = {}
        # The names under which the program itself compiled code.
        self.compiled = set()
        self.listen("compile", self._compiles)
        self._install()

    def listen(self, event, handler):
        """Calls `handler(event, args)` for an event, or for a family of them (`socket.*`)."""
        if event.endswith(".*"):
            self._families[event[:-2]] = handler
            return
        first = self._handlers.get(event)
        if first is not None:
            second = handler

            def handler(event, args):
                first(event, args)
                second(event, args)

        self._handlers[event] = handler

    def _install(self):
        handlers = self._handlers
        families = self._families
        unknown = object()

        def hook(event, args):
            if not self.running or self.busy:
                if self.aside is not None:
                    try:
                        self.aside(event, args)
                    except _Any as failure:
                        self.failures.append(f"{event}: {failure!r}")
                return
            handler = handlers.get(event, unknown)
            if handler is unknown:
                handler = handlers[event] = families.get(event.partition(".")[0])
            if handler is None:
                return
            self.busy = True
            try:
                self.frame = frame_of(1)
                handler(event, args)
            except _Any as failure:
                self.failures.append(f"{event}: {failure!r}")
            finally:
                self.frame = None
                self.busy = False

        sys.addaudithook(hook)

    def _compiles(self, _event, args):
        if type(args[1]) is str and args[1][:1] == "<" and self.by_program():
            self.compiled.add(args[1])

    def is_program(self, frame):
        """Whether the frame runs code of the program: a step, a scratch module, an `exec` of those."""
        while frame is not None:
            names, file = frame.f_globals, frame.f_code.co_filename
            if names is self.namespace or _get(names, "__name__") in self.programs or file.startswith("<step:"):
                return True
            if file != "<string>":
                return False
            # It was made from a string: by a package, if that calls it.
            frame = frame.f_back
        return False

    def by_program(self):
        """Whether the program's own code, not a library on its behalf, caused the current event."""
        return self.frame is not None and self.is_program(self.frame)

    def asker(self, skip=()):
        """`(direct, line)`: whether the program's own code caused the current event, not a library
        on its behalf, and the line of the step. Frames of the modules `skip` count as their callers.
        Events of the worker itself have no cause."""
        was, self.busy = self.busy, True
        try:
            frame = self.frame
            if frame is None:
                frame = frame_of(1)
                while frame is not None and _ours(frame):
                    frame = frame.f_back
            while frame is not None and skip and (_get(frame.f_globals, "__name__") in skip or _ours(frame)):
                frame = frame.f_back
            direct = frame is not None and not _ours(frame) and self.is_program(frame)
            while frame is not None:
                if frame.f_code.co_filename == self.filename:
                    return direct, frame.f_lineno
                frame = frame.f_back
            return direct, None
        finally:
            self.busy = was

    def waits(self):
        """Whether a library only waits: an event loop or a lock, and not for the program."""
        was, self.busy = self.busy, True
        try:
            frame = frame_of(1)
            while frame is not None and _ours(frame):
                frame = frame.f_back
            if frame is None or _top(frame) not in _WAITING:
                return False
            # The time of an event loop, which the program may request.
            asked, frame = frame.f_code.co_name == "time", frame.f_back
            return not asked or frame is None or not self.is_program(frame)
        finally:
            self.busy = was

    def within(self, module):
        """Whether a function of this module, which the program has not called through others since, causes it."""
        was, self.busy = self.busy, True
        try:
            frame = frame_of(1)
            while frame is not None and not self.is_program(frame):
                if _get(frame.f_globals, "__name__") == module:
                    return True
                frame = frame.f_back
            return False
        finally:
            self.busy = was

    def calls(self):
        """Whether the innermost foreign frame belongs to the program, and its function's name."""
        was, self.busy = self.busy, True
        try:
            frame = frame_of(1)
            while frame is not None and _ours(frame):
                frame = frame.f_back
            if frame is None:
                return False, ""
            return self.is_program(frame), frame.f_code.co_name
        finally:
            self.busy = was


_WAITING = frozenset(("asyncio", "selectors", "threading", "queue", "concurrent", "multiprocessing"))


def _top(frame):
    name = _get(frame.f_globals, "__name__")
    return name.partition(".")[0] if type(name) is str else None


def _ours(frame):
    name = _get(frame.f_globals, "__name__")
    return type(name) is str and name.startswith("_harness.")
