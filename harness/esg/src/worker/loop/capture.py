"""The output of a step, and its standard input, which is empty.

The streams are created once and live as long as the worker, because a step may bind `sys.stdout` to
a name and a later step may print through it.
"""

import sys
from io import BufferedWriter, BytesIO, RawIOBase, TextIOWrapper

_sys = vars(sys)


class _Sink(RawIOBase):
    """Keeps the first bytes written to it and counts the rest."""

    def __init__(self, name, limit):
        self.name = name
        self._limit = limit
        self._kept = bytearray()
        self._dropped = 0

    def writable(self):
        return True

    def write(self, data):
        view = memoryview(data).cast("B")
        room = self._limit - len(self._kept)
        if room > 0:
            self._kept += view[:room]
        self._dropped += max(0, len(view) - max(room, 0))
        return len(view)

    def take(self):
        """The kept bytes and the number of dropped ones. Empties the sink."""
        if not self._kept and not self._dropped:
            return b"", 0
        taken = bytes(self._kept), self._dropped
        self._kept = bytearray()
        self._dropped = 0
        return taken


def _unusable(text):
    """Whether a step closed the stream, or took its buffer away."""
    try:
        return text.closed
    except ValueError:
        return True


class Streams:
    """Stdin, stdout and stderr of the steps."""

    def __init__(self, limit):
        self._limit = limit
        self._text = {}
        for name in ("stdout", "stderr"):
            self._make(name)
        self._stdin = self._empty()
        self._names, self._all = (), ()

    def _make(self, name):
        sink = _Sink("<%s>" % name, self._limit)
        # Text is passed to the buffer at once, so it stays in order with bytes written to `.buffer`.
        text = TextIOWrapper(
            BufferedWriter(sink), "utf-8", "backslashreplace", newline="\n", write_through=True
        )
        text.mode = "w"
        self._text[name] = (text, sink)
        self._names = ()

    @staticmethod
    def _empty():
        stdin = TextIOWrapper(BytesIO(), "utf-8")
        stdin.mode = "r"
        return stdin

    def install(self):
        """Installs them in the process, under both names of each. Returns the names of those that were
        others."""
        try:
            stdout, stderr, stdin = self._all
            whole = not (stdout.closed or stderr.closed or stdin.closed)
        except ValueError:
            # They do not exist yet, or a step detached a buffer.
            whole = False
        if not whole:
            self._mend()
        replaced = []
        for name, one in self._names:
            if _sys.get(name) is not one:
                _sys[name] = one
                replaced.append(name)
        return replaced

    def _mend(self):
        """Replaces unusable streams."""
        text = self._text
        for name in ("stdout", "stderr"):
            if _unusable(text[name][0]):
                self._make(name)
        if _unusable(self._stdin):
            self._stdin = self._empty()
            self._names = ()
        if not self._names:
            of = {"stdin": self._stdin, **{name: one for name, (one, _) in text.items()}}
            self._names = [
                (key, one) for name, one in of.items() for key in (name, "__%s__" % name)
            ]
        self._all = [text["stdout"][0], text["stderr"][0], self._stdin]

    def mark(self, name):
        """The number of bytes kept of `name` so far."""
        return len(self._text[name][1]._kept)

    def forget(self, name, mark):
        """Discards what was written to `name` since."""
        del self._text[name][1]._kept[mark:]

    def take(self, name):
        """The bytes written to `name` since the last call, and the number beyond the limit."""
        text, sink = self._text[name]
        try:
            text.flush()
        except Exception:
            # The step closed or detached it. Keep what arrived before.
            pass
        return _Sink.take(sink)
