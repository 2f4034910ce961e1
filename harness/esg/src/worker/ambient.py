"""Ambient channels: named state inside packages that programs set on purpose.

Everything else inside a package counts as its caches and constants. A channel says how its state is
read, restored and written down, and which steps depend on it. Its code runs once its module is
loaded; what the module set while it was loaded is the initial state.
"""

import importlib
import sys
from _pickle import Pickler
from hashlib import sha256
from io import BytesIO
from pickle import loads

_modules = sys.modules
PREFIX = "ambient/"
# Steps depend on it whatever they name.
ALL = None


class Unstorable(TypeError):
    """State that only the code that set it can make again."""


class Ambient:
    """A channel. `read()` returns its state as plain data, `restore(state)` sets it.

    `packages`: the first parts of the names of modules whose use depends on the state; `ALL` for
    state on which everything may depend, such as how values are printed."""

    packages = ALL
    # Names in code whose use depends on it, whatever modules it uses.
    names = frozenset()

    def __init__(self, name, module, read, restore, packages=ALL, names=(), keep=None):
        self.name, self.module, self.read, self.restore = name, module, read, restore
        # Returns a function that sets state that cannot be written down as it is now.
        self.keep = keep
        self.packages = packages if packages is ALL else frozenset(packages)
        self.names = frozenset(names)

    def uses(self, tops, names):
        """Whether a step with these modules and names depends on the state."""
        return self.packages is ALL or not self.packages.isdisjoint(tops) or not self.names.isdisjoint(names)


class _Writer(Pickler):
    def reducer_override(self, value):
        """Classes and functions of the program are no plain data."""
        if getattr(value, "__module__", None) == "__main__":
            raise Unstorable("an object of the program")
        return NotImplemented


def encode(state):
    """The state as bytes. Equal states give equal bytes, whatever objects they share."""
    into = BytesIO()
    pickler = _Writer(into, 4)
    pickler.fast = True
    try:
        pickler.dump(state)
    except Unstorable:
        raise
    except Exception as why:
        raise Unstorable(f"type {type(state).__name__}: {why}") from None
    return into.getvalue()


decode = loads


def fingerprint(name, blob):
    """The fingerprint of stored state."""
    return sha256(f"p:{name}\0".encode() + blob).hexdigest()


# numpy.


def _numpy():
    return _modules["numpy"]


def _read_random():
    return _modules["numpy.random.mtrand"]._rand.get_state(legacy=False)


def _restore_random(state):
    _modules["numpy.random.mtrand"]._rand.set_state(state)


def _plain_random():
    state = _read_random()
    inner = {key: value.tobytes() if key == "key" else value for key, value in state["state"].items()}
    return {**state, "state": inner}


def _restore_plain_random(state):
    inner = state["state"]
    if type(inner.get("key")) is bytes:
        numpy = _numpy()
        inner = {**inner, "key": numpy.frombuffer(inner["key"], dtype=numpy.uint32).copy()}
    _restore_random({**state, "state": inner})


def _read_numpy():
    numpy = _numpy()
    return dict(numpy.get_printoptions()), dict(numpy.geterr()), numpy.getbufsize()


def _restore_numpy(state):
    numpy = _numpy()
    options, errors, size = state
    legacy = options.pop("legacy", False)
    numpy.set_printoptions(**options, legacy=legacy)
    numpy.seterr(**errors)
    numpy.setbufsize(size)


# pandas.


def _pandas_options():
    return _modules["pandas._config.config"]._global_config


def _flat(options, prefix=""):
    for key, value in options.items():
        if type(value) is dict:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _read_pandas():
    return tuple(_flat(_pandas_options()))


def _restore_pandas(state):
    config = _modules["pandas._config.config"]
    now = dict(_flat(_pandas_options()))
    for key, value in state:
        if now.get(key, state) is not value and now.get(key) != value:
            config.set_option(key, value)


