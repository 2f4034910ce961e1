"""Untracked operations are reported, with a descriptive name."""

import os
import tempfile

from world import WorldTest

# Steps of one program, and the reports for each.
STEPS = [
    ('import gc', None),
    ('n = gc.get_count()', 'gc'),
    ('import weakref\nclass A: pass\na = A()\nr = weakref.ref(a)', 'weakref'),
    ('subs = A.__subclasses__()', '__subclasses__'),
    ('def f(): return 1\ng = f.__globals__', '__globals__'),
    ('k = id(a)', 'id'),
    ('ks = sorted([a, f], key=id)', 'id'),
    ('class B:\n    def __del__(self): pass', '__del__'),
    ('import os\npid = os.fork()\nif pid == 0:\n    os._exit(0)', 'os.fork'),
    ('import socket\ns = socket.socket()', 'socket'),
    ("import urllib.request\ntry:\n    urllib.request.urlopen('http://127.0.0.1:9/', timeout=1)\nexcept OSError:\n    pass", 'socket.connect'),
    ('import atexit\natexit.register(f)', 'atexit'),
    ('import sys\nsys.settrace(None)', 'settrace'),
    ('sys.setprofile(None)', 'setprofile'),
    ('fr = sys._getframe()', '_getframe'),
    ('import inspect\nz = inspect.currentframe()', 'inspect.currentframe'),
    ('m = sys.modules', 'sys.modules'),
    ("open('/tmp/out_of_scratch', 'w').close()", 'writes /tmp'),
    ("os.remove('/tmp/out_of_scratch')", 'writes /tmp'),
    ("open('w', 'w').close()\nmt = os.path.getmtime('w')", 'getmtime'),
    ("mt = os.stat('w').st_mtime", 'st_mtime'),
    ('print(object())', 'address'),
    ('sys.setrecursionlimit(2000)', None),
    ('os.umask(0o22)', 'os.umask'),
    ('from os import umask as um\num(0o22)', 'os.umask'),
    ("os.link('w', 'w2')", 'hard link'),
    ("os.mkfifo('ff')", 'special file'),
    ("os.remove('w2'); os.remove('ff')\nimport mmap\nmm = mmap.mmap(-1, 10)", 'mmap'),
    ('h = hash(object())', 'hash'),
    ('h = hash(f)', 'hash'),
    ('import json\njson.JSONEncoder.default = f', 'JSONEncoder'),
    ("import multiprocessing\np = multiprocessing.get_context('fork').Process(target=f)\np.start()\np.join()", 'os.fork'),
    ('def cb(): pass\nsys.addaudithook(lambda e, a: None)', 'addaudithook'),
    ('try:\n    1/0\nexcept Exception as e:\n    fr = e.__traceback__.tb_frame', 'tb_frame'),
    ("x = getattr(A, '__subclasses__')()", '__subclasses__'),
    ("open('/dev/urandom', 'rb').read(1)", 'device'),
    ("os.listdir('/etc')", '/etc'),
    ('import time\ntime.tzset()', 'tzset'),
    ("os.putenv('A', 'b')", 'putenv'),
    ("del sys.modules['string']", 'sys.modules'),
    ('import xml.etree.ElementTree as ET\nET.register_namespace("p", "uri")', 'register_namespace'),
    ('import calendar as cal\nset_first = cal.setfirstweekday\nset_first(6)', 'calendar'),
    ('import reprlib\nreprlib.aRepr.maxlist = 1', 'reprlib.aRepr'),
    ('import json\njson._default_encoder.indent = 2', 'json._default_encoder'),
    ('import gettext\nf = gettext.textdomain\nf("zz")', 'gettext'),
    ('pair = (1, 2)\ntwin = pair\nr = pair is twin', 'identity'),
    ('def same(x, y):\n    return x is y\nr = same(pair, twin)', 'identity'),
    ('words = ["ab" * n for n in (2, 2)]\nr = words[0] is words[1]', 'identity'),
]


