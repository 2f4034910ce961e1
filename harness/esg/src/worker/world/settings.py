"""The table of ambient channels: how the state of each is read and restored, and what depends on it."""

import sys

from _harness.values.compat import getrefcount
from _harness.world import options

_modules = sys.modules
# Steps depend on it whatever they name.
ALL = None


# Channels whose use no code shows.
CAPTURED, RECURSION = "logging.warnings", "recursion"


class Unstorable(TypeError):
    """State that only the code that set it can make again."""


class Ambient:
    """A channel. `read()` returns its state as plain data, `restore(state)` sets it.

    `packages`: the first parts of the names of modules whose use depends on the state; `ALL` for
    state on which everything may depend, such as how values are printed."""

    packages = ALL
    # Names in code whose use depends on it, whatever modules it uses.
    names = frozenset()

    def __init__(self, name, module, read, restore, packages=ALL, names=(), keep=None, start=None,
                 observe=None, imports=None, holds=None):
        self.name, self.module, self.read, self.restore = name, module, read, restore
        # Returns a function that sets state that cannot be written down as it is now.
        self.keep = keep
        # Sets the state that every worker begins with, where the module takes one from the system.
        self.start = start
        # Replaces functions of the module by what it is given makes of them: their use counts. False if this
        # version of the module does not allow that.
        self.observe = observe
        # What is called before the import of a package, and after it with what that returned: what an import
        # leaves is no state, whatever the program set before. Without, it is none if the program set nothing.
        self.imports = imports
        # Returns the objects in the state that the program may hold, too: what uses the state may change them.
        self.holds = holds
        self.packages = packages if packages is ALL else frozenset(packages)
        self.names = frozenset(names)

    def uses(self, tops, names):
        """Whether a step with these modules and names depends on the state."""
        return self.packages is ALL or not self.packages.isdisjoint(tops) or not self.names.isdisjoint(names)


# numpy.


def _numpy():
    return _modules["numpy"]


def _read_random():
    return _modules["numpy.random.mtrand"]._rand.get_state(legacy=False)


def _restore_random(state):
    _modules["numpy.random.mtrand"]._rand.set_state(state)


def _start_random():
    # Like the generator of `random`. The seed that numpy takes while it is loaded is no reading of a step.
    _modules["numpy.random.mtrand"]._rand.seed(0)


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


# matplotlib.


def _read_style():
    held = _modules["matplotlib"].rcParams
    get = dict.__getitem__
    # The backend is a property of its own, whose lookup may choose one.
    return tuple((key, get(held, key)) for key in sorted(dict.keys(held)) if key != "backend")


def _restore_style(state):
    dict.update(_modules["matplotlib"].rcParams, state)


def _read_colormaps():
    """Those that were registered."""
    held = _modules["matplotlib.cm"]._colormaps
    found = {name: one for name, one in held._cmaps.items() if name not in held._builtin_cmaps}
    for one in found.values():
        # Its first use computes colors.
        if not getattr(one, "_isinit", True):
            one._init()
    return found


def _restore_colormaps(state):
    held = _modules["matplotlib.cm"]._colormaps
    for name in [name for name in held._cmaps if name not in held._builtin_cmaps]:
        del held._cmaps[name]
    held._cmaps.update(state)


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


def _loggers(logging):
    found = [("", logging.root)]
    for name, one in sorted(logging.root.manager.loggerDict.items()):
        if issubclass(type(one), logging.Logger):
            found.append((name, one))
    return found


def _observe_logging(noting):
    """Libraries log too, and whether that shows depends on the levels. Some set them in a call of the program."""
    logger = _modules["logging"].Logger
    for name in "isEnabledFor handle getEffectiveLevel hasHandlers setLevel addHandler removeHandler".split():
        setattr(logger, name, noting(logger.__dict__[name]))


_NEW = (0, False, True, [], [], {})
# What each logger has. The rest was set by code of others.
_OWN = frozenset("name level parent propagate handlers disabled filters manager root _cache".split())
_PLAIN = (str, int, float, bool, type(None))
# How imports of packages left loggers, by their names.
_left: dict = {}


def _logger(one):
    held = one.__dict__
    switches = held["level"], bool(held["disabled"]), bool(held["propagate"])
    return (*switches, [*held["handlers"]], [*held["filters"]], _more(one))


def _more(one):
    return {name: value for name, value in one.__dict__.items() if name not in _OWN}


def _set_more(one, more):
    for name in _more(one):
        del one.__dict__[name]
    one.__dict__.update(more)