# matplotlib.


def _read_style():
    held = _modules["matplotlib"].rcParams
    get = dict.__getitem__
    # The backend is a property of its own, whose lookup may choose one.
    return tuple((key, get(held, key)) for key in sorted(dict.keys(held)) if key != "backend")


def _restore_style(state):
    dict.update(_modules["matplotlib"].rcParams, state)


def _read_figures():
    """pyplot's open figures. Only that there are none can be stored."""
    open_figures = _modules["matplotlib._pylab_helpers"].Gcf.figs
    if open_figures:
        return Open(tuple(open_figures))
    return ()


def _restore_figures(state):
    _modules["matplotlib._pylab_helpers"].Gcf.figs.clear()


def _keep_figures():
    held = _modules["matplotlib._pylab_helpers"].Gcf.figs
    kept = list(held.items())

    def put_back():
        held.clear()
        held.update(kept)

    return put_back


class Open:
    """Open figures: never equal, because what was drawn on them is not compared."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __reduce__(self):
        raise Unstorable("an open figure of pyplot")


# The standard library.


def _read_decimal():
    context = _modules["decimal"].getcontext()
    traps = tuple(sorted(signal.__name__ for signal, on in context.traps.items() if on))
    return (context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp, traps)


def _restore_decimal(state):
    decimal = _modules["decimal"]
    context = decimal.getcontext()
    context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp, traps = state
    for signal in list(context.traps):
        context.traps[signal] = signal.__name__ in traps


def _read_locale():
    return _modules["locale"].setlocale(_modules["locale"].LC_ALL)


def _restore_locale(state):
    _modules["locale"].setlocale(_modules["locale"].LC_ALL, state)


def _read_csv():
    return _modules["_csv"].field_size_limit()


def _restore_csv(state):
    _modules["_csv"].field_size_limit(state)


def _loggers(logging):
    found = [("", logging.root)]
    for name, one in sorted(logging.root.manager.loggerDict.items()):
        if issubclass(type(one), logging.Logger):
            found.append((name, one))
    return found


def _read_logging():
    """Levels, handlers and switches of the loggers that differ from a new one."""
    logging = _modules["logging"]
    found = []
    for name, one in _loggers(logging):
        held = one.__dict__
        handlers = [_handler(logging, handler) for handler in held["handlers"]]
        state = (held["level"], bool(held["disabled"]), bool(held["propagate"]), handlers, _filters(held))
        if state != (0, False, True, [], ()):
            found.append((name, state))
    return logging.root.manager.disable, found


def _filters(held):
    if held["filters"]:
        return (Foreign("a filter of a logger"),)
    return ()


class Foreign:
    """What only the code that made it can make again."""

    def __init__(self, what):
        self.what = what

    def __eq__(self, other):
        return False

    __hash__ = None

    def __reduce__(self):
        raise Unstorable(self.what)


_STREAMS = ("stdout", "stderr")


def _handler(logging, handler):
    """A handler to a standard stream with a usual formatter, which no name of the program holds."""
    kind, held = type(handler), handler.__dict__
    formatter = held.get("formatter")
    inside = None if formatter is None else formatter.__dict__
    if inside is not None:
        style = inside["_style"]
        if type(formatter) is not logging.Formatter or type(style) not in (style for style, _ in logging._STYLES.values()):
            return Foreign("a formatter of a class of its own")
        letter = next(key for key, (one, _) in logging._STYLES.items() if one is type(style))
        inside = (inside["_fmt"], inside["datefmt"], letter)
    common = (held["level"], inside)
    if held["filters"] or _referred(handler):
        return Foreign("a handler of a logger")
    if kind is logging.NullHandler:
        return ("null", *common)
    if kind is logging.StreamHandler:
        stream = next((name for name in _STREAMS if getattr(sys, name) is held["stream"]), None)
        if stream is not None:
            return ("stream", *common, stream)
    if kind is logging._StderrHandler:
        return ("last", *common)
    return Foreign("a handler of a logger")


# The list that holds it, and three names of the functions that look at it.
_USUAL = 5


def _referred(handler):
    return sys.getrefcount(handler) > _USUAL


def _restore_logging(state):
    logging = _modules["logging"]
    disable, found = state
    logging.root.manager.disable = disable
    want = dict(found)
    for name, one in _loggers(logging):
        level, disabled, propagate, handlers, _ = want.pop(name, (0, False, True, [], ()))
        _set_logger(logging, one, level, disabled, propagate, handlers)
    for name, (level, disabled, propagate, handlers, _) in want.items():
        _set_logger(logging, logging.getLogger(name), level, disabled, propagate, handlers)
    logging.root.manager._clear_cache()


def _set_logger(logging, one, level, disabled, propagate, handlers):
    now = [_handler(logging, handler) for handler in one.handlers]
    one.level, one.disabled, one.propagate = level, disabled, propagate
    if now == handlers:
        return
    del one.handlers[:], one.filters[:]
    for kind, level, formatter, *stream in handlers:
        made = logging.NullHandler() if kind == "null" else logging.StreamHandler(getattr(sys, stream[0]))
        made.level = level
        if formatter is not None:
            made.setFormatter(logging.Formatter(formatter[0], formatter[1], formatter[2]))
        one.handlers.append(made)


def _keep_logging():
    logging = _modules["logging"]
    kept = [
        (one, one.level, one.disabled, one.propagate, list(one.handlers), list(one.filters))
        for _, one in _loggers(logging)
    ]
    disable = logging.root.manager.disable

    def put_back():
        logging.root.manager.disable = disable
        for one, one.level, one.disabled, one.propagate, one.handlers[:], one.filters[:] in kept:
            pass
        logging.root.manager._clear_cache()

    return put_back


_PLOTS = frozenset("plot hist boxplot scatter bar barh pie".split())
_DRAWS = ("matplotlib", "mpl_toolkits", "seaborn", "pylab")

TABLE = [
    Ambient("numpy.random", "numpy.random.mtrand", _plain_random, _restore_plain_random, (),
            ("get_state", "set_state", "get_bit_generator", "_rand", "mtrand")),
    Ambient("numpy.options", "numpy", _read_numpy, _restore_numpy),
    Ambient("pandas.options", "pandas._config.config", _read_pandas, _restore_pandas),
    Ambient("matplotlib.rcParams", "matplotlib", _read_style, _restore_style, _DRAWS, _PLOTS),
    Ambient("matplotlib.figures", "matplotlib._pylab_helpers", _read_figures, _restore_figures, _DRAWS, _PLOTS,
            _keep_figures),
    Ambient("logging", "logging", _read_logging, _restore_logging, ("logging",), keep=_keep_logging),
    Ambient("decimal", "decimal", _read_decimal, _restore_decimal),
    Ambient("locale", "locale", _read_locale, _restore_locale),
    Ambient("csv", "_csv", _read_csv, _restore_csv, ("csv", "_csv", "pandas"),
            ("field_size_limit", "reader", "DictReader")),
]


class Given:
    """The functions `read` and `restore` of a user's source."""

    def __init__(self, name, source):
        self.scope = {"__name__": "_harness_given"}
        exec(compile(source, f"<ambient:{name}>", "exec", dont_inherit=True), self.scope)

    def read(self):
        """The state."""
        return self.scope["read"]()

    def restore(self, state):
        """Sets it."""
        self.scope["restore"](state)


