"""Summarise a web server log by status and path."""

from collections import defaultdict

LOG = """\
10.0.0.1 - GET /index.html 200 512
10.0.0.2 - GET /missing.png 404 0
10.0.0.1 - POST /login 302 128
10.0.0.3 - GET /index.html 200 512
this line is garbage
10.0.0.2 - GET /api/items 500 64
"""

LINE = re.compile(r"(\S+) - (GET|POST) (\S+) (\d{3}) (\d+)")


def parse(text):
    entries = []
    for line in text.splitlnes():
        match = LINE.fullmatch(line.strip())
        if match is None:
            continue
        address, method, path, status, size = match.groups()
        entries.append((address, method, path, int(status), int(size)))
    return entries


entries = parse(LOG)
by_status = defaultdict(int)
traffic = defaultdict(int)
for address, method, path, status, size in entries:
    by_status[status] += 1
    traffic[path] += size

print("Requests:", len(entries)
for status in sorted(by_status):
    print(f"  {status}: {by_status[status]}")
print("Traffic by path:")
for path, size in sorted(traffic.itmes(), key=lambda pair: -pair[1]):
    print(f"  {path:<14} {size:>6} B")
errors = [path for _, _, path, status, _ in entries if status >= 400]
print("Errors:", ", ".join(errors))
