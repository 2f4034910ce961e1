"""Whole programs in the assembled worker: reads and writes, and that every stored value is the same
after loading it in a fresh worker.
"""

import unittest

from driver import Worker

# Name, then for each step: source, names and channels read, entities written. Without builtins that no
# step binds and without what the import of a module reads.
PROGRAMS = {
    "alias": [
        ("a = [1]", "", "a:bound"),
        ("b = a", "a", "b:bound"),
        ("b.append(2)", "b", "a:mutated b:mutated"),
        ("c = list(a)", "a", "c:bound"),
    ],
    "late binding": [
        ("def f(): return k", "", "f:bound"),
        ("k = 1", "", "k:bound"),
        ("a = f()", "f k", "a:bound"),
        ("k = 2", "", "k:bound"),
        ("b = f()", "f k", "b:bound"),
    ],
    "class": [
        ("class K:\n    n = 0\n    def __init__(self):\n        K.n += 1", "", "K:bound"),
        ("a = K()", "K", "a:bound"),
        ("b = [K(), a]", "K a", "b:bound"),
    ],
    "closure": [
        ("def make():\n    n = 0\n    def step():\n        nonlocal n\n        n += 1\n        return n\n    return step\nc = make()", "", "c:bound make:bound"),
        ("a = c()", "c", "a:bound c:mutated"),
        ("b = c()", "c", "b:bound c:mutated"),
    ],
    "global": [
        ("total = 0", "", "total:bound"),
        ("def add(n):\n    global total\n    total += n", "", "add:bound"),
        ("add(5)", "add total", "total:bound"),
    ],
    "files": [
        ("with open('d.txt', 'w') as f:\n    f.write('x')\ndel f", "", "f:deleted f:d.txt:bound"),
        ("with open('d.txt') as f:\n    text = f.read()\ndel f", "f:d.txt", "f:deleted text:bound"),
        ("import os\nnames = os.listdir('.')", "d:. m:os", "names:bound os:bound"),
    ],
    "random": [
        ("import random", "m:random", "random:bound"),
        ("random.seed(7)", "m:random random", "p:rng:bound"),
        ("a = random.random()", "m:random p:rng random", "a:bound p:rng:mutated"),
    ],
    "modules": [
        ("import math", "m:math", "math:bound"),
        ("math.tau = 6", "m:math math", "m:math:mutated"),
        ("v = math.tau", "m:math math", "v:bound"),
        ("import math", "m:math", "math:bound"),
    ],
    "builtins": [
        ("import builtins", "m:builtins", "builtins:bound"),
        ("builtins.extra = 5", "m:builtins builtins", "m:builtins:mutated"),
        ("v = extra", "m:builtins extra", "v:bound"),
    ],
    "values": [
        ("import datetime, decimal, fractions, collections, re\nkept = [datetime.date(2020, 1, 2), fractions.Fraction(1, 3), collections.Counter('aab'), {1, 2}, b'x', 1.5, float('nan'), None, (1, [2]), re.compile('a+')]", None, None),
        ("import dataclasses\n@dataclasses.dataclass\nclass P:\n    a: int\n    b: list = dataclasses.field(default_factory=list)\np = [P(1), P(2, [3])]", None, None),
        ("import enum\nclass Color(enum.Enum):\n    RED = 1\nc = {Color.RED: 'r'}", None, None),
        ("q = p[1]\nd = {'k': q.b}", "p", "d:bound p:? q:bound"),
    ],
}


def fetched(worker, reply):
    """The units of a reply with their blobs as bytes."""
    units = []
    for unit in reply["units"]:
        blob = unit["blob"]
        if blob is not None:
            blob = worker.blob[blob[0] : blob[0] + blob[1]]
        units.append({**unit, "blob": blob})
    return units


def contents(worker):
    """The live entities: the fingerprint of each and of what it refers to, without tokens."""
    swept = worker.ask("sweep")
    members = {}
    for unit in swept["units"]:
        for member in unit["members"]:
            refs = [unit["refs"][index] for index in member["refs"]]
            members[member["entity"]] = member["own"], refs

    def content(entity, depth):
        if entity not in members or depth > 6:
            return entity if entity[0] == "m" else None
        own, refs = members[entity]
        return own, [content(ref, depth + 1) for ref in refs]

    return {entity: content(entity, 0) for entity in members if entity[0] != "t"}, swept["unattributed"]


