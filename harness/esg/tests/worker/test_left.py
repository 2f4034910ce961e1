"""Files that packages make while they are imported: they belong to the environment."""

import os
import tempfile
import unittest

from driver import Worker

LIBRARY = """import os
os.makedirs('.cache/lib', exist_ok=True)
with open('.cache/lib/fonts', 'w') as out:
    out.write('fonts')
with open('mine', 'a') as out:
    out.write('more')
def write(name):
    with open(name, 'w') as out:
        out.write('later')
def fonts():
    with open('.cache/lib/fonts') as held:
        return held.read() + str(sorted(os.listdir('.cache/lib')))
"""
IMPORT = "import fontlib"


class LeftTest(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        with open(f"{home.name}/fontlib.py", "w", encoding="utf-8") as opened:
            opened.write(LIBRARY)
        self.worker = Worker(path=[home.name])
        self.addCleanup(self.worker.close)

    def files(self, source, field="wrote", kinds="fd"):
        """The files that a step uses in this way."""
        self.reply = self.worker.run(source)
        self.assertEqual(self.reply["ending"], {"kind": "ok"}, self.reply)
        return sorted(name for name in self.reply[field] if name[0] in kinds)

    def unattributed(self):
        return self.worker.ask("sweep", accounted=[])["unattributed"]

    def test_a_step_that_is_made_again_writes_the_same(self):
        self.files("open('mine', 'w').close()")
        # What was there is the program's.
        self.assertEqual(self.files(IMPORT), ["f:mine"])
        self.assertEqual(self.files(IMPORT), [])
        self.assertEqual(self.files("fontlib.write('a')"), ["f:a"])
        self.assertEqual(self.unattributed(), [])

    def test_the_program_does_not_find_them(self):
        look = "import os, glob, pathlib\n"
        look += "print(os.listdir(), [p.name for p in pathlib.Path().iterdir()], glob.glob('.*'), next(os.walk('.')))"
        self.files("open('mine', 'w').close()")
        self.files(IMPORT)
        self.files(look)
        self.assertEqual(self.reply["stdout"]["text"], "['mine'] ['mine'] [] ('.', [], ['mine'])\n")
        self.files("print(fontlib.fonts())")
        self.assertEqual(self.reply["stdout"]["text"], "fonts['fonts']\n")
        self.assertEqual(self.reply["untracked"], [])

    def test_a_program_that_uses_them_is_untracked(self):
        for look in ("open('.cache/lib/fonts').read()", "import os; os.path.exists('.cache')"):
            self.setUp()
            self.files(IMPORT)
            self.files(look)
            found = [(one["what"], one["line"]) for one in self.reply["untracked"]]
            self.assertEqual(len(found), 1, look)
            self.assertTrue(found[0][0].startswith("uses what an import left: .cache"), found)

    def test_what_the_program_writes_among_them_is_its_own(self):
        self.files(IMPORT)
        written = self.files("with open('.cache/lib/own', 'w') as out: out.write('x')")
        self.assertEqual(written, ["f:.cache", "f:.cache/lib", "f:.cache/lib/own"])
        written = self.files("with open('.cache/lib/fonts', 'w') as out: out.write('x')")
        self.assertEqual(written, ["f:.cache/lib/fonts"])
        self.assertEqual(self.unattributed(), [])

    def test_they_may_be_replaced(self):
        self.files(IMPORT)
        self.files("import shutil; shutil.rmtree('.cache')")
        self.assertEqual(self.files("open('.cache', 'w').close()"), ["f:.cache"])
        self.assertTrue(os.path.isfile(self.worker.scratch + "/.cache"))


if __name__ == "__main__":
    unittest.main()
