"""Clock and entropy: recorded, replayed, and otherwise as they were."""

from world import WorldTest

READS = """
import time, datetime, os, uuid, secrets, random
a = time.time(), time.time_ns(), time.perf_counter(), time.monotonic(), time.process_time()
b = datetime.datetime.now(), datetime.datetime.now(datetime.timezone.utc), datetime.date.today()
c = os.urandom(4), uuid.uuid4(), uuid.uuid1(), secrets.token_hex(3), random.SystemRandom().random()
d = random.Random().random(), time.strftime('%Y-%m-%d %H'), time.localtime(), time.ctime()
random.seed()
e = random.random(), os.getpid()
print(a, b, c, d, e)
"""


class ClockTest(WorldTest):
    def test_readings_are_replayed(self):
        first = self.session(READS)[0]
        self.assertIsNone(first["error"])
        self.assertTrue(first["clock"])
        self.assertEqual(first["untracked"], [])
        self.assertGreater(len(first["readings"]), 15)
        second = self.session(["run", READS, first["readings"]])[0]
        self.assertEqual(second["out"], first["out"])
        self.assertEqual(second["readings"], first["readings"])
        third = self.session(READS)[0]
        self.assertNotEqual(third["out"], first["out"])

    def test_a_signal_to_a_replayed_process_reaches_this_one(self):
        source = (
            "import os, signal\nhit = []\nsignal.signal(signal.SIGUSR1, lambda *_: hit.append(1))\n"
            "os.kill(os.getpid(), signal.SIGUSR1)\nprint(hit)"
        )
        first = self.session(source)[0]
        self.assertEqual(first["out"], "[1]\n")
        [[kind, _]] = first["readings"]
        again = self.session(["run", source, [[kind, 1 << 22]]])[0]
        self.assertIsNone(again["error"])
        self.assertEqual(again["out"], "[1]\n")

    def test_what_a_package_asks_to_know_its_processes_and_to_name_its_locks_is_no_reading(self):
        source = (
            "import multiprocessing\nwith_fork = multiprocessing.get_context('fork')\nlock = with_fork.Lock()\n"
            "one = with_fork.Process(target=print)\none.start()\none.join()\ndel one, lock"
        )
        readings = self.session(source)[0]["readings"]
        self.assertEqual([kind for kind, _ in readings if kind == "getpid" or kind.startswith("entropy")], [])

    def test_a_child_has_its_own_number(self):
        source = (
            "import os\nmine = os.getpid()\nr, w = os.pipe()\nchild = os.fork()\nif not child:\n"
            "    os.write(w, b'%d' % os.getpid())\n    os._exit(0)\nos.waitpid(child, 0)\nprint(mine, int(os.read(r, 20)) == child)"
        )
        again = self.session(["run", source, [["getpid", 5], ["getpid", 6]]])[0]
        self.assertEqual(again["out"], "5 True\n")

    def test_a_list_that_does_not_fit_gives_way_to_the_clock(self):
        answers = self.session(
            ["run", "import time\nx = time.time()\ny = time.monotonic()\nprint(x)", [["time", ["f", "0x1.8p+1"]], ["now", 3]]],
            ["run", "import time\nx = 1", []],
        )
        self.assertEqual(answers[0]["out"], "3.0\n")
        self.assertEqual([kind for kind, _ in answers[0]["readings"]], ["time", "monotonic"])
        self.assertEqual([found["what"] for found in answers[0]["untracked"]], ["the readings to replay do not fit"])
        self.assertEqual(answers[1]["untracked"], [])

    def test_replayed_sleep_does_not_wait(self):
        answers = self.session(
            ["run", "import time\ntime.sleep(3600)\nx = time.time()", [["time", ["f", "0x1.8p+1"]]]],
            "import time\ntry:\n    time.sleep('a')\nexcept TypeError:\n    print('checked')",
        )
        self.assertIsNone(answers[0]["error"])
        self.assertEqual(answers[1]["out"], "checked\n")

    def test_what_only_waits_reads_no_clock(self):
        answers = self.good(
            "import asyncio\nasync def main():\n    await asyncio.sleep(0.01)\n    return 1\nx = asyncio.run(main())",
            "async def main():\n    return asyncio.get_running_loop().time()\nx = asyncio.run(main())",
            "import queue\ntry:\n    queue.Queue().get(timeout=0.01)\nexcept queue.Empty:\n    pass",
        )
        self.assertEqual([len(answer["readings"]) for answer in answers], [0, 1, 0])

    def test_more_readings_than_are_kept_are_reported(self):
        answers = self.session("import time\nfor _ in range(30000): time.time()")
        self.assertEqual(len(answers[0]["readings"]), 20000)
        self.assertEqual(answers[0]["untracked"][0]["what"], "more readings of the clock than are kept")

    def test_nothing_is_read_without_a_clock(self):
        answers = self.good(
            "import time, datetime\nx = time.gmtime(0), time.strftime('%Y', time.gmtime(0)), time.ctime(0)",
            "d = datetime.datetime(2020, 1, 2); e = datetime.datetime.fromtimestamp(5, datetime.timezone.utc)",
            "import random\nr = random.Random(4).random()",
        )
        self.assertEqual([answer["readings"] for answer in answers], [[], [], []])

    def test_the_stand_ins_are_not_noticed(self):
        source = """
import copy, datetime, functools, inspect, os, pickle, random, time
assert type(datetime.datetime.now()) is datetime.datetime
class Own(datetime.datetime): pass
assert type(Own.now()) is Own and type(Own.now(datetime.timezone.utc)) is Own
assert repr(datetime.datetime(2020, 1, 1)) == 'datetime.datetime(2020, 1, 1, 0, 0)'
assert pickle.loads(pickle.dumps(datetime.datetime.now())).year > 2000
assert datetime.datetime.now(datetime.timezone.utc).tzinfo is datetime.timezone.utc
assert datetime.datetime.now(tz=None).tzinfo is None
try:
    datetime.datetime.now(3)
except TypeError: pass
else: raise AssertionError
class Timer:
    clock = time.perf_counter
    def go(self): return self.clock()
assert Timer().go() > 0
assert pickle.loads(pickle.dumps(time.time)) is time.time
assert copy.deepcopy([os.getcwd, time.time])[1] is time.time
assert time.time.__name__ == 'time' and time.time.__module__ == 'time' and callable(time.time)
assert repr(time.time) == '<built-in function time>'
assert functools.partial(time.time)() > 0
assert list(map(os.path.exists, ['none'])) == [False]
assert isinstance(os.stat('.'), os.stat_result) and os.stat(path='.').st_size >= 0
try:
    time.time(1)
except TypeError: pass
else: raise AssertionError
try:
    os.stat('none')
except FileNotFoundError as error:
    assert error.filename == 'none'
assert hash('a') == hash('a') and hash((1, 2)) == hash((1, 2))
with os.scandir('.') as entries:
    assert list(entries) == []
assert os.stat in os.supports_dir_fd and os.scandir in os.supports_fd
x = random.Random(3); y = pickle.loads(pickle.dumps(x))
assert x.random() == y.random()
"""
        self.good(source)

    def test_what_the_clock_says_is_the_time(self):
        import time

        before = time.time()
        answers = self.session("import time, datetime\nprint(time.time(), datetime.datetime.now().timestamp())")
        for text in answers[0]["out"].split():
            self.assertTrue(before - 1 < float(text) < time.time() + 1)

    def test_temporary_names_are_entropy(self):
        source = "import tempfile\nname = tempfile.mkdtemp(dir='.')\nprint(name)"
        first, again = self.session(source, source)
        self.assertTrue(first["readings"])
        self.assertTrue(again["readings"])
        self.assertNotEqual(first["out"], again["out"])
        import os

        os.rmdir(os.path.join(self.scratch, first["out"].strip()))
        replayed = self.session("x = 1", ["run", source, first["readings"]])[1]
        self.assertEqual(replayed["out"], first["out"])
