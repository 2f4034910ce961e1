"""Reports the program's use of paths to `Files`: audit events, and stand-ins for functions without
events.
"""

import os
import sys
from functools import partial

from _harness.values.compat import frame_of
from _harness.values import standins

_WRITES = os.O_WRONLY | os.O_RDWR
_sorted = sorted
_fsdecode = os.fsdecode


class Paths:
    """Observes everything that names a path."""

    def __init__(self, events, files):
        self.events = events
        self.files = files
        # The base of a relative path of `os.open`, which the audit event does not report.
        self._open_fd = None
        # Directories that the program's own code iterated over.
        self.scanned = []
        self.listed_outside = []
        self._listen()
        self._install()

    def begin(self):
        self.scanned = []
        self.listed_outside = []

    def _listen(self):
        listen = self.events.listen
        files = self.files
        listen("open", self._opened)
        listen("os.listdir", lambda _event, args: self._listed(args[0]))
        listen("os.scandir", lambda _event, args: self._scanned(args[0]))
        listen("os.mkdir", lambda _event, args: files.alter(args[0], False, args[2]))
        listen("os.rmdir", lambda _event, args: files.alter(args[0], False, args[1]))
        listen("os.remove", lambda _event, args: files.alter(args[0], False, args[1]))
        listen("os.rename", lambda _event, args: files.rename(*args))
        listen("os.truncate", lambda _event, args: files.alter(args[0], True))
        for event in ("os.chmod", "os.chown", "os.utime"):
            listen(event, lambda _event, args: files.alter(args[0], True, _fd(args)))
        for event in ("os.chflags", "os.setxattr", "os.removexattr"):
            listen(event, lambda _event, args: files.alter(args[0]))
        listen("os.getxattr", lambda _event, args: files.look(args[0]))
        listen("os.listxattr", lambda _event, args: files.look(args[0]))
        listen("os.link", self._linked)
        listen("os.symlink", lambda _event, args: files.alter(args[1], False, args[2]))
        listen("os.chdir", lambda _event, args: files.look(args[0]))
        listen("sqlite3.connect", self._database)

    def _opened(self, _event, args):
        path, _mode, flags = args
        if type(path) is int:
            return
        path = _text(path)
        if path is None:
            return
        dir_fd = self._open_fd
        files = self.files
        if not flags & (_WRITES | os.O_CREAT | os.O_TRUNC):
            if _compiled(path):
                return
            files.look(path, True, dir_fd)
        elif flags & os.O_EXCL:
            files.alter(path, False, dir_fd)
        elif flags & os.O_TRUNC:
            files.replace(path, dir_fd)
        else:
            files.alter(path, True, dir_fd)

    def _listed(self, path):
        if self._finder():
            return
        self._list(path)

    def _list(self, path):
        path = "." if path is None else path
        rel = self.files.list(path)
        if rel is None:
            self.listed_outside.append((self.files.resolve(path)[1], self.events.asker()[1]))
        return rel

    def _scanned(self, path):
        rel = self._list(path)
        if rel is not None:
            self.scanned.append(rel)

    def _linked(self, _event, args):
        source, target, source_fd, target_fd = args
        self.files.look(source, False, source_fd)
        self.files.alter(target, False, target_fd)

    def _database(self, _event, args):
        path = _text(args[0])
        if path is None:
            return
        # The event does not say whether the name is an URI.
        for name in {path, _of_uri(path)} - {":memory:", "", None}:
            for suffix in ("", "-journal", "-wal"):
                self.files.alter(name + suffix, True)

    def _finder(self):
        """Whether the import system lists a directory to find a module. `modules` records which
        files that depends on, which are fewer than all."""
        frame = frame_of(1)
        while frame is not None:
            name = frame.f_globals.get("__name__")
            if name == "importlib._bootstrap_external":
                return True
            if type(name) is not str or not name.startswith("_harness."):
                return False
            frame = frame.f_back
        return False

    def _install(self):
        put = standins.install
        events = self.events
        files = self.files
        for name in ("stat", "lstat", "access", "readlink"):
            if hasattr(os, name):
                self._looking(name, getattr(os, name), name not in ("lstat", "readlink"))
        real_listdir = os.listdir
        put(os, "listdir", lambda path=None: files.left.visible(path, _sorted(real_listdir(path))))
        real_scandir = os.scandir
        put(os, "scandir", lambda path=None: Scan(real_scandir(path), partial(files.left.visible, path)))
        real_open = os.open

        def open_(path, flags, mode=0o777, *, dir_fd=None):
            if not events.running or dir_fd is None:
                return real_open(path, flags, mode, dir_fd=dir_fd)
            self._open_fd = dir_fd
            try:
                return real_open(path, flags, mode, dir_fd=dir_fd)
            finally:
                self._open_fd = None

        put(os, "open", open_)
        for name in ("mkfifo", "mknod"):
            if hasattr(os, name):
                real = getattr(os, name)

                def make(path, *args, _real=real, dir_fd=None, **named):
                    if events.running:
                        files.alter(path, False, dir_fd)
                    return _real(path, *args, dir_fd=dir_fd, **named)

                put(os, name, make)
        for made in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
            for owner, _, stand_in in standins.places():
                if owner is os and standins.original(stand_in) in made:
                    made.add(stand_in)
        self._replace_captured()

    def _replace_captured(self):
        """Modules loaded earlier may hold the functions themselves."""
        module = sys.modules.get("glob")
        kind = getattr(module, "_StringGlobber", None)
        if kind is not None:
            kind.scandir = staticmethod(os.scandir)

    def _looking(self, name, real, follows):
        events = self.events
        look = self.files.look

        def call(_self, path, *args, dir_fd=None, **named):
            if events.running and not events.busy:
                events.busy = True
                try:
                    look(path, named.get("follow_symlinks", follows), dir_fd)
                except Exception as failure:
                    events.failures.append(f"{name}: {failure!r}")
                finally:
                    events.busy = False
            if dir_fd is not None:
                named["dir_fd"] = dir_fd
            return real(path, *args, **named)

        standins.install(os, name, call, raw=True)


