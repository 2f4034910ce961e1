"""How a step ended: successfully, or with an exception, described without keeping any of it alive."""

from sys import setrecursionlimit

MOST_FRAMES = 20
MOST_TEXT = 8192
OK = {"kind": "ok"}

_PREFIX, _SUFFIX = "<step:", ">"
_traceback = BaseException.__dict__["__traceback__"]
_cause = BaseException.__dict__["__cause__"]
_context = BaseException.__dict__["__context__"]
_group = BaseExceptionGroup.__dict__["exceptions"]
_module = type.__dict__["__module__"]
_qualname = type.__dict__["__qualname__"]
_status = SystemExit.__dict__["code"]
_names = tuple(
    (kind, kind.__dict__["name"]) for kind in (NameError, ImportError, AttributeError)
)


def file_of(step):
    """The file name of a step's code."""
    return _PREFIX + step + _SUFFIX


def step_of(file):
    """The step with this file name, or None for a real file."""
    if file.startswith(_PREFIX) and file.endswith(_SUFFIX):
        return file[len(_PREFIX) : -len(_SUFFIX)]
    return None


def clip(text, most=MOST_TEXT):
    """The text, truncated to the length of a report."""
    return text if len(text) <= most else text[:most] + "..."


def type_name(kind):
    """The name of a class, with its module unless that is the builtins or the program."""
    name = _qualname.__get__(kind)
    module = _module.__get__(kind)
    if type(module) is not str or module in ("builtins", "__main__"):
        return name
    return "%s.%s" % (module, name)


def ends_well(exc):
    """Whether the step has ended the program, as a script does at its end, with the status of success."""
    if type(exc) is not SystemExit:
        return False
    status = _status.__get__(exc)
    let_go(exc)
    return status is None or type(status) is int and status == 0


def raised(exc, step, recursion, syntax=False):
    """The ending for an exception. Releases what the exception refers to.

    Formatting its message may run code of the program, which belongs to the step. `recursion` is the
    limit to set first, because the step may have lowered it too far for a report."""
    setrecursionlimit(recursion)
    ending = {"kind": "raised", "type": type_name(type(exc)), "message": _message(exc)}
    frames = _frames(exc)
    own = [frame["line"] for frame in frames if frame["step"] == step]
    ending["line"] = own[-1] if own else None
    if len(frames) > MOST_FRAMES:
        frames = frames[: MOST_FRAMES // 2] + frames[-MOST_FRAMES // 2 :]
    ending["frames"] = frames
    for kind, name in _names:
        if isinstance(exc, kind):
            name = name.__get__(exc)
            if type(name) is str:
                ending["name"] = name
    if syntax:
        ending["syntax"] = True
        if isinstance(exc, SyntaxError):
            line, text = exc.lineno, exc.text
            ending["line"] = line if type(line) is int else None
            if type(text) is str:
                ending["text"] = clip(text.rstrip("\n"))
    let_go(exc)
    return ending


def _message(exc):
    try:
        if isinstance(exc, SyntaxError):
            return clip(str(exc.msg))
        return clip(str(exc))
    except BaseException as second:
        let_go(second)
        return "<failed to format its message: %s>" % type_name(type(second))


def _frames(exc):
    """The frames of the traceback that lie in steps, outermost first."""
    frames = []
    traceback = _traceback.__get__(exc)
    while traceback is not None:
        code = traceback.tb_frame.f_code
        step = step_of(code.co_filename)
        if step is not None:
            frames.append(
                {"step": step, "line": traceback.tb_lineno or code.co_firstlineno, "function": code.co_qualname}
            )
        traceback = traceback.tb_next
    return frames


def let_go(exc):
    """Clears the tracebacks of an exception and of its causes.

    They hold frames with every local variable, and the step's objects would outlive it."""
    todo, seen = [exc], set()
    while todo:
        one = todo.pop()
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        _traceback.__set__(one, None)
        todo.append(_cause.__get__(one))
        todo.append(_context.__get__(one))
        if isinstance(one, BaseExceptionGroup):
            todo.extend(_group.__get__(one))
