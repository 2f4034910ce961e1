"""One audit hook for the life of the process, and who asked for what it reports.

Hooks cannot be removed. This one does nothing while no step runs, and never raises.
"""

import sys

_getframe = sys._getframe
_Any = BaseException
_get = dict.get


class Events:
    """Hands audit events to those who listen for them, while a step runs."""

    def __init__(self, namespace):
        self.namespace = namespace
        self.running = False
        self.busy = False
        self.filename = None
        # The frame that caused the event which is handled right now.
        self.frame = None
        self.failures = []
        # Dictionaries of scratch modules, which are code of the program as well.
        self.programs = {}
        self._handlers = {}
        self._families = {}
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
                return
            handler = handlers.get(event, unknown)
            if handler is unknown:
                handler = handlers[event] = families.get(event.partition(".")[0])
            if handler is None:
                return
            self.busy = True
            try:
                self.frame = _getframe(1)
                handler(event, args)
            except _Any as failure:
                self.failures.append(f"{event}: {failure!r}")
            finally:
                self.frame = None
                self.busy = False

        sys.addaudithook(hook)

    def is_program(self, frame):
        """Whether the frame runs code of the program: a step, a scratch module, an `exec` of those."""
        names = frame.f_globals
        if names is self.namespace or _get(names, "__name__") in self.programs:
            return True
        return frame.f_code.co_filename.startswith(("<step:", "<string>"))

    def asker(self, skip=()):
        """`(direct, line)`: whether the program's own code asked for what happens right now, not
        a library on its behalf, and the line of the step it happens in. Frames of the modules
        `skip` count as those who called them. What the worker itself asks for is nobody's."""
        was, self.busy = self.busy, True
        try:
            frame = self.frame
            if frame is None:
                frame = _getframe(1)
                while frame is not None and _ours(frame):
                    frame = frame.f_back
            while frame is not None and skip and _get(frame.f_globals, "__name__") in skip:
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
        """Whether a library asks that only waits: an event loop or a lock, and not for the program."""
        was, self.busy = self.busy, True
        try:
            frame = _getframe(1)
            while frame is not None and _ours(frame):
                frame = frame.f_back
            if frame is None or _top(frame) not in _WAITING:
                return False
            # The time of an event loop, which the program may ask for.
            asked, frame = frame.f_code.co_name == "time", frame.f_back
            return not asked or frame is None or not self.is_program(frame)
        finally:
            self.busy = was

    def calls(self):
        """Whether the innermost frame that is not ours is the program's, and its function's name."""
        was, self.busy = self.busy, True
        try:
            frame = _getframe(1)
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
    return type(name) is str and name.startswith("_harness_")
