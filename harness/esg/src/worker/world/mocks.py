"""Patches of `unittest.mock` that `start()` leaves at work for later steps.

Its own code sets the attribute of the module, that of the step names neither, and the package keeps a list of the
patches at work.
"""

import sys


class Mocks:
    """The patches at work."""

    def __init__(self):
        self._started = []

    def left(self):
        """Whether patches that another step stops were at work in this one."""
        kind = getattr(sys.modules.get("unittest.mock"), "_patch", None)
        if kind is None:
            return False
        before, self._started = self._started, [*kind._active_patches]
        return bool(before or self._started)
