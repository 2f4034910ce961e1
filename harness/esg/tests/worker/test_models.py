"""Models of pydantic: stored by what they are declared with, and made again.

`HARNESS_VENV` names a virtual environment where it is installed. Without it, and under another version of
Python, nothing is tested: `worker.rs` fails then where `HARNESS_CHECK` is set."""
import unittest
import unittest.mock

from driver import Worker
from support import Session
from test_field import PLACE, installed

DECLARED = """
import datetime
from enum import Enum
from typing import Annotated, Generic, Literal, Optional, TypeVar, Union
from pydantic import (
    BaseModel, ConfigDict, Field, PrivateAttr, RootModel, TypeAdapter, computed_field, field_validator,
    model_validator, validate_call)
from pydantic.dataclasses import dataclass

class Color(Enum):
    RED = 1
    BLUE = 2

class Item(BaseModel):
    model_config = ConfigDict(extra='forbid', validate_assignment=True)
    count: int = Field(gt=0, description='how many')
    color: Color = Color.RED
    day: datetime.date = datetime.date(2020, 1, 1)
    code: str = Field(default='ab', pattern='^a', max_length=5)
    _seen: dict = PrivateAttr(default_factory=dict)

    @field_validator('count')
    @classmethod
    def even(cls, count):
        if count % 2:
            raise ValueError('odd')
        return count

    @model_validator(mode='after')
    def check(self):
        self._seen['checked'] = True
        return self

    @computed_field
    @property
    def double(self) -> int:
        return self.count * 2

class Node(BaseModel):
    nodes: list['Node'] = []
    item: Optional[Item] = None
    kind: Literal['a', 'b'] = 'a'

class Cat(BaseModel):
    kind: Literal['cat']

class Dog(BaseModel):
    kind: Literal['dog']

class Owner(BaseModel):
    pet: Annotated[Union[Cat, Dog], Field(discriminator='kind')]

T = TypeVar('T')
class Box(BaseModel, Generic[T]):
    held: T

class Names(RootModel[list[str]]):
    pass

@dataclass
class Point:
    x: int
    item: Item

adapter = TypeAdapter(list[Item])

@validate_call
def add(x: int, y: int = 2) -> int:
    return x + y

when = TypeAdapter(datetime.datetime).validate_python('2024-05-01T00:00:00+01:30')
box = Box[int](held=1)
node = Node(nodes=[Node(item=Item(count=4))])
"""
USED = """
from pydantic import ValidationError
def refused(make, *args, **named):
    try:
        make(*args, **named)
    except ValidationError as error:
        return [(one['type'], one['loc']) for one in error.errors()]
node.nodes[0].item.count = 6
print(node.model_dump_json(), box, isinstance(node.nodes[0], Node))
print(refused(Item, count=3), refused(Item, count=2, code='b'), refused(Item, count=2, other=1))
print(Owner(pet={'kind': 'dog'}).pet == Dog(kind='dog'), refused(Owner, pet={'kind': 'cow'}))
print(adapter.validate_python([{'count': 2}]), refused(adapter.validate_python, [{'count': 1}]))
print(add('3'), refused(add, 'x'), Names(['a']).root, refused(Names, [1]))
print(when, when.tzinfo)
print(Point(x='1', item={'count': 2}), refused(Point, x='a', item={}))
print(type(box) is Box[int], Box[str](held='a'), refused(Box[int], held='a'))
print(Item.model_json_schema(), Item.__signature__, Item(count=2)._seen)
"""


