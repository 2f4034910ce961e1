"""The loop: frames, endings, output, and hostile steps."""

import os
import select
import signal
import subprocess
import sys
import textwrap
import unittest

from driver import HERE, LIMITS, Ended, Worker
from stand_ins import CHANNELS, UNITS

PARTS = {"values.units": UNITS, "world.channels": CHANNELS}


class Loop(unittest.TestCase):
    """A worker for each test."""

    limits = {}

    def setUp(self):
        self.worker = Worker(PARTS, self.limits)
        self.addCleanup(self.worker.close)
        self.run_ = self.worker.run

    def ok(self, source, **named):
        reply = self.run_(textwrap.dedent(source), **named)
        self.assertEqual(reply.get("ending"), {"kind": "ok"}, reply)
        return reply

    def raised(self, source, **named):
        reply = self.run_(textwrap.dedent(source), **named)
        self.assertEqual(reply["ending"]["kind"], "raised", reply)
        return reply["ending"]


class TestCompiled(unittest.TestCase):
    """The first worker gets the sources, and later ones its compiled modules."""

    def test_compiled_once(self):
        with Worker(PARTS) as first:
            self.assertEqual(first.blob, b"")
        with Worker(PARTS, keep=True) as first:
            compiled = first.blob
        with Worker(compiled=compiled) as second:
            self.assertNotIn("error", second.hello)
            self.assertEqual(second.blob, b"")
            self.assertEqual(second.run("print(1)")["stdout"]["text"], "1\n")

    def test_of_another_interpreter(self):
        with Worker(PARTS, keep=True) as first:
            compiled = first.blob
        with Worker(compiled=b"4" + compiled[1:]) as second:
            self.assertIn("interpreter has changed", second.hello["error"])


