"""The fast path for the usual step gives the same reply as the full path."""

import re
import unittest

import driver

# What a step may do to the channels, and what its reply reports then.
EFFECTS = [
    ("file", "open('f', 'w').close()", "f:f"),
    ("file by descriptor", "os.close(os.open('g', os.O_CREAT | os.O_WRONLY))", "f:g"),
    ("directory", "os.mkdir('d')", "f:d"),
    ("look at a file", "os.path.exists('nothing')", "f:nothing"),
    ("listing", "os.listdir('.')", "d:."),
    ("working directory", "os.chdir('/')", "p:cwd"),
    ("environment", "os.environ['CALM'] = '1'", "p:env"),
    ("look at the environment", "os.environ.get('CALM')", "p:env"),
    ("search path", "sys.path.append('/nowhere')", "p:path"),
    ("another search path", "sys.path = [*sys.path, '/nowhere']", "p:path"),
    ("warning filters", "warnings.simplefilter('ignore')", "p:warn"),
    ("a warning", "warnings.warn('w')", "p:warn"),
    ("random state", "random.random()", "p:rng"),
    ("random state from a seed", "random.seed(3)", "p:rng"),
    ("clock", "time.time()", "readings"),
    ("entropy", "os.urandom(4)", "readings"),
    ("import of a submodule", "__import__('xml.dom.minidom')", "p:import/xml.dom"),
    ("thread", "threading.Thread(target=int).start()", "'clock': True"),
    ("child", "os.waitpid(os.fork() or os._exit(0), 0)", "os.fork"),
    ("builtin replaced", "builtins.print = None", "builtins.print replaced"),
    ("file outside", "open('/etc/passwd').close()", "x:/etc/passwd"),
    ("printed", "print('shown')", "shown"),
    ("an address printed", "print(object())", "an address in the output"),
    ("hook", "sys.excepthook = None", ""),
    ("builtin added", "builtins.added = 1", ""),
]
IMPORTS = "import builtins, os, random, sys, threading, time, warnings\n"
# A function that is not reachable through any name of the program.
HIDDEN = """def effect():
    %s
builtins.effect = effect
del effect
x = 1"""

USUAL = [
    "pass",
    "x = 1",
    "x = x + 1",
    "x += 1; y = x",
    "print(x)",
    "print(x, 'text', end='')",
    "y = x if x else None",
    "del y",
    "x = x is None",
    "y = x is 1000",
    "missing",
    "x = 'a' 'b'; y = x.upper()",
    "y = len(x)",
    "x = [1]",
    "y = x",
    "y = 1",
    "x.append(2)",
    "x = b''",
    "for i in range(3): y = i",
    "y = sorted((3, 1))[0]",
    "y = round(2.5)",
    "def f(): return y",
    "y = f()",
    "y = 2",
    "class C: y = y",
    "y = C.y",
    "y = globals()['x']",
    "exec('y = 4')",
    "y = eval('x')",
    "y = __import__('math').pi",
    "import math",
    "y = math.pi",
    "y = getattr(math, 'e')",
    "y = hash('a')",
    "y = '__globals__'",
    "y = 'st_mtime'",
    "y = __name__",
    "__name__ = 'other'",
    "y = 1 / 0",
    "y = (1, 2)",
    "y: int = 3",
    "y = [i for i in (1, 2)][0]",
    "y = (lambda: x)()",
    "y = 3 if False else 4; del x",
]


def long_way():
    """The worker's files with the fast paths disabled."""
    files = driver.sources()
    closed = {}
    for file, head, body in (
        ("world.calm", "    def holds(self, code):\n", "        return False\n"),
        ("loop.scalar", "def foresee(source, code, namespace):\n", "    return None\n"),
    ):
        assert files[file].count(head) == 1
        closed[file] = files[file].replace(head, head + body)
    return closed


def normalized(reply):
    """A reply without what differs from run to run."""
    reply = {key: reply[key] for key in reply if key not in ("nonce", "micros")}
    reply["readings"] = [kind for kind, _ in reply["readings"]]
    reply["stdout"] = {"text": re.sub("0x[0-9a-f]+", "0x", reply["stdout"]["text"])}
    return reply


class Both(unittest.TestCase):
    """Asks a worker, and one without fast paths."""

    def setUp(self):
        self.workers = [driver.Worker(), driver.Worker(long_way())]
        for worker in self.workers:
            self.addCleanup(worker.close)

    def both(self, source, name="s"):
        """The reply to a step, which is the same from both."""
        short, long = [normalized(worker.run(source, step=name)) for worker in self.workers]
        for reply, worker in zip((short, long), self.workers):
            for unit in reply.get("units", ()):
                at, length = unit.get("blob") or (0, 0)
                unit["blob"] = worker.blob[at : at + length]
                if unit["members"][0]["entity"] == "p:path":
                    # Contains the path of scratch, which differs.
                    unit["blob"] = unit["members"][0]["own"] = None
        self.assertEqual(short, long, source)
        return short


class TestCalm(Both):
    def test_usual_steps(self):
        for at, source in enumerate(USUAL):
            with self.subTest(source):
                self.both(source, "s%d" % at)

    def test_effects_that_no_name_leads_to(self):
        for at, (what, source, sign) in enumerate(EFFECTS):
            with self.subTest(what):
                self.both(IMPORTS + HIDDEN % source, "a%d" % at)
                reply = self.both("effect()", "b%d" % at)
                self.assertEqual(reply["ending"], {"kind": "ok"})
                said = str({key: reply[key] for key in reply if key != "readings"})
                said += "readings" if reply["readings"] else ""
                self.assertIn(sign, said, what)
                self.both("x = x + 1", "c%d" % at)

    def test_effects_of_the_step_itself(self):
        for at, (what, source, sign) in enumerate(EFFECTS):
            with self.subTest(what):
                self.both(IMPORTS + source, "a%d" % at)
                self.both("x = 1", "b%d" % at)

    def test_a_function_is_heard_of_whenever_it_runs(self):
        self.both("x = y = 1\ndef f(): return x\ndef g():\n    while True: yield y")
        self.both("k = g(); next(k)")
        for at in range(3):
            # With scalar steps in between.
            self.both("z = %d" % at)
            self.both("z = z + 1")
            self.assertIn("n:x", self.both("z = f()")["reads"])
            self.both("z = z + 1")
            self.assertIn("n:y", self.both("z = next(k)")["reads"])

    def test_code_of_a_library_with_the_names_of_the_program(self):
        self.both("import shlex, types\nshlex.quote('a b')")
        self.both("z = 1")
        self.both("_find_unsafe = str.upper")
        for change in (
            "f = types.FunctionType(shlex.quote.__code__, globals())",
            "def f(s): pass\nf.__code__ = shlex.quote.__code__",
        ):
            self.both("shlex.quote('a b')")
            self.both("z = 2")
            self.both(change)
            self.assertIn("n:_find_unsafe", self.both("z = f('a b')")["reads"])


if __name__ == "__main__":
    unittest.main()