# Constructs that are no effect on untracked state: what they do ends with the step, is the
# environment's, or belongs to a channel.
TRACKED = [
    'import gc, weakref, ctypes, signal, mmap, contextvars, atexit, logging, resource\ngc.collect()',
    'import threading\ndef f(): return 1\nt = threading.Thread(target=f); t.start(); t.join()',
    'from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(1) as ex:\n    ex.submit(f).result()',
    "import subprocess\ndone = subprocess.run(['true'])",
    "import os\nos.system('true')",
    'from decimal import *\ngetcontext().prec = 5',
    "import locale\nlocale.setlocale(locale.LC_ALL, 'C.UTF-8')",
    'import logging\nlogging.getLogger().setLevel(10)',
    "import enum\nfrom dataclasses import dataclass, field\nclass Kind(enum.Enum):\n    A = 'aa'\n"
    "@dataclass\nclass Item:\n    name: str\n    price: float\n    kind: Kind\n    tags: list = field(default_factory=list)\n"
    "def is_a(item):\n    return item.kind is Kind.A",
    'items = [Item("n" * 3, 1.5 + n % 2, Kind.A) for n in range(9)]',
    'found = [is_a(item) for item in items]',
]
# State inside packages.
INSIDE = [
    ("import calendar\ncalendar.mdays.append(1)", "calendar.mdays was changed in place"),
    ('from email import charset\ncharset.ALIASES["zz"] = "utf-8"', "email.charset.ALIASES was changed in place"),
    ("import copy\ncopy._deepcopy_dispatch[complex] = None", "copy._deepcopy_dispatch was changed in place"),
]


class EverythingTest(WorldTest):
    """State inside packages is compared."""

    strictness = "everything"

    def test_state_inside_packages_is_compared(self):
        for answer, (_, want) in zip(self.session(*(source for source, _ in INSIDE)), INSIDE):
            self.assertEqual([found["what"] for found in answer["untracked"]], [want])

    def test_what_an_import_does_is_the_steps(self):
        write(self, "starts.py", THREAD)
        path = f"import sys\nsys.path.append({self.packages!r})"
        answers = self.session(["python", path], "import starts")
        self.assertTrue(answers[1]["untracked"])

    def test_the_sweep_sees_what_no_step_accounts_for(self):
        answers = self.session(
            "x = 1",
            ["sweep"],
            ["python", "open('sneak', 'w').close()\nimport json\njson.dumps = len"],
            ["python", "import random\nrandom.random()\nimport pathlib\npathlib.PurePath.match = 1"],
            ["sweep"],
        )
        self.assertEqual(answers[1]["unattributed"], [])
        unattributed = " ".join(answers[4]["unattributed"])
        for part in ("f:sneak", "p:rng", "json.dumps"):
            self.assertIn(part, unattributed)


THREAD = """
import os, random, subprocess, threading, warnings
threading.Thread(target=threading.Event().wait, daemon=True).start()
subprocess.run(["true"])
os.listdir("/")
random.random()
warnings.filterwarnings("ignore", "of starts")
"""


# Settings of packages: what a step calls or stores, and the report.
SETTINGS = [
    ("options.set_limit(3)", "options.set_limit changes a package"),
    ("from options import seed\nseed(1)", "options.seed changes a package"),
    ("options.Loader.add_constructor(\n    '!x',\n    len,\n)", "options.Loader.add_constructor changes a package"),
    ("options.book.register(name='a', way=len)", "options.book.register changes a package"),
    ("for n in range(2):\n    options.set_limit(*[n])", "options.set_limit changes a package"),
    ("def later():\n    options.set_limit(4)", "options.set_limit changes a package"),
    ("later()", "options.set_limit changes a package"),
    ("def start(n):\n    options.seed(n)", "options.seed changes a package"),
    ("options.FILTERS['a'] = len", "options.FILTERS was changed"),
    ("del options.FILTERS['a']", "options.FILTERS was changed"),
    ("options.book.pages.append(1)", "options.book.pages was changed"),
    ("options.Loader.table.update(a=1)", "options.Loader.table was changed"),
    ("import html.entities\nhtml.entities.html5['zz;'] = 'z'", "html.entities.html5 was changed"),
]
# Calls that return something, change what they are given, or are not of a package.
NO_SETTINGS = [
    "was = options.set_limit(3)",
    "mine = {}\noptions.set_all(mine, 1)",
    "def fill(them):\n    options.set_all(them, 1)\nfill(mine)",
    "options.name_of(1)",
    "options.settle(1)",
    "mine['a'] = 1\nmine.update(b=2)",
    "class Loader(options.Loader): pass",
    "def set_up():\n    return 1\nset_up()",
    "options.book.copy().append(1)",
    "import sys\nsys.path.append('elsewhere')",
]
OPTIONS = """
limit, FILTERS = 1, {}
def set_limit(to):
    global limit
    limit = to
def seed(with_): pass
def set_all(them, to):
    them["to"] = to
def name_of(it): pass
def settle(it): pass
class Loader:
    table = {}
    @classmethod
    def add_constructor(cls, name, way): cls.table = {**cls.table, name: way}
class Book:
    def __init__(self): self.pages = []
    def register(self, name, way): self.pages.append(name)
    def copy(self): return []
book = Book()
"""


