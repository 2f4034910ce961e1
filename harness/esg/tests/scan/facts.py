"""Prints CPython's own symbol tables for every n-th file of the standard library."""
import builtins
import json
import os
import symtable
import sys
import sysconfig
import tokenize

SKIPPED = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}
known = set(dir(builtins)) | {
    "__file__", "__name__", "__path__", "__annotations__", "__module__", "__qualname__",
    "__class__", "__cached__", "__builtins__", "__debug__", "__dict__",
}


def walk(table):
    yield table
    for child in table.get_children():
        yield from walk(child)


def loaded(table):
    """The globals that a scope or one inside it loads."""
    names = set()
    for scope in walk(table):
        for symbol in scope.get_symbols():
            if symbol.is_referenced() and symbol.is_global():
                names.add(symbol.get_name())
    return names - known


every = int(sys.argv[1])
count = 0
root = sysconfig.get_paths()["stdlib"]
for folder, folders, files in os.walk(root):
    folders[:] = sorted(name for name in folders if name not in SKIPPED)
    for name in sorted(files):
        if not name.endswith(".py"):
            continue
        count += 1
        if count % every:
            continue
        path = os.path.join(folder, name)
        try:
            with tokenize.open(path) as file:
                source = file.read()
            compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, UnicodeDecodeError):
            continue
        top = symtable.symtable(source, path, "exec")
        bound = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
        for scope in walk(top):
            for symbol in scope.get_symbols():
                if symbol.is_declared_global() and symbol.is_assigned():
                    bound.add(symbol.get_name())
        read = {s.get_name() for s in top.get_symbols() if s.is_referenced()} - known - bound
        inner = [
            [child.get_name(), child.get_lineno(), sorted(loaded(child))]
            for child in top.get_children()
            if child.get_type() in ("function", "class")
            and child.get_name() not in ("lambda", "genexpr", "listcomp", "setcomp", "dictcomp")
        ]
        json.dump([os.path.relpath(path, root), source, sorted(bound), sorted(read), inner], sys.stdout)
        print()