class TestEndings(Loop):
    def test_hello(self):
        hello = self.worker.hello
        self.assertEqual(hello["python"], "%d.%d.%d" % sys.version_info[:3])
        self.assertEqual(hello["protocol"], 1)
        self.assertEqual(hello["pid"], self.worker.process.pid)

    def test_an_exception_reports_where_it_was_raised(self):
        self.run_("def f(x):\n    return 1 / x", "earlier")
        ending = self.raised("a = 1\n\nf(0)", step="now")
        self.assertEqual(ending["type"], "ZeroDivisionError")
        self.assertEqual(ending["message"], "division by zero")
        self.assertEqual(ending["line"], 3)
        places = [(frame["step"], frame["line"], frame["function"]) for frame in ending["frames"]]
        self.assertEqual(places, [("now", 3, "<module>"), ("earlier", 2, "f")])

    def test_code_without_lines_fails_where_it_begins(self):
        self.run_("\ndef f(x):\n    return 1 / x\nf.__code__ = f.__code__.replace(co_linetable=b'')", "earlier")
        ending = self.raised("f(0)", step="now")
        self.assertEqual([(frame["step"], frame["line"]) for frame in ending["frames"]], [("now", 1), ("earlier", 2)])

    def test_what_does_not_compile(self):
        for source, line in (("x = (", 1), ("a = 1\nreturn a", 2), ("x = 1\n  y = 2", 2)):
            ending = self.raised(source)
            self.assertTrue(ending["syntax"])
            self.assertEqual(ending["line"], line, ending)
        self.assertTrue(self.raised("x = 1\0")["syntax"])
        self.assertTrue(self.raised("(" * 5000 + ")" * 5000)["syntax"])
        self.assertNotIn("syntax", self.raised("exec('x = (')"))

    def test_annotations_stay_texts_after_the_import_that_says_so(self):
        self.run_("from __future__ import annotations")
        reply = self.run_("class A:\n    b: B\ndef f(a: A) -> B: return 1")
        self.assertEqual((reply["ending"]["kind"], "n:annotations" in reply["reads"]), ("ok", True))
        self.assertEqual(self.run_("print(A.__annotations__, f(1))")["stdout"]["text"], "{'b': 'B'} 1\n")
        for source in ("n = 1", "from __future__ import annotations\nb: B", "def g(a): return a"):
            self.assertNotIn("n:annotations", self.run_(source)["reads"], source)
        self.run_("del annotations")
        self.assertEqual(self.run_("def f(a: B): pass")["ending"]["type"], "NameError")

    def test_names_that_are_missing(self):
        self.assertEqual(self.raised("nope")["name"], "nope")
        self.assertEqual(self.raised("import nope_there")["name"], "nope_there")
        self.assertEqual(self.raised("[].nope")["name"], "nope")
        self.assertNotIn("name", self.raised("1 / 0"))

    def test_exits_and_interrupts_are_endings(self):
        ending = self.raised("import sys\nsys.exit(3)")
        self.assertEqual((ending["type"], ending["message"]), ("SystemExit", "3"))
        self.assertEqual(self.raised("raise KeyboardInterrupt")["type"], "KeyboardInterrupt")
        self.assertEqual(self.raised("raise GeneratorExit")["type"], "GeneratorExit")
        self.ok("x = 1")

    def test_deep_recursion_is_survived(self):
        self.assertEqual(self.raised("def f(): f()\nf()")["type"], "RecursionError")
        self.raised("import sys\nsys.setrecursionlimit(10)\nimport json.tool\nf()")
        # It holds for later steps, unless they could not run with it.
        self.assertEqual(self.ok("import sys\nprint(sys.getrecursionlimit())")["stdout"]["text"], "100\n")
        ending = self.raised("import sys\nsys.setrecursionlimit(4000)\nf()")
        self.assertLessEqual(len(ending["frames"]), 20)
        deep = "def g(n): return n and g(n - 1)\nprint(sys.getrecursionlimit(), g(3000))"
        self.assertEqual(self.ok("import sys\n" + deep)["stdout"]["text"], "4000 0\n")

    def test_a_class_without_a_text_has_no_source(self):
        ending = self.raised("import inspect\nmade = type('a(b', (), {'__module__': '__main__'})\ninspect.getsource(made)")
        self.assertEqual(ending["type"], "OSError")

    def test_types_are_named_with_their_modules(self):
        self.assertEqual(self.raised("import json\njson.loads('')")["type"], "json.decoder.JSONDecodeError")
        self.assertEqual(self.raised("class Own(Exception): pass\nraise Own()")["type"], "Own")

    def test_a_message_that_raises_or_is_long_or_no_text(self):
        self.raised("class Bad(Exception):\n    def __str__(self): 1 / 0\nraise Bad()")
        self.assertLess(len(self.raised("raise ValueError('x' * 10**6)")["message"]), 10_000)
        self.assertEqual(self.raised("raise ValueError('\\ud800')")["message"], "\\ud800")
        self.assertTrue(self.raised("raise ExceptionGroup('g', [ValueError(1)])")["message"])

    def test_an_exception_keeps_nothing_alive(self):
        self.ok(
            """
            class Kept:
                live = 0
                def __init__(self): Kept.live += 1
                def __del__(self): Kept.live -= 1
            def f():
                kept = Kept()
                try:
                    1 / 0
                except ZeroDivisionError as first:
                    raise ValueError() from first
            """
        )
        self.raised("f()")
        self.assertEqual(self.ok("print(Kept.live)")["stdout"]["text"], "0\n")

    def test_a_failed_step_reports_what_it_has_bound(self):
        self.ok("gone = 1")
        reply = self.run_("a = 1\ndel gone\n1 / 0")
        self.assertEqual(reply["dirty"], ["n:a", "n:gone"])
        self.assertEqual((reply["wrote"], reply["units"]), ({}, []))

    def test_tracebacks_show_the_source(self):
        reply = self.ok("import traceback\ntry:\n    1 / 0  # here\nexcept Exception:\n    traceback.print_exc()")
        self.assertIn("1 / 0  # here", reply["stderr"]["text"])
        self.assertIn('File "<step:s>", line 3', reply["stderr"]["text"])


