"""The smallest modules that let the loop run without values and without channels."""

UNITS = '''
class Settled:
    def __init__(self):
        self.units, self.mutated, self.codes = [], set(), []
        self.created, self.back, self.met, self.notes = set(), set(), set(), []


class Graph:
    def __init__(self, namespace, modules, limits):
        self._namespace = namespace
        self.entries = {}
        self.modules_met = set()

    def settle(self, seq, touched, bound, gone):
        settled = Settled()
        for index, entity in enumerate(sorted(bound)):
            settled.units.append(
                {
                    "key": "%s.%s" % (seq, index),
                    "members": [{"entity": entity}],
                    "blob": b"v:" + entity.encode(),
                }
            )
        return settled

    def dirty(self, touched, bound):
        return set(bound)

    def codes(self, entities):
        return [
            value.__code__
            for value in (dict.get(self._namespace, entity[2:]) for entity in entities)
            if type(value).__name__ == "function"
        ]

    def drop(self, entities):
        for entity in entities:
            dict.pop(self._namespace, entity[2:], None)

    def stash(self, keys):
        pass

    unstash = forget = alias = stash

    def load(self, items):
        failed = []
        for item in items:
            if item["blob"] == b"bad":
                failed.append([item["key"], "bad"])
            else:
                dict.__setitem__(self._namespace, item["take"][0][2:], item["blob"].decode())
        return failed

    def sweep(self):
        return []
'''

CHANNELS = '''
import contextlib
import sys


class World:
    def __init__(self):
        self.reads, self.external, self.wrote, self.units = set(), {}, {}, []
        self.dirty, self.untracked, self.readings, self.clock = set(), [], [], False
        self.modules, self.held = set(), None


class Events:
    """The first that are listened to are heard at all times."""

    def listen(self, event, handler):
        sys.addaudithook(lambda name, args: handler(name, args) if name == event else None)


class Channels:
    modules = None
    events = Events()

    def __init__(self, scratch, namespace, limits):
        pass

    looked = ()

    def attach(self, streams, tracker):
        pass

    def unwritten(self):
        return contextlib.nullcontext()

    def begin(self, code, readings, seq):
        pass

    def stop(self):
        pass

    def output(self, data):
        pass

    def uses(self, name):
        pass

    def usual(self, reads):
        return None

    def end(self, ok, codes, reads, packages):
        world = World()
        world.external = {"codes": sorted({code.co_name for code in codes})}
        return world

    def drop(self, entity):
        pass

    def settle(self):
        pass

    def sweep(self, modules):
        return [], []
'''
