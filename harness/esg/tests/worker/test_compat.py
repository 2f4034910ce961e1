"""What the worker relies on of CPython, and that it refuses to start where that differs."""

import sys
import unittest

import support  # noqa: F401
from driver import Worker, sources

from _harness.values import compat


class Compat(unittest.TestCase):
    def test_this_interpreter_behaves_as_expected(self):
        compat.check()

    def test_what_differs_is_named(self):
        def broken():
            raise AttributeError("no frames")

        with self.assertRaises(compat.Unsuitable) as found:
            compat.check((("references", lambda: False), ("frames", broken), ("modules", lambda: True)))
        version = "%d.%d.%d" % sys.version_info[:3]
        self.assertEqual(
            str(found.exception), f"CPython {version} differs in references, frames (AttributeError: no frames)"
        )

    def test_a_worker_whose_interpreter_differs_does_not_start(self):
        # The instructions of this interpreter have other caches.
        source = sources()["values.bytecode"]
        other = source.replace("2 + 2 * _CACHES[op]", "2")
        self.assertNotEqual(other, source)
        with Worker(replaced={"values.bytecode": other}) as worker:
            self.assertIn("Unsuitable: CPython", worker.hello["error"])
            self.assertIn("bytecode", worker.hello["error"])


if __name__ == "__main__":
    unittest.main()
