"""The scratch directory: what a step read in it, and what it wrote.

Reads come from audit events and from stand-ins for functions without events (`paths`). Writes come
from comparing the tree before and after, so the writer does not matter.
"""

import fcntl
import hashlib
import os
import stat
import sys
from linecache import cache as _lines

from _harness.world.tree import Tree

_sha = hashlib.sha256
_scandir = os.scandir
_lstat = os.lstat
_readlink = os.readlink
_stat = os.stat
_fstat = os.fstat
_lseek = os.lseek
_fcntl = fcntl.fcntl
_fsdecode = os.fsdecode
_getcwd = os.getcwd
_realpath = os.path.realpath
_abspath = os.path.abspath
_open = os.open

_LINKS = 40
_FDS = ("/proc/self/fd", "/dev/fd")
# Files above this size count by their size and time. The host has the same limit.
_MOST = 64 << 20
# The file names under which the sources of steps are in `linecache`.
SOURCES = set()
# Without such a link, the descriptor itself is queried.
_GETPATH = getattr(fcntl, "F_GETPATH", None)


class Files:
    """The tree below scratch, and one step's view of it."""

    def __init__(self, events, scratch, limit):
        self.events = events
        self.scratch = _realpath(scratch)
        self.alias = _abspath(scratch)
        self.tree = Tree(self.scratch, limit)
        # Called when a relative path is used.
        self.on_cwd = lambda: None
        self.handles = {}
        # Files of the environment in the tree.
        self.left = None
        self.uses_left = []
        self.begin()

    # One step.

    def begin(self):
        """Clears the previous step. Positions of its open handles are watched."""
        if len(_lines) != len(SOURCES):
            forget_cached_files()
        self.first = {}
        self.listings = set()
        self.outside = {}
        self.writes_outside = []
        self.uses_left = []
        self.active = False
        self.stirred = False
        self.before = self.tree.entries
        if self.handles:
            self.handles = _positions(self.tree)

    def end(self):
        """`(reads, wrote)`: `wrote` maps paths to how they were written."""
        unseen = not (self.active or self.handles or self.first or self.listings)
        if unseen and not self.tree.stirred():
            return [], {}
        after = self.tree.rescan()
        self._moved()
        wrote = self._compare(self.before, after)
        reads = [f"f:{path}" for path, how in self.first.items() if how == "read"]
        for path in self.listings:
            if path == "." or path in self.before:
                reads.append(f"d:{path}")
        self.handles = _positions(self.tree)
        return reads, wrote

    def _compare(self, before, after):
        wrote = {}
        first = self.first
        for path, entry in after.items():
            was = before.get(path)
            if was is None:
                wrote[path] = "bound"
            elif was is not entry and not was.same(entry):
                wrote[path] = "bound" if first.get(path) == "replaced" else "mutated"
        for path in before:
            if path not in after:
                wrote[path] = "deleted"
        # A path that was replaced without a read counts as written even if it is unchanged: its former
        # content is not an input, so nothing else records that this step made it so.
        for path, how in first.items():
            if how == "replaced" and path not in wrote:
                if path in after:
                    wrote[path] = "bound"
                else:
                    first[path] = "read"
        return wrote

    def _moved(self):
        """A changed position means that a handle of an earlier step was used."""
        if not self.handles:
            return
        now = _positions(self.tree)
        for handle, (path, position) in self.handles.items():
            found = now.get(handle)
            if found is not None and found[0] == path and found[1] != position:
                if path.startswith("/"):
                    self.outside.setdefault(path, (True, None))
                else:
                    self.first.setdefault(path, "read")

    # Called for events and by stand-ins.

    def look(self, path, follow=True, dir_fd=None, kind="read"):
        """The step read a path: its content, or whether it exists."""
        rel, full = self.resolve(path, follow, dir_fd)
        if rel is None:
            if full is not None:
                self._look_outside(full)
            return None
        if rel in self.tree.left and self.left.used(rel):
            return rel
        self.active = True
        if rel != ".":
            self.first.setdefault(rel, kind)
        return rel

    def replace(self, path, dir_fd=None):
        """The step is about to overwrite a file. Its former content is not an input, unless it
        determines whether this works: a directory, or a link."""
        rel, full = self.resolve(path, True, dir_fd)
        if rel is None:
            if full is not None:
                self._write_outside(full)
            return
        if rel in self.tree.left and self.left.used(rel, True):
            return
        self.active = self.stirred = True
        was = self.before.get(rel)
        plain = was is None or was.kind == "file"
        self.first.setdefault(rel, "replaced" if plain else "read")

    def alter(self, path, follow=False, dir_fd=None):
        """The step is about to change a path depending on its content."""
        rel, full = self.resolve(path, follow, dir_fd)
        if rel is None:
            if full is not None:
                self._write_outside(full)
            return None
        if rel in self.tree.left and self.left.used(rel, True):
            return rel
        self.active = self.stirred = True
        if rel != ".":
            self.first.setdefault(rel, "read")
        return rel

    def rename(self, source, target, source_fd=None, target_fd=None):
        """A directory moves with its content. The target is replaced without a read."""
        rel = self.alter(source, False, source_fd)
        if rel is not None:
            for path in self.before:
                if path.startswith(rel + "/"):
                    self.first.setdefault(path, "read")
        rel, full = self.resolve(target, False, target_fd)
        if rel is None:
            if full is not None:
                self._write_outside(full)
            return
        self.tree.left.discard(rel)
        was = self.before.get(rel)
        plain = was is None or was.kind != "directory"
        self.first.setdefault(rel, "replaced" if plain else "read")

    def list(self, path):
        """The step listed a directory."""
        rel = self.look(path)
        if rel is not None:
            self.listings.add(rel)
        return rel

    def everything(self):
        """Every file may have been read, and written."""
        self.active = self.stirred = True
        self.listings.add(".")
        for path, entry in self.before.items():
            self.first.setdefault(path, "read")
            if entry.kind == "directory":
                self.listings.add(path)

    def children(self, rel):
        """The step read more of a directory's entries than names and kinds."""
        prefix = "" if rel == "." else rel + "/"
        for path in self.before:
            if path.startswith(prefix) and "/" not in path[len(prefix) :]:
                self.first.setdefault(path, "read")

    def stems(self, rel):
        """The names in a directory, up to the first dot."""
        start = rel + "/"
        rest = (path[len(start) :] for path in self.tree.entries if path.startswith(start))
        return {name.partition(".")[0] for name in rest if "/" not in name}

    def _look_outside(self, full):
        # Its descriptor may outlive the step.
        self.active = True
        if full not in self.outside or not self.outside[full][0]:
            self.outside[full] = self.events.asker()

    def _write_outside(self, full):
        if full not in ("/dev/null", "/dev/tty"):
            self.writes_outside.append((full, self.events.asker()[1]))

    def resolve(self, path, follow=True, dir_fd=None):
        """`(path in scratch, None)`, or `(None, absolute path)` outside, or `(None, None)`.

        Every directory and link on the way determines the target, so each counts as read."""
        if type(path) is int:
            path = fd_path(path)
            if path is None:
                return None, None
        try:
            # Exact text, whatever class the program gave it.
            path = str.__str__(_fsdecode(path))
        except TypeError:
            return None, None
        if "\0" in path:
            return None, None
        if not path.startswith("/"):
            if dir_fd is not None and dir_fd >= 0:
                base = fd_path(dir_fd)
            else:
                self.on_cwd()
                try:
                    base = _getcwd()
                except OSError:
                    base = None
            if base is None:
                return None, None
            path = base + "/" + path
        for root in (self.scratch, self.alias):
            if path == root or path.startswith(root + "/"):
                return self._walk(self.scratch, path[len(root) + 1 :], follow)
        return self._walk("", path, follow)

    def _walk(self, at, rest, follow):
        scratch = self.scratch
        parts = [part for part in reversed(rest.split("/")) if part and part != "."]
        links = 0
        while parts:
            part = parts.pop()
            if part == "..":
                at = at.rpartition("/")[0]
                continue
            at = at + "/" + part
            inside = at.startswith(scratch + "/")
            if not inside and not (scratch + "/").startswith(at + "/") and not follow:
                continue
            try:
                mode = _lstat(at).st_mode
            except OSError:
                mode = 0
            if stat.S_ISLNK(mode) and (parts or follow):
                if inside:
                    self._note(at)
                links += 1
                if links > _LINKS:
                    return None, None
                target = _readlink(at)
                at = "" if target.startswith("/") else at.rpartition("/")[0]
                parts.extend(p for p in reversed(target.split("/")) if p and p != ".")
            elif inside and parts:
                self._note(at)
        if at == scratch:
            return ".", None
        if at.startswith(scratch + "/"):
            return at[len(scratch) + 1 :], None
        return None, at or "/"

    def _note(self, full):
        self.active = True
        self.first.setdefault(full[len(self.scratch) + 1 :], "read")

