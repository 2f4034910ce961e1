"""Runs every test of the worker's Python under the interpreter that runs this file.

The worker's folder is the package `_harness`, so a test imports what it needs with
`from _harness.loop import wire`. Arguments, if any, name test files without their extension:
`run.py test_loop`.
"""

import os
import sys
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
WORKER = os.path.join(HERE, "..", "..", "src", "worker")


def install():
    """Makes the worker's modules importable."""
    if "_harness" not in sys.modules:
        package = sys.modules["_harness"] = types.ModuleType("_harness")
        package.__path__ = [WORKER]


def main(names):
    install()
    sys.path.insert(0, HERE)
    sys.dont_write_bytecode = True
    if not names:
        names = sorted(
            file[:-3]
            for file in os.listdir(HERE)
            if file.startswith("test_") and file.endswith(".py")
        )
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    if unittest.defaultTestLoader.errors or not suite.countTestCases():
        print("no tests, or tests that do not load", *unittest.defaultTestLoader.errors)
        return 2
    result = unittest.TextTestRunner(verbosity=1, buffer=False).run(suite)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
