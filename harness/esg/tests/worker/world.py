"""Runs steps under the channels in a separate process, for tests."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
# By value, because channels may run in this process too.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "TZ": "UTC", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
# Every step may depend on these, once their module is loaded.
WIDE = frozenset(f"p:ambient/{name}" for name in ("decimal", "locale", "numpy.options", "pandas.options"))


class WorldTest(unittest.TestCase):
    """Has a scratch directory, and sessions in it."""

    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.scratch = os.path.realpath(made.name)

    # Whether state inside packages is compared.
    strictness = "packages"

    def session(self, *calls):
        """The reply to each call: a string is the source of a step, a list a method of the driver
        and its arguments."""
        calls = [["run", call] if type(call) is str else call for call in calls]
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-B", os.path.join(HERE, "world_driver.py")],
            input=json.dumps({"scratch": self.scratch, "calls": calls, "strictness": self.strictness}),
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            timeout=120,
        )
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        answers = json.loads(done.stdout)
        for answer in answers:
            if isinstance(answer, dict) and "reads" in answer:
                # Unclosed files and deprecated functions warn, which reads the filters.
                answer["reads"] = [read for read in answer["reads"] if read != "p:warn" and read not in WIDE]
        return answers

    def good(self, *calls):
        """As `session`, where no step may fail or be untracked."""
        answers = self.session(*calls)
        for call, answer in zip(calls, answers):
            if isinstance(answer, dict) and "error" in answer:
                self.assertIsNone(answer["error"], call)
                self.assertEqual(answer["untracked"], [], call)
        return answers
