"""Ordinary programs: none of their operations may be reported as untracked."""

from world import WorldTest

PROGRAMS = [
    """\
import json, csv, re, math
x = json.loads(json.dumps({'a': [1, 2.5, None]}))
m = re.sub('a+', 'b', 'caat')
""",
    """\
import io
f = io.StringIO()
w = __import__('csv').writer(f)
w.writerow([1, 2])
rows = list(csv.reader(io.StringIO(f.getvalue())))
""",
    """\
from collections import namedtuple, Counter, defaultdict, deque, OrderedDict, ChainMap
P = namedtuple('P', 'x y')
p = P(1, 2)
c = Counter('aab')
""",
    """\
from dataclasses import dataclass, field, asdict, replace
@dataclass(order=True)
class D:
    a: int
    b: list = field(default_factory=list)
d = asdict(replace(D(1), a=2))
""",
    """\
from enum import Enum, auto, IntFlag
class C(Enum):
    A = auto()
    B = auto()
class F(IntFlag):
    X = 1
    Y = 2
z = F.X | F.Y
""",
    """\
from typing import NamedTuple, TypedDict, Protocol, Generic, TypeVar, Optional
T = TypeVar('T')
class N(NamedTuple):
    a: int = 1
class G(Generic[T]):
    pass
class Pr(Protocol):
    def f(self) -> int: ...
class TD(TypedDict):
    a: int
n = N()
class Slots:
    __slots__ = ('a', '__weakref__')
slots = Slots()
""",
    """\
from pathlib import Path
Path('dir/sub').mkdir(parents=True, exist_ok=True)
(Path('dir') / 'a.txt').write_text('hello')
text = Path('dir/a.txt').read_text()
names = sorted(p.name for p in Path('dir').iterdir())
found = [str(p) for p in Path('.').rglob('*.txt')]
ok = Path('dir/none').exists()
""",
    """\
import datetime as dt
now = dt.datetime.now()
today = dt.date.today()
u = dt.datetime.now(dt.timezone.utc)
delta = (now - dt.timedelta(days=1)).isoformat()
d2 = dt.datetime.strptime('2020-01-02', '%Y-%m-%d')
""",
    """\
import random
random.seed(3)
r = random.Random(5).choice([1, 2, 3])
q = [random.randint(1, 6) for _ in range(5)]
random.shuffle(q)
s = random.sample(range(10), 3)
""",
    """\
import statistics, string, textwrap
m = statistics.mean([1, 2, 3])
t = string.Template('$a').substitute(a=1)
w = textwrap.dedent('  x')
m2 = statistics.stdev([1.5, 2.5])
""",
    """\
from decimal import Decimal, ROUND_HALF_UP
from fractions import Fraction
d = Decimal('1.10') / 3
q = d.quantize(Decimal('0.01'), rounding=ROUND_HALF_UP)
f = Fraction(1, 3) + 1
""",
    """\
import functools, operator, copy, itertools
@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n-1) + fib(n-2)
v = fib(20)
w = copy.deepcopy({'a': [1, {'b': 2}]})
k = functools.reduce(operator.add, [1, 2])
@functools.singledispatch
def sd(x): return 1
@sd.register
def _(x: int): return 2
sd(1)
""",
    """\
import contextlib, abc
class A(abc.ABC):
    @abc.abstractmethod
    def f(self): ...
class B(A):
    def f(self): return 1
@contextlib.contextmanager
def cm():
    yield 1
with cm() as v, contextlib.suppress(ValueError):
    int('x')
b = B().f()
isinstance(b, A)
""",
    """\
import heapq, bisect
h = [3, 1, 2]
heapq.heapify(h)
x = heapq.heappop(h)
bisect.insort(h, 5)
""",
    """\
import hashlib, base64, struct, zlib, uuid, hmac, secrets, binascii
h = hashlib.sha256(b'a').hexdigest()
b = base64.b64encode(b'abc')
s = struct.pack('<I', 3)
z = zlib.decompress(zlib.compress(b'abc'))
u = uuid.uuid5(uuid.NAMESPACE_DNS, 'a')
u4 = uuid.uuid4()
u1 = uuid.uuid1()
tok = secrets.token_hex(8)
""",
    """\
import unittest, io
def add(a, b): return a + b
class T(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)
    def test_raises(self):
        with self.assertRaises(TypeError):
            add(1, 'x')
res = unittest.TextTestRunner(stream=io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(T))
ok = res.wasSuccessful()
""",
    """\
import asyncio
async def f(x):
    await asyncio.sleep(0)
    return x * 2
async def main():
    return await asyncio.gather(*(f(i) for i in range(3)))
res = asyncio.run(main())
""",
    """\
import asyncio
async def g():
    q = asyncio.Queue()
    t = asyncio.create_task(f(2))
    await q.put(await t)
    return await asyncio.wait_for(q.get(), 1)
res2 = asyncio.run(g())
""",
    """\
import tempfile, os, shutil
d = tempfile.mkdtemp(dir='.')
with tempfile.NamedTemporaryFile('w', dir=d, delete=False) as tf:
    tf.write('x')
with tempfile.TemporaryDirectory(dir='.') as td:
    open(os.path.join(td, 'a'), 'w').close()
shutil.copy(tf.name, 'copied')
shutil.rmtree(d)
""",
    """\
with open('data.csv', 'w', newline='') as fh:
    import csv
    csv.DictWriter(fh, ['a', 'b']).writerows([{'a': 1, 'b': 2}])
with open('data.csv') as fh:
    got = fh.readlines()
""",
    """\
import os, glob
os.makedirs('o/p', exist_ok=True)
ex = os.path.exists('data.csv'), os.path.isfile('nope'), os.path.getsize('data.csv')
ls = os.listdir('.')
g = glob.glob('*.csv')
for root, dirs, files in os.walk('.'):
    pass
os.replace('data.csv', 'data2.csv')
home = os.environ.get('HOME', '')
os.remove('data2.csv')
""",
    """\
import argparse
ap = argparse.ArgumentParser(prog='p')
ap.add_argument('--n', type=int, default=3)
ns = ap.parse_args(['--n', '5'])
help_text = ap.format_help()
""",
    """\
import pprint, urllib.parse, html, difflib, calendar, locale, shlex, fnmatch, traceback
pp = pprint.pformat({'a': [1, 2]})
u = urllib.parse.urlencode({'a': 'b c'})
urlp = urllib.parse.urlparse('http://x/y?z=1').query
d = list(difflib.unified_diff(['a'], ['b']))
cal = calendar.monthrange(2024, 2)
try:
    1 / 0
except ZeroDivisionError:
    tb = traceback.format_exc()
""",
    """\
import sqlite3
con = sqlite3.connect(':memory:')
con.execute('create table t (a int)')
con.execute('insert into t values (1)')
rows = con.execute('select * from t').fetchall()
con.close()
""",
    """\
import time
t0 = time.perf_counter()
time.sleep(0)
el = time.perf_counter() - t0
stamp = time.strftime('%Y')
class Timer:
    clock = time.time
    def go(self):
        return self.clock()
tt = Timer().go()
""",
    """\
class id:
    pass
class Node:
    __slots__ = ('a', '__dict__')
    def __init__(self, signal=1): self.signal = signal; self.gc = 2; self.umask = 3
    def __eq__(self, o): return type(self) is type(o) and self.signal == o.signal
    def __hash__(self): return hash((type(self), self.signal))
logging = Node()
weak = logging.gc + logging.umask
socket = {Node(): 1}
""",
    """\
import sys
print('hello', file=sys.stderr)
ver = sys.version_info >= (3, 8)
mx = sys.maxsize
args = sys.argv
lim = sys.getrecursionlimit()
sz = sys.getsizeof(1)
""",
    """\
import xml.etree.ElementTree as ET
t = ET.fromstring('<a><b>1</b></a>')
v = t.find('b').text
ET.ElementTree(t).write('t.xml')
import zipfile, tarfile, gzip, configparser
with zipfile.ZipFile('z.zip', 'w') as z:
    z.writestr('a', 'b')
with gzip.open('g.gz', 'wt') as g2:
    g2.write('x')
cp = configparser.ConfigParser()
cp.read_string('[a]\\nb=1')
""",
    """\
import pickle, types, inspect, warnings
p = pickle.loads(pickle.dumps([1, (2, 3)]))
sig = str(inspect.signature(add))
ns2 = types.SimpleNamespace(a=1)
with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    warnings.warn('x')
src = inspect.isfunction(add)
""",
    """\
from threading import Lock
class Safe:
    def __init__(self):
        self.lock = Lock()
        self.n = 0
    def inc(self):
        with self.lock:
            self.n += 1
s1 = Safe(); s1.inc()
""",
    """\
from unittest.mock import Mock, patch
m = Mock(return_value=3)
x3 = m(1)
with patch('json.dumps', return_value='x'):
    import json
    y3 = json.dumps(1)
""",
    """\
import zoneinfo, graphlib, numbers, array, queue, timeit, ast, tokenize, platform, getpass, codecs, secrets
ts = graphlib.TopologicalSorter({'a': {'b'}})
order = list(ts.static_order())
q = queue.Queue(); q.put(1); q.get()
tree = ast.dump(ast.parse('x = 1'))
tt2 = timeit.timeit('1+1', number=10)
""",
    """\
import os
root = os.path.abspath('.')
real = os.path.realpath('a/b')
exp = os.path.expanduser('~')
os.environ['K'] = 'v'
cw = os.getcwd()
os.chdir('o')
os.chdir('..')
""",
    """\
def gen():
    yield 1
xs = list(gen())
class Meta(type):
    def __new__(m, n, b, d): return super().__new__(m, n, b, d)
class WithMeta(metaclass=Meta):
    def __init_subclass__(cls): super().__init_subclass__()
    @property
    def p(self): return super().__repr__
class Sub(WithMeta): pass
y = {**{'a': 1}}
match y:
    case {'a': n}: pass
""",
    """\
import xml.etree.ElementTree as ET, html, difflib, pprint, calendar, argparse, configparser
tree = ET.fromstring('<a><b x="1"/></a>'); text = ET.tostring(tree)
a = html.unescape('&lt;'), list(difflib.ndiff(['a'], ['b']))
month = calendar.month(2020, 1)
parser = argparse.ArgumentParser(prog='x'); parser.add_argument('--a', type=int)
usage = parser.format_help()
""",
    """\
import email, http.cookies, urllib.request, locale, gettext, doctest, pyclbr
mail = email.message_from_string('A: b\\n\\nx')
cookie = http.cookies.SimpleCookie('a=b'); asked = urllib.request.Request('http://x')
found = gettext.gettext('a'), locale.localeconv()['decimal_point'], pyclbr.readmodule('colorsys') is None
""",
    """\
class Foo: pass
mark, kind = object(), Foo
held = {'k': mark, 'j': 'abc'}
def plain(v=mark):
    return v is mark or v is None
checks = kind is Foo, held['k'] is mark, plain('abc'), type(held) is dict, held is held, (1, 2) is not None
""",
]


class CleanTest(WorldTest):
    """One after another in one process, as steps of one program."""

    def test_ordinary_programs_are_tracked(self):
        answers = self.session(*PROGRAMS, ["sweep"])
        for source, answer in zip(PROGRAMS, answers):
            with self.subTest(source):
                self.assertIsNone(answer["error"])
                self.assertEqual(answer["untracked"], [])
                self.assertEqual(answer["diffs"], {})
                self.assertEqual(answer["external"], {})
        self.assertEqual(answers[-1]["unattributed"], [])
