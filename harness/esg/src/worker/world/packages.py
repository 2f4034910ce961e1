"""Files and modules outside the state and the program: which of them count as inputs."""

import os
import sys
from _io import open as _open

from _harness.world.files import digest_outside

_realpath = os.path.realpath
_SYSTEM = ("/usr/lib/", "/usr/share/zoneinfo", "/proc/self", "/dev/null", "/etc/localtime", "/lib/")
# What the kernel computes when it is read.
_COMPUTED = ("/proc/", "/sys/")
# Of that, what stays the same, or what libraries ask about the process and the machine.
_STEADY = ("/proc/self", "/proc/cpuinfo", "/proc/sys/", "/proc/version", "/proc/filesystems", "/proc/mounts", "/sys/")


def enter_environment():
    """Sets the prefix of the virtual environment that the interpreter belongs to, which `site` does
    otherwise."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(sys.executable)))
    if os.path.isfile(f"{home}/pyvenv.cfg"):
        sys.prefix = sys.exec_prefix = home


class Packages:
    """Classifies files by their location."""

    def __init__(self, files):
        self.files = files
        roots = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
        roots |= {_realpath(root) for root in roots}
        self.roots = tuple(root.rstrip("/") + "/" for root in roots if root != "/usr")
        self.above = set()
        # Directories that paths are resolved through, whatever they contain.
        for folder in (files.scratch, *self.roots):
            while folder not in ("/", ""):
                folder = os.path.dirname(folder)
                self.above.add(folder)
        # As the link `/proc/self` is resolved.
        self._process = _realpath("/proc/self") + "/"
        self._by_folder = {}
        self._modules = {}

    def module(self, name, module, external):
        """Adds the distribution that a module belongs to, or its file."""
        known = self._modules.get(name, self)
        if known is self:
            known = self._modules[name] = self._find(module)
        if known is not None:
            external[known[0]] = known[1] if known[0][0] == "k" else digest_outside(known[0][2:])[0]

    def _find(self, module):
        names = getattr(module, "__dict__", None)
        file = names.get("__file__") if names is not None else None
        if type(file) is not str or file.startswith(self.files.scratch + "/"):
            return None
        return self._place(file)

    def file(self, full, external, direct):
        """Adds a file outside scratch that was read, by the program itself if `direct`. Returns
        `(added, reason if it does not count)`."""
        if full.startswith(self._process):
            full = "/proc/self/" + full[len(self._process):]
        if full.startswith(_COMPUTED) and (direct or not full.startswith(_STEADY)):
            return False, "reads the system"
        if full in self.above or full.startswith(_SYSTEM) or full.startswith("/proc/self"):
            return False, None
        if full in ("/dev/urandom", "/dev/random"):
            return False, "reads a device"
        place = self._place(full)
        if place is None:
            return False, None
        key, value = place
        if key[0] == "x":
            value, why = digest_outside(full)
            if why is not None:
                return False, why
        external[key] = value
        return True, None

    def is_python(self, full):
        """Whether a directory belongs to the installation. Its listing counts as constant."""
        return (full + "/").startswith((*self.roots, *_SYSTEM))

    def _place(self, full):
        """`(entity, version or None)`, or None for Python's own files."""
        if "/site-packages/" in full or "/dist-packages/" in full:
            return self._distribution(full)
        if full.startswith(self.roots) or full + "/" in self.roots:
            return None
        if full.startswith(_SYSTEM):
            return None
        return f"x:{full}", None

    def _distribution(self, full):
        """By the folder or file directly in the package directory."""
        marker = "/site-packages/" if "/site-packages/" in full else "/dist-packages/"
        at = full.index(marker) + len(marker)
        home, top = full[: at - 1], full[at:].split("/")[0]
        if home not in self._by_folder:
            self._by_folder[home] = _distributions(home)
        top = top[:-3] if top.endswith(".py") else top
        return self._by_folder[home].get(top.partition(".")[0], (f"x:{full}", None))


def _distributions(home):
    """By top-level name: its distribution, with the version.

    Not with `importlib.metadata`, which looks up every file of every distribution, and whose modules
    would have to be hidden from the program."""
    found = {}
    for folder in sorted(os.listdir(home)):
        if not folder.endswith((".dist-info", ".egg-info")):
            continue
        folder = f"{home}/{folder}"
        about = _text(folder, "METADATA") or _text(folder, "PKG-INFO") or _text(folder, "")
        fields = dict(_field(line) for line in about.partition("\n\n")[0].splitlines()[::-1])
        tops = _text(folder, "top_level.txt").split()
        if not tops:
            rows = _text(folder, "RECORD").splitlines()
            tops = {row.partition(",")[0].partition("/")[0].partition(".")[0] for row in rows}
        for top in tops:
            found.setdefault(top, (f"k:{fields.get('Name')}", fields.get("Version")))
    return found


def _field(line):
    name, _, value = line.partition(":")
    return name, value.strip()


def _text(folder, name):
    """The text of a file about a distribution, or nothing."""
    try:
        with _open(f"{folder}/{name}" if name else folder, encoding="utf-8", errors="replace") as opened:
            return opened.read()
    except OSError:
        return ""
