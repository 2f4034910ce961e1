"""The usual step: it reads and binds names of plain values and does nothing else.

Such a step had no effect on files, modules, clocks and the process, so the channels need not be
asked one by one. Nothing is assumed: if a channel recorded anything during the step, or state that
changes without an event differs, the full path runs.
"""

import sys
import warnings
from types import NoneType

from _harness.track.identity import FUNCTIONS
from _harness.values.bytecode import operations
from _harness.world.modules import INNER
from _harness.world.submodules import BY_TEXT
from _harness.world.traits import LOOKED_INTO, WATCHED
from _harness.world.watch import ATTRIBUTES, NOTED

# Names that the channels search for in the code of steps.
LOOKED_FOR = frozenset().union(FUNCTIONS, INNER, BY_TEXT, LOOKED_INTO, NOTED, ("random", "_inst", "_pickle"))
# The types of constants that the channels do not inspect.
_CONSTANTS = frozenset((NoneType, bool, int, float, complex, str, bytes))
_loaded, _sys, _warnings = sys.modules, vars(sys), vars(warnings)


def is_plain(code):
    """Whether module code contains nothing that a channel searches for: no import, no attribute
    assignment, no identity test, no nested code."""
    constants = code.co_consts
    return (
        _CONSTANTS.issuperset(map(type, constants))
        and LOOKED_FOR.isdisjoint(code.co_names)
        and ATTRIBUTES.isdisjoint(constants)
        and WATCHED.isdisjoint(operations(code))
    )


class Calm:
    """Decides whether the step that has run was a usual one."""

    def __init__(self, channels):
        self._process = channels.process
        self._files = channels.files
        self._paths = channels.paths
        self._modules = channels.modules
        self._submodules = channels.modules.submodules
        self._clock = channels.clock
        self._watch = channels.watch
        self._events = channels.events

    def holds(self, code):
        """Whether only names can have changed, and only names were read. `code` is the step's, which
        ran alone, on plain values."""
        files, modules, clock = self._files, self._modules, self._clock
        return not (
            # What the channels recorded.
            self._process.first
            or files.active
            or files.first
            or files.handles
            or files.listings
            or files.outside
            or files.writes_outside
            or files.tree.special
            or self._paths.scanned
            or self._paths.listed_outside
            or modules.touched
            or modules.changed
            or modules.unattributed
            or modules.inner
            or modules.scratch
            or self._submodules.asked
            or self._submodules.doubted
            or clock.taken
            or clock.overflow
            or clock.given is not None
            or self._watch.found
            or self._watch.external
            or self._events.failures
            # What changes without an event.
            or not modules.still()
            or not self._process.still()
            or files.tree.stirred()
        ) and is_plain(code)
