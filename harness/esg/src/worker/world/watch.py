"""Constructs with untracked effects or inputs: reported by name, so that nothing is guessed.

There are two sources: what the code of the program names, and audit events. What the standard
library does on its own account does not count, unless it starts a thread or a process or uses the
network. These are reported regardless of the caller.
"""

import _thread
import builtins
import re
import sys
from collections.abc import Sized

from _harness.values.compat import start_threads_by
from _harness.values import standins
from _harness.world.boundary import alive, children, sockets
from _harness.world.inside import settings
from _harness.world.traits import line_of, uses

_type = type
_hash = hash
_ModuleType = _type(sys)
_ABCMeta = _type(Sized)
_LIBRARY = sys.stdlib_module_names
_ADDRESS = re.compile(rb" at 0x[0-9a-fA-F]{6,}")

# Modules whose use by the program's own code is untracked. Importing one is not.
MODULES = frozenset(
    "gc weakref _weakref ctypes _ctypes cffi signal _signal atexit faulthandler tracemalloc "
    "mmap fcntl resource readline contextvars _contextvars posix _posixsubprocess _thread dbm shelve "
    "tkinter curses termios _testcapi _testinternalcapi _xxsubinterpreters _interpreters".split()
)
# What the program may use of them: it reads no state and leaves none that a step can see.
HARMLESS = {
    "gc": frozenset("collect enable disable freeze unfreeze".split()),
    "contextvars": frozenset(("ContextVar",)),
    "_contextvars": frozenset(("ContextVar",)),
}
# Other modules give these functions to programs.
_STATE = MODULES - {"_thread", "posix", "_posixsubprocess", "resource", "fcntl"}
# Attributes that are untracked on any object.
ATTRIBUTES = frozenset(
    "__subclasses__ __globals__ __builtins__ f_back f_locals f_globals f_builtins tb_frame gi_frame "
    "cr_frame ag_frame __weakref__ st_mtime st_atime st_ctime st_mtime_ns st_atime_ns st_ctime_ns "
    "st_birthtime st_ino st_dev reconfigure".split()
)
# Methods that run without a call.
DEFINED = frozenset(("__del__",))
# Functions of modules.
_FUNCTIONS = {
    "os": "umask nice setuid setgid seteuid setegid setpriority sched_setaffinity sched_setscheduler "
    "chroot pread pwrite sendfile copy_file_range pipe pipe2 dup dup2 openpty eventfd memfd_create "
    "register_at_fork wait waitpid abort _exit",
    "os.path": "getmtime getatime getctime samestat",
    "sys": "setswitchinterval set_int_max_str_digits settrace setprofile getrefcount "
    "_current_frames getallocatedblocks set_asyncgen_hooks set_coroutine_origin_tracking_depth "
    "ps1 ps2 tracebacklimit addaudithook monitoring setdlopenflags meta_path path_hooks path_importer_cache "
    "activate_stack_trampoline",
    "time": "tzset",
    "inspect": "currentframe stack getouterframes getinnerframes trace",
    "threading": "settrace setprofile get_ident get_native_id stack_size setprofile_all_threads "
    "settrace_all_threads",
    "importlib": "reload",
    "traceback": "walk_stack print_stack extract_stack format_stack",
    "asyncio": "set_event_loop set_event_loop_policy get_event_loop",
    "codecs": "register register_error unregister",
    "copyreg": "pickle constructor add_extension remove_extension dispatch_table",
    "mimetypes": "init add_type",
    "socket": "setdefaulttimeout",
    "multiprocessing.reduction": "register ForkingPickler",
    "sqlite3": "register_adapter register_converter enable_callback_tracebacks",
    "fileinput": "input",
    "urllib.request": "install_opener",
    "gettext": "textdomain bindtextdomain install",
    "webbrowser": "register",
    "multiprocessing": "set_start_method set_executable set_forkserver_preload freeze_support",
    "readline": "set_completer",
    "email.charset": "add_alias add_charset add_codec",
    "xml.etree.ElementTree": "register_namespace",
    "zoneinfo": "reset_tzpath",
    "calendar": "setfirstweekday",
    "xml.dom": "registerDOMImplementation",
    "shutil": "register_archive_format register_unpack_format unregister_archive_format",
    "abc": "update_abstractmethods",
    "re": "purge",
    "numpy": "seterrcall",
    "numpy.ma.masked_print_option": "set_display enable",
    "pandas.api.extensions": "register_dataframe_accessor register_index_accessor register_series_accessor",
    "polars": "set_random_seed enable_string_cache disable_string_cache",
    "lxml.etree": "FunctionNamespace",
    "matplotlib.colors": "get_named_colors_mapping",
    "matplotlib.scale": "register_scale",
    "matplotlib.projections": "register_projection",
    "polars.api": "register_dataframe_namespace register_expr_namespace register_lazyframe_namespace "
    "register_series_namespace",
    "pyarrow": "register_extension_type unregister_extension_type",
    "pyarrow.compute": "register_aggregate_function register_scalar_function register_tabular_function "
    "register_vector_function",
    "xarray": "register_dataarray_accessor register_dataset_accessor",
    "linecache": "clearcache checkcache updatecache cache",
}
FUNCTIONS = {module: frozenset(names.split()) for module, names in _FUNCTIONS.items()}
_DOTTED = {module.rpartition(".")[2]: module for module in FUNCTIONS if "." in module and module != "os.path"}
_FUNCTION_NAMES = frozenset().union(*FUNCTIONS.values())
NOTED = ATTRIBUTES | DEFINED | _FUNCTION_NAMES

