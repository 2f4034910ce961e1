"""Reads of names on Python 3.11: the namespace is a dict that reports every access.

Loads by module code, and loads of globals by functions, lambdas and comprehensions, call the methods
below, because the interpreter treats a dict subclass as a mapping. Three ways bypass them, and each is
observed by other means:

- class bodies find a name that is not in the class with a C function: when the class is bound, every name
  that its body may load counts. Nothing is called in the place of the builtin that runs a body, because
  metaclasses look at the frame that defines their class;
- code run by `exec` or `eval` with locals of its own does the same: an audit event reports it;
- names declared `global` in a function are bound and deleted this way: its code shows it after the
  step.
"""

import builtins
import sys
from types import CodeType, ModuleType

from _harness.track.codes import bodies, changes_globals, may_load, of_classes, of_module, stores, straight
from _harness.track.reads import DUNDERS, FEW, Ledger, copies, main_module, starred
from _harness.values.bytecode import names_in, numbers, operations
from _harness.values.compat import caller
from _harness.values.shapes import ATOM_IDS

_names, _values, _length, _get, _has = dict.keys, dict.values, dict.__len__, dict.get, dict.__contains__
_WHOLE = frozenset(("globals", "locals"))
_BUILTINS = vars(builtins)
_LOADS = numbers("LOAD_NAME", "LOAD_GLOBAL")
# Names by which code reaches the namespace, or other builtins than the usual ones.
_REACHES = frozenset(
    "globals locals vars __dict__ __globals__ f_globals f_locals f_builtins __builtins__ getclosurevars".split())
_MOST_KNOWN = 20_000


class _Plain(dict):
    """The class of the namespace while it is copied."""

    __slots__ = ()


def _make_namespace(ledger, seen, loaded, bound, first, binds):
    """A dict that reports every access to the ledger. It overrides every method, because an
    inherited one would allow unobserved reads.

    Calls `first` for a name that is not in `seen`, but answers with the builtin for one in `loaded`. Calls
    `binds` before it binds a name that is not in `bound`."""
    item, put, has = dict.__getitem__, dict.__setitem__, dict.__contains__

    class namespace(dict):
        __slots__ = ()

        def __getitem__(self, name):
            # A loop calls this for each name in it: every check costs.
            if name in seen:
                return item(self, name)
            if name not in loaded:
                first(name)
            elif not has(self, name):
                return _BUILTINS[name]
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

        def __setitem__(self, name, value):
            if name not in bound:
                binds(name)
            put(self, name, value)

        def __delitem__(self, name):
            one(name)
            ledger.store(name)
            dict.__delitem__(self, name)

        def copy(self):
            if not copies(caller(1)):
                ledger.everything()
            return plain(self)

        def __bool__(self):
            # It is never empty: it has the names of every module.
            return True

    def one(name):
        _look(ledger, name)

    def whole(method):
        def reporting(self, /, *args, **named):
            ledger.everything()
            return method(self, *args, **named)

        reporting.__name__ = method.__name__
        return reporting

    for name in (
        "keys values items popitem clear __iter__ __reversed__ __len__ __eq__ __ne__ "
        "__or__ __ror__ __repr__ __sizeof__ __reduce_ex__"
    ).split():
        setattr(namespace, name, whole(getattr(dict, name)))
    namespace.__hash__ = None
    namespace.__module__ = "builtins"
    namespace.__name__ = namespace.__qualname__ = "dict"

    def plain(names):
        # A dict with overridden methods is copied item by item through them. Changing its class instead
        # notifies every audit hook.
        if _length(names) < FEW:
            return dict(zip(_names(names), _values(names)))
        names.__class__ = _Plain
        try:
            return dict.copy(names)
        finally:
            names.__class__ = namespace

    ledger.copy = plain
    return namespace()


def _look(ledger, name):
    """Code that has called a method of the namespace looks for a name. It may be the builtin `globals`, or `locals`
    where these are the globals, which is about to be called."""
    ledger.load(name)
    if name in _WHOLE and not _has(ledger.namespace, name):
        if name == "globals" or caller(3).f_locals is ledger.namespace:
            ledger.everything()


