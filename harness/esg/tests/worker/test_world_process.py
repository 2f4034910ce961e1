"""Process-wide state: random numbers, directory, environment, path, warning filters."""

from world import WorldTest


class ProcessTest(WorldTest):
    def state(self, answers):
        """Reads and writes of `p:` entities, step by step."""
        return [
            (
                [read[2:] for read in answer["reads"] if read.startswith("p:") and read != "p:cwd"],
                {name[2:]: how for name, how in answer["wrote"].items() if name.startswith("p:")},
            )
            for answer in answers
        ]

    def test_a_process_inherits_the_environment_and_the_working_directory(self):
        sources = (
            "import subprocess\nsubprocess.run(['true'])",
            "import os\nos.system('true')",
            "import os\nwith os.popen('true') as pipe:\n    pipe.read()",
        )
        for source, answer in zip(sources, self.good(*sources)):
            with self.subTest(source):
                self.assertLessEqual({"p:env", "p:cwd"}, set(answer["reads"]))

    def test_random_state_is_read_unless_seeded_first(self):
        answers = self.good(
            "import random\nrandom.seed(7)",
            "a = random.random()",
            "random.seed(7); b = random.random()",
            "from random import choice\nc = choice([1, 2, 3])",
            "d = choice([1, 2]); random.seed(1)",
            "r = random.Random(3); e = r.random()",
            "s = random.getstate()",
            "random.setstate(s)",
            "random.setstate(random.getstate())",
            "x = 5",
            "import secrets, uuid\nt = secrets.token_bytes(3); u = uuid.uuid4()",
        )
        self.assertEqual(
            self.state(answers),
            [
                ([], {"rng": "bound"}),
                (["rng"], {"rng": "mutated"}),
                ([], {"rng": "bound"}),
                (["rng"], {"rng": "mutated"}),
                (["rng"], {"rng": "mutated"}),
                ([], {}),
                (["rng"], {}),
                ([], {"rng": "bound"}),
                (["rng"], {}),
                ([], {}),
                (["path"], {}),
            ],
        )

    def test_random_state_comes_back(self):
        answers = self.good(
            "import random\nrandom.seed(3); x = random.gauss(0, 1)",
            "y = random.gauss(0, 1), random.random()",
            ["load", "p:rng", 0],
            "print(y == (random.gauss(0, 1), random.random()))",
            ["stash", "p:rng", 1],
            "print(y[1] == random.random())",
            ["drop", "p:rng"],
            "z = random.random()",
            ["drop", "p:rng"],
            "print(z == random.random())",
        )
        self.assertEqual([answers[3]["out"], answers[5]["out"], answers[9]["out"]], ["True\n", "False\n", "True\n"])
        units = [answers[index]["units"]["p:rng"][1] for index in (1, 3)]
        self.assertEqual(*units)

    def test_the_environment(self):
        answers = self.good(
            "import os\nhome = os.environ.get('HOME')",
            "os.environ['A'] = '1'",
            "x = os.getenv('A')",
            "os.environ['A'] = '2'; os.environ['A'] = '1'",
            "y = 'A' in os.environ, len(os.environ), dict(os.environ)['A'], os.path.expandvars('$A')",
            "z = os.getcwd",
            ["drop", "p:env"],
            "print(os.getenv('A'))",
            ["load", "p:env", 0],
            "print(os.environb[b'A'])",
        )
        state = self.state([a for a in answers if isinstance(a, dict)])
        self.assertEqual(
            state,
            [
                (["env"], {}),
                (["env"], {"env": "mutated"}),
                (["env"], {}),
                (["env"], {}),
                (["env"], {}),
                ([], {}),
                (["env"], {}),
                (["env"], {}),
            ],
        )
        self.assertEqual([answers[7]["out"], answers[9]["out"]], ["None\n", "b'1'\n"])

    def test_the_working_directory(self):
        answers = self.good(
            "import os\nos.mkdir('d')",
            "os.chdir('d')",
            "open('a', 'w').close()",
            f"x = os.path.exists({self.scratch + '/d/a'!r})",
            "os.chdir('..'); os.chdir('d')",
            f"os.chdir({self.scratch!r})",
            ["load", "p:cwd", 0],
            "print(os.path.basename(os.getcwd()))",
            ["drop", "p:cwd"],
            "print(os.listdir())",
        )
        steps = [
            ("p:cwd" in answer["reads"], answer["wrote"].get("p:cwd")) for answer in answers if isinstance(answer, dict)
        ]
        self.assertEqual(
            steps,
            [
                (True, None),
                (True, "mutated"),
                (True, None),
                (False, None),
                (True, None),
                (False, "bound"),
                (True, None),
                (True, None),
            ],
        )
        self.assertEqual([answers[7]["out"], answers[9]["out"]], ["d\n", "['d']\n"])

    def test_a_working_directory_that_is_made_again_is_entered_again(self):
        answers = self.good(
            "import os\nos.mkdir('d')\nos.chdir('d')",
            ["drop", "f:d"],
            ["load", "f:d", 0],
            "print(os.path.basename(os.getcwd()))\nopen('a', 'w').close()",
            f"print(os.listdir({self.scratch + '/d'!r}))",
        )
        self.assertEqual([answers[3]["out"], answers[4]["out"]], ["d\n", "['a']\n"])

    def test_the_module_path_and_the_warning_filters(self):
        answers = self.good(
            "import sys, warnings\nsys.path.insert(0, 'lib')",
            "sys.path = list(sys.path)",
            ["drop", "p:path"],
            "print('lib' in sys.path)",
            ["load", "p:path", 0],
            "print(sys.path[0])",
            "warnings.filterwarnings('error', message='ab.*', category=UserWarning)",
            ["drop", "p:warn"],
            "warnings.filterwarnings('ignore')\nwarnings.warn('abc')",
            ["load", "p:warn", 0],
            "try:\n    warnings.warn('abc')\nexcept UserWarning as e:\n    print(e)",
            "with warnings.catch_warnings():\n    warnings.simplefilter('ignore')",
        )
        self.assertEqual(answers[0]["wrote"], {"p:path": "mutated"})
        self.assertEqual(answers[1]["wrote"], {})
        self.assertEqual([answers[i]["out"] for i in (3, 5, 10)], ["False\n", "lib\n", "abc\n"])
        self.assertEqual(answers[6]["wrote"], {"p:warn": "mutated"})
        self.assertEqual(answers[11]["wrote"], {})

    def test_an_invisible_warning_still_depends_on_the_filters(self):
        source = "import warnings\ndef f():\n    warnings.warn('old', DeprecationWarning)"
        answers = self.session(["python", "channels.files.on_cwd()"], source, "f()", "x = 1")
        self.assertEqual(answers[3]["wrote"], {})

    def test_equal_state_has_an_equal_fingerprint_in_another_process(self):
        steps = ("import random, os\nrandom.seed(5)", "os.environ['Q'] = '1'", "os.mkdir('d')\nos.chdir('d')")
        first = [answer["units"] for answer in self.good(*steps)]
        import os

        os.rmdir(os.path.join(self.scratch, "d"))
        second = [answer["units"] for answer in self.good(*steps)]
        self.assertEqual(first, second)