class Ambients:
    """The channels whose modules are loaded, as entities `p:ambient/...`."""

    def __init__(self, events, given=()):
        self.events = events
        self.waiting = {PREFIX + one.name: one for one in TABLE}
        for name, module, source in given:
            self.waiting[PREFIX + name] = Ambient(name, module, *_lazy(name, source))
        self.active = {}
        # By entity: the state as bytes, or the object that cannot be written down.
        self.known, self.initial = {}, {}
        # What the step used beyond what its code shows.
        self.used = set()
        self.discover()

    def discover(self):
        """Modules were loaded."""
        if not self.waiting:
            return
        for name, one in list(self.waiting.items()):
            if one.module in _modules and not _loading(one.module):
                del self.waiting[name]
                self.active[name] = one
                if one.name == "logging":
                    self._observe_logging()
                self.known[name] = self.initial[name] = self._now(name)

    def _observe_logging(self):
        """Libraries log too, and whether that shows depends on the levels."""
        logger = _modules["logging"].Logger
        events, used = self.events, self.used

        def noting(real):
            def method(self, /, *args, **named):
                if events.running:
                    used.add(PREFIX + "logging")
                return real(self, *args, **named)

            method.__name__, method.__qualname__ = real.__name__, real.__qualname__
            method.__module__, method.__doc__ = real.__module__, real.__doc__
            return method

        for name in ("isEnabledFor", "handle", "getEffectiveLevel", "hasHandlers"):
            setattr(logger, name, noting(logger.__dict__[name]))

    def _now(self, name):
        state = self.active[name].read()
        try:
            return encode(state)
        except Unstorable as why:
            return why

    def begin(self):
        """Right before a step."""
        self.used.clear()

    def end(self, tops, names):
        """`(reads, changed)` of the step, which used these top-level packages and names."""
        self.discover()
        reads, changed = [], []
        for name, one in self.active.items():
            uses = name in self.used or one.uses(tops, names)
            if not uses and one.packages and one.name != "numpy.random":
                continue
            try:
                now = self._now(name)
            except Exception as failure:
                self.events.failures.append(f"{name}: {failure!r}")
                continue
            was = self.known[name]
            same = type(now) is bytes and now == was
            self.known[name] = now
            if uses or not same:
                reads.append(name)
            if not same:
                changed.append(name)
        return reads, changed

    def still(self):
        """Whether nothing used a channel."""
        return not self.used

    def member(self, name):
        """`(own, blob, reason)` of the state as recorded."""
        state = self.known[name]
        if type(state) is bytes:
            return fingerprint(name, state), state, None
        return sha256(name.encode()).hexdigest(), None, str(state)

    def is_open(self, name):
        """Whether only the code that made the state can make it again."""
        return type(self.known.get(name)) is not bytes

    def keep(self, name):
        """The state, to be set again in this process."""
        state = self.known[name]
        if type(state) is not bytes and self.active[name].keep is not None:
            return self.active[name].keep()
        return state

    def drop(self, name):
        """Resets the state to that after the import."""
        if name in self.active:
            self.set(name, self.initial[name])

    def load(self, name, blob):
        """Restores stored state."""
        if name in self.waiting:
            was, self.events.running = self.events.running, False
            try:
                importlib.import_module(self.waiting[name].module)
            finally:
                self.events.running = was
            self.discover()
        self.set(name, bytes(blob))

    def set(self, name, state):
        """Makes the state what it was."""
        if callable(state):
            state()
        elif type(state) is not bytes:
            raise ValueError(f"{name} is lost: {state}")
        elif state != self._now(name):
            self.active[name].restore(decode(state))
        self.known[name] = self._now(name)

    def changed_outside(self):
        """Channels that changed while no step ran."""
        found = []
        for name in self.active:
            now = self._now(name)
            if type(now) is bytes and now != self.known[name]:
                self.known[name] = now
                found.append(name)
        return found


def _lazy(name, source):
    given = []

    def of():
        if not given:
            given.append(Given(name, source))
        return given[0]

    return (lambda: of().read()), (lambda state: of().restore(state))


def _loading(name):
    spec = getattr(_modules[name], "__spec__", None)
    return spec is not None and spec.__dict__.get("_initializing", False)
