"""Classes of packages: which are trusted to pickle their objects, and what is known of them."""
import sys
from functools import cached_property

from _harness.values.arrays import is_ufunc
from _harness.values.reductions import planted, without
from _harness.values.shapes import MAPPING, MRO

_modules = sys.modules
_MODULE = type.__dict__["__module__"].__get__
_NAME = type.__dict__["__name__"].__get__
PACKAGES = frozenset(
    "numpy pandas scipy sklearn PIL torch sympy mpmath xgboost lightgbm statsmodels networkx shapely pyarrow "
    "polars".split()
)
# Their objects refer to whole drawings, and drawing on one changes others.
DRAWINGS = frozenset(("matplotlib", "mpl_toolkits", "seaborn"))
# Base classes of objects that never change.
_CONSTANT = frozenset(
    ("numpy", name) for name in ("generic", "dtype")
) | frozenset((
    ("pandas", "Index"), ("pandas._libs.tslibs.timestamps", "_Timestamp"), ("pandas._libs.tslibs.nattype", "_NaT"),
    ("pandas._libs.tslibs.timedeltas", "_Timedelta"), ("pandas._libs.tslibs.period", "_Period"),
    ("pandas._libs.missing", "C_NAType"), ("pandas._libs.tslibs.offsets", "BaseOffset"),
    ("pandas.core.indexes.base", "Index"), ("pandas.core.dtypes.base", "ExtensionDtype"),
    ("pandas.api.extensions", "ExtensionDtype"), ("pandas._libs.interval", "Interval"),
    ("sympy.core.basic", "Basic"), ("sympy.core.function", "UndefinedFunction"),
    ("polars.lazyframe.frame", "LazyFrame"), ("polars.expr.expr", "Expr"),
))

# Distributions: programs set the generator of those that a package holds, so each is a value.
_SET = frozenset((
    ("scipy.stats._distn_infrastructure", "rv_generic"), ("scipy.stats._multivariate", "multi_rv_generic"),
))

# What a model of statsmodels keeps of its summaries and predictions, and memory that it has written nothing to.
_OF_MODELS = frozenset(
    "_summary_cache _summary_statistics_cache _nobs_int diagn predict_start predict_end predict_dates "
    "_tmp_like_exog".split()
)


def top_of(cls):
    """The first part of the name of a class's module."""
    module = _MODULE(cls)
    return module.partition(".")[0] if type(module) is str else None


def proper(cls):
    """The class by which objects are known: of an undefined function of sympy, which is a class, its base."""
    return MRO(cls)[1] if type(cls) is not type and is_constant(type(cls)) else cls


def _is_package(walk, kind):
    kind = proper(kind)
    return top_of(kind) in PACKAGES and walk.world.names.of(kind) is not None


def is_constant(cls):
    """Whether objects of the class never change."""
    for base in MRO(cls):
        if (_MODULE(base), _NAME(base)) in _CONSTANT:
            return not _NAME(cls).startswith("Mutable")
    return False


def is_query(cls):
    """Whether an object is a query over frames, which never changes and takes long to write down."""
    return (_MODULE(cls), _NAME(cls)) == ("polars.lazyframe.frame", "LazyFrame")


def may_be_held(cls):
    """Whether an object of the class that its module holds is state of the package, known by its name: the
    global generator of numpy, a domain of sympy."""
    return _SET.isdisjoint((_MODULE(base), _NAME(base)) for base in MRO(cls))


def _is_index(cls):
    """Whether it is a class of the indexes of frames."""
    return any(_NAME(base) == "Index" and top_of(base) == "pandas" for base in MRO(cls))


def copies_on_write(cls):
    """Whether parts of pandas objects are copied before a write."""
    pandas = _modules.get("pandas")
    version = getattr(pandas, "__version__", "0")
    return top_of(cls) == "pandas" and int(version.partition(".")[0]) >= 3


def _reduced(cls):
    """How to reduce objects that say of themselves what is no content. None for most classes."""
    bases = [(_MODULE(base), _NAME(base)) for base in MRO(cls)]
    if ("scipy.spatial._ckdtree", "cKDTree") in bases:
        return planted
    # What was computed from the other attributes.
    names = {name for base in MRO(cls) for name, held in MAPPING(base).items() if type(held) is cached_property}
    if top_of(cls) == "pandas":
        names.add("_cache")
    if top_of(cls) == "statsmodels":
        # Without a dict of its own, each model would use that of its class.
        return without(_OF_MODELS.union(names), frozenset(("_cache",)))
    if ("networkx.classes.graph", "Graph") in bases:
        names.add("__networkx_cache__")
    if ("sklearn.feature_extraction.text", "_VectorizerMixin") in bases:
        # The address of the words that it has checked.
        names.add("_stop_words_id")
    return without(frozenset(names)) if names else None


def is_frame(cls):
    """Whether it is a class of frames or of their columns."""
    return ("pandas.core.generic", "NDFrame") in [(_MODULE(base), _NAME(base)) for base in MRO(cls)]


class Sort:
    """How the pickler treats the objects of a class."""

    __slots__ = ("cls", "package", "program", "mutable", "ufunc", "constant", "held", "frame", "dtype", "aside", "reduced",
                 "copies", "mapping", "masked")

    def __init__(self, walk, cls):
        # It stays alive, or another class could get its address.
        self.cls, self.package = cls, _is_package(walk, cls)
        if not self.package:
            self.program = walk.world.names.program(_MODULE(cls))
            kind = walk.settled(cls) or walk.world.kind(cls)
            self.mutable = kind.mutable and kind.unserializable is None
            return
        self.held, self.frame = may_be_held(cls), is_frame(cls)
        self.ufunc, self.constant, self.copies = is_ufunc(cls), is_constant(cls), copies_on_write(cls)
        self.dtype = any((_MODULE(base), _NAME(base)) == ("numpy", "dtype") for base in MRO(cls))
        self.mapping = issubclass(cls, dict)
        self.masked = (_MODULE(cls), _NAME(cls)) == ("numpy.ma", "MaskedArray")
        self.reduced = _reduced(cls)
        # Frames share indexes, and caches refer to the arrays in them. Records share their types.
        self.aside = _is_index(cls) or _NAME(cls) == "VoidDType"