# Reported regardless of the caller.
ALWAYS = frozenset(
    "os.exec os.fork os.forkpty os.kill os.killpg os.startfile pty.spawn socket.sethostname "
    "mmap.__new__ resource.setrlimit resource.prlimit signal.pthread_kill shutil.chown os.lockf "
    "sqlite3.load_extension sqlite3.enable_load_extension code.__interact builtins.breakpoint "
    "sys.addaudithook".split()
)
# External work, if it has ended when the step ends.
THREADS = frozenset(("_thread.start_new_thread", "_thread.start_joinable_thread"))
PROCESSES = frozenset(("subprocess.Popen", "os.system", "os.posix_spawn", "os.spawn", "webbrowser.open"))
SOCKETS = frozenset(
    "socket.bind socket.connect socket.sendto socket.sendmsg socket.getaddrinfo socket.gethostbyname "
    "socket.gethostbyaddr socket.getnameinfo".split()
)
# Reported if called by the program's own code.
DIRECT = {
    "ctypes.dlsym": "ctypes",
    "ctypes.call_function": "ctypes",
    "sys._getframe": "sys._getframe",
    "sys._getframemodulename": "sys._getframemodulename",
    "sys._current_frames": "sys._current_frames",
    "sys._current_exceptions": "sys._current_exceptions",
    "sys.settrace": "sys.settrace",
    "sys.setprofile": "sys.setprofile",
    "sys.monitoring.register_callback": "sys.monitoring",
    "gc.get_objects": "gc.get_objects",
    "gc.get_referrers": "gc.get_referrers",
    "gc.get_referents": "gc.get_referents",
    "builtins.id": "id",
    "os.putenv": "os.putenv",
    "os.unsetenv": "os.unsetenv",
    "socket.gethostname": "socket.gethostname",
    "ctypes.dlopen": "ctypes",
}
# What may find objects by other ways than their names.
_SEE_ALL = frozenset("__subclasses__ f_globals f_locals gc.get_objects gc.get_referrers".split())
_MAX_REPORTS = 32


