"""Modules: what the program changed in them, and scratch modules."""

from world import WorldTest

HELPER = "open('helper.py', 'w').write('X = 1\\ndef f(a):\\n    return a + X\\n')"


class ModulesTest(WorldTest):
    def test_a_patched_module_differs_and_goes_back(self):
        answers = self.good(
            "import math",
            "math.tau = 6\nmath.new = [1]\ndel math.e",
            "area = math.tau",
            ["reset", "math"],
            "print(math.tau, hasattr(math, 'new'), math.e)",
            ["python", "channels.modules.apply('math', {'tau': 5, 'e': channels.modules.DELETED})"],
            "print(math.tau, hasattr(math, 'e'))",
            "y = 1",
        )
        self.assertEqual(answers[0]["diffs"], {})
        self.assertEqual(answers[0]["modules"], ["m:math"])
        self.assertEqual(answers[1]["diffs"], {"math": ["e", "new", "tau"]})
        self.assertEqual(answers[2]["modules"], ["m:math"])
        self.assertEqual(answers[4]["out"], "6.283185307179586 False 2.718281828459045\n")
        self.assertEqual(answers[6]["out"], "5 False\n")
        self.assertEqual(answers[7]["modules"], [])

    def test_a_difference_loaded_into_a_fresh_process_is_one(self):
        answers = self.good(
            ["python", "channels.modules.apply('math', {'tau': 5})\nanswer = channels.modules.diff('math')"],
            "import math\nprint(math.tau)",
            ["reset", "math"],
            ["python", "answer = channels.modules.diff('math')"],
        )
        self.assertEqual(answers[0], {"tau": 5})
        self.assertEqual(answers[1]["out"], "5\n")
        self.assertEqual(answers[1]["diffs"], {"math": ["tau"]})
        self.assertIsNone(answers[3])

    def test_a_change_taken_back_is_none(self):
        answers = self.good("import math\nold = math.tau\nmath.tau = 1\nmath.tau = old")
        self.assertEqual(answers[0]["diffs"], {})

    def test_a_stash_in_an_unnamed_module(self):
        answers = self.session("import sys\nsys.modules['json'].stash = 1", "import json\nx = json.stash")
        self.assertEqual(answers[0]["diffs"], {"json": ["stash"]})
        self.assertEqual(answers[1]["diffs"], {"json": ["stash"]})

    def test_submodules_reached_through_attributes_are_touched(self):
        answers = self.good("import os", "x = os.path.join('a', 'b')", "import json\ny = json.decoder.NaN")
        self.assertIn("m:posixpath", answers[1]["modules"])
        self.assertIn("m:json.decoder", answers[2]["modules"])

    def test_caches_that_a_library_fills_are_no_change(self):
        answers = self.good(
            "import tempfile, platform, mimetypes, re\nx = tempfile.gettempprefix(); s = platform.system()\nre.compile('a+')",
        )
        self.assertEqual(answers[0]["diffs"], {})

    def test_what_a_module_rebinds_itself_is_no_change_by_a_step_that_sets_attributes_by_name(self):
        answers = self.session(
            "import tempfile\nclass A: pass\nsetattr(A, 'x', 1)\nplace = tempfile.gettempdir()",
            "import tempfile\nsetattr(tempfile, 'tempdir', '/tmp')",
            "import tempfile\nsetattr(tempfile, 'temp' + 'late', 'x')",
        )
        self.assertEqual(answers[0]["diffs"], {})
        self.assertEqual([one["what"] for one in answers[0]["untracked"] if "replaced" in one["what"]], [])
        self.assertEqual(answers[1]["diffs"], {"tempfile": ["tempdir"]})
        self.assertEqual(answers[2]["diffs"], {"tempfile": ["tempdir", "template"]})

    def test_a_scratch_module_is_imported_again_after_it_was_dropped(self):
        answers = self.good(
            HELPER,
            "import helper",
            "v = helper.f(1)",
            ["reset", "helper"],
            ["drop", "f:helper.py"],
            HELPER.replace("X = 1", "X = 10"),
            "import helper",
            "print(helper.f(1))",
            "helper.X = 5",
            "print(helper.f(1))",
        )
        self.assertEqual(
            [read for read in answers[1]["reads"] if read != "p:path"],
            ["f:helper", "f:helper.py", "f:helper/__init__.py"],
        )
        self.assertEqual(answers[1]["modules"], ["m:helper"])
        self.assertEqual(answers[2]["modules"], ["m:helper"])
        self.assertEqual(answers[7]["out"], "11\n")
        self.assertEqual(answers[9]["out"], "6\n")

    def test_written_and_imported_in_one_step_again_and_again(self):
        source = (
            "import importlib, sys\nfor n in range(20):\n    name = f'mod{n}'\n"
            "    open(name + '.py', 'w').write(f'X = {n}')\n    assert importlib.import_module(name).X == n"
        )
        self.assertIsNone(self.session(source)[0]["error"])

    def test_packages(self):
        answers = self.good(
            "import os\nos.makedirs('pkg/sub')\nopen('pkg/__init__.py', 'w').write('A = 1')\n"
            "open('pkg/sub/__init__.py', 'w').close()\nopen('pkg/sub/leaf.py', 'w').write('from .. import A\\nB = A + 1')",
            "from pkg.sub.leaf import B",
            "import pkg.sub.leaf\nprint(pkg.sub.leaf.B)",
            ["reset", "pkg"],
            ["python", "import sys\nanswer = [name for name in sys.modules if name.startswith('pkg')]"],
            "from pkg.sub import leaf\nprint(leaf.B)",
        )
        self.assertEqual(answers[1]["modules"], ["m:pkg", "m:pkg.sub", "m:pkg.sub.leaf"])
        self.assertIn("f:pkg/sub/leaf.py", answers[1]["reads"])
        self.assertEqual(answers[2]["modules"], ["m:pkg", "m:pkg.sub", "m:pkg.sub.leaf"])
        self.assertEqual(answers[4], [])
        self.assertEqual(answers[5]["out"], "2\n")

    def test_a_module_made_from_its_content_does_not_run_its_source(self):
        answers = self.good(
            "open('loud.py', 'w').write('print(1)\\nX = [1]\\n')",
            "import loud",
            "loud.X.append(2)",
            [
                "python",
                "modules = channels.modules\ndiff = modules.diff('loud')\nmodules.reset('loud')\n"
                "made = modules.shell('loud', diff)\nmodules.apply('loud', diff)\nanswer = [made.X, made.__file__]",
            ],
            "import loud\nprint(loud.X, loud.__name__)",
            ["python", "taken = channels.modules.take('loud')\nimport sys\nanswer = 'loud' in sys.modules\nchannels.modules.give('loud', taken)"],
            "import loud as again\nprint(again.X)",
        )
        self.assertEqual(answers[1]["out"], "1\n")
        self.assertEqual(answers[3], [[1, 2], self.scratch + "/loud.py"])
        self.assertEqual(answers[4]["out"], "[1, 2] loud\n")
        self.assertEqual(answers[5], False)
        self.assertEqual(answers[6]["out"], "[1, 2]\n")

    def test_an_import_that_fails_depends_on_what_is_not_there(self):
        answers = self.session("try:\n    import nope\nexcept ImportError:\n    pass", "import nope")
        for answer in answers:
            self.assertEqual(answer["reads"], ["f:nope", "f:nope.py", "f:nope/__init__.py", "p:path"])
        self.assertEqual(answers[1]["error"], "ModuleNotFoundError: No module named 'nope'")

    def test_tracebacks_of_imports_show_nothing_of_ours(self):
        source = "import traceback\ntry:\n    import bad\nexcept ImportError:\n    print(traceback.format_exc())"
        answers = self.session("open('bad.py', 'w').write('import nope')", source)
        self.assertNotIn("_harness", answers[1]["out"])
        self.assertNotIn("loading.py", answers[1]["out"])
        self.assertNotIn("importlib", answers[1]["out"])