class Scan:
    """The result of `os.scandir`, sorted by name."""

    def __init__(self, real, visible):
        with real:
            items = {item.name: item for item in real}
        self._items = iter([items[name] for name in visible(_sorted(items))])

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._items)

    def __enter__(self):
        return self

    def __exit__(self, *_ignored):
        self.close()

    def close(self):
        """Acts as a closed iterator."""
        self._items = iter(())


Scan.__name__ = Scan.__qualname__ = "ScandirIterator"
Scan.__module__ = "posix"


def _text(path):
    """The path as exact text, whatever class the program gave it. None if it is none."""
    try:
        return str.__str__(_fsdecode(path))
    except (TypeError, ValueError):
        return None


def _of_uri(name):
    """The file that an URI of a database names. None if it is no such URI, or of none in a file."""
    kind, colon, rest = name.partition(":")
    if kind.lower() != "file" or not colon:
        return None
    rest, _, query = rest.partition("#")[0].partition("?")
    if "mode=memory" in query.split("&"):
        return None
    if rest.startswith("//"):
        _authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
    text = rest.encode("utf-8", "surrogateescape").split(b"%")
    for at, part in enumerate(text[1:], 1):
        try:
            text[at] = bytes((int(part[:2], 16),)) + part[2:]
        except ValueError:
            text[at] = b"%" + part
    return _fsdecode(b"".join(text))


def _fd(args):
    """The base descriptor of a path is the last argument of these events, if any."""
    last = args[-1]
    return last if len(args) > 2 and type(last) is int and last >= 0 else None


def _compiled(path):
    """The import system tries compiled files, which are never written here."""
    return path.endswith(".pyc" if type(path) is str else b".pyc")