def fd_path(number):
    """The path of an open descriptor, if any."""
    try:
        if _GETPATH is not None:
            found = _fsdecode(_fcntl(number, _GETPATH, bytes(1024)).rstrip(b"\0"))
        else:
            found = _readlink(f"{_FDS[0]}/{number}")
    except OSError:
        return None
    return found if found.startswith("/") else None


def forget_cached_files():
    """Library modules keep the content of files. Each step reads them itself, so that it depends on
    them."""
    for name in _lines.keys() - SOURCES:
        entry = _lines[name]
        if len(entry) == 4 and entry[1] is not None:
            del _lines[name]
        else:
            # Generated code, which has no time.
            SOURCES.add(name)
    compared = sys.modules.get("filecmp")
    if compared is not None:
        compared.clear_cache()


def _positions(tree):
    """Open descriptors of files with their positions: by the path in the tree, or the absolute one
    elsewhere."""
    numbers = range(3, 256)
    for place in _FDS:
        try:
            with _scandir(place) as listed:
                numbers = [int(item.name) for item in listed]
            break
        except OSError:
            continue
    found = {}
    inodes = None
    for number in numbers:
        try:
            about = _fstat(number)
            if not stat.S_ISREG(about.st_mode):
                continue
            if inodes is None:
                inodes = {entry.stamp[0]: path for path, entry in tree.entries.items()}
                device = _lstat(tree.scratch).st_dev
            path = inodes.get(about.st_ino) if about.st_dev == device else None
            if path is None:
                path = fd_path(number)
                if path is None or path.startswith(tree.scratch + "/"):
                    continue
            found[number] = path, _lseek(number, 0, os.SEEK_CUR)
        except OSError:
            continue
    return found


def digest_outside(full):
    """The content hash of a path outside scratch. None if absent; None and the reason if it has no
    hash."""
    try:
        about = _stat(full)
        mode = about.st_mode
        if stat.S_ISDIR(mode):
            return _sha(b"directory").hexdigest(), None
        if not stat.S_ISREG(mode):
            return None, "reads a device"
        if about.st_size > _MOST:
            text = f"large {about.st_size} {about.st_mtime_ns} {about.st_ino}"
            return _sha(text.encode()).hexdigest(), None
        total = _sha()
        # The path may lead to a pipe by now.
        with open(_open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            while block := opened.read(1 << 20):
                total.update(block)
        return total.hexdigest(), None
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except OSError as failure:
        return None, f"cannot read: {failure.strerror}"