class Tracker:
    """Which names a step reads and binds."""

    # It has a hook of its own.
    EVENTS = ()

    def __init__(self, scratch=None):
        self._scratch = None if scratch is None else scratch.rstrip("/") + "/"
        self._ledger = ledger = Ledger()
        # By name, the bodies of classes that running code defines and has not bound yet.
        self._classes = {}
        # Names that the step has bound, but for those of such classes, and that it has looked for.
        self._bound = set()
        self._seen = set()
        # Names of builtins that it has loaded, unless code of the program may look up names itself: it finds no
        # builtins.
        self._loaded = set()
        self._looks_up = False

        def namespace_of(main):
            made = _make_namespace(
                ledger, self._seen, self._loaded, self._bound, self._first, self._binds)
            dict.update(made, ModuleType.__getattribute__(main, "__dict__"))
            return made

        self.main = main_module(namespace_of, ledger)
        self.namespace, self.did = ledger.namespace, ledger.did
        # The step's code, and code that `exec` and `eval` ran. Analyses of code by address, because
        # hashing it is slow; each keeps its code alive.
        self._code = None
        self._ran = []
        # Whether a package is imported, which runs no code of the program.
        self._apart = False
        # Whether the program has ever given its names as a whole to other code.
        self._given = False
        self._stores = {}
        self._changes = {}
        self._bodies = {}
        sys.addaudithook(self._audit)

    def _defines(self, code):
        """Code is about to run that may define classes, and look up names."""
        for body in bodies(code):
            self._classes.setdefault(body.co_name, []).append(body)
        self._bound.difference_update(self._classes)
        self._may_look_up(code)

    def _may_look_up(self, code):
        """Code of the program is about to run."""
        if not _REACHES.isdisjoint(names_in(code)):
            self._looks_up = True
            self._loaded.clear()

    def _first(self, name):
        """The step has not looked for this name yet.

        Code that finds no such name takes the builtin. Where an instruction does so, it is given at once from then
        on: an exception for each takes three times as long."""
        ledger = self._ledger
        _look(ledger, name)
        if not ledger.active:
            return
        if self._looks_up or name not in _BUILTINS or _has(ledger.namespace, name):
            self._seen.add(name)
            return
        frame = caller(2)
        if operations(frame.f_code)[frame.f_lasti // 2] in _LOADS:
            self._loaded.add(name)

    def _binds(self, name):
        """A name is about to be bound, perhaps to a class, or to what its decorators made of it."""
        ledger = self._ledger
        if ledger.active:
            ledger.store(name)
            self._bound.add(name)
        todo = self._classes.pop(name, ())
        while todo:
            body = todo.pop()
            self._runs(body)
            todo += bodies(body)

    def _runs(self, code):
        """Code is about to run that may load globals unobserved."""
        ledger = self._ledger
        ledger.reads.executed[id(code)] = code
        for name in may_load(code):
            ledger.load(name)

    def _audit(self, event, args):
        if event != "exec" or self._apart or not self._ledger.active:
            return
        if type(args[0]) is not CodeType or args[0] is self._code:
            return
        frame = caller(1)
        # An import runs module code too, with its own globals.
        if not frame.f_code.co_filename.startswith("<frozen importlib") and self._may_be_program(frame):
            self._ran.append(args[0])
            self._runs(args[0])
            self._defines(args[0])
        elif self._scratch is not None and args[0].co_filename.startswith(self._scratch):
            self._may_look_up(args[0])

    def _may_be_program(self, frame):
        """Whether code that this frame runs may have the program's names: the frame has them itself, or
        the program has ever given its names as a whole away."""
        ledger = self._ledger
        if self._given or ledger.reads.everything or frame.f_globals is ledger.namespace:
            return True
        name = dict.get(frame.f_globals, "__name__") if type(frame.f_globals) is dict else None
        if type(name) is not str or self._scratch is None or frame.f_code.co_filename.startswith(("<", self._scratch)):
            return True
        return any(value is ledger.namespace for value in frame.f_locals.values())

    def importing(self):
        """A package is about to be imported."""
        self._apart = True

    def imported(self):
        """It was imported."""
        self._apart = False

    def begin(self, code):
        """Records the bindings, and reports loads from here on.

        `code` is the step's, whose locals are the namespace itself."""
        self._ledger.begin()
        self._code = code
        self._ran = []
        self._classes.clear()
        self._bound.clear()
        self._seen.clear()
        self._loaded.clear()
        if code is not None:
            self._ledger.reads.executed[id(code)] = code
            self._defines(code)

    def forget(self):
        """Lets go of what the last step found."""
        self._ledger.forget()

    def alone(self, code):
        """Code is about to run outside the namespace, without reports."""

    def end(self):
        """What was read since `begin`, and which names were bound or unbound."""
        reads = self._ledger.end()
        self._given = self._given or reads.everything
        return reads

    def late(self, reads, codes_of):
        """Adds what only the code shows, of code that ran or may have been called.

        `codes_of` returns the code objects reachable from some entities."""
        ledger, step = self._ledger, self._code
        if reads.everything:
            return
        may_run = [code for code in reads.executed.values() if code is not step]
        if step is not None:
            # A step's code runs once.
            surely = straight(step)
            if surely is None:
                self._crooked(step, may_run)
            else:
                self._stored(surely)
        for code in self._ran:
            for names in self._known(self._stores, code, stores)[:2]:
                self._may_store(names)
        loaded = []
        for name in ledger.decided - DUNDERS:
            # A plain value leads to no code.
            if id(type(_get(ledger.namespace, name))) not in ATOM_IDS:
                loaded.append("n:" + name)
        if loaded:
            may_run += codes_of(loaded)
        for code in may_run:
            stored, deleted = self._known(self._changes, code, changes_globals)
            self._may_store(stored)
            self._may_delete(deleted)
            self._may_define(self._known(self._bodies, code, of_classes))
        for found in self._classes.values():
            self._may_define(found)

    def _may_define(self, found):
        """Bodies of classes that may have run, before or after the names in them were bound."""
        ledger = self._ledger
        for body in found:
            ledger.reads.executed[id(body)] = body
            for name in may_load(body) - DUNDERS:
                if name in ledger.start or not _has(ledger.namespace, name):
                    ledger.reads.names.add(name)

    def _stored(self, names):
        """Names that were surely bound. A new one is visible."""
        ledger = self._ledger
        for name in names:
            if name in ledger.start and _has(ledger.namespace, name):
                ledger.stores(name)

    def _crooked(self, step, may_run):
        """Bindings in code that may skip instructions, and its nested code that may have run."""
        (surely, perhaps, stars, maybe_stars), changes, inside = of_module(step)
        if stars or maybe_stars:
            surely = surely.union(*map(starred, stars))
            perhaps = perhaps.union(*map(starred, maybe_stars)) - surely
        self._stored(surely)
        self._may_store(perhaps)
        self._may_delete(changes[1])
        for code, name in inside:
            if name is None or name in self._ledger.decided:
                may_run.append(code)

    def _may_delete(self, names):
        """Names that may have been deleted unobserved. They must have existed before."""
        for name in names - DUNDERS if names else ():
            if name in self._ledger.start:
                self._ledger.reads.names.add(name)
            else:
                self._ledger.may_store(name)

    def _may_store(self, names):
        """Names that may have been bound. A new one exists now, or was deleted, which is observed."""
        for name in names:
            if name in self._ledger.start:
                self._ledger.may_store(name)

    @staticmethod
    def _known(known, code, ask):
        """The result of `ask` for the code, cached."""
        answer = known.get(id(code))
        if answer is None:
            if len(known) > _MOST_KNOWN:
                known.clear()
            answer = known[id(code)] = ask(code), code
        return answer[0]
