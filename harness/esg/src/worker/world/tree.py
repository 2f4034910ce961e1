"""The tree below scratch: its content, and how it is stored and restored.

A file whose times, size and inode are unchanged is not read, unless it was hashed so soon after its
last change that the file system's clock might not show a later one.
"""

import hashlib
import os
import stat
import time

_sha = hashlib.sha256
_scandir = os.scandir
_lstat = os.lstat
_readlink = os.readlink
_open = os.open
_fdopen = os.fdopen
_chmod = os.chmod
_fsdecode = os.fsdecode
_fsencode = os.fsencode
_clock = time.time_ns

# A file changed again within this time after it was hashed may have the same times and size.
_RACY_NS = 50_000_000
_NOFOLLOW = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Entry:
    """One file, directory or link as last seen."""

    __slots__ = ("kind", "stamp", "looked", "digest", "mode", "size", "links")

    def own(self):
        return _sha(f"{self.kind}\0{self.mode:o}\0{self.digest}".encode()).hexdigest()

    def same(self, other):
        return (
            self.kind == other.kind and self.mode == other.mode and self.digest == other.digest
        )


class Tree:
    """The entries below a folder, by path from there."""

    def __init__(self, scratch, limit):
        self.scratch = scratch
        self.limit = limit
        self.entries = {}
        # What belongs to the environment, see `Left`.
        self.left = set()
        # What entries cannot represent: "hard link a", "special file b".
        self.special = []
        self.rescan()

    def root_stamp(self):
        """Changes when a name directly below scratch is added or removed."""
        try:
            found = _lstat(self.scratch)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ctime_ns, found.st_nlink

    def stirred(self):
        """Whether something changed directly below scratch since the last scan."""
        try:
            found = _lstat(self.scratch)
        except OSError:
            return self._root is not None
        return (found.st_mtime_ns, found.st_ctime_ns, found.st_nlink) != self._root

    def rescan(self):
        """Scans everything again. Returns the new entries; unchanged ones are the same objects."""
        self.entries = self._scan()
        self._root = self.root_stamp()
        return self.entries

    def _scan(self):
        """Scans the tree. Files whose times, size and inode are unchanged are not read."""
        old = self.entries
        tree = {}
        self.special = []
        pending = [("", self.scratch)]
        while pending:
            prefix, folder = pending.pop()
            try:
                with _scandir(folder) as found:
                    found = sorted(found, key=_name)
            except OSError:
                continue
            for item in found:
                rel = prefix + item.name
                if rel in self.left:
                    if item.is_dir(follow_symlinks=False):
                        pending.append((rel + "/", item.path))
                    continue
                entry = self._entry(rel, item.path, old.get(rel))
                if entry is None:
                    continue
                tree[rel] = entry
                if prefix[:-1] in self.left:
                    self._own(prefix[:-1], tree)
                if entry.kind == "directory":
                    pending.append((rel + "/", item.path))
        return tree

    def _own(self, rel, tree):
        """A directory that an import left has something of the program in it."""
        while rel in self.left:
            self.left.discard(rel)
            entry = self._entry(rel, self.full(rel), None)
            if entry is not None:
                tree[rel] = entry
            rel = rel.rpartition("/")[0]

    def _entry(self, rel, full, was):
        try:
            found = _lstat(full)
        except OSError:
            return None
        stamp = (
            found.st_ino,
            found.st_size,
            found.st_mtime_ns,
            found.st_ctime_ns,
            found.st_mode,
            found.st_nlink,
        )
        if was is not None and was.stamp == stamp:
            if was.kind == "directory" or found.st_ctime_ns + _RACY_NS < was.looked:
                return was
        entry = Entry()
        entry.looked = _clock()
        entry.stamp = stamp
        entry.mode = stat.S_IMODE(found.st_mode)
        entry.size = found.st_size
        entry.links = found.st_nlink
        try:
            if stat.S_ISREG(found.st_mode):
                entry.kind, entry.digest = "file", _digest(full)
                if found.st_nlink > 1:
                    self.special.append(f"hard link {rel}")
            elif stat.S_ISDIR(found.st_mode):
                entry.kind, entry.digest, entry.links = "directory", "", 1
            elif stat.S_ISLNK(found.st_mode):
                entry.kind, entry.digest = "link", _fsencode(_readlink(full)).hex()
            else:
                self.special.append(f"special file {rel}")
                return None
        except OSError:
            entry.kind, entry.digest = "file", "unreadable"
        if was is not None and was.same(entry) and was.looked == entry.looked:
            return was
        return entry

    # Storing and restoring.

    def full(self, rel):
        return self.scratch + "/" + rel

    def blob(self, rel):
        """`(bytes, None)`, or `(None, reason)`."""
        entry = self.entries[rel]
        head = entry.kind[0].encode() + entry.mode.to_bytes(2, "little")
        if entry.kind == "directory":
            return head, None
        if entry.kind == "link":
            return head + bytes.fromhex(entry.digest), None
        if entry.size > self.limit:
            return None, "too large"
        try:
            data = _content(self.full(rel))
        except OSError as failure:
            return None, f"file {failure.strerror}"
        if _sha(data).hexdigest() != entry.digest:
            return None, "file changes while it is read"
        return head + data, None

    def put(self, rel, blob):
        """Makes the path what the blob says, replacing what is there."""
        kind, mode, data = blob[:1], int.from_bytes(blob[1:3], "little"), blob[3:]
        full = self.full(rel)
        was = self.entries.get(rel)
        if kind == b"d":
            if was is None or was.kind != "directory":
                self._clear(rel)
                os.makedirs(full, exist_ok=True)
        else:
            self._clear(rel)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            if kind == b"l":
                os.symlink(_fsdecode(data), full)
            else:
                handle = _open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with _fdopen(handle, "wb") as out:
                    out.write(data)
        if kind != b"l":
            _chmod(full, mode)
        self._refresh(rel)

    def remove(self, rel):
        """Removes a path. A directory only if it is empty: returns whether it was removed."""
        entry = self.entries.get(rel)
        if entry is not None and entry.kind == "directory":
            try:
                os.rmdir(self.full(rel))
            except FileNotFoundError:
                pass
            except OSError:
                return False
        else:
            self._clear(rel)
        self.entries.pop(rel, None)
        self._root = self.root_stamp()
        return True

    def _clear(self, rel):
        full = self.full(rel)
        try:
            mode = _lstat(full).st_mode
        except OSError:
            return
        if stat.S_ISDIR(mode):
            for path in sorted({*self.entries, *self.left}, reverse=True):
                if path.startswith(rel + "/"):
                    self.remove(path)
            os.rmdir(full)
        else:
            os.unlink(full)
        self.entries.pop(rel, None)
        self.left.discard(rel)

    def _refresh(self, rel):
        """Scans a path that the worker changed, and the directories above it."""
        parts = rel.split("/")
        for depth in range(1, len(parts) + 1):
            path = "/".join(parts[:depth])
            if depth == len(parts) or path not in self.entries:
                entry = self._entry(path, self.full(path), None)
                if entry is not None:
                    self.entries[path] = entry
        self._root = self.root_stamp()


def _name(item):
    return item.name


def _content(full):
    with _fdopen(_open(full, _NOFOLLOW), "rb") as opened:
        return opened.read()


def _digest(full):
    """Sha256 of a file's content, without holding it."""
    total = _sha()
    with _fdopen(_open(full, _NOFOLLOW), "rb") as opened:
        while block := opened.read(1 << 20):
            total.update(block)
    return total.hexdigest()
