"""Reads of names on Python 3.11: the namespace is a dict that tells of every access.

Loads by module code, and loads of globals by functions, lambdas and comprehensions, go through the
methods below, because the interpreter treats a dict of another type as a mapping. Three ways past
them exist, and each is watched by other means:

- class bodies find a name that is not in the class with a C function: the builtin that starts them
  is wrapped, and every name that the body may load counts;
- code run by `exec` or `eval` with locals of its own does the same: an audit event tells of it;
- `del` of a name declared `global` in a function: told by its code when the step is over.
"""

import builtins
import sys
from dis import get_instructions, hasjabs, hasjrel
from sys import _getframe
from types import CodeType, ModuleType

from _harness_reads import DUNDERS, Ledger, main_module

_build_class = builtins.__build_class__
_JUMPS = frozenset(hasjabs) | frozenset(hasjrel)
_WHOLE = frozenset(("globals", "locals"))


def _make_namespace(ledger):
    """A dict whose every access is told to the ledger. No method is missing: one that were
    inherited would be a way to read that nobody sees."""
    item = dict.__getitem__
    decided = ledger.decided

    class namespace(dict):
        __slots__ = ()

        def __getitem__(self, name):
            if name not in decided:
                one(name)
            return item(self, name)

        def get(self, name, default=None):
            one(name)
            return dict.get(self, name, default)

        def __contains__(self, name):
            one(name)
            return dict.__contains__(self, name)

        def setdefault(self, name, default=None):
            one(name)
            return dict.setdefault(self, name, default)

        def pop(self, name, *default):
            one(name)
            return dict.pop(self, name, *default)

        def __delitem__(self, name):
            one(name)
            dict.__delitem__(self, name)

    def one(name):
        ledger.load(name)
        if name in _WHOLE and not dict.__contains__(ledger.namespace, name):
            _whole(ledger, name)

    def whole(method):
        def told(self, *args, **named):
            ledger.everything()
            return method(self, *args, **named)

        told.__name__ = method.__name__
        return told

    for name in (
        "keys values items copy popitem clear __iter__ __reversed__ __len__ __eq__ __ne__ "
        "__or__ __ror__ __repr__ __sizeof__ __reduce_ex__"
    ).split():
        setattr(namespace, name, whole(getattr(dict, name)))
    namespace.__hash__ = None
    namespace.__module__ = "builtins"
    namespace.__name__ = namespace.__qualname__ = "dict"
    return namespace()


def _whole(ledger, name):
    """The builtin `globals`, or `locals` where these are the globals, is about to be called."""
    frame = _getframe(3)
    if name == "globals" or frame.f_locals is ledger.namespace:
        ledger.everything()


def may_load(code):
    """The names that code with locals of its own may find in the globals.

    A name is left out if it is bound on the way to its first load, before anything could jump.
    """
    loads, stored, straight = set(), set(), True
    for instruction in get_instructions(code):
        name = instruction.argval
        if instruction.opcode in _JUMPS:
            straight = False
        elif instruction.opname == "SETUP_ANNOTATIONS":
            stored.add("__annotations__")
        elif instruction.opname == "STORE_NAME" and straight:
            stored.add(name)
        elif instruction.opname == "DELETE_NAME":
            stored.discard(name)
        elif instruction.opname == "LOAD_NAME" and name not in stored:
            loads.add(name)
    return loads


def deletes_globals(code):
    """The names that the code deletes as globals, and those that code nested in it does."""
    names = {i.argval for i in get_instructions(code) if i.opname == "DELETE_GLOBAL"}
    for const in code.co_consts:
        if type(const) is CodeType:
            names |= deletes_globals(const)
    return names


class Tracker:
    """Which names a step reads and binds."""

    def __init__(self, scratch=None):
        # Where modules of the user's lie: of no use here, since no function is seen running.
        del scratch
        self._ledger = ledger = Ledger()

        def namespace_of(main):
            made = _make_namespace(ledger)
            dict.update(made, ModuleType.__getattribute__(main, "__dict__"))
            return made

        self.main = main_module(namespace_of, ledger)
        self.namespace = ledger.namespace
        self._deletes = {}
        self._code = None
        sys.addaudithook(self._audit)

        def __build_class__(func, name, *bases, **named):
            if ledger.active and func.__globals__ is ledger.namespace:
                self._runs(func.__code__)
            return _build_class(func, name, *bases, **named)

        self._hook = __build_class__

    def _runs(self, code):
        """Code is about to run that may find names in the globals unseen."""
        ledger = self._ledger
        ledger.reads.executed[code] = None
        for name in may_load(code):
            ledger.load(name)

    def _audit(self, event, args):
        if event != "exec" or not self._ledger.active:
            return
        if type(args[0]) is not CodeType or args[0] is self._code:
            return
        # The import of a module runs its code too, with globals of its own.
        if not _getframe(1).f_code.co_filename.startswith("<frozen importlib"):
            self._runs(args[0])

    def begin(self, code):
        """Remembers what each name is bound to, and tells of loads from here on.

        `code` is the step's, whose locals are the namespace itself.
        """
        self._ledger.begin()
        self._code = code
        if code is not None:
            self._ledger.reads.executed[code] = None
        builtins.__build_class__ = self._hook

    def end(self):
        """What was read since `begin`, and which names are bound to others or unbound."""
        reads = self._ledger.end()
        if builtins.__build_class__ is self._hook:
            builtins.__build_class__ = _build_class
        # What was deleted had to be there.
        reads.names |= reads.gone
        return reads

    def late(self, reads, codes):
        """Adds what only the code of functions tells that may have been called: deleted globals.

        The code does not say whether the step itself had bound the name before, so a name counts
        whenever the step has changed it.
        """
        start = self._ledger.start
        for code in (*codes, *reads.executed):
            known = self._deletes.get(code)
            if known is None:
                known = self._deletes[code] = deletes_globals(code)
            for name in known:
                if name in start and name in reads.bound and name not in DUNDERS:
                    reads.names.add(name)
