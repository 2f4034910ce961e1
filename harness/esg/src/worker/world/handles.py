"""Open files that leave the worker: what is in their buffers is not written.

The step that filled a buffer failed, or is not part of the program any more. To close the file would
write to a path that has the content of another state.
"""

import os
from contextlib import contextmanager
from gc import get_objects
from io import BufferedRandom, BufferedWriter

_open, _close, _dup, _dup2, _fstat = os.open, os.close, os.dup, os.dup2, os.fstat
_inheritable = os.get_inheritable
_DEVNULL, _MODE = os.devnull, os.O_WRONLY | os.O_CLOEXEC
_BUFFERED = {BufferedRandom, BufferedWriter}


@contextmanager
def unwritten(positions):
    """What is closed in the block does not change files. `positions`: by descriptor, the path and the
    position of what the last step left open."""
    saved = {number: (_dup(number), _inheritable(number)) for number in _buffered(positions)}
    if not saved:
        yield
        return
    nowhere = _open(_DEVNULL, _MODE)
    for number in saved:
        _dup2(nowhere, number, False)
    _close(nowhere)
    try:
        yield
    finally:
        for number, (kept, inheritable) in saved.items():
            if _is_open(number):
                _dup2(kept, number, inheritable)
            _close(kept)


def _buffered(positions):
    """The descriptors in scratch that an object with a buffer writes to."""
    inside = {number for number, (path, _) in positions.items() if not path.startswith("/")}
    if not inside:
        return inside
    found = set()
    for one in get_objects():
        if type(one) in _BUFFERED and not one.closed:
            found.add(one.fileno())
    return {number for number in found & inside if _is_open(number)}


def _is_open(number):
    try:
        _fstat(number)
    except OSError:
        return False
    return True