class Watch:
    """Collects untracked operations, step by step."""

    def __init__(self, events, namespace):
        self.events = events
        self.namespace = namespace
        self.found = []
        self._seen = set()
        # What the step did outside the process, by kind, with the line.
        self.external = {}
        for event in ALWAYS:
            events.listen(event, self._always)
        for event in THREADS:
            events.listen(event, self._started)
        for event in PROCESSES | SOCKETS:
            events.listen(event, self._outside)
        for event in DIRECT:
            events.listen(event, self._direct)
        # Event loops create a pair of sockets for themselves.
        events.listen("socket.__new__", self._socket)
        self._install()

    def begin(self):
        self.found = []
        self._seen = set()
        if self.external:
            self.external = {}

    def sees_all(self):
        """Whether the step may have found objects by other ways than their names."""
        return not _SEE_ALL.isdisjoint([found["what"] for found in self.found])

    def report(self, what, line=None):
        """Records a construct, once per step and line."""
        key = what, line
        if key not in self._seen and len(self.found) < _MAX_REPORTS:
            self._seen.add(key)
            self.found.append({"what": what, "line": line})

    def _started(self, event, _args):
        """A thread that the program itself starts cannot be awaited."""
        direct, line = self.events.asker()
        if direct:
            self.report(event, line)
        else:
            self.external.setdefault(event, line)

    def _outside(self, event, _args):
        self.external.setdefault(event, self.events.asker()[1])

    def ended(self, threads):
        """Reports external work that has not ended with the step. `threads`: those that do not
        belong to the program. Returns whether there was any, and whether in another process."""
        if not self.external:
            return False, False
        outside = False
        for event, line in self.external.items():
            if event in THREADS:
                running = alive(threads)
            elif event in PROCESSES:
                outside, running = True, children()
            else:
                running = sockets()
            if running:
                self.report(event, line)
        return True, outside

    def _always(self, event, _args):
        self.report(event, self.events.asker()[1])

    def _direct(self, event, _args):
        # Libraries ask for many an `id`.
        if self.events.by_program():
            self.report(DIRECT[event], self.events.asker()[1])

    def _socket(self, event, _args):
        direct, line = self.events.asker(("socket", "_socket"))
        if direct:
            self.external.setdefault(event, line)

    def _install(self):
        """Constructs without an audit event: hashes of addresses and, before 3.12, threads."""
        events = self.events

        def by_program(_self, value, /):
            if events.running and not events.busy and _by_address(value):
                direct, inside = events.calls()
                # A `__hash__` method makes dictionary keys, whose order it does not determine.
                if direct and inside != "__hash__":
                    self.report("hash of an address", events.asker()[1])
            return _hash(value)

        standins.install(builtins, "hash", by_program, raw=True)
        real = _thread.start_new_thread

        def start_new_thread(_self, /, *args, **named):
            if events.running:
                self._started("_thread.start_new_thread", None)
            return real(*args, **named)

        standins.install(_thread, "start_new_thread", start_new_thread, raw=True)
        add = _ABCMeta.register

        def register(cls, subclass):
            # The registry of the library's abstract classes is in no dictionary.
            if events.running and not events.busy and str(cls.__module__).partition(".")[0] in _LIBRARY:
                direct, _inside = events.calls()
                if direct:
                    self.report("register of an abstract class of the library", events.asker()[1])
            return add(cls, subclass)

        register.__module__, register.__qualname__, register.__doc__ = "abc", "ABCMeta.register", add.__doc__
        _ABCMeta.register = register
        if "threading" in sys.modules:
            start_threads_by(_thread.start_new_thread)

    def code(self, code, traits, values):
        """Checks what the code names. `values` are the objects that read names are bound to."""
        names = traits.names
        for module in traits.imports:
            top = module.partition(".")[0]
            if top in MODULES or module in MODULES:
                self._module(code, traits, top)
        for value in values:
            if _type(value) is _ModuleType:
                name = value.__dict__.get("__name__")
                if name in MODULES:
                    self._module(code, traits, name)
            elif _type(value) is type or _type(value) is _Builtin or _type(value) is _Function:
                home = value.__module__
                if home in _STATE and value.__name__ not in HARMLESS.get(home, ()):
                    self.report(home, self._named(code, value))
        if not NOTED.isdisjoint(names):
            for name in ATTRIBUTES & names:
                for line in self._places(code, traits, name):
                    self.report(name, line)
            for name in DEFINED & names:
                self.report(name, line_of(code, name))
            hits = _FUNCTION_NAMES & names
            if hits:
                self._functions(code, traits, hits)
        if not ATTRIBUTES.isdisjoint(traits.strings):
            # Among the slots of a class it only says that weak references are possible.
            slot = {"__weakref__"} if "__slots__" in names else set()
            for name in ATTRIBUTES & traits.strings - slot:
                self.report(name, None)
        for value in values:
            kind = _type(value)
            if kind is not _Function and kind is not _Builtin:
                continue
            name = value.__name__
            if _type(name) is str and name in _FUNCTION_NAMES:
                home = value.__module__
                home = "os" if home == "posix" else home
                if name in FUNCTIONS.get(home, ()):
                    self.report(f"{home}.{name}", line_of(code, name))

    def packages(self, code, traits, modules):
        """Reports what the code changes inside packages."""
        for what, inner, line in settings(modules, traits):
            self.report(what, line if inner.co_filename == code.co_filename else None)

    def _module(self, code, traits, name):
        """Reports the use of a module, if any."""
        inside = sys.modules.get(name)
        inside = inside.__dict__ if _type(inside) is _ModuleType else {}
        harmless = HARMLESS.get(name, ())
        for inner in traits.codes:
            for used in inner.co_names:
                if used not in inside or used in harmless or used[:2] == "__":
                    continue
                for line, before, _op in uses(inner, used):
                    value = dict.get(self.namespace, before) if _type(before) is str else None
                    if before == name or _type(value) is _ModuleType and value.__dict__ is inside:
                        self.report(name, line if inner.co_filename == code.co_filename else None)
        if name in traits.imports and "*" in traits.strings:
            self.report(name, line_of(code, name))

    def _places(self, code, traits, name):
        """Lines of the step that use an attribute; None for uses in code of other steps."""
        for inner in traits.codes:
            if name in inner.co_names:
                for line, _before, _op in uses(inner, name):
                    yield line if inner.co_filename == code.co_filename else None

    def _functions(self, code, traits, hits):
        for inner in traits.codes:
            for name in hits.intersection(inner.co_names):
                for line, before, _op in uses(inner, name):
                    home = self._home(before, inner)
                    if home is not None and name in FUNCTIONS.get(home, ()):
                        self.report(f"{home}.{name}", line if inner.co_filename == code.co_filename else None)

    def _home(self, before, code):
        """The module of an attribute, if the instruction before loads one."""
        if _type(before) is not str:
            return None
        value = dict.get(self.namespace, before)
        if _type(value) is _ModuleType:
            name = value.__dict__.get("__name__")
            return "os.path" if name in ("posixpath", "ntpath", "genericpath") else name
        if before == "path":
            return "os.path"
        if before in self.namespace_names():
            return None
        before = _DOTTED.get(before, before)
        return before if before in FUNCTIONS else None

    def namespace_names(self):
        """The bound names, without counting as a read."""
        return dict.keys(self.namespace)

    def _named(self, code, value):
        for name, bound in dict.items(self.namespace):
            if bound is value and name in code.co_names:
                return line_of(code, name)
        return None

    def output(self, data):
        """Reports addresses in the output."""
        if b" at 0x" in data and _ADDRESS.search(data):
            self.report("an address in the output")


_Function = _type(Watch.begin)
_Builtin = _type(len)
_attribute = type.__getattribute__
_object_hash = object.__hash__
_NONE_BY_ADDRESS = sys.version_info < (3, 12)


def _by_address(value):
    """Whether the hash of a value depends on its address."""
    kind = _type(value)
    # By identity: the metaclass may define comparison and hash.
    if kind is str or kind is int or kind is float or kind is bool or kind is bytes:
        return False
    if kind is tuple or kind is frozenset:
        return any(map(_by_address, value))
    if value is None:
        return _NONE_BY_ADDRESS
    return _attribute(kind, "__hash__") is _object_hash or kind is _Builtin
