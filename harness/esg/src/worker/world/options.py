"""Options of packages: how numpy and pandas print, what polars and mpmath compute with, what csv reads."""

import sys

_modules = sys.modules

# numpy.


def read_numpy():
    """How it treats errors."""
    numpy = _modules["numpy"]
    return dict(numpy.geterr()), numpy.getbufsize()


def restore_numpy(state):
    """Sets it."""
    numpy = _modules["numpy"]
    errors, size = state
    numpy.seterr(**errors)
    numpy.setbufsize(size)


def read_print():
    """How it prints arrays."""
    return dict(_modules["numpy"].get_printoptions())


def restore_print(state):
    """Sets it."""
    _modules["numpy"].set_printoptions(**state)


class _Noted:
    """The variable of a context that holds how arrays are printed, and notes each use."""

    def __init__(self, real, noting):
        self.get, self.set, self.reset = noting(real.get), noting(real.set), noting(real.reset)


def observe_print(noting):
    """Notes each use. False if this version keeps it elsewhere."""
    inside = vars(_modules.get("numpy._core.arrayprint", sys))
    if "format_options" not in inside:
        return False
    inside["format_options"] = _Noted(inside["format_options"], noting)
    return True


# pandas.


def _options():
    return _modules["pandas._config.config"]._global_config


def _flat(options, prefix=""):
    for key, value in dict.items(options):
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _set_options(now, state):
    for key, value in state:
        if now.get(key, state) is not value and now.get(key) != value:
            _modules["pandas._config.config"].set_option(key, value)


def read_pandas():
    """All options but how frames are printed."""
    return tuple([one for one in _flat(_options()) if not one[0].startswith("display.")])


def restore_pandas(state):
    """Sets them."""
    _set_options(dict(_flat(_options())), state)


def read_display():
    """How it prints frames."""
    return tuple(_flat(_options()["display"], "display."))


def restore_display(state):
    """Sets it."""
    _set_options(dict(_flat(_options()["display"], "display.")), state)


class _Display(dict):
    """Options that note each use."""

    def __init__(self, held, note):
        super().__init__(held)
        self.note = note

    def __getitem__(self, key):
        self.note()
        return dict.__getitem__(self, key)


def observe_display(noting):
    """Notes each use."""
    options = _options()
    options["display"] = _Display(options["display"], noting(_nothing))


def _nothing():
    pass


# polars.


def read_polars():
    """How it prints and computes."""
    return _modules["polars"].Config.state()


def restore_polars(state):
    """Sets it."""
    # The rest is in environment variables.
    direct = {name: value for name, value in state.items() if not name.isupper()}
    _modules["polars"].Config.load(_json().dumps({"environment": {}, "direct": direct}))


def _json():
    return _modules.get("json") or __import__("json")


# xarray.


def _xarray():
    return _modules["xarray.core.options"].OPTIONS


def read_xarray():
    """How it prints and computes."""
    return tuple(dict.items(_xarray()))


def restore_xarray(state):
    """Sets it."""
    dict.update(_xarray(), state)


# mpmath.


def _contexts():
    mpmath = _modules["mpmath"]
    return mpmath.mp, mpmath.iv


def read_precision():
    """With how many bits it computes."""
    mp, iv = _contexts()
    return mp._dps, list(mp._prec_rounding), mp.trap_complex, mp.pretty, iv._dps, iv._prec[0], iv.pretty


def restore_precision(state):
    """Sets it."""
    mp, iv = _contexts()
    dps, (prec, rounding), mp.trap_complex, mp.pretty, inner_dps, inner_prec, iv.pretty = state
    # Digits say less than bits.
    mp.prec, iv.prec = prec, inner_prec
    mp._prec_rounding[1], mp._dps, iv._dps = rounding, dps, inner_dps


# csv.


def read_csv():
    """The most characters of a field."""
    return _modules["_csv"].field_size_limit()


def restore_csv(state):
    """Sets it."""
    _modules["_csv"].field_size_limit(state)


_DIALECT = "delimiter doublequote escapechar lineterminator quotechar quoting skipinitialspace strict".split()


def read_dialects():
    """Those that are registered."""
    csv = _modules["csv"]
    found = [(name, csv.get_dialect(name)) for name in csv.list_dialects()]
    return [(name, {key: getattr(dialect, key) for key in _DIALECT}) for name, dialect in found]


def restore_dialects(state):
    """Sets them."""
    csv = _modules["csv"]
    for name in csv.list_dialects():
        csv.unregister_dialect(name)
    for name, dialect in state:
        csv.register_dialect(name, **dialect)
