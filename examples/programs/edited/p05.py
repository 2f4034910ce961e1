NAME = "words"
SRC = r'''
# %% imports
import heapq
import itertools
import random
import re
from collections import Counter, defaultdict, deque
from functools import lru_cache
# %% text
random.seed(11)
words = "graph step edit value table cell trace store file name line plan run hash block".split()
lines = [" ".join(random.choices(words, k=12)) for _ in range(800)]
# %% tokens
tokens = [[w for w in re.findall(r"[a-z]+", line) if w != "run"] for line in lines]
# %% counts
counts = Counter(itertools.chain.from_iterable(tokens))
# %% pairs
pairs = Counter()
for line in tokens:
    pairs.update(itertools.pairwise(line))
# %% index
index = defaultdict(list)
for at, line in enumerate(tokens):
    for word in sorted(set(line)):
        index[word].append(at)
# %% rare
rare = heapq.nsmallest(3, counts.items(), key=lambda one: (one[1], one[0]))
# %% queue
queue = [(-n, w) for w, n in counts.items()]
heapq.heapify(queue)
heapq.heappush(queue, (-1000000, "title"))
# %% order
order = [heapq.heappop(queue)[1] for _ in range(len(queue))]
# %% distance
@lru_cache(maxsize=None)
def distance(a, b):
    if not a or not b:
        return len(a) + len(b)
    return min(distance(a[1:], b) + 1, distance(a, b[1:]) + 1, distance(a[1:], b[1:]) + (a[0] != b[0]))
# %% near
near = {a: min((b for b in words if b != a), key=lambda b: (distance(a, b), b)) for a in words}
# %% stream
stream = itertools.chain.from_iterable(tokens)
head = list(itertools.islice(stream, 5))
# %% last
last = deque(stream, maxlen=4)
# %% sample
sample = random.sample(lines, 2)
# %% report
print(rare, order[:4], pairs.most_common(2), len(index["graph"]), near["step"], head, list(last), sample)
'''
EDITS = [
    ("report", [("sub", "report", "order[:4]", "order[:6]")], {"report"}),
    ("rare", [("sub", "rare", "(3,", "(4,")], {"rare", "report"}),
    ("queue", [("sub", "queue", "-1000000", "-1")], {"queue", "order", "report"}),
    ("same tokens", [("sub", "tokens", "[a-z]+", "[a-z]{1,}")], {"tokens"}),
    ("head", [("sub", "stream", "5)", "6)")], {"stream", "last", "report"}),
    ("sample", [("sub", "sample", ", 2", ", 3")], {"sample", "report"}),
    ("tokens", [("sub", "tokens", '"run"', '"plan"')],
     {"tokens", "counts", "pairs", "index", "rare", "queue", "order", "stream", "last", "report"}),
]
