"""What a repair may need to know about an exception.

This is put before the program that uses it, to make one file. Everything here must
work on Python 3.8 and later.
"""

import builtins
import sys


def text(value, most=500):
    try:
        value = value if type(value) is str else str(value)
    except BaseException:
        return ""
    return value[:most].encode("utf-8", "replace").decode("utf-8")


def words(values, most=1500):
    found = []
    try:
        for value in values:
            if isinstance(value, str) and len(value) <= 100:
                found.append(text(value))
                if len(found) >= most:
                    break
    except BaseException:
        pass
    return found


def standard_modules():
    names = getattr(sys, "stdlib_module_names", None)
    if names is not None:
        return sorted(names)
    import os
    import pkgutil

    home = os.path.dirname(os.__file__)
    places = [home, os.path.join(home, "lib-dynload")]
    listed = {module.name for module in pkgutil.iter_modules(places)}
    return sorted(listed | set(sys.builtin_module_names))


class Scene:
    """The place in the script where the exception passed last."""

    def __init__(self, name, source, traceback):
        self.steps = []
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == name:
                self.steps.append(traceback)
            traceback = traceback.tb_next
        self.lines = source.decode("utf-8", "replace").splitlines()
        self.source = source
        self.nodes = []
        self.local, self.globals, self.line = {}, {}, 0
        if not self.steps:
            return
        last = self.steps[-1]
        self.line = last.tb_lineno
        self.globals = last.tb_frame.f_globals
        # A comprehension or lambda sees the names of what surrounds it.
        for step in reversed(self.steps):
            for key, value in list(step.tb_frame.f_locals.items()):
                self.local.setdefault(key, value)
            called = step.tb_frame.f_code.co_name
            if not called.startswith("<") or called == "<module>":
                break

    def frames(self):
        steps = self.steps if len(self.steps) <= 16 else self.steps[:4] + self.steps[-12:]
        return [self.frame(step) for step in steps]

    def frame(self, step):
        code, line = step.tb_frame.f_code, step.tb_lineno
        place = {"line": line, "function": text(code.co_name, 100)}
        if 0 < line <= len(self.lines):
            place["text"] = text(self.lines[line - 1])
        try:
            spans = list(code.co_positions())
            first, last, start, end = spans[step.tb_lasti // 2]
            place.update(line=first or line, end_line=last, column=start, end_column=end)
        except Exception:
            pass  # before 3.11
        return place

    def here(self, kind):
        """The syntax nodes of one kind on the failing line, innermost last."""
        import ast

        if not self.nodes:
            self.nodes = [n for n in ast.walk(ast.parse(self.source)) if hasattr(n, "lineno")]
        return [
            node
            for node in self.nodes
            if isinstance(node, kind) and node.lineno <= self.line <= node.end_lineno
        ]

    def value(self, node):
        """What a plain expression means here. Calls are never made."""
        import ast

        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            for scope in (self.local, self.globals, vars(builtins)):
                if node.id in scope:
                    return scope[node.id]
        if isinstance(node, ast.Attribute):
            return getattr(self.value(node.value), node.attr)
        if isinstance(node, ast.Subscript):
            index = node.slice
            index = getattr(index, "value", index) if type(index).__name__ == "Index" else index
            return self.value(node.value)[self.value(index)]
        raise LookupError("not a plain expression")

    def values(self, nodes):
        for node in nodes:
            try:
                yield node, self.value(node)
            except Exception:
                continue


def quoted(message):
    """The last name in quotes: older versions name what is missing only in the message."""
    import re

    found = re.findall(r"'([^']*)'", message)
    return found[-1] if found else None


def attribute_facts(error, scene, report):
    import ast

    name = getattr(error, "name", None) or quoted(report["message"])
    report["name"] = text(name)
    missing = object()
    owner = getattr(error, "obj", missing)
    if owner is missing:
        for node, value in scene.values([n.value for n in scene.here(ast.Attribute) if n.attr == name]):
            owner = value
    if owner is missing:
        # Older versions name at least its class.
        named = (report["message"].split("'") + [""])[1]
        for scope in (vars(builtins), scene.globals):
            if isinstance(scope.get(named), type):
                report.update(owner=text(named, 100), attributes=words(dir(scope[named])))
    if owner is not missing:
        report["owner"] = text(type(owner).__name__, 100)
        report["attributes"] = words(dir(owner))
        report.update(elsewhere(owner, name))


def elsewhere(owner, name):
    """What has an attribute that its owner lacks: members of a module, or the module of its member."""
    import types

    called = getattr(owner, "__name__", None)
    if isinstance(owner, types.ModuleType):
        members = getattr(owner, "__all__", ())
        having = [m for m in members if hasattr(getattr(owner, m, None), name)]
        having = [m for m in having if isinstance(getattr(owner, m), (type, types.ModuleType))]
        # As `datetime` in `datetime`.
        having.sort(key=lambda member: member != called)
        return {"members": words(having[:3])}
    module = getattr(owner, "__module__", None)
    if isinstance(called, str) and isinstance(module, str) and name in vars(sys.modules.get(module, type)):
        return {"module": text(module, 100)}
    return {}


def key_facts(error, scene, report):
    import ast
    import re

    if not error.args or not isinstance(error.args[0], str):
        return
    # As tables say it.
    table = r"Column not found: (.+)|\['([^']+)'(?:, '[^']+')*\] not (?:in index|found in axis)"
    said = re.fullmatch(table, error.args[0])
    key = error.args[0] if said is None else said.group(1) or said.group(2)
    report["name"] = text(key)

    def lacks(value):
        # Tables are no mappings, and have keys.
        kind = type(value)
        try:
            return hasattr(kind, "keys") and hasattr(kind, "__contains__") and key not in value
        except Exception:
            return False

    def lacking(values):
        return [value for value in values if lacks(value)]

    subscripts = [n.value for n in scene.here(ast.Subscript)]
    found = lacking(value for _, value in scene.values(subscripts))
    if not found:
        # The mapping has no plain name here: it may be held by a variable.
        held = list(scene.local.values())[:200] + list(scene.globals.values())[:200]
        inner = []
        for value in held:
            if isinstance(value, (list, tuple)):
                inner.extend(value[:3])
            elif isinstance(value, dict):
                inner.extend(list(value.values())[:3])
        held = [v for v in held if v is not scene.globals and "__builtins__" not in (v if isinstance(v, dict) else ())]
        found = lacking(held + inner)
    keys = []
    for mapping in found[:20]:
        keys.extend(k for k in words(mapping.keys(), 300) if k not in keys)
    report["keys"] = keys[:1000]


def file_facts(error, report):
    """The names in the directory of a file that is not there."""
    import os

    directory, name = os.path.split(os.fsdecode(error.filename))
    report["name"] = text(name)
    report["keys"] = words(sorted(os.listdir(directory or ".")))


def passed_on(error, path):
    """The parameters of what refused an argument, as the code that called it sees it."""
    import inspect

    traceback = error.__traceback__
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    value = traceback.tb_frame.f_globals[path[0]]
    for part in path[1:]:
        value = getattr(value, part)
    return inspect.signature(value).parameters.values()


def call_facts(error, scene, report):
    import ast
    import inspect
    import re

    message = report["message"]
    said = re.match(r"([\w.<>]+)\(\) (got|missing|takes)", message)
    if said is None:
        # As functions in C say it.
        said = re.match(r"'[^']*' is an (invalid) keyword argument for ([\w.]+)\(\)", message)
        if said is None:
            return
        path, how = said.group(2).split("."), "invalid"
    else:
        path, how = said.group(1).split("."), said.group(2)
    named = re.search(r"'([^']*)'", message)
    calls = scene.here(ast.Call)
    functions = []
    for node, value in scene.values([call.func for call in calls]):
        if path[-1] == "__init__" and inspect.isclass(value):
            functions.append((node, value))
        elif getattr(value, "__name__", None) == path[-1]:
            functions.append((node, value))
        elif value is sorted and path == ["sort"]:
            functions.append((node, value))  # it calls the method of a list
    if named is not None and how in ("got", "invalid"):
        # The call that has the argument: what it calls may pass it on.
        given = [call for call in calls if any(word.arg == named.group(1) for word in call.keywords)]
        functions.extend(scene.values([call.func for call in given]))
    through_class = False
    if not functions and path[0] in scene.globals:
        value = scene.globals[path[0]]
        for part in path[1:]:
            through_class = inspect.isclass(value)
            value = getattr(value, part)
        functions.append((None, value))
    if not functions:
        return
    node, function = functions[-1]
    called = getattr(node, "attr", None) or getattr(node, "id", None) or path[-1]
    callee = {"name": text(called, 100)}
    try:
        parameters = list(inspect.signature(function).parameters.values())
        if how == "got" and any(p.kind is p.VAR_KEYWORD for p in parameters):
            try:
                parameters.extend(p for p in passed_on(error, path) if p.name != "self")
            except (AttributeError, KeyError, TypeError, ValueError):
                pass
        taken = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        callee["parameters"] = words(p.name for p in taken)
    except (TypeError, ValueError):
        # Python does not know those of some functions in C.
        known = {int: ["base"], str: ["encoding", "errors"], max: ["default", "key"], min: ["default", "key"]}
        callee["parameters"] = next((names for one, names in known.items() if one is function), [])
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is not None:
        callee["line"] = code.co_firstlineno
        callee["file"] = text(code.co_filename)
        callee["method"] = through_class or inspect.ismethod(function)
    report["callee"] = callee
    if how != "takes" and named is not None:
        report["name"] = text(named.group(1))


def operand_facts(scene, report):
    """The parts of a chain of `+`, with their types where these are plain."""
    import ast

    numeric = {"len", "sum", "round", "int", "float", "abs"}
    parts = []
    for add in scene.here(ast.BinOp):
        if not isinstance(add.op, ast.Add):
            continue
        for node in (add.left, add.right):
            kind = None
            if isinstance(node, ast.JoinedStr):
                kind = "str"
            elif isinstance(node, ast.Call) and getattr(node.func, "id", None) in numeric:
                kind = "int"
            elif isinstance(node, ast.Call) and getattr(node.func, "id", None) == "str":
                kind = "str"
            for _, value in scene.values([node]):
                kind = type(value).__name__
            if kind is not None:
                parts.append(
                    {
                        "line": node.lineno,
                        "column": node.col_offset,
                        "end_line": node.end_lineno,
                        "end_column": node.end_col_offset,
                        "type": text(kind, 100),
                    }
                )
    report["operands"] = parts[:50]


def import_facts(error, report):
    message = report["message"]
    if message.startswith("cannot import name"):
        report["name"] = text(message.split("'")[1])
        module = sys.modules.get(error.name or "")
        report["owner"] = text(error.name)
        report["attributes"] = words(dir(module)) if module is not None else []
    else:
        report["name"] = text(error.name or quoted(message))


def package_of(name):
    """The installed package that a name stands for, where people import it under this name."""
    import importlib.util

    usual = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot", "sns": "seaborn", "sp": "scipy"}
    package = usual.get(name, name)
    found = importlib.util.find_spec(package.partition(".")[0])
    return package if found is not None and found.has_location else None


def describe(error, name, source):
    kind = type(error)
    report = {"kind": text(kind.__name__, 100), "message": text(error)}
    if isinstance(error, MemoryError):
        return report
    scene = Scene(name, source, error.__traceback__)
    report["frames"] = scene.frames()
    if isinstance(error, SyntaxError) and error.filename == name and not scene.steps:
        report["syntax"] = {
            "line": error.lineno or 0,
            "column": max(error.offset or 0, 0),
            "message": text(error.msg),
            "text": text(error.text or ""),
        }
        return report
    report["locals"] = words(scene.local)
    report["globals"] = words(scene.globals)
    report["builtins"] = words(dir(builtins))
    try:
        if isinstance(error, NameError):
            report["name"] = text(getattr(error, "name", None) or quoted(report["message"]))
            report["stdlib"] = words(standard_modules())
            if "self" in scene.local:
                report["attributes"] = words(dir(scene.local["self"]))
            package = package_of(report["name"])
            if package is not None:
                report["module"] = text(package, 100)
        elif isinstance(error, AttributeError):
            attribute_facts(error, scene, report)
        elif isinstance(error, KeyError):
            key_facts(error, scene, report)
        elif isinstance(error, FileNotFoundError):
            file_facts(error, report)
        elif isinstance(error, ImportError):
            import_facts(error, report)
            report["stdlib"] = words(standard_modules())
        elif isinstance(error, TypeError):
            call_facts(error, scene, report)
            operand_facts(scene, report)
    except Exception:
        pass  # fewer facts are better than no report
    return report