def write(test, name, source):
    """A module outside of the program's directories."""
    made = tempfile.TemporaryDirectory()
    test.addCleanup(made.cleanup)
    test.packages = made.name
    with open(os.path.join(made.name, name), "w") as file:
        file.write(source)


class PackagesTest(WorldTest):
    """State inside packages counts as constant, except for channels."""

    def test_settings_of_packages_are_reported(self):
        write(self, "options.py", OPTIONS)
        path = f"import sys\nsys.path.append({self.packages!r})"
        first, *answers = self.session(["python", path], "import options", *(source for source, _ in SETTINGS))[1:]
        self.assertEqual(first["untracked"], [])
        for (source, want), answer in zip(SETTINGS, answers):
            with self.subTest(source):
                self.assertIsNone(answer["error"])
                self.assertEqual([found["what"] for found in answer["untracked"]], [want])
        self.assertEqual(answers[2]["untracked"][0]["line"], 1)

    def test_other_calls_of_packages_are_no_settings(self):
        write(self, "options.py", OPTIONS)
        path = f"import sys\nsys.path.append({self.packages!r})"
        for source, answer in zip(NO_SETTINGS, self.session(["python", path], "import options", *NO_SETTINGS)[2:]):
            with self.subTest(source):
                self.assertIsNone(answer["error"])
                self.assertEqual(answer["untracked"], [])

    def test_what_ends_with_the_step_or_has_a_channel_is_tracked(self):
        for source, answer in zip(TRACKED, self.session(*TRACKED)):
            with self.subTest(source):
                self.assertIsNone(answer["error"])
                self.assertEqual(answer["untracked"], [])

    def test_external_work_is_reported_as_such(self):
        answers = self.session(TRACKED[1], TRACKED[3], "x = [1]")
        self.assertEqual([answer["clock"] for answer in answers], [True, True, False])

    def test_a_socket_that_ends_with_its_step_is_external_work(self):
        serve = (
            "import socket, threading\nserver = socket.socket()\nserver.bind(('127.0.0.1', 0))\nserver.listen()\n"
            "def answer():\n    with server.accept()[0] as taken:\n        taken.sendall(b'hello')\n"
            "t = threading.Thread(target=answer)\nt.start()\n"
            "with socket.create_connection(server.getsockname()) as c:\n    said = c.recv(9)\n"
            "t.join()\nserver.close()\nprint(said)"
        )
        http = (
            "import threading, urllib.request\nfrom http.server import BaseHTTPRequestHandler, HTTPServer\n"
            "class H(BaseHTTPRequestHandler):\n    def do_GET(self):\n        self.send_response(200)\n"
            "        self.end_headers()\n        self.wfile.write(b'ok')\n    def log_message(self, *_):\n        pass\n"
            "server = HTTPServer(('127.0.0.1', 0), H)\nt = threading.Thread(target=server.serve_forever)\nt.start()\n"
            "page = urllib.request.urlopen(f'http://127.0.0.1:{server.server_port}/').read()\n"
            "server.shutdown()\nt.join()\nserver.server_close()\nprint(page)"
        )
        for source, out in ((serve, "b'hello'\n"), (http, "b'ok'\n")):
            answer = self.session(source)[0]
            self.assertEqual((answer["error"], answer["out"], answer["untracked"]), (None, out, []))
            self.assertTrue(answer["clock"])
        answer = self.session("import socket\nserver = socket.socket()\nserver.bind(('127.0.0.1', 0))")[0]
        self.assertIn("socket.bind", [found["what"] for found in answer["untracked"]])

    def test_another_process_may_read_every_file(self):
        answers = self.session("open('a', 'w').write('1')", "import subprocess\ndone = subprocess.run(['true'])")
        self.assertIn("f:a", answers[1]["reads"])
        self.assertIn("d:.", answers[1]["reads"])

    def test_what_has_not_ended_is_untracked(self):
        wait = "import threading\ne = threading.Event()\nt = threading.Thread(target=e.wait, daemon=True)\nt.start()"
        process = "import subprocess\np = subprocess.Popen(['sleep', '60'])"
        answers = self.session(wait, "e.set(); t.join()", process, "p.kill(); c = p.wait()")
        reported = [[found["what"] for found in answer["untracked"]] for answer in answers]
        self.assertEqual(len(reported[0]), 1)
        self.assertIn("_thread.start", reported[0][0])
        self.assertEqual(reported[2], ["subprocess.Popen"])

    def test_state_inside_packages_is_not_compared(self):
        for answer in self.session("import calendar\ndays = calendar.mdays", "days.append(1)"):
            self.assertEqual(answer["untracked"], [])

    def test_what_an_import_does_is_the_environments(self):
        write(self, "starts.py", THREAD)
        path = f"import sys\nsys.path.append({self.packages!r})\n"
        path += "channels.modules.boundary.places |= {sys.path[-1]}\nchannels.process.set('path', sys.path)"
        answers = self.session(
            ["python", path],
            "import random\nrandom.seed(1)",
            "import starts",
            "x = random.random()",
            "def f(): pass\nimport threading\nt = threading.Thread(target=f); t.start(); t.join()",
        )
        for answer in answers[1:]:
            self.assertIsNone(answer["error"])
            self.assertEqual(answer["untracked"], [])
        self.assertTrue(all(name[:2] in ("f:", "p:") for name in answers[2]["reads"]), answers[2]["reads"])
        self.assertIn("f:starts.py", answers[2]["reads"])
        self.assertNotIn("f:starts.so", answers[2]["reads"])
        self.assertNotIn("p:rng", answers[2]["wrote"])

    def test_the_warning_filters_of_a_package_belong_to_no_step(self):
        write(self, "starts.py", THREAD)
        path = f"import sys\nsys.path.append({self.packages!r})\n"
        path += "channels.modules.boundary.places |= {sys.path[-1]}\nchannels.process.set('path', sys.path)"
        count = "import warnings\nanswer = sum(1 for one in warnings.filters if one[1] and one[1].pattern == 'of starts')"
        answers = self.session(
            ["python", path], "import starts", ["python", count], ["drop", "p:warn"], ["python", count],
            "import starts", ["python", count],
        )
        self.assertEqual([answers[2], answers[4], answers[6]], [1, 1, 1])
        # Whichever step imports it first, and however.
        self.assertNotIn("p:warn", answers[1]["wrote"])