def _before_import():
    return {name: _logger(one) for name, one in _loggers(_modules["logging"])}


def _after_import(before):
    for name, one in _loggers(_modules["logging"]):
        was, now = before.get(name, _NEW), _logger(one)
        if now != was and was in (_NEW, _left.get(name)):
            _left[name] = now


_NONE = (0, False, True, [], (), {})


def _read_logging():
    """Levels, handlers and switches of the loggers that differ from a new one, and from what imports left; and
    the switches of the module."""
    logging = _modules["logging"]
    found = []
    for name, one in _loggers(logging):
        if name in _left and _logger(one) == _left[name]:
            continue
        held = one.__dict__
        handlers = [_handler(logging, handler) for handler in held["handlers"]]
        more = {name: value if type(value) in _PLAIN else Foreign("an attribute of a logger")
                for name, value in _more(one).items()}
        state = (held["level"], bool(held["disabled"]), bool(held["propagate"]), handlers, _filters(held), more)
        if state != _NONE:
            found.append((name, state))
    return (logging.root.manager.disable, found, *_logging_switches(logging))


def _logging_switches(logging):
    """The names of levels, the class of new loggers, and what makes records."""
    names = dict(logging._levelToName), dict(logging._nameToLevel)
    return names, logging.getLoggerClass(), logging.getLogRecordFactory()


def _set_logging_switches(logging, names, cls, factory):
    for table, held in zip((logging._levelToName, logging._nameToLevel), names):
        table.clear()
        table.update(held)
    logging._loggerClass = cls
    logging.setLogRecordFactory(factory)


def _read_captured():
    """Whether warnings are logged."""
    return _modules["logging"]._warnings_showwarning is not None


def _restore_captured(state):
    _modules["logging"].captureWarnings(state)


def _held_by_logging():
    """Handlers and filters that only the program can make."""
    logging, found = _modules["logging"], []
    for name, one in _loggers(logging):
        if name in _left and _logger(one) == _left[name]:
            continue
        held = one.__dict__
        found += held["filters"]
        found += [handler for handler in held["handlers"] if type(_handler(logging, handler)) is Foreign]
    return found


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

    __hash__ = None  # type: ignore[assignment]

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
        sign = next(key for key, (one, _) in logging._STYLES.items() if one is type(style))
        inside = (inside["_fmt"], inside["datefmt"], sign)
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
    kept = sum([one is handler for left in _left.values() for one in left[3]])
    return getrefcount(handler) > _USUAL + kept


def _restore_logging(state):
    logging = _modules["logging"]
    disable, found, *switches = state
    logging.root.manager.disable = disable
    _set_logging_switches(logging, *switches)
    want = dict(found)
    for name, one in _loggers(logging):
        if name in _left and name not in want:
            one.level, one.disabled, one.propagate, one.handlers[:], one.filters[:], more = _left[name]
            _set_more(one, more)
            continue
        _set_logger(logging, one, *want.pop(name, _NONE))
    for name, held in want.items():
        _set_logger(logging, logging.getLogger(name), *held)
    logging.root.manager._clear_cache()


def _set_logger(logging, one, level, disabled, propagate, handlers, _filters, more):
    _set_more(one, more)
    now = [_handler(logging, handler) for handler in one.handlers]
    one.level, one.disabled, one.propagate = level, disabled, propagate
    del one.filters[:]
    if now == handlers:
        return
    del one.handlers[:]
    for kind, level, formatter, *stream in handlers:
        made = logging.NullHandler() if kind == "null" else logging.StreamHandler(getattr(sys, stream[0]))
        made.level = level
        if formatter is not None:
            made.setFormatter(logging.Formatter(formatter[0], formatter[1], formatter[2]))
        one.handlers.append(made)


def _keep_logging():
    logging = _modules["logging"]
    kept = [
        (one, *_logger(one)) for _, one in _loggers(logging)
    ]
    disable, switches = logging.root.manager.disable, _logging_switches(logging)

    def put_back():
        logging.root.manager.disable = disable
        _set_logging_switches(logging, *switches)
        for one, one.level, one.disabled, one.propagate, one.handlers[:], one.filters[:], more in kept:
            _set_more(one, more)
        logging.root.manager._clear_cache()

    return put_back


# Where temporary files are: found by the first step that needs one, which writes there, or set.


def _read_temporary():
    return vars(_modules["tempfile"]).get("tempdir")


def _restore_temporary(state):
    _modules["tempfile"].tempdir = state


