"""Dates, times, decimals, fractions and UUIDs: stored exactly, and written many at once."""
import unittest

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


if __name__ == "__main__":
    unittest.main()