class UntrackedTest(WorldTest):
    """Each of these must be detected, whatever came before it."""

    def test_untracked_constructs_are_reported(self):
        answers = self.session(*(source for source, _ in STEPS))
        for (source, want), answer in zip(STEPS, answers):
            with self.subTest(source):
                self.assertIsNone(answer["error"])
                reported = [found["what"] for found in answer["untracked"]]
                if want is None:
                    self.assertEqual(reported, [])
                    continue
                self.assertTrue(any(want in what for what in reported), (want, reported))

    def test_the_line_is_that_of_the_step(self):
        answers = self.session("x = 1\ny = 2\nk = id(x)", "def f():\n    return id(x)", "z = 1\n\nf()")
        self.assertEqual(answers[0]["untracked"], [{"what": "id", "line": 3}])
        self.assertEqual(answers[1]["untracked"], [])
        self.assertEqual(answers[2]["untracked"], [{"what": "id", "line": 3}])

    def test_a_library_function_replaced_where_others_use_it(self):
        answers = self.session("import json.decoder\njson.decoder.scanstring = None")
        self.assertIn("json.decoder.scanstring", answers[0]["untracked"][0]["what"])

    def test_a_file_that_takes_the_name_of_a_loaded_module(self):
        answers = self.session("import csv", "open('csv.py', 'w').close()", "import csv")
        self.assertEqual(answers[1]["untracked"][0]["what"], "csv.py takes the name of a loaded module")

    def test_no_code_of_the_program_runs_while_it_is_looked_at(self):
        wild = """
class Meta(type):
    def __getattribute__(cls, name): raise SystemError(name)
    def __eq__(cls, other): raise SystemError
    def __hash__(cls): raise SystemError
    def __instancecheck__(cls, other): raise SystemError
    def __subclasscheck__(cls, other): raise SystemError
class Wild(metaclass=Meta):
    def __getattribute__(self, name): raise SystemError(name)
    def __eq__(self, other): raise SystemError
    __hash__ = None
    def __bool__(self): raise SystemError
    def __del_not__(self): raise SystemError
wild = object.__new__(Wild)
"""
        answers = self.session(
            wild,
            "x = wild, Wild",
            "import math\nmath.wild = wild\nmath.Wild = Wild",
            "y = math.wild",
            "open('helper.py', 'w').write('def f(x):\\n    return x\\n')",
            "import helper\nhelper.wild = wild\nz = wild, Wild",
            "helper.f(wild)",
        )
        for answer in answers:
            self.assertIsNone(answer["error"])
            self.assertEqual(answer["untracked"], [])
        self.assertEqual(answers[3]["diffs"], {"math": ["Wild", "wild"]})
