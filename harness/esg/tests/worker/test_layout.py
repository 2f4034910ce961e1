"""The folders of the worker import in one direction, and every file is short."""

import os
import re
import unittest

from run import WORKER

# Each imports from those after it.
FOLDERS = ("loop", "world", "track", "values")
MOST_LINES = 500
# Outside of `values/compat.py` and `values/bytecode.py`.
_private = re.compile(
    r"^\s*(?:import (?:dis|opcode)\b|from (?:dis|opcode|gc|sys) import .*(?:\b_|get_ref|getref|opmap|instructions)).*"
    r"|\bsys\._\w+\(|\bgc\.get_\w+\(|\bsys\.getrefcount|modules\[\"_frozen_\w+"
    r"|__(?:flags|basicsize|dictoffset)__|\bthreading\._\w+ ?[=.)]|_tuplegetter|\.co_code(?=\[| *$)",
    re.MULTILINE,
)
_imports = re.compile(r"^\s*(?:from|import) _harness\.(\w+)", re.MULTILINE)


class Layout(unittest.TestCase):
    def test_imports_point_one_way(self):
        wrong = []
        for at, folder in enumerate(FOLDERS):
            for file in sorted(os.listdir(os.path.join(WORKER, folder))):
                if not file.endswith(".py"):
                    continue
                with open(os.path.join(WORKER, folder, file), encoding="utf-8") as opened:
                    source = opened.read()
                wrong += [
                    f"{folder}/{file} imports {other}"
                    for other in _imports.findall(source)
                    if FOLDERS.index(other) < at
                ]
                if source.count("\n") > MOST_LINES:
                    wrong.append(f"{folder}/{file} has more than {MOST_LINES} lines")
        self.assertEqual(wrong, [])

    def test_what_is_private_to_cpython_is_in_one_module(self):
        wrong = []
        for folder in FOLDERS:
            for file in sorted(os.listdir(os.path.join(WORKER, folder))):
                if not file.endswith(".py") or file in ("compat.py", "bytecode.py"):
                    continue
                with open(os.path.join(WORKER, folder, file), encoding="utf-8") as opened:
                    wrong += [f"{folder}/{file}: {found.group()}" for found in _private.finditer(opened.read())]
        self.assertEqual(wrong, [])

    def test_there_are_no_other_folders(self):
        found = {name for name in os.listdir(WORKER) if not name.startswith("__")}
        self.assertEqual(found, {"boot.py", *FOLDERS})


if __name__ == "__main__":
    unittest.main()
