"""Files that packages leave in scratch while they are imported: caches and settings.

They belong to the environment, like everything that an import of a package does: whichever step
imports it first in a worker makes them. The state does not have them, and the program's own code does
not find them in a directory. A program that uses one by its name anyway is untracked, until it writes
the file, which is its own from then on.
"""

import os

_abspath = os.path.abspath
_fsdecode = os.fsdecode
_realpath = os.path.realpath
_lexists = os.path.lexists
_MAKING = frozenset(("open", "os.mkdir", "os.rename", "os.link", "os.symlink"))
_MAKES = os.O_CREAT
# What these do is asked for by their callers.
_ASKED = ("os", "posixpath", "genericpath", "pathlib", "pathlib._local", "pathlib._abc", "glob", "fnmatch", "tempfile",
          "io", "codecs")
_CHANGING = (*_ASKED, "shutil")


class Left:
    """Notices such files while packages are imported, and hides them."""

    def __init__(self, events, files):
        self.events = events
        self.files = files
        files.left = self
        # Those of the tree.
        self.paths = files.tree.left
        # How many imports are in progress, and what did not exist before them.
        self._depth = 0
        self._made = set()

    def begin(self):
        """The import of a package begins."""
        self._depth += 1
        self.events.aside = self._note

    def end(self):
        """It has ended."""
        self._depth -= 1
        if self._depth:
            return
        self.events.aside = None
        made, self._made = self._made, set()
        for full in made:
            if _lexists(full):
                self.paths.add(full[len(self.files.scratch) + 1 :])

    def _note(self, event, args):
        if event not in _MAKING:
            return
        if event == "open" and not args[2] & _MAKES:
            return
        path = args[0] if event in ("open", "os.mkdir") else args[1]
        if type(path) is int:
            return
        full = _abspath(_fsdecode(path))
        full = _realpath(os.path.dirname(full)) + "/" + os.path.basename(full)
        if full.startswith(self.files.scratch + "/") and not _lexists(full):
            self._made.add(full)

    def used(self, rel, takes=False):
        """The step uses a path. Returns whether it is one of these. `takes`: it writes the path, which
        makes it its own if its own code does so."""
        if rel not in self.paths:
            return False
        direct, line = self.events.asker(_CHANGING)
        if direct and takes:
            self.paths.discard(rel)
            return False
        if direct:
            self.files.uses_left.append((rel, line))
        return True

    def visible(self, path, names):
        """Of the names in a directory, those that the program finds."""
        events = self.events
        if not self.paths or not events.running or not events.asker(_ASKED)[0]:
            return names
        events.busy = True
        try:
            return self._visible("." if path is None else path, names)
        finally:
            events.busy = False

    def _visible(self, path, names):
        folder = _realpath(f"/proc/self/fd/{path}" if type(path) is int else _fsdecode(path))
        if not (folder + "/").startswith(self.files.scratch + "/"):
            return names
        start = folder[len(self.files.scratch) + 1 :]
        start = start + "/" if start else ""
        return [name for name in names if start + _fsdecode(name) not in self.paths]
