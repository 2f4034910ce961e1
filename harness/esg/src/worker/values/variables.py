"""Context variables: the value that each begins with, and what it is set to in the context of the steps."""
import sys

from _harness.values.shapes import Kind, atomic, register

_modules = sys.modules
_ABSENT = object()


def apart(function, *args):
    """Calls a function in a copy of the context, which the variables that it makes leave as it is."""
    held = _modules.get("_contextvars")
    return function(*args) if held is None else held.copy_context().run(function, *args)


def _default(o):
    """The value that a variable begins with, in a list; an empty list if it has none."""
    try:
        return [_modules["_contextvars"].Context().run(o.get)]
    except LookupError:
        return []


class Variable(Kind):
    tag, sure = "cv", False
    module, name = "_contextvars", "ContextVar"

    def split(self, walk, objs):
        head, kids = [], []
        for o in objs:
            first, value = _default(o), o.get(_ABSENT)
            if not atomic(first):
                # It has to be there when the variable is made.
                walk.fail("a context variable that begins with an object")
                kids += first
                first = []
            head.append((o.name, first, value is not _ABSENT))
            kids += () if value is _ABSENT else (value,)
        return head, kids

    def make(self, load, head, n):
        cls = __import__(self.module).ContextVar
        return [cls(name, default=first[0]) if first else cls(name) for name, first, _ in head]

    def fill(self, load, objs, head, kids):
        kids = iter(kids)
        for o, (_, _, is_set) in zip(objs, head):
            if is_set:
                o.set(next(kids))


class Token(Kind):
    """What sets a variable back. Only setting the variable makes one."""
    tag, unserializable = "cvt", "type contextvars.Token"
    module, name = "_contextvars", "Token"

    def split(self, walk, objs):
        head, kids = [], []
        for o in objs:
            # Only its text shows whether it was used, with that of what the variable begins with.
            plain = atomic(_default(o.var))
            walk.opaque = walk.opaque or not plain
            head.append((plain and repr(o)[:11], o.old_value is type(o).MISSING))
            kids += (o.var,) if head[-1][1] else (o.var, o.old_value)
        return head, kids

VARIABLE, TOKEN = register(Variable()), register(Token())
