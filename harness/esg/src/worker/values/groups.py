"""How entities depend on each other: by shared objects, and by references in a cycle."""
from _harness.values.owners import LARGE


def by_sharing(entries):
    """Sets of entities connected by shared mutable objects."""
    first, parent = {}, {}

    def top(e):
        while parent[e] != e:
            parent[e] = e = parent[parent[e]]
        return e

    large = []
    for entry in entries:
        e = entry.entity
        parent[e] = e
        if not entry.ids:
            continue
        for other in large:
            if not other.known.isdisjoint(entry.known):
                parent[top(other.entity)] = top(e)
        if len(entry.ids) < LARGE:
            for hit in set(map(first.get, entry.ids)):
                if hit is not None:
                    parent[top(hit)] = top(e)
            first.update(dict.fromkeys(entry.ids, e))
        else:
            for hit in set(map(first.get, first.keys() & entry.known)):
                parent[top(hit)] = top(e)
            large.append(entry)
    found = {}
    for e in parent:
        found.setdefault(top(e), set()).add(e)
    return list(found.values())


def join_circles(groups, group_of, refs_of):
    """Merges groups whose references form a cycle, because groups may only refer downwards.

    `group_of(entity)` gives the existing group of an entity outside `groups`, `refs_of(entity)` its
    references. Returns the groups, including existing ones in a cycle."""
    home = {}
    nodes = [set(g) for g in groups]
    for n, g in enumerate(nodes):
        for e in g:
            home[e] = n

    def node(entity):
        n = home.get(entity)
        if n is None:
            n = len(nodes)
            nodes.append(set(group_of(entity)))
            for e in nodes[n]:
                home[e] = n
        return n

    order, low, on, stack, merged = {}, {}, set(), [], {}
    for start in range(len(groups)):
        if start in order or not any([e[0] != "n" for e in nodes[start]]):
            continue
        work = [(start, None)]
        while work:
            n, edges = work[-1]
            if edges is None:
                order[n] = low[n] = len(order)
                stack.append(n)
                on.add(n)
                edges = iter({node(r) for e in list(nodes[n]) for r in refs_of(e)} - {n})
                work[-1] = (n, edges)
            for m in edges:
                if m not in order:
                    work.append((m, None))
                    break
                if m in on:
                    low[n] = min(low[n], order[m])
            else:
                work.pop()
                if work:
                    up = work[-1][0]
                    low[up] = min(low[up], low[n])
                if low[n] == order[n]:
                    cycle = []
                    while True:
                        m = stack.pop()
                        on.discard(m)
                        cycle.append(m)
                        if m == n:
                            break
                    for m in cycle:
                        merged[m] = n
                    if len(cycle) > 1:
                        for m in cycle:
                            if m != n:
                                nodes[n] |= nodes[m]
    cycles = {}
    for n, top in merged.items():
        cycles.setdefault(top, []).append(n)
    out, taken = [], set()
    for n in range(len(nodes)):
        top = merged.get(n, n)
        if top not in taken and min(cycles.get(top, (n,))) < len(groups):
            taken.add(top)
            out.append(nodes[top])
    return out
