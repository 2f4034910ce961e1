"""Loads units from blobs in a fresh process and reports the result."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import support  # noqa: E402

asked = json.load(sys.stdin)
session = support.Session()
failed = session.graph.load([dict(i, blob=bytes.fromhex(i["blob"])) for i in asked["items"]])
units = session.graph.sweep()
settled = session.graph.settle(10**6, {"n:" + k for k in session.names()}, set(), set())
again = [[e["entity"] for e in u["members"]] for u in settled.units]
if asked["check"]:
    exec(asked["check"], session.ns)
json.dump({"failed": failed, "changed": again, "units": [{k: v for k, v in u.items() if k != "blob"} for u in units]},
          sys.stdout)
