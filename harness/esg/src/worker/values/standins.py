"""Objects that replace builtin functions whose use must be observed.

The program must not notice: a stand-in has the name, module and documentation of the original, does
not bind to instances when it is a class attribute (as builtin functions), and copies and pickles by
reference.
"""

import sys

_original = {}
_places = []


class StandIn:
    """The base of all stand-ins. Each has a class of its own with the work in `__call__`."""

    def __repr__(self):
        return f"<built-in function {self.__name__}>"

    def __reduce__(self):
        return self.__qualname__

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


StandIn.__qualname__ = StandIn.__name__ = "builtin_function_or_method"


def make(function, real, module, name):
    """An object that calls `function` and looks like `real`, the attribute `name` of `module`."""

    def call(self, /, *args, **named):
        return function(*args, **named)

    return finish(call, real, module, name)


def finish(call, real, module, name):
    """As `make`, for a function that takes the stand-in as its first argument, which saves a call."""
    kind = type("builtin_function_or_method", (StandIn,), {"__call__": call, "__module__": __name__})
    made = kind()
    made.__dict__.update(
        __name__=name.rpartition(".")[2],
        __qualname__=name,
        __module__=module,
        __doc__=getattr(real, "__doc__", None),
        __self__=sys.modules.get(module),
    )
    _original[made] = real
    return made


def original(made):
    """The original of a stand-in, or the object itself."""
    if isinstance(made, StandIn):
        return _original.get(made, made)
    return made


def reference(made):
    """`(module, name)` of a stand-in, or None. It is stored as this reference, never by value."""
    kind = type(made)
    if kind.__class__ is type and StandIn in kind.__mro__:
        held = object.__getattribute__(made, "__dict__")
        return held["__module__"], held["__qualname__"]
    return None


def install(owner, name, function, raw=False):
    """Replaces `owner.name` by a stand-in, and returns the original. The stand-in's module is the
    owner, where it can be found, even if the function reports another one."""
    real = getattr(owner, name, None)
    if real is None or isinstance(real, StandIn):
        return original(real)
    made = (finish if raw else make)(function, real, owner.__name__, name)
    setattr(owner, name, made)
    _places.append((owner, name, made))
    return real


def places():
    """Every `(module, name, stand-in)`."""
    return list(_places)

