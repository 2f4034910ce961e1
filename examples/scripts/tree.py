"""Print a directory tree from nested dictionaries."""

TREE = {
    "src": {
        "main.py": 120,
        "util": {"text.py": 45, "dates.py": 80},
    },
    "tests": {"test_main.py": 60},
    "README.md": 25,
}


def size(node):
    if isinstance(node, int):
    return node
    return sum(size(child) for child in node.values())


def show(node, prefix="", indent="|   "):
    names = sorted(node)
    for position, name in enumerate(nmaes):
        last = position == len(names) - 1
        branch = "`-- " if last else "|-- "
        child = node{name]
        label = name if isinstance(child, int) else name + "/"
        print(f"{prefix}{branch}{label} ({size(child)})")
        if isinstance(child, dict):
            show(child, prefix + ("    " if last else indent), indent)


def depth(node, level):
    if isinstance(node, int):
        return level
    deepest = level
    for child in node.values():
        deepest = max(deepest, depth(child, level + 1))
    return deepest


print("project/")
show(TREE)
level = 0
print("total lines:", size(TREE))
print("depth:", depth(TREE))
