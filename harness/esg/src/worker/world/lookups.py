"""Names of the program that functions of packages look up in the frames of their callers.

A formula, a query or an expression in a text names what the program has, and a package that ships functions to other
processes copies what they name.
"""

from functools import wraps

from _harness.track.reads import words


def _asked(given):
    """The key that a mapping is asked for."""
    return given[1:2]


def _in_text(given):
    """The words of the text."""
    return [word for one in given if type(one) is str for word in words(one)]


# Those that a function returns.
_FOUND = None
_IN_C = frozenset(("duckdb", "_duckdb"))
# By module: the class or nothing, the function, and which names it looks up.
_TABLE = {
    "cloudpickle.cloudpickle": (("", "_extract_code_globals", _FOUND),),
    "formulaic.utils.layered_mapping": (("LayeredMapping", "__getitem__", _asked),),
    "joblib.externals.cloudpickle.cloudpickle": (("", "_extract_code_globals", _FOUND),),
    "numpy.matrixlib.defmatrix": (("", "_from_string", _in_text),),
    "pandas.core.computation.scope": (("Scope", "resolve", _asked),),
    "patsy.eval": (("VarLookupDict", "__getitem__", _asked),),
    "polars.sql.context": (("", "_get_stack_locals", _FOUND),),
}


def watch(module, name, note):
    """Has `note` called with the names that functions of this module look up from here on."""
    for kind, function, names_of in _TABLE.get(name, ()):
        owner = getattr(module, kind, None) if kind else module
        real = vars(owner).get(function) if owner is not None else None
        if real is not None and not hasattr(real, "_looks_up"):
            setattr(owner, function, _noting(real, names_of, note))


def in_texts(tops, traits):
    """The words of the texts in code that uses a package which looks names up without Python."""
    return {word for text in traits.strings for word in words(text)} if not _IN_C.isdisjoint(tops) else ()


def _noting(real, names_of, note):
    @wraps(real)
    def function(*given, **named):
        if names_of is not _FOUND:
            note(names_of((*given, *named.values())))
        found = real(*given, **named)
        if names_of is _FOUND:
            note(found)
        return found

    function._looks_up = real  # type: ignore[attr-defined]
    return function
