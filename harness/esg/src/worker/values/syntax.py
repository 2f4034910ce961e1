"""Syntax trees of `ast`: what a node has is in its dict.

The parser gives one object of each class without fields to all trees: `Load()`, `Add()`. A node like that is
written by its class, as two trees would share it otherwise.
"""
from _harness.values.payloads import Payload
from _harness.values.shapes import Kind, register

_ONLY_TREE = 0x400      # `ast.PyCF_ONLY_AST`
_ALL = """
x = not ~+-a + a - a * a @ a / a % a ** a << a >> a | a ^ a & a // a
del x
a and b or c
a == b != c < d <= e > f >= g is h is not i in j not in k
"""


class OfNode(Payload):
    has_dict = True

    def __init__(self, base):
        self.base = base

    def new(self, cls, head):
        return self.base.__new__(cls)


class Shared(Kind):
    """What the parser gives to all trees."""
    tag, mutable, early = "ast", False, False

    def __init__(self):
        self.nodes = {}     # id of a class -> its object
        self.picks = {}

    def find(self):
        """Finds these classes, and adds how each is picked."""
        open_ = [compile(_ALL, "", "exec", _ONLY_TREE)]
        while open_:
            node = open_.pop()
            if type(node) is list:
                open_ += node
            elif hasattr(node, "_fields"):
                open_ += vars(node).values()
                if not node._fields:
                    self.nodes[id(type(node))] = node
                    self.picks[id(type(node))] = self.pick

    def pick(self, walk, o):
        return self if o is self.nodes[id(type(o))] else walk.world.kind(type(o))

    def split(self, walk, objs):
        return [walk.name(type(o)) for o in objs], []

    def build(self, load, head, kids, n):
        if not self.nodes:
            self.find()
        return [self.nodes[id(load.named(cls))] for cls in head]

SHARED = register(Shared())