class TestOutput(Loop):
    limits = {"output_bytes": 1000}

    def test_all_ways_to_write(self):
        reply = self.ok(
            r"""
            import sys
            print("a", flush=True)
            sys.stdout.write("b\n")
            sys.stdout.buffer.write(b"c\n")
            print("\ud800 ä")
            print("e", file=sys.stderr)
            sys.__stdout__.write("f\n")
            print(sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.writable())
            """
        )
        self.assertEqual(reply["stdout"]["text"], "a\nb\nc\n\\ud800 ä\nf\nFalse utf-8 True\n")
        self.assertEqual(reply["stderr"]["text"], "e\n")

    def test_a_parser_of_xml_may_have_a_name(self):
        # The list of open elements has places without an object.
        self.ok("import xml.etree.ElementTree as E, io\np = E.iterparse(io.StringIO('<a><b/></a>'))\nt = E.TreeBuilder()")
        self.ok("print(next(p)[1].tag)")

    def test_what_is_over_the_limit_is_counted(self):
        reply = self.ok("print('x' * 1500, end='')")
        self.assertEqual((len(reply["stdout"]["text"]), reply["stdout"]["dropped"]), (1000, 500))
        self.assertEqual(self.ok("print(1)")["stdout"]["dropped"], 0)

    def test_no_descriptor_and_no_input(self):
        self.assertEqual(self.raised("import sys\nsys.stdout.fileno()")["type"], "io.UnsupportedOperation")
        reply = self.run_("input('name? ')")
        self.assertEqual(reply["ending"]["type"], "EOFError")
        self.assertEqual(reply["stdout"]["text"], "name? ")
        self.assertEqual(self.ok("import sys\nprint(repr(sys.stdin.read()))")["stdout"]["text"], "''\n")

    def test_streams_are_put_back(self):
        self.ok("import sys, io\nmine = sys.stdout = io.StringIO()\nprint(1)\nsys.argv.append('x')")
        self.assertEqual(self.ok("print(sys.argv)")["stdout"]["text"], "['', 'x']\n")
        self.run_("sys.stdout.close()\nsys.stdin.close()")
        self.assertEqual(self.ok("print(2)")["stdout"]["text"], "2\n")
        self.run_("sys.stdout.detach()")
        self.assertEqual(self.ok("print(3)")["stdout"]["text"], "3\n")
        self.ok("out = sys.stdout")
        self.assertEqual(self.ok("out.write('4')")["stdout"]["text"], "4")

    def test_warnings_of_the_compiler(self):
        reply = self.ok("x = 1 is 1")
        self.assertIn("SyntaxWarning", reply["stderr"]["text"])


class TestAsync(Loop):
    def test_asyncio_runs(self):
        self.ok("import asyncio\nasync def m():\n    await asyncio.sleep(0)\n    return 5\nv = asyncio.run(m())")
        self.ok("v = asyncio.run(m())\nassert v == 5")


