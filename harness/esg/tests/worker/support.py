"""Support for the tests of values: a graph over a plain namespace, and steps that run in it."""
import builtins
import json
import os
import subprocess
import sys
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
if "_harness" not in sys.modules:
    sys.path.insert(0, HERE)
    from run import install
    install()
    sys.dont_write_bytecode = True

from _harness.values.units import Graph  # noqa: E402


class Modules:
    """A replacement for the modules' part: attributes compared with a baseline by identity."""
    DELETED = type("Deleted", (), {})()

    def __init__(self):
        self.base = {n: dict(m.__dict__) for n, m in list(sys.modules.items())
                     if isinstance(m, types.ModuleType) and n != "__main__"}

    def baseline(self, name):
        if name in sys.modules:
            self.base.setdefault(name, dict(sys.modules[name].__dict__))
        return self.base.get(name)

    def is_scratch(self, name):
        return False

    def diff(self, name):
        self.baseline(name)
        base, now = self.base[name], sys.modules[name].__dict__
        found = {k: v for k, v in now.items() if k not in base or base[k] is not v}
        found.update((k, self.DELETED) for k in base if k not in now)
        return {k: v for k, v in found.items() if k != "__warningregistry__"} or None

    def reset(self, name):
        held = sys.modules[name].__dict__
        for k in self.diff(name) or {}:
            if k in self.base[name]:
                held[k] = self.base[name][k]
            else:
                del held[k]

    def apply(self, name, diff):
        self.reset(name)
        held = sys.modules[name].__dict__
        for k, v in diff.items():
            if v is self.DELETED:
                held.pop(k, None)
            else:
                held[k] = v


class Session:
    """Runs steps and settles after each. By default every name counts as touched."""

    def __init__(self, limits=None):
        self.main = types.ModuleType("__main__")
        sys.modules["__main__"] = self.main
        self.ns = self.main.__dict__
        self.ns["__builtins__"] = builtins
        self.modules = Modules()
        self.graph = Graph(self.ns, self.modules, limits or {})
        self.units = {}         # entity -> unit description
        self.seq = 0

    def names(self):
        return {k: v for k, v in self.ns.items() if not k.startswith("__")}

    def execute(self, source):
        exec(compile(source, "<step:%d>" % self.seq, "exec", dont_inherit=True), self.ns)

    def run(self, source, touched=None):
        self.seq += 1
        before = self.names()
        self.execute(source)
        after = self.names()
        bound = {"n:" + k for k, v in after.items() if k not in before or before[k] is not v}
        gone = {"n:" + k for k in before if k not in after}
        if touched is None:
            touched = {"n:" + k for k in after}
        settled = self.graph.settle(self.seq, set(touched), bound, gone)
        for e in gone:
            self.units.pop(e, None)
        for unit in settled.units:
            for m in unit["members"]:
                self.units[m["entity"]] = unit
        return settled

    def group(self, name):
        return sorted(m["entity"] for m in self.units["n:" + name]["members"])

    def together(self, name):
        """What is in the unit of a name by now: others may have left it since it was described."""
        return sorted(self.graph.entries["n:" + name].unit.members)

    def member(self, entity):
        unit = self.units[entity]
        return next(m for m in unit["members"] if m["entity"] == entity)

    def own(self, name):
        """The fingerprint of a name with everything it refers to, without token names."""
        return deep(self.units, "n:" + name)

    def unserializable(self, name):
        return self.units["n:" + name]["unserializable"]

    def order(self):
        """All units, referenced units first."""
        out, state = [], {}

        def visit(unit):
            if state.setdefault(unit["key"], unit) is not unit or unit["key"] in done:
                return
            done.add(unit["key"])
            for r in unit["refs"]:
                if r in self.units:
                    visit(self.units[r])
            out.append(unit)
        done = set()
        for unit in self.units.values():
            visit(unit)
        return out

    def items(self):
        return [{"key": u["key"], "members": [{"entity": m["entity"]} for m in u["members"]], "blob": u["blob"],
                 "refs": u["refs"], "take": [m["entity"] for m in u["members"] if self.units.get(m["entity"]) is u]}
                for u in self.order() if u["blob"] is not None]


def deep(units, entity):
    """A comparable description of an entity and all it refers to."""
    seen, out, todo = {}, [], [entity]
    while todo:
        e = todo.pop(0)
        if e in seen:
            continue
        seen[e] = len(seen)
        if e not in units:
            out.append(e)
            continue
        unit = units[e]
        m = next(m for m in unit["members"] if m["entity"] == e)
        refs = [unit["refs"][r] for r in m["refs"]]
        todo += refs
        out.append((m["own"], len(refs)))
    return out


def fresh(source, names=None):
    """A new session after one step."""
    session = Session()
    session.run(source)
    return session


def reload(session, check="", limits=None):
    """Loads all blobs of a session in another process, which settles, checks and describes them."""
    items = [dict(i, blob=i["blob"].hex()) for i in session.items()]
    child = os.path.join(HERE, "child.py")
    done = subprocess.run([sys.executable, "-s", "-P", "-S", "-B", child], input=json.dumps({"items": items, "check": check}),
                          capture_output=True, text=True, env={"PYTHONHASHSEED": "0", "TZ": "UTC"})
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class Reloading(unittest.TestCase):
    """Tests that load a session's blobs in another process."""

    def answer(self, session, check=""):
        """Everything loads, matches its description, and passes the check."""
        found = reload(session, check)
        self.assertEqual(found["failed"], [])
        self.assertEqual(found["changed"], [], "settling right after loading finds nothing new")
        theirs = {m["entity"]: u for u in found["units"] for m in u["members"]}
        for e, unit in session.units.items():
            if unit["blob"] is None:
                continue
            # The others have left it.
            here = {m["entity"] for m in unit["members"] if session.units.get(m["entity"]) is unit}
            mine = {m["entity"]: (m["own"], [unit["refs"][r] for r in m["refs"]]) for m in unit["members"] if m["entity"] in here}
            them = {m["entity"]: (m["own"], [theirs[e]["refs"][r] for r in m["refs"]]) for m in theirs[e]["members"]}
            self.assertEqual(mine, them, e)
            self.assertEqual([one for one in unit["share"] if here.issuperset(one[:2])], theirs[e]["share"], e)
        return found
