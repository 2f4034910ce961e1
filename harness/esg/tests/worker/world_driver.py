"""Runs steps under the channels, in a separate process, because stand-ins are permanent.

Reads a list of requests as JSON from its input, and writes a list. The tracker and the graph of
values are replaced by the simplest sufficient ones: the names in code objects. What is imported here
is not looked for in the scratch directory when a step imports it.
"""

import base64
import io
import json
import os
import pathlib  # noqa: F401
import shutil  # noqa: F401
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import run  # noqa: E402

run.install()
sys.path.remove(HERE)


class Reads:
    """The result of a tracker."""

    def __init__(self, names):
        self.names = names
        self.everything = False
        self.executed = []
        self.start = {}
        self.compared = None


def codes_of(code, namespace, into):
    """The code and what it may call: functions and classes of the namespace that it names."""
    if code in into:
        return
    into.append(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            codes_of(constant, namespace, into)
    for name in code.co_names:
        value = namespace.get(name)
        if type(value) is types.FunctionType:
            codes_of(value.__code__, namespace, into)
        elif issubclass(type(value), type):
            for inner in type.__dict__["__dict__"].__get__(value).values():
                if type(inner) is types.FunctionType:
                    codes_of(inner.__code__, namespace, into)


class Driver:
    """A worker without its loop."""

    def __init__(self, scratch, strictness):
        os.chdir(scratch)
        sys.path.insert(0, os.path.realpath(scratch))
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        self.namespace = module.__dict__
        from _harness.world import channels

        self.channels = channels.Channels(scratch, self.namespace, {"value_bytes": 1 << 20, "strictness": strictness})
        self.blobs = {}
        self.history = {}
        self.step = 0

    def run(self, source, readings=None, keep_reads=True):
        self.step += 1
        code = compile(source, f"<step:{self.step}>", "exec", dont_inherit=True)
        namespace = self.namespace
        namespace.pop("__warningregistry__", None)
        # As after the last drop or load of a sync.
        self.channels.settle()
        out, sys.stdout = sys.stdout, io.StringIO()
        self.channels.begin(code, readings, seq=self.step)
        error = None
        try:
            exec(code, namespace)
        except BaseException as failure:
            error = f"{type(failure).__name__}: {failure}"
        printed, sys.stdout = sys.stdout.getvalue(), out
        codes = []
        codes_of(code, namespace, codes)
        names = {name for inner in codes for name in inner.co_names}
        world = self.channels.end(error is None, codes, Reads(names))
        self.channels.output(printed.encode("utf-8", "backslashreplace"))
        for unit in world.units:
            self.blobs[unit["key"]] = unit["blob"]
            self.history.setdefault(unit["members"][0]["entity"], []).append(unit["key"])
        return {
            "error": error,
            "out": printed,
            "reads": sorted(world.reads),
            "external": world.external,
            "wrote": world.wrote,
            "units": {
                unit["members"][0]["entity"]: [unit["key"], unit["members"][0]["own"], unit.get("unserializable")]
                for unit in world.units
            },
            "dirty": sorted(world.dirty),
            "untracked": world.untracked,
            "readings": world.readings,
            "clock": world.clock,
            "modules": sorted(world.modules),
            "diffs": {
                name[2:]: sorted(map(str, self.channels.modules.diff(name[2:]) or ()))
                for name in world.modules
                if self.channels.modules.diff(name[2:])
            },
        }

    def load(self, entity, version):
        """Restores the entity as written for the `version`th time."""
        key = self.history[entity][version]
        unit = {"key": key, "members": [{"entity": entity}], "take": [entity], "refs": []}
        return self.channels.load(unit, self.blobs[key])

    def stored(self, entity, version):
        """The blob of that version, to be loaded in another process."""
        return base64.b64encode(self.blobs[self.history[entity][version]]).decode()

    def load_blob(self, entity, blob):
        unit = {"key": "0.1", "members": [{"entity": entity}], "take": [entity], "refs": []}
        return self.channels.load(unit, base64.b64decode(blob))

    def drop(self, entity):
        return self.channels.drop(entity)

    def stash(self, entity, version):
        return self.channels.stash(self.history[entity][version])

    def unstash(self, entity, version):
        return self.channels.unstash(self.history[entity][version], [entity])

    def sweep(self, *accounted):
        units, unattributed = self.channels.sweep(accounted)
        return {
            "units": {unit["members"][0]["entity"]: unit["members"][0]["own"] for unit in units},
            "unattributed": unattributed,
        }

    def reset(self, name):
        self.channels.modules.reset(name)

    def python(self, source):
        """Code outside of any step."""
        scope = {"driver": self, "channels": self.channels, "namespace": self.namespace}
        exec(source, scope)
        return scope.get("answer")


def main():
    request = json.load(sys.stdin)
    dumps = json.dumps
    driver = Driver(request["scratch"], request["strictness"])
    answers = [getattr(driver, name)(*args) for name, *args in request["calls"]]
    sys.__stdout__.write(dumps(answers))


main()