class TestWorst(Loop):
    """Whatever a step does, the reply is valid or missing."""

    def test_what_later_steps_would_find_in_sys_is_listed(self):
        for source, what in (("sys.stdout = io.StringIO()", "sys.stdout"), ("sys.stdin = io.StringIO('a')", "sys.stdin"),
                             ("sys.excepthook = print", "sys.excepthook"), ("threading.excepthook = print", "threading.excepthook")):
            reply = self.ok("import io, sys, threading\n" + source)
            self.assertEqual([found["what"] for found in reply["untracked"]], [what + " replaced"])
            self.assertEqual(self.ok("import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()): print(1)")["untracked"], [])

    def test_writes_to_every_descriptor(self):
        self.ok("import os\nfor fd in range(3):\n    try: os.write(fd, b'x' * 100)\n    except OSError: pass")
        self.assertEqual(self.ok("print(1)")["stdout"]["text"], "1\n")

    def test_closes_the_standard_descriptors(self):
        self.ok("import os\nfor fd in range(3): os.close(fd)\nf = open('a', 'w')\nf.write('x')\nf.close()")
        self.assertEqual(self.ok("print(1)")["stdout"]["text"], "1\n")

    def test_closes_every_descriptor(self):
        with self.assertRaises(Ended):
            self.run_("import os\nos.closerange(0, 4096)")

    def test_takes_the_pipe_for_a_file(self):
        # The pipes lie above the limit of open files, where no other descriptor can be.
        ending = self.raised(
            "import os\nf = os.open('taken', os.O_RDWR | os.O_CREAT)\n"
            "for fd in range(3, 1024):\n    if fd != f: os.dup2(f, fd)"
        )
        self.assertEqual(ending["type"], "OSError")

    def test_kills_itself(self):
        with self.assertRaises(Ended):
            self.run_("import os\nos._exit(0)")

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_forked_child_does_not_answer(self):
        reply = self.ok("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: print('child')")
        self.assertEqual(reply["stdout"]["text"], "")
        self.assertEqual(self.ok("print(1)")["stdout"]["text"], "1\n")

    def test_replaces_what_the_loop_uses(self):
        reply = self.ok(
            """
            import builtins, json, os, sys, io, linecache, threading, gc, select, fcntl
            def bad(*args, **named): raise RuntimeError("replaced")
            for name in dir(builtins):
                if name[0].islower() and name not in ("setattr", "exec", "print", "bad"):
                    setattr(builtins, name, bad)
            """
        )
        reported = {item["what"] for item in reply["untracked"]}
        self.assertIn("builtins.len replaced", reported)
        self.ok(
            """
            assert len([1]) == 1
            for module in (json, json.encoder, json.decoder, os, io, linecache, threading, gc, select, fcntl):
                for name in dir(module):
                    if not name.startswith("_"):
                        try: setattr(module, name, bad)
                        except Exception: pass
            sys.exit = sys.getrecursionlimit = sys.settrace = sys.setprofile = sys._getframe = bad
            """
        )
        self.assertEqual(self.ok("print(len([1]))")["stdout"]["text"], "1\n")
        self.raised("1 / 0")

    def test_hooks_are_gone_after_the_step(self):
        self.ok("import sys, gc, threading\ndef hook(*args): calls.append(args)\ncalls = []")
        self.ok("gc.disable()\nsys.excepthook = hook\nthreading.settrace(hook)\nsys.setprofile(hook)\nsys.settrace(hook)")
        reply = self.ok(
            "print(gc.isenabled(), sys.excepthook is hook, sys.gettrace(), sys.getprofile(), threading.gettrace())"
        )
        self.assertEqual(reply["stdout"]["text"], "True False None None None\n")
        self.ok("class Finder:\n    def find_spec(*args): 1 / 0\nsys.meta_path.insert(0, Finder)")
        self.ok("import wave")

    def test_a_name_of_the_module_is_put_back(self):
        self.ok("__name__ = 'other'\n__builtins__ = {}\n__doc__ = 'd'\n__spec__ = 1")
        reply = self.ok("print(__name__, __doc__, __spec__, len([1]))")
        self.assertEqual(reply["stdout"]["text"], "__main__ None None 1\n")
        self.assertEqual(reply["reads"], ["n:len", "n:print"])

    def test_frames_that_are_no_requests_end_the_worker(self):
        self.worker.process.stdin.write(b"\xff" * 64)
        self.worker.process.stdin.close()
        self.assertEqual(self.worker.process.wait(), 0)

    def test_a_request_that_does_not_exist_is_an_error(self):
        self.assertIn("dance", self.worker.ask("dance")["error"])
        self.ok("x = 1")


class TestLimits(Loop):
    limits = {"address_space": 512 << 20}

    def test_memory_is_an_exception(self):
        self.assertEqual(self.raised("b = bytearray(4 << 30)")["type"], "MemoryError")
        self.assertEqual(self.raised("xs = []\nwhile True: xs.append(bytearray(1 << 20))")["type"], "MemoryError")
        self.ok("del xs\nx = 1")

    def test_limits_hold(self):
        reply = self.ok(
            "import resource as r\nprint([r.getrlimit(n)[1] for n in (r.RLIMIT_AS, r.RLIMIT_CPU, r.RLIMIT_FSIZE, r.RLIMIT_NOFILE, r.RLIMIT_CORE)])"
        )
        limits = [512 << 20, LIMITS["cpu_seconds"], LIMITS["file_size"], LIMITS["open_files"], 0]
        self.assertEqual(reply["stdout"]["text"], "%s\n" % limits)