class TestPrograms(unittest.TestCase):
    def program(self, steps):
        with Worker() as worker, Worker() as other:
            live = {}
            for index, (source, reads, wrote) in enumerate(steps):
                reply = worker.run(source, str(index))
                self.assertEqual(reply.get("ending"), {"kind": "ok"}, reply)
                self.assertEqual(reply["untracked"], [])
                for unit in fetched(worker, reply):
                    for member in unit["members"]:
                        live[member["entity"]] = unit
                for entity, how in reply["wrote"].items():
                    if how == "deleted":
                        live.pop(entity, None)
                if reads is not None:
                    self.assertEqual(self.reads_of(reply, live, reads), set(reads.split()), source)
                    self.wrote(reply, wrote, source)
            now, unattributed = contents(worker)
            self.assertEqual(unattributed, [])
            self.reload(other, live)
            again, unattributed = contents(other)
            self.assertEqual(unattributed, [])
            self.assertEqual(now, again)

    def reads_of(self, reply, live, expected):
        quiet = ("p:cwd", "p:path", "p:warn")
        read = {entity for entity in reply["reads"] if entity not in quiet}
        return {
            entity.removeprefix("n:")
            for entity in read
            if entity in live or entity[0] in "md" or entity.removeprefix("n:") in expected.split()
        }

    def wrote(self, reply, expected, source):
        words = [word for word in expected.split() if not word.endswith(":?")]
        maybe = {word[:-2] for word in expected.split() if word.endswith(":?")}
        found = {
            "%s:%s" % (entity.removeprefix("n:"), how)
            for entity, how in reply["wrote"].items()
            if entity[0] != "t" and entity.removeprefix("n:") not in maybe
        }
        self.assertEqual(found, set(words), source)

    def reload(self, worker, live):
        """Loads all units into a worker, referenced units first."""
        units = {unit["key"]: unit for unit in live.values()}
        order, blob = {}, b""

        def put(unit):
            if unit["key"] in order:
                return
            order[unit["key"]] = None
            for ref in unit["refs"]:
                if ref in live:
                    put(live[ref])
            order[unit["key"]] = order.pop(unit["key"])

        for unit in units.values():
            put(unit)
        load = []
        for key in order:
            unit = units[key]
            self.assertIsNotNone(unit["blob"], unit)
            members = [{"entity": member["entity"]} for member in unit["members"]]
            take = [member["entity"] for member in unit["members"] if live.get(member["entity"]) is unit]
            at = [len(blob), len(unit["blob"])]
            load.append({"key": key, "members": members, "take": take, "blob": at, "refs": unit["refs"]})
            blob += unit["blob"]
        reply = worker.ask("sync", blob, load=load)
        self.assertEqual(reply.get("failed"), [], reply)

    def test_each_program(self):
        for name, steps in PROGRAMS.items():
            with self.subTest(name):
                self.program(steps)

    def test_a_failed_step_names_what_it_spoiled(self):
        with Worker() as worker:
            worker.run("log = []\nother = log\nx = 1", "0")
            reply = worker.run("log.append(1)\nx = 2\n1 / 0", "1")
            self.assertEqual(reply["dirty"], ["n:log", "n:other", "n:x"])

    def test_files_of_a_failed_step_are_dirty(self):
        with Worker() as worker:
            reply = worker.run("open('a', 'w').close()\n1 / 0", "0")
            self.assertEqual(reply["dirty"], ["f:a"])
            worker.ask("sync", drop=reply["dirty"])
            reply = worker.run("import os\nprint(os.listdir('.'))", "1")
            self.assertEqual(reply["stdout"]["text"], "[]\n")

    def test_clock_readings_are_replayed(self):
        with Worker() as worker:
            step = "import time\nt = time.time()"
            first = worker.run(step, "0")
            self.assertTrue(first["clock"])
            again = worker.run(step, "0", readings=first["readings"])
            self.assertEqual(again["readings"], first["readings"])
            own = [m["own"] for u in first["units"] for m in u["members"] if m["entity"] == "n:t"]
            self.assertTrue(own)
            value = worker.ask("value", name="t", limit=100)["json"]
            worker.ask("sync", drop=["n:t"])
            worker.run(step, "0", readings=first["readings"])
            self.assertEqual(worker.ask("value", name="t", limit=100)["json"], value)

    def test_tracebacks_through_loaded_functions_show_their_source(self):
        source = "def f():\n    return 1 / 0  # here"
        with Worker() as worker, Worker() as other:
            live = {m["entity"]: u for u in fetched(worker, worker.run(source, "0")) for m in u["members"]}
            self.reload(other, live)
            other.ask("sync", sources={"0": source})
            reply = other.run("import traceback\ntry:\n    f()\nexcept Exception:\n    traceback.print_exc()", "1")
            self.assertIn("return 1 / 0  # here", reply["stderr"]["text"])

    def test_stash_and_unstash(self):
        with Worker() as worker:
            (unit,) = worker.run("x = [1]", "0")["units"]
            (file,) = [u for u in worker.run("open('a', 'w').close()", "1")["units"] if u["members"][0]["entity"] == "f:a"]
            worker.ask("sync", stash=[unit["key"], file["key"]])
            gone = worker.run("import os\nprint('x' in dir(), os.path.exists('a'))", "2")
            self.assertEqual(gone["stdout"]["text"], "False False\n")
            back = [{"key": unit["key"], "members": ["n:x"]}, {"key": file["key"], "members": ["f:a"]}]
            worker.ask("sync", unstash=back)
            here = worker.run("print(x, os.path.exists('a'))", "3")
            self.assertEqual(here["stdout"]["text"], "[1] True\n")
