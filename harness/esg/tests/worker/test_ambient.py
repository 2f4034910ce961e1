"""Ambient channels: state inside packages that programs set on purpose."""

import unittest

from driver import Worker


class AmbientTest(unittest.TestCase):
    def setUp(self):
        self.worker = Worker()
        self.addCleanup(self.worker.close)

    def run_step(self, source):
        reply = self.worker.run(source)
        self.assertEqual(reply["ending"], {"kind": "ok"}, reply)
        return reply

    def test_a_module_that_is_out_of_sight_has_no_state(self):
        self.run_step("import csv, sys\ncsv.field_size_limit(10)")
        for source in ("del sys.modules['_csv']", "csv.field_size_limit(20)"):
            found = self.run_step(source)["untracked"]
            self.assertEqual([it for it in found if "ambient" in it["what"]], [])

    def test_the_arguments_stay(self):
        reply = self.run_step("import sys\nargs = ['tool', 'a']\nsys.argv = args")
        self.assertIn("p:ambient/sys.argv", str(reply["wrote"]))
        reply = self.run_step("print(sys.argv[1])")
        self.assertEqual(reply["stdout"]["text"], "a\n")
        self.assertIn("p:ambient/sys.argv", str(reply["reads"]))
        self.assertEqual(reply["untracked"], [])