class TestRequests(Loop):
    def test_bind(self):
        bind = {"name": "rows", "json": '[{"v": 3}, 1.0, null]'}
        reply = self.run_("", bind=bind)
        self.assertEqual(reply["wrote"], {"n:rows": "bound"})
        self.assertEqual(reply["reads"], [])
        self.assertEqual(self.ok("print(rows)")["stdout"]["text"], "[{'v': 3}, 1.0, None]\n")
        self.assertEqual(self.run_("", bind={"name": "rows", "json": "[1"})["ending"]["kind"], "raised")

    def test_order(self):
        self.assertEqual(self.ok("b = 1\na = 2")["order"], ["n:b", "n:a"])
        self.assertNotIn("order", self.ok("c = 1"))
        # A name that is bound again stays where it is.
        self.assertEqual(self.ok("e = f = []\nb = []\ndel a\na = 3")["order"], ["n:e", "n:f", "n:a"])
        self.worker.ask("sync", order=["n:f", "n:gone", "n:a", "n:c", "n:b"])
        self.assertEqual(self.ok("print([n for n in globals() if len(n) == 1])")["stdout"]["text"],
                         "['e', 'f', 'a', 'c', 'b']\n")

    def test_value(self):
        self.ok(
            """
            class P:
                def __init__(self): self.a = [1, self]
                def __repr__(self): 1 / 0
            p, j, long, inf = P(), {"a": [1, 2.5, None]}, "x" * 10**6, [float("inf")]
            import datetime
            many = [(1,), {2}, frozenset(), datetime.date(2020, 1, 2), b"x", range(3), P, len]
            """
        )
        ask = lambda name: self.worker.ask("value", name=name, limit=1000)
        self.assertEqual(ask("j")["json"], {"a": [1, 2.5, None]})
        self.assertEqual(ask("j")["type"], "dict")
        self.assertEqual((ask("p")["repr"], ask("p")["type"]), ("P(a=[1, ...])", "P"))
        self.assertLess(len(ask("long")["repr"]), 1100)
        self.assertNotIn("json", ask("long"))
        self.assertNotIn("json", ask("inf"))
        self.assertEqual(ask("nope")["type"], None)
        shown = "[(1,), {2}, frozenset({}), datetime.date(2020, 1, 2), b'x', range(0, 3), <class P>, <builtin_function_or_method>]"
        self.assertEqual(ask("many")["repr"], shown)

    def test_sync_hands_the_units_to_who_holds_them(self):
        reply = self.ok("x = 1")
        (unit,) = reply["units"]
        at, length = unit["blob"]
        self.assertEqual(self.worker.blob[at : at + length], b"v:n:x")
        load = [
            {"key": "9.0", "members": [{"entity": "n:y"}], "take": ["n:y"], "blob": [0, 4], "refs": []},
            {"key": "9.1", "members": [{"entity": "n:z"}], "take": ["n:z"], "blob": [4, 3], "refs": []},
        ]
        reply = self.worker.ask("sync", b"goodbad", drop=["n:x", "n:nope"], load=load)
        self.assertEqual(reply["failed"], [["9.1", "bad"]])
        self.assertEqual(self.ok("print(y, 'x' in dir())")["stdout"]["text"], "good False\n")

    def test_a_worker_with_random_hashes_does_not_start(self):
        with Worker(PARTS, flags=("-I", "-S", "-B")) as worker:
            self.assertIn("PYTHONHASHSEED", worker.hello["error"])
            self.assertEqual(worker.process.wait(), 1)


# A host that starts a worker, prints its process id, sends a step and waits.
HOST = """
import sys, time
sys.path.insert(0, %r)
from driver import Worker
from stand_ins import CHANNELS, UNITS
worker = Worker({"values.units": UNITS, "world.channels": CHANNELS})
worker.send("run", seq=1, step="s", source=sys.argv[1], readings=None, bind=None, allow={})
print(worker.process.pid, worker.scratch, flush=True)
worker.receive()
"""


class TestTheHostsDeath(unittest.TestCase):
    """The worker ends with its host, whatever the step is doing."""

    def dies(self, source):
        host = subprocess.Popen(
            [sys.executable, "-B", "-c", HOST % HERE, source], stdout=subprocess.PIPE, text=True
        )
        pid, scratch = host.stdout.readline().split()
        started = os.path.join(scratch, "started")
        worker = os.pidfd_open(int(pid))
        poll = select.poll()
        poll.register(worker, select.POLLIN)
        # The step creates the file. Until then the worker must live.
        while not os.path.exists(started):
            self.assertEqual(poll.poll(5), [], "it ended before the host did")
        host.kill()
        host.wait()
        host.stdout.close()
        ended = poll.poll(20_000)
        if not ended:
            signal.pidfd_send_signal(worker, signal.SIGKILL)
        os.close(worker)
        subprocess.run(["rm", "-rf", scratch], check=False)
        self.assertTrue(ended, "it continues without its host")

    def test_in_a_loop(self):
        self.dies("open('started', 'w').close()\nwhile True: pass")

    def test_in_a_loop_of_c(self):
        self.dies("open('started', 'w').close()\n10**10**8")

    def test_with_signals_blocked(self):
        self.dies(
            "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
            "open('started', 'w').close()\nwhile True: pass"
        )

    def test_between_steps(self):
        worker = Worker(PARTS)
        worker.process.stdin.close()
        self.assertEqual(worker.process.wait(), 0)
        worker.process.stdout.close()
