"""Dates, times, decimals, fractions and UUIDs: stored exactly, and written many at once."""
import unittest
from unittest import mock

from _harness.values.walk import Walk
from support import Session

SOURCE = """
import datetime, decimal, fractions, uuid
summer = datetime.timezone(datetime.timedelta(hours=2), "summer")
east = datetime.timezone(datetime.timedelta(hours=-3))
d = datetime.datetime(2020, 1, 2, 3, 4, 5, 6)
xs = [d, d.replace(fold=1), d.replace(tzinfo=datetime.timezone.utc), d.replace(tzinfo=summer), d.replace(tzinfo=east),
      datetime.date(2020, 1, 2), datetime.time(1, 2, 3, fold=1),
      datetime.time(1, tzinfo=summer), datetime.timedelta(-1, 2, 3), decimal.Decimal("-1.50"), decimal.Decimal("-0"),
      decimal.Decimal("sNaN12"), decimal.Decimal("Infinity"), decimal.Decimal("1E+9"), fractions.Fraction(-2, 6),
      uuid.UUID(int=7), uuid.uuid1()]
"""
SHOWN = """
def shown(x):
    safe, zone = getattr(x, "is_safe", None), getattr(x, "tzinfo", None)
    return type(x), repr(x), getattr(x, "fold", 0), safe, zone is datetime.timezone.utc
"""


def counting(split, taken):
    """Takes objects apart, and notes them."""
    def noted(walk, objs):
        taken.extend(objs)
        return split(walk, objs)

    return noted


class MomentTest(unittest.TestCase):
    """Values of these classes."""

    def test_they_are_restored_exactly(self):
        for times in (1, 40):
            session = Session()
            session.run(f"{SOURCE}xs = xs * {times}\n{SHOWN}")
            self.assertIsNone(session.unserializable("xs"))
            want = session.ns["shown"]
            want = [want(x) for x in session.ns["xs"]]
            other = Session()
            self.assertEqual(other.graph.load(session.items()), [])
            shown = other.ns["shown"]
            self.assertEqual([shown(x) for x in other.ns["xs"]], want)

    def test_a_time_zone_is_the_one_of_its_name(self):
        session = Session()
        session.run("from zoneinfo import ZoneInfo\nfrom datetime import datetime\nz = ZoneInfo('UTC')\n"
                    "d = [datetime(2020, 1, day, tzinfo=z) for day in range(1, 20)]")
        self.assertEqual([session.unserializable(name) for name in "zd"], [None, None])
        other = Session()
        self.assertEqual(other.graph.load(session.items()), [])
        self.assertEqual(other.ns["d"], session.ns["d"])
        self.assertIs(other.ns["d"][0].tzinfo, session.ns["z"])

    def test_one_that_differs_in_anything_differs(self):
        base = "import datetime, decimal\nd = datetime.datetime(2020, 1, 2, 3)\n"
        found = set()
        for source in ("[d] * 20", "[d.replace(fold=1)] * 20", "[d.replace(tzinfo=datetime.timezone.utc)] * 20",
                       "[d.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=1)))] * 20",
                       "[decimal.Decimal('1.5')] * 20", "[decimal.Decimal('1.50')] * 20", "[d.date()] * 20"):
            session = Session()
            session.run(f"{base}xs = {source}")
            found.add(str(session.own("xs")))
        self.assertEqual(len(found), 7)

    def test_many_need_no_individual_inspection(self):
        session = Session()
        session.run(SOURCE)
        walk = Walk(session.graph.world)
        for kind in {type(x) for x in session.ns["xs"]}:
            self.assertIsNotNone(walk.settled(kind), kind)

    def test_many_are_taken_apart_once_more_however_many_steps_read_them(self):
        for one in ("datetime.date.fromordinal(1 + i)", "d + datetime.timedelta(0, i)", "decimal.Decimal(i) / 7"):
            session = Session()
            session.run(f"import datetime, decimal\nd = datetime.datetime(2020, 1, 2)\nbig = [{one} for i in range(60_000)]\nkind = type(big[0])\n")
            kind, taken = Walk(session.graph.world).settled(session.ns["kind"]), []
            with mock.patch.object(kind, "split", counting(kind.split, taken)):
                for step in range(5):
                    self.assertEqual(session.run(f"n{step} = len(big)").mutated, set())
            # The first reader keeps what the next ones compare with.
            self.assertLessEqual(len(taken), 60_010, one)
            self.assertEqual(session.run("big[7] = big[8]").mutated, {"n:big"})


if __name__ == "__main__":
    unittest.main()
