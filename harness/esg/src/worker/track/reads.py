"""The common part of both trackers: which names count, what a step has read, and the `__main__` module.

A read is a load of a name that is still bound as at the start of the step, or unbound. A name that the
step has bound to an object of its own cannot become a read again: code that binds it to the incoming
object must have loaded that object under some name.

A binding is a write even if it leaves the name unchanged: `import math` after another step's `import
math` binds the same object, and the name would still exist without the other step. The exception is
a step that read the name, because it runs again when the name changes. For the same reason a name
that the step bound and deleted counts as deleted, even if it did not exist before.
"""

from itertools import compress, islice
from linecache import cache
from operator import is_, is_not
from re import compile as _pattern
from re import escape
from sys import modules
from types import FunctionType, ModuleType

from _harness.values.compat import caller

# Names that every module has. They are restored after each step, so they are not state.
DUNDERS = frozenset(
    (
        "__name__",
        "__builtins__",
        "__doc__",
        "__loader__",
        "__spec__",
        "__package__",
        "__file__",
        "__cached__",
        "__warningregistry__",
    )
)

ABSENT = object()
_STEP = "<step:"
_mapping, _NAME = type.__dict__["__dict__"].__get__, type.__dict__["__name__"].__get__

# The identifiers in a text.
words = _pattern(r"[^\W\d]\w*").findall
_attribute = ModuleType.__getattribute__
_contains = dict.__contains__
# Attributes that any module has by its type, and that the import system reads from every module.
_OF_MODULES = frozenset(vars(ModuleType)) | frozenset(object.__dict__) | {"__path__"}
_item = dict.__getitem__
_names = dict.keys
_values = dict.values
_length = dict.__len__
# Up to this many names, copying one by one is fastest on an interpreter with another way.
FEW = 64
# Functions of packages that evaluate texts in the namespace, whose loads are seen like any others.
_EVALUATES = frozenset((
    ("inspect", "get_annotations"), ("pydantic._internal._namespace_utils", "get_module_ns_of"),
    ("msgspec._utils", "get_class_annotations")))
# And those that copy it: what they look up, or bind, they do in the copy. The names of a query are watched.
_COPIES = frozenset((("pydantic._internal._generics", "create_generic_submodel"), ("attr._make", "_make_init_script"),
                     ("pandas.core.computation.scope", "__init__")))


class Reads:
    """What one step has read of the namespace."""

    __slots__ = ("names", "everything", "executed", "bound", "gone", "start", "compared")

    def __init__(self):
        # Names loaded while bound as at the start, or absent.
        self.names = set()
        # Whether the step has read the namespace as a whole.
        self.everything = False
        # Code objects known to have run: the step's, its functions' and those of scratch modules. By
        # address, because hashing code is slow.
        self.executed = {}
        # Names that the step bound, and names that it left unbound. For unchanged names see the
        # module's description.
        self.bound = set()
        self.gone = set()
        # The bindings at the start of the step.
        self.start = {}
        # By code and offset: whether an `is` compared equal immutable values, see `distinguishes`. None:
        # not all of them were seen.
        self.compared = None


class Ledger:
    """Decides once per step for every name whether it was read."""

    __slots__ = ("namespace", "copy", "start", "decided", "stored", "reads", "active")

    def __init__(self):
        self.namespace = {}
        # Makes a plain dict of the namespace.
        self.copy = dict.copy
        self.start = {}
        self.decided = set()
        # Names that were bound or deleted, including temporarily.
        self.stored = set()
        self.reads = Reads()
        self.active = False

    def begin(self):
        """From here on loads count, relative to the current bindings."""
        self.start = self.copy(self.namespace)
        # One set for all steps: the namespace of Python 3.11 holds a reference to it.
        self.decided.clear()
        self.decided.update(DUNDERS)
        self.stored.clear()
        self.reads = Reads()
        self.active = True

    def end(self):
        """From here on loads do not count. Returns what was read and what is bound."""
        self.active = False
        start, now, reads = self.start, self.namespace, self.reads
        reads.start = start
        more = _length(now) - len(start)
        if more >= 0 and all(map(is_, start, _names(now))):
            # All names kept their order, and new ones follow: no Python loop is needed, however many
            # there are.
            if not all(map(is_, _values(start), _values(now))):
                reads.bound.update(compress(start, map(is_not, _values(start), _values(now))))
            if more:
                reads.bound.update(islice(_names(now), len(start), None))
        else:
            for name, value in dict.items(now):
                if dict.get(start, name, ABSENT) is not value:
                    reads.bound.add(name)
            reads.gone.update(name for name in start if not _contains(now, name))
        for name in self.stored:
            self.stores(name)
        reads.bound -= DUNDERS
        if reads.gone:
            reads.gone -= DUNDERS
        return reads

    def forget(self):
        """Lets go of the objects that were bound at the start of the last step."""
        self.start = {}
        self.reads = Reads()

    def stores(self, name):
        """The step has surely bound or deleted `name`."""
        reads = self.reads
        if not _contains(self.namespace, name):
            reads.gone.add(name)
        elif name not in reads.names and not reads.everything:
            reads.bound.add(name)

    def may_store(self, name):
        """The step may have bound or deleted `name` without a trace. Then it counts as read, so that
        the step runs again whenever that could matter."""
        now = dict.get(self.namespace, name, ABSENT)
        if now is dict.get(self.start, name, ABSENT) and name not in DUNDERS:
            self.reads.names.add(name)

    def load(self, name):
        """The step is about to look at `name`."""
        if name in self.decided or not self.active:
            return
        if type(name) is not str:
            # No statement loads such a name: it is a key that a step put into `globals()`.
            self.reads.everything = True
            return
        self.decided.add(name)
        if name in self.stored:
            # It finds the step's own binding, even if the object is the same.
            return
        now = dict.get(self.namespace, name, ABSENT)
        if now is ABSENT or now is dict.get(self.start, name, ABSENT):
            self.reads.names.add(name)

    def store(self, name):
        """The step is about to bind or delete `name`."""
        if self.active:
            self.stored.add(name)

    def did(self, code, uses):
        """The step's code has run and used names in this way, `(whether it was a load, name)`,
        without events."""
        self.reads.executed[id(code)] = code
        for load, name in uses:
            if load:
                self.load(name)
            else:
                self.store(name)

    def everything(self):
        """The step is about to read the namespace as a whole."""
        if self.active:
            self.reads.everything = True


