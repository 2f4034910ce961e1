NAME = "json pipeline"
SRC = r'''
# %% imports
import json
from dataclasses import dataclass, field
from pathlib import Path
# %% write
events = [
    {"id": i, "user": f"u{i % 7}", "kind": ["click", "view", "buy"][i % 3], "cents": i * 37 % 900}
    for i in range(3000)
]
with open("events.jsonl", "w") as out:
    for event in events:
        print(json.dumps(event), file=out)
# %% account
@dataclass
class Account:
    user: str
    cents: int = 0
    kinds: dict = field(default_factory=dict)

    def add(self, event):
        self.cents += event["cents"]
        self.kinds[event["kind"]] = self.kinds.get(event["kind"], 0) + 1
# %% read
def read(path):
    with open(path) as lines:
        for line in lines:
            yield json.loads(line)
# %% only
def only(events, kinds):
    return (event for event in events if event["kind"] in kinds)
# %% accounts
accounts = {}
for event in only(read("events.jsonl"), {"click", "buy"}):
    accounts.setdefault(event["user"], Account(event["user"])).add(event)
# %% top
top = sorted(accounts.values(), key=lambda one: (-one.cents, one.user))[:3]
# %% save
Path("top.json").write_text(json.dumps([{"user": one.user, "cents": one.cents} for one in top], indent=1))
# %% report
print(len(accounts), [(one.user, one.cents) for one in top])
# %% check
assert json.loads(Path("top.json").read_text())[0]["user"] == top[0].user
'''
EDITS = [
    ("report", [("sub", "report", "len(accounts)", "sum(one.cents for one in accounts.values())")], {"report"}),
    ("kinds", [("sub", "accounts", '"click", "buy"', '"view", "buy"')], {"accounts", "top", "save", "report", "check"}),
    ("how many", [("sub", "top", "[:3]", "[:5]")], {"top", "save", "report", "check"}),
    ("layout of a file", [("sub", "save", "indent=1", "indent=2")], {"save", "check"}),
    ("same result", [("sub", "read", "loads(line)", "loads(line.strip())")], {"read", "accounts"}),
    ("method", [("sub", "account", 'self.cents += event["cents"]', 'self.cents += 2 * event["cents"]')],
     {"account", "accounts", "top", "save", "report", "check"}),
]
