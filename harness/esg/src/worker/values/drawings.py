"""Figures and what is on them."""
from _harness.values.shapes import Kind, register
from _harness.values.trusted import DRAWINGS, top_of

_MODULE = type.__dict__["__module__"].__get__
_NAME = type.__dict__["__name__"].__get__


class Drawing(Kind):
    """Never stored, because drawing on one part changes others."""

    tag, unserializable, opaque, blind, sure = "dr", "a drawing", True, True, False

    def split(self, walk, objs):
        for o in objs:
            walk.inside[id(_figure(o))] = 0
        return [f"{_MODULE(type(o))}.{_NAME(type(o))}" for o in objs], []


def _figure(o):
    """The figure that an object is on, or the object."""
    for name in ("_root_figure", "_parent_figure", "figure", "_figure"):
        try:
            found = object.__getattribute__(o, "__dict__").get(name)
        except Exception:
            return o
        if found is not None and found is not o and top_of(type(found)) in DRAWINGS:
            return _figure(found)
    return o


DRAWING = Drawing()
register(DRAWING)
