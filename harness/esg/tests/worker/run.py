"""Runs every test of the worker's Python under the interpreter that runs this file.

The worker's files are not a package: each is a module `_harness_<file>`. This file makes them
importable by that name, so that a test imports what it needs with `import _harness_wire`. Arguments,
if any, name test files without their extension: `run.py test_wire`.
"""

import importlib.abc
import importlib.util
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
WORKER = os.path.join(HERE, "..", "..", "src", "worker")
PREFIX = "_harness_"


class WorkerFiles(importlib.abc.MetaPathFinder):
    """Finds `_harness_<file>` among the worker's files."""

    def find_spec(self, name, path=None, target=None):
        if not name.startswith(PREFIX):
            return None
        file = os.path.join(WORKER, name[len(PREFIX) :] + ".py")
        if not os.path.exists(file):
            return None
        return importlib.util.spec_from_file_location(name, file)


def main(names):
    sys.meta_path.insert(0, WorkerFiles())
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
