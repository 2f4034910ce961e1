"""Untracked operations are reported, with a descriptive name."""

from world import WorldTest

# Steps of one program, and the reports for each.
STEPS = [
    ('import gc\ngc.collect()', 'gc'),
    ('n = gc.get_count()', 'gc'),
    ('import weakref\nclass A: pass\na = A()\nr = weakref.ref(a)', 'weakref'),
    ('subs = A.__subclasses__()', '__subclasses__'),
    ('def f(): return 1\ng = f.__globals__', '__globals__'),
    ('k = id(a)', 'id'),
    ('ks = sorted([a, f], key=id)', 'id'),
    ('class B:\n    def __del__(self): pass', '__del__'),
    ('import threading\nt = threading.Thread(target=f); t.start(); t.join()', '_thread.start'),
    ('from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(1) as ex:\n    list(ex.map(f.__call__, []))\n    ex.submit(f).result()', '_thread.start'),
    ("import subprocess\nsubprocess.run(['true'])", 'subprocess.Popen'),
    ("import os\nos.system('true')", 'os.system'),
    ('pid = os.fork()\nif pid == 0:\n    os._exit(0)', 'os.fork'),
    ('import socket\ns = socket.socket()', 'socket'),
    ("import urllib.request\ntry:\n    urllib.request.urlopen('http://127.0.0.1:9/', timeout=1)\nexcept OSError:\n    pass", 'socket.connect'),
    ('import ctypes', 'ctypes'),
    ('import signal', 'signal'),
    ('import atexit\natexit.register(f)', 'atexit'),
    ('import sys\nsys.settrace(None)', 'settrace'),
    ('sys.setprofile(None)', 'setprofile'),
    ('fr = sys._getframe()', '_getframe'),
    ('import inspect\nz = inspect.currentframe()', 'inspect.currentframe'),
    ('import logging\nlogging.getLogger().setLevel(10)', 'logging'),
    ('from decimal import getcontext\ngetcontext().prec = 5', 'decimal'),
    ('import decimal\nwith decimal.localcontext() as c:\n    c.prec = 3', 'decimal'),
    ("import locale\nlocale.setlocale(locale.LC_ALL, 'C')", 'locale'),
    ('m = sys.modules', 'sys.modules'),
    ("open('/tmp/out_of_scratch', 'w').close()", 'writes /tmp'),
    ("os.remove('/tmp/out_of_scratch')", 'writes /tmp'),
    ("open('w', 'w').close()\nmt = os.path.getmtime('w')", 'getmtime'),
    ("mt = os.stat('w').st_mtime", 'st_mtime'),
    ('print(object())', 'address'),
    ('sys.setrecursionlimit(2000)', 'setrecursionlimit'),
    ('os.umask(0o22)', 'os.umask'),
    ('from os import umask as um\num(0o22)', 'os.umask'),
    ("os.link('w', 'w2')", 'hard link'),
    ("os.mkfifo('ff')", 'special file'),
    ("os.remove('w2'); os.remove('ff')\nimport mmap", 'mmap'),
    ('import contextvars', 'contextvars'),
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
    ('from email import charset\ncharset.ALIASES["zz"] = "utf-8"', 'email.charset.ALIASES'),
    ('import copy\ncopy._deepcopy_dispatch[complex] = None', 'copy._deepcopy_dispatch'),
    ('pair = (1, 2)\ntwin = pair\nr = pair is twin', 'identity'),
    ('def same(x, y):\n    return x is y\nr = same(pair, twin)', 'identity'),
    ('words = ["ab" * n for n in (2, 2)]\nr = words[0] is words[1]', 'identity'),
]


class UntrackedTest(WorldTest):
    """Each of these must be detected, whatever came before it."""

    def test_untracked_constructs_are_reported(self):
        answers = self.session(*(source for source, _ in STEPS))
        for (source, want), answer in zip(STEPS, answers):
            with self.subTest(source):
                self.assertIsNone(answer["error"])
                reported = [found["what"] for found in answer["untracked"]]
                self.assertTrue(any(want in what for what in reported), (want, reported))

    def test_the_line_is_that_of_the_step(self):
        answers = self.session("x = 1\ny = 2\nk = id(x)", "def f():\n    return id(x)", "z = 1\n\nf()")
        self.assertEqual(answers[0]["untracked"], [{"what": "id", "line": 3}])
        self.assertEqual(answers[1]["untracked"], [])
        self.assertEqual(answers[2]["untracked"], [{"what": "id", "line": 3}])

    def test_a_library_function_replaced_where_others_use_it(self):
        answers = self.session("import json.decoder\njson.decoder.scanstring = None")
        self.assertIn("json.decoder.scanstring", answers[0]["untracked"][0]["what"])

    def test_a_list_of_a_library_changed_in_place(self):
        answers = self.session("import calendar", "calendar.mdays.append(1)", "n = len(calendar.mdays)")
        reported = [[found["what"] for found in answer["untracked"]] for answer in answers]
        self.assertEqual(reported, [[], ["calendar.mdays was changed in place"], []])

    def test_a_file_that_takes_the_name_of_a_loaded_module(self):
        answers = self.session("import csv", "open('csv.py', 'w').close()", "import csv")
        self.assertEqual(answers[1]["untracked"][0]["what"], "csv.py takes the name of a loaded module")

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
