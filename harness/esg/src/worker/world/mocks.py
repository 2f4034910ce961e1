"""Patches of `unittest.mock` that a step starts or stops, as `start()` and `stop()` let another step do.

Its code sets the attribute of the module, and that of the step names neither.
"""

import sys
from types import ModuleType

_NAME = vars(ModuleType)["__dict__"].__get__


class Mocks:
    """The patches at work."""

    def __init__(self):
        self._started = ()

    def patched(self, values):
        """The attributes that patches among these values replace, or that were started or stopped, by module."""
        kind = getattr(sys.modules.get("unittest.mock"), "_patch", None)
        if kind is None:
            return {}
        before, self._started = self._started, tuple(kind._active_patches)
        found = {}
        for patch in (*values, *before, *self._started):
            if type(patch) is not kind:
                continue
            try:
                target = patch.getter()
            except Exception:
                # Its name leads nowhere, so it was not started.
                continue
            if type(target) is ModuleType:
                found.setdefault(_NAME(target).get("__name__"), set()).add(patch.attribute)
        return found
