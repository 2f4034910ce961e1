"""One audit hook for the life of the process, and who asked for what it reports.

Hooks cannot be removed. This one does nothing while no step runs, and never raises.
"""

import sys

_getframe = sys._getframe
_Any = BaseException


class Events:
    """Hands audit events to those who listen for them, while a step runs."""

    def __init__(self, namespace):
        self.namespace = namespace
        self.running = False
        self.busy = False
        self.filename = None
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
        else:
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
                handler(event, args)
            except _Any as failure:
                self.failures.append(f"{event}: {failure!r}")
            finally:
                self.busy = False

        sys.addaudithook(hook)

    def is_program(self, frame):
        """Whether the frame runs code of the program: a step, a scratch module, an `exec` of those."""
        names = frame.f_globals
        if names is self.namespace or names.get("__name__") in self.programs:
            return True
        return frame.f_code.co_filename.startswith(("<step:", "<string>"))

    def asker(self):
        """`(direct, line)`: whether the program's own code asked for what happens right now, not
        a library on its behalf, and the line of the step it happens in."""
        was, self.busy = self.busy, True
        try:
            frame = _getframe(1)
            while frame is not None and _ours(frame):
                frame = frame.f_back
            direct = frame is not None and self.is_program(frame)
            while frame is not None:
                if frame.f_code.co_filename == self.filename:
                    return direct, frame.f_lineno
                frame = frame.f_back
            return direct, None
        finally:
            self.busy = was

    def calls(self):
        """Whether the innermost frame that is not ours is the program's, and its function's name."""
        frame = _getframe(2)
        while frame is not None and _ours(frame):
            frame = frame.f_back
        if frame is None:
            return False, ""
        return self.is_program(frame), frame.f_code.co_name


def _ours(frame):
    name = frame.f_globals.get("__name__")
    return type(name) is str and name.startswith("_harness_")