def _observe_temporary(noting):
    inside = vars(_modules["tempfile"])
    inside["_gettempdir"] = noting(inside["_gettempdir"])


# scikit-learn. Its settings are those of the thread.


def _read_sklearn():
    return tuple(sorted(_modules["sklearn._config"].get_config().items()))


def _restore_sklearn(state):
    _modules["sklearn._config"].set_config(**dict(state))


# How deep code of the program may recurse. Between steps the worker has a limit of its own.


class Recursion:
    """The limit that steps run with, and the usual one."""

    limit = usual = sys.getrecursionlimit()


class _Limit(Ambient):
    def uses(self, tops, names):
        # Nothing shows how deep a step was.
        return Recursion.limit != Recursion.usual or super().uses(tops, names)


def _read_recursion():
    return Recursion.limit


def _restore_recursion(state):
    Recursion.limit = state


# The arguments of the program. The list may also be one of the program's own, so it is never changed in place.


def _read_arguments():
    held = vars(sys).get("argv")
    return list(held) if type(held) is list else held


def _restore_arguments(state):
    if state is None:
        vars(sys).pop("argv", None)
    else:
        sys.argv = state


# Attributes of objects of packages that programs set to change a channel.
SET = frozenset(
    f"mpmath.{context}.{name}" for context in ("mp", "iv") for name in ("dps", "prec", "pretty", "trap_complex"))
_PARSERS = "argparse click docopt fileinput fire getopt optparse typer".split()

_PLOTS = frozenset("plot hist boxplot scatter bar barh pie".split())
_DRAWS = ("matplotlib", "mpl_toolkits", "seaborn", "pylab")

TABLE = [
    Ambient("numpy.random", "numpy.random.mtrand", _plain_random, _restore_plain_random, (),
            ("get_state", "set_state", "get_bit_generator", "_rand", "mtrand"), start=_start_random),
    Ambient("numpy.options", "numpy", options.read_numpy, options.restore_numpy),
    Ambient("numpy.print", "numpy", options.read_print, options.restore_print, (), observe=options.observe_print),
    Ambient("pandas.options", "pandas._config.config", options.read_pandas, options.restore_pandas),
    Ambient("pandas.display", "pandas.core.config_init", options.read_display, options.restore_display, (),
            observe=options.observe_display),
    Ambient("polars.config", "polars", options.read_polars, options.restore_polars),
    Ambient("xarray.options", "xarray.core.options", options.read_xarray, options.restore_xarray, ("xarray",),
            ("set_options", "get_options")),
    Ambient("matplotlib.rcParams", "matplotlib", _read_style, _restore_style, _DRAWS, _PLOTS),
    Ambient("matplotlib.colormaps", "matplotlib.cm", _read_colormaps, _restore_colormaps, _DRAWS, _PLOTS),
    Ambient("matplotlib.figures", "matplotlib._pylab_helpers", _read_figures, _restore_figures, _DRAWS, _PLOTS,
            _keep_figures),
    Ambient("sklearn.config", "sklearn._config", _read_sklearn, _restore_sklearn, ("sklearn",),
            ("set_config", "get_config", "config_context")),
    Ambient("logging", "logging", _read_logging, _restore_logging, ("logging",), keep=_keep_logging,
            observe=_observe_logging, imports=(_before_import, _after_import), holds=_held_by_logging),
    Ambient(CAPTURED, "logging", _read_captured, _restore_captured, (), ("captureWarnings",)),
    Ambient("tempfile.tempdir", "tempfile", _read_temporary, _restore_temporary, (), ("tempdir",),
            observe=_observe_temporary),
    # Values with decimals count as a use of the module.
    Ambient("decimal", "decimal", _read_decimal, _restore_decimal, ("decimal", "statistics", "sqlite3"),
            ("Decimal", "getcontext", "setcontext", "localcontext")),
    Ambient("mpmath", "mpmath", options.read_precision, options.restore_precision),
    Ambient("locale", "locale", _read_locale, _restore_locale),
    _Limit(RECURSION, "sys", _read_recursion, _restore_recursion, (), ("setrecursionlimit", "getrecursionlimit")),
    Ambient("sys.argv", "sys", _read_arguments, _restore_arguments, _PARSERS, ("argv",)),
    Ambient("csv.dialects", "csv", options.read_dialects, options.restore_dialects, ("csv", "_csv"),
            ("register_dialect", "get_dialect")),
    Ambient("csv", "_csv", options.read_csv, options.restore_csv, ("csv", "_csv", "pandas"),
            ("field_size_limit", "reader", "DictReader")),
]