def main_module(namespace_of, ledger):
    """A module `__main__` that reports reads of its attributes.

    `namespace_of(module)` returns the dict that steps run in: the module's own, or its replacement,
    which the ledger uses from here on. Returns the module."""

    class module(ModuleType):
        # The class claims to be a plain module when its type's name is read.

        def __getattribute__(self, name):
            if name == "__dict__":
                return _whole(ledger)
            if name == "__class__":
                return ModuleType
            if _contains(namespace, name):
                ledger.load(name)
                return _item(namespace, name)
            if name == "__file__":
                file = _file_of_class(caller(1))
                if file is not None:
                    return file
            if name not in DUNDERS and name not in _OF_MODULES:
                ledger.load(name)
                late = dict.get(namespace, "__getattr__")
                if late is not None:
                    return late(name)
            return _attribute(self, name)

        def __setattr__(self, name, value):
            ledger.store(name)
            dict.__setitem__(namespace, name, value)

        def __delattr__(self, name):
            ledger.load(name)
            ledger.store(name)
            if not _contains(namespace, name):
                raise AttributeError("module '__main__' has no attribute %r" % name, name=name)
            dict.__delitem__(namespace, name)

        def __dir__(self):
            ledger.everything()
            return list(_names(namespace))

        def __repr__(self):
            return "<module '__main__'>"

    module.__module__ = "builtins"
    module.__qualname__ = "module"
    main = module("__main__")
    namespace = ledger.namespace = namespace_of(main)
    return main


def _file_of_class(frame):
    """The file of the class that `inspect` looks for: that of a function in it, or the newest with a class of its
    name. None if something else asks."""
    if frame.f_code.co_name != "getfile" or dict.get(frame.f_globals, "__name__") != "inspect":
        return None
    cls = frame.f_locals.get("object")
    if not issubclass(type(cls), type):
        return None
    for held in _mapping(cls).values():
        function = held.__func__ if type(held) in (staticmethod, classmethod) else held
        if type(function) is FunctionType and function.__code__.co_filename.startswith(_STEP):
            return function.__code__.co_filename
    defines = _pattern(rf"\s*class\s+{escape(_NAME(cls))}\b").match
    files = [file for file in cache if file.startswith(_STEP) and any(map(defines, tuple.__getitem__(cache[file], 2)))]
    return files[-1] if files else None


def _function_of(frame):
    """The names of the module and the function that a frame runs."""
    asks = dict.get(frame.f_globals, "__name__") if type(frame.f_globals) is dict else None
    return asks, frame.f_code.co_name


def copies(frame):
    """Whether this frame, which takes the namespace, only copies it."""
    return _function_of(frame) in _COPIES


def _whole(ledger):
    """The dict of `__main__`, which a caller takes.

    The package dataclasses does so for every class it is given, to find out whether an annotation
    that is a string means `ClassVar`: it looks up the words of that annotation. The package attrs copies
    the dict, so that such strings can be evaluated later; the methods that it makes load nothing else from the
    copy. Pydantic would bind a subscripted model under its name, once for each process: it binds it in a copy.
    """
    namespace, frame = ledger.namespace, caller(2)
    asks, function = caller_is = _function_of(frame)
    if asks == "typing" or caller_is in _EVALUATES:
        return namespace
    if copies(frame):
        return ledger.copy(namespace)
    if asks == "dataclasses":
        if function == "_is_type":
            annotation = frame.f_locals.get("annotation")
            if type(annotation) is str:
                for word in words(annotation):
                    ledger.load(word)
            return namespace
        if function == "_process_class":
            return namespace
    ledger.everything()
    return namespace


def starred(name):
    """The names that `from name import *` binds, once the module is imported."""
    module = dict.get(modules, name)
    try:
        scope = vars(module)
    except TypeError:
        return ()
    listed = scope.get("__all__")
    if type(listed) in (list, tuple):
        return [one for one in listed if type(one) is str]
    return [one for one in scope if type(one) is str and not one.startswith("_")]