@unittest.skipUnless(installed("pydantic"), "pydantic is not installed")
class ModelsTest(unittest.TestCase):
    def test_models_are_restored_from_what_they_are_declared_with(self):
        kept = "Item Node Owner Box Names Point adapter add box node when".split()
        session, twin, other = Session(), Session(), Session()
        session.run(DECLARED)
        self.assertEqual({name: session.unserializable(name) for name in kept}, dict.fromkeys(kept))
        twin.run(DECLARED)
        for name in kept:
            # The schema names its classes by their addresses.
            self.assertEqual(twin.own(name), session.own(name), name)
        self.assertEqual(other.graph.load(session.items()), [])
        self.assertEqual(self.output(other, USED), self.output(session, USED))

    def test_using_a_model_does_not_change_it(self):
        with Worker(path=[PLACE]) as worker:
            worker.run("rows = [1]")
            reply = worker.run(DECLARED)
            self.assertNotIn("*", reply["reads"])
            reply = worker.run(USED)
            # A subscripted model is bound once for each process, which a replay would not do again.
            self.assertEqual([name for name in reply["wrote"] if "[" in name], [])
            self.assertEqual(sorted(name for name in reply["wrote"] if name[0] in "nt" and "Box" not in name),
                             ["n:ValidationError", "n:node", "n:refused", *self.made(reply)])
            self.assertEqual(reply["wrote"]["n:node"], "mutated")
            self.assertNotIn("error", reply)

    def test_a_model_that_is_completed_later_is_restored_as_it_is(self):
        session, other = Session(), Session()
        session.run("from pydantic import BaseModel\nclass Late(BaseModel):\n    later: 'Later'")
        self.assertIsNone(session.unserializable("Late"))
        other.graph.load(session.items())
        other.run("class Later(BaseModel):\n    n: int\nlate = Late(later={'n': '1'})")
        self.assertEqual(other.ns["late"].later.n, 1)

    def test_models_of_an_unknown_version_are_made_again(self):
        import pydantic
        source = "from pydantic import TypeAdapter, validate_call\nadapter = TypeAdapter(int)\n" \
                 "@validate_call\ndef add(x: int): return x"
        with unittest.mock.patch.object(pydantic, "VERSION", "2.9.2"):
            old = Session()
            old.run(source)
            self.assertTrue(old.unserializable("adapter") and old.unserializable("add"))
        new = Session()
        new.execute(source)
        del new.ns["adapter"]._config
        new.run("")
        self.assertEqual(new.unserializable("adapter"), "type pydantic.TypeAdapter")

    @staticmethod
    def made(reply):
        return [name for name in reply["wrote"] if name[0] == "t" and reply["wrote"][name] == "bound"]

    @staticmethod
    def output(session, source):
        session.run("lines = []\ndef print(*values): lines.append(repr(values))\n" + source)
        return session.ns["lines"]


@unittest.skipUnless(installed("msgspec"), "msgspec is not installed")
class StructsTest(unittest.TestCase):
    def test_what_a_struct_holds_is_known(self):
        with Worker(path=[PLACE]) as worker:
            worker.run("import msgspec\nclass Line(msgspec.Struct):\n    sku: str\n    n: int = 1\n"
                       "class Key(msgspec.Struct, frozen=True):\n    sku: str")
            reply = worker.run("stock = [Line(s) for s in 'ab']\nkeys = {Key(s): 1 for s in 'ab'}")
            # Their class is not stored, so they are made again.
            self.assertEqual({unit["unserializable"] for unit in reply["units"]},
                             {"type __main__.Line", "type __main__.Key"})
            self.assertEqual(worker.run("m = len(keys), stock[0].sku")["wrote"], {"n:m": "bound"})
            self.assertEqual(worker.run("stock[1].n = 3")["wrote"], {"n:stock": "mutated"})
            self.assertEqual(worker.run("stock[1].n = 3")["wrote"], {})
            # Their hashes are made from the address of their class.
            found = [worker.run(f"unique = {{*map(Key, '{text}')}}") for text in ("abcd", "dbca")]
            self.assertEqual([reply["untracked"][0]["what"] for reply in found], ["a set ordered by address"] * 2)
            self.assertEqual(*[reply["units"][0]["members"][0]["own"] for reply in found])


if __name__ == "__main__":
    unittest.main()
