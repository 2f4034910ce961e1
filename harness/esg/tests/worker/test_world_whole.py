"""The channels in the assembled worker: what also needs the graph of values."""

import unittest

from driver import Worker

STAND_INS = """
import time, os, random, datetime
a, b, c = time.time, os.stat, random.choice
d = [os.getcwd, hash, random.seed, time.sleep]
n = [datetime.datetime.now, datetime.datetime.utcnow]
"""
SAME = """
import time, os, random, datetime
assert a is time.time and b is os.stat and c is random.choice
assert d == [os.getcwd, hash, random.seed, time.sleep]
assert n[0]().year > 2000 and n[0] == datetime.datetime.now
assert a() > 0 and b('.') and c([1]) == 1
"""
HELPER = """
open('helper.py', 'w').write('X = [1]\\nclass C:\\n    n = 0\\ndef f(a):\\n    X.append(a)\\n    return X\\n')
"""


class TestWhole(unittest.TestCase):
    def run_all(self, worker, sources):
        """Runs the steps. Returns the newest unit of each entity, with its bytes."""
        live = {}
        for index, source in enumerate(sources):
            reply = worker.run(source, str(index))
            self.assertEqual(reply.get("ending"), {"kind": "ok"}, reply)
            self.assertEqual(reply["untracked"], [], reply)
            for unit in reply["units"]:
                self.assertIsNotNone(unit["blob"], unit)
                at, length = unit["blob"]
                for member in unit["members"]:
                    live[member["entity"]] = unit, worker.blob[at : at + length]
        return live

    def load(self, worker, live):
        order, seen = [], set()

        def put(unit, blob):
            if unit["key"] not in seen:
                seen.add(unit["key"])
                for ref in unit["refs"]:
                    if ref in live:
                        put(*live[ref])
                order.append((unit, blob))

        for entry in live.values():
            put(*entry)
        items, data = [], b""
        for unit, blob in order:
            members = [member["entity"] for member in unit["members"]]
            item = {"key": unit["key"], "members": [{"entity": name} for name in members], "take": members}
            items.append({**item, "blob": [len(data), len(blob)], "refs": unit["refs"]})
            data += blob
        self.assertEqual(worker.ask("sync", data, load=items)["failed"], [])

    def test_functions_that_have_stand_ins_are_stored_by_name(self):
        with Worker() as worker, Worker() as other:
            self.load(other, self.run_all(worker, [STAND_INS]))
            self.run_all(other, [SAME])

    def test_a_scratch_module_with_everything_that_holds_its_objects(self):
        steps = [
            HELPER,
            "import helper",
            "v = helper.f(1)",
            "from helper import f, C",
            "g = f(3); c = C()",
        ]
        check = (
            "import helper\nassert v is helper.X is g and v == [1, 1, 3]\n"
            "assert type(c) is helper.C is C and helper.f is f\nassert f(9) is v"
        )
        with Worker() as worker, Worker() as other:
            live = self.run_all(worker, steps)
            self.assertEqual({member["entity"] for member in live["m:helper"][0]["members"]} >= {"n:v", "n:g"}, True)
            self.load(other, live)
            self.assertEqual(other.ask("sweep")["unattributed"], [])
            self.run_all(other, [check])

    def test_a_patched_module_is_a_unit_with_what_shares_its_content(self):
        with Worker() as worker, Worker() as other:
            live = self.run_all(worker, ["import math\nmath.seen = seen = []", "math.seen.append(1)"])
            self.load(other, live)
            self.run_all(other, ["import math\nassert math.seen is seen and seen == [1]"])

    def test_a_module_with_many_names_and_nothing_but_data(self):
        for value in ("[{}]", "{}", "'x{}'", "[{}] if {} % 2 else {}"):
            source = "\n".join("a%d = %s" % (i, value.replace("{}", str(i))) for i in range(40))
            steps = ["open('data.py', 'w').write(%r)\nimport data" % source, "x = data.a3"]
            check = "import data\nassert [data.__dict__['a%%d' %% i] for i in range(40)] == [%s for i in range(40)]"
            with Worker() as worker, Worker() as other:
                self.load(other, self.run_all(worker, steps))
                self.run_all(other, [check % {"[{}]": "[i]", "{}": "i", "'x{}'": "'x%d' % i"}.get(value, "[i] if i % 2 else i")])

    def test_random_state_files_and_names_together(self):
        steps = [
            "import random\nrandom.seed(4)\nx = random.random()",
            "open('a', 'w').write(str(x))\ny = random.random()",
        ]
        with Worker() as worker, Worker() as other:
            self.load(other, self.run_all(worker, steps))
            line = "import random\nz = [random.random(), float(open('a').read()) == x, y]"
            self.run_all(worker, [line])
            self.run_all(other, [line])
            first, second = (w.ask("value", name="z", limit=200)["json"] for w in (worker, other))
            self.assertEqual(first, second)

    def test_what_finds_objects_by_other_ways_reads_all_names(self):
        worker = Worker()
        self.addCleanup(worker.close)
        worker.run("import sys, gc\nclass A: pass\nclass B(A): n = 1\nv = []")
        for source in ("A.__subclasses__()[0].n = 2", "sys._getframe().f_globals['v'].append(1)", "len(gc.get_objects())"):
            with self.subTest(source):
                reply = worker.run(source)
                self.assertEqual(reply["ending"], {"kind": "ok"}, reply)
                self.assertIn("*", reply["reads"])
        self.assertEqual(worker.run("globals()['v'].append(1)")["wrote"], {"n:v": "mutated"})
        self.assertNotIn("*", worker.run("x = 1\nB.n")["reads"])

    def test_a_second_name_of_the_main_module_reads_nothing(self):
        with Worker() as worker:
            reply = worker.run("import multiprocessing, sys\nsame = sys.modules['__mp_main__'] is sys.modules['__main__']")
            self.assertNotIn("*", reply["reads"])


if __name__ == "__main__":
    unittest.main()
