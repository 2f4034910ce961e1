"""Files in scratch and outside: reads, writes, and restoring."""

import os

from world import WorldTest


class FilesTest(WorldTest):
    def reads(self, answer):
        return [read for read in answer["reads"] if read[:2] in ("f:", "d:")]

    def check(self, steps):
        """`steps`: source, reads, and writes of each."""
        answers = self.session(*(source for source, _, _ in steps))
        for (source, reads, wrote), answer in zip(steps, answers):
            with self.subTest(source):
                self.assertIsNone(answer["error"])
                self.assertEqual(self.reads(answer), sorted(reads))
                self.assertEqual(answer["wrote"], wrote)
                self.assertEqual(answer["untracked"], [])
        return answers

    def test_a_file_is_read_unless_the_step_replaced_it_first(self):
        self.check(
            [
                ("open('a', 'w').write('hi')", [], {"f:a": "bound"}),
                ("x = open('a').read()", ["f:a"], {}),
                ("open('a', 'w').write('ho'); x = open('a').read()", [], {"f:a": "bound"}),
                ("x = open('a').read(); open('a', 'w').write('hu')", ["f:a"], {"f:a": "mutated"}),
                ("open('a', 'a').write('!')", ["f:a"], {"f:a": "mutated"}),
                ("f = open('a', 'r+'); f.write('H'); f.close()", ["f:a"], {"f:a": "mutated"}),
            ]
        )

    def test_restored_content_is_no_effect(self):
        self.check(
            [
                ("open('a', 'w').write('hi')", [], {"f:a": "bound"}),
                ("s = open('a').read(); open('a', 'w').write('other'); open('a', 'w').write(s)", ["f:a"], {}),
                ("open('b', 'w').close(); __import__('os').remove('b')", ["f:b"], {}),
            ]
        )

    def test_what_is_replaced_unseen_is_written_even_if_it_is_as_before(self):
        # Otherwise an edit of an earlier step would go unnoticed: no read or write would record it.
        self.check(
            [
                ("open('a', 'w').write('hi')", [], {"f:a": "bound"}),
                ("open('a', 'w').write('hi')", [], {"f:a": "bound"}),
            ]
        )

    def test_the_same_size_within_one_tick_of_the_clock_is_another_content(self):
        steps = [f"open('a', 'w').write('{number:03}')" for number in range(40)]
        for answer in self.session(*steps):
            self.assertEqual(answer["wrote"], {"f:a": "bound"})

    def test_absent_files_are_read(self):
        self.check(
            [
                ("import os\nx = os.path.exists('no/a')", ["f:no", "f:no/a"], {}),
                ("try:\n    open('no')\nexcept OSError: pass", ["f:no"], {}),
                ("from pathlib import Path\ny = Path('no').is_file()", ["f:no"], {}),
                ("y = Path('no').is_dir(), Path('yes').exists()", ["f:no", "f:yes"], {}),
                ("z = os.access('no', os.R_OK)", ["f:no"], {}),
            ]
        )

    def test_directories_and_links(self):
        self.check(
            [
                ("import os\nos.makedirs('d/e')", ["f:d", "f:d/e"], {"f:d": "bound", "f:d/e": "bound"}),
                ("x = os.listdir('d')", ["d:d", "f:d"], {}),
                ("x = [e.name for e in os.scandir()]", ["d:."], {}),
                ("open('d/e/f', 'w').close()", ["f:d", "f:d/e"], {"f:d/e/f": "bound"}),
                ("os.symlink('d', 'l')", ["f:l"], {"f:l": "bound"}),
                ("open('l/e/f').close()", ["f:d", "f:d/e", "f:d/e/f", "f:l"], {}),
                ("x = os.readlink('l')", ["f:l"], {}),
                (
                    "os.rename('d', 'g')",
                    ["f:d", "f:d/e", "f:d/e/f"],
                    {
                        "f:d": "deleted",
                        "f:d/e": "deleted",
                        "f:d/e/f": "deleted",
                        "f:g": "bound",
                        "f:g/e": "bound",
                        "f:g/e/f": "bound",
                    },
                ),
                ("os.remove('g/e/f')", ["f:g", "f:g/e", "f:g/e/f"], {"f:g/e/f": "deleted"}),
                ("os.chmod('g', 0o700)", ["f:g"], {"f:g": "mutated"}),
                (
                    "import shutil\nshutil.rmtree('g')",
                    ["d:g", "d:g/e", "f:g", "f:g/e"],
                    {"f:g": "deleted", "f:g/e": "deleted"},
                ),
            ]
        )

    def test_a_listing_of_what_the_step_made_itself_is_no_read(self):
        self.check(
            [("import os\nos.mkdir('d'); open('d/a', 'w').close(); x = os.listdir('d')", ["f:d"], {"f:d": "bound", "f:d/a": "bound"})]
        )

    def test_replacing_by_a_temporary_file_reads_only_that_it_was_not_there(self):
        self.check(
            [
                ("open('a', 'w').write('1')", [], {"f:a": "bound"}),
                ("import os\nopen('t', 'w').write('2'); os.replace('t', 'a')", ["f:t"], {"f:a": "bound"}),
            ]
        )

    def test_handles_that_stay_open(self):
        self.check(
            [
                ("h = open('a', 'w'); n = h.write('abc')", [], {"f:a": "bound"}),
                ("x = 1", [], {}),
                ("h.flush()", ["f:a"], {"f:a": "mutated"}),
                ("h.write('def'); h.close()", [], {"f:a": "mutated"}),
                ("r = open('a', 'rb', buffering=0)", ["f:a"], {}),
                ("x = r.read(1)", ["f:a"], {}),
                ("r.close()", [], {}),
            ]
        )

    def test_writes_without_an_audit_event_are_seen(self):
        self.check(
            [
                ("import os\nfd = os.open('a', os.O_RDWR | os.O_CREAT)", ["f:a"], {"f:a": "bound"}),
                ("n = os.write(fd, b'x')", ["f:a"], {"f:a": "mutated"}),
                ("os.truncate(fd, 0)", ["f:a"], {"f:a": "mutated"}),
                ("os.close(fd)", [], {}),
            ]
        )

    def test_a_failed_step_reports_what_to_drop(self):
        answers = self.session("open('a', 'w').write('1')", "open('b', 'w').write('2'); open('a', 'w'); 1 / 0")
        self.assertEqual(answers[1]["dirty"], ["f:a", "f:b"])
        self.assertEqual(answers[1]["units"], {})

    def test_listings_are_sorted(self):
        made = "import os\nfor name in 'cabed': os.mkdir(name)\nprint(os.listdir(), [e.name for e in os.scandir()])"
        out = self.session(made)[0]["out"]
        self.assertEqual(out, "['a', 'b', 'c', 'd', 'e'] ['a', 'b', 'c', 'd', 'e']\n")

    def test_outside_scratch(self):
        outside = os.path.join(os.path.dirname(self.scratch), os.path.basename(self.scratch) + "-outside")
        self.addCleanup(lambda: os.path.exists(outside) and os.remove(outside))
        with open(outside, "w") as file:
            file.write("abc")
        answers = self.session(
            f"x = open({outside!r}).read()",
            f"import os\ny = os.path.exists({outside + '.none'!r})",
            "z = os.path.realpath('a')",
            "import zoneinfo\nt = zoneinfo.ZoneInfo('UTC') if os.path.exists('/usr/share/zoneinfo/UTC') else 1",
        )
        sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        self.assertEqual(answers[0]["external"], {"x:" + outside: sha})
        self.assertEqual(answers[1]["external"], {f"x:{outside}.none": None})
        self.assertEqual(answers[2]["external"], {})
        self.assertEqual(answers[3]["external"], {})

    def test_content_modes_links_and_directories_come_back(self):
        make = (
            "import os\nos.makedirs('a/b')\nopen('a/b/f', 'wb').write(bytes(range(256)))\n"
            "os.chmod('a/b/f', 0o751)\nos.symlink('b', 'a/l')\nopen('a/empty', 'w').close()"
        )
        entities = ["f:a", "f:a/b", "f:a/b/f", "f:a/l", "f:a/empty"]
        first = self.session(make, *(["stored", entity, 0] for entity in entities), ["sweep"])
        own = first[-1]["units"]
        # Another process, from empty.
        for name in sorted(os.listdir(self.scratch)):
            import shutil

            shutil.rmtree(os.path.join(self.scratch, name))
        calls = [["load_blob", entity, blob] for entity, blob in zip(entities, first[1:6])]
        second = self.session(*reversed(calls), ["sweep"], "import os\nprint(open('a/l/f', 'rb').read() == bytes(range(256)))")
        self.assertEqual(second[:5], [None] * 5)
        self.assertEqual(second[5]["units"], own)
        self.assertEqual(second[5]["unattributed"], [])
        self.assertEqual(second[6]["out"], "True\n")

    def test_dropped_in_any_order_and_set_aside(self):
        answers = self.session(
            "import os\nos.makedirs('a/b'); open('a/b/f', 'w').write('1')",
            ["stash", "f:a/b/f", 0],
            ["drop", "f:a"],
            ["drop", "f:a/b"],
            ["python", "import os\nanswer = os.listdir(channels.files.scratch)"],
            ["unstash", "f:a/b/f", 0],
            ["load", "f:a", 0],
            ["load", "f:a/b", 0],
            "print(open('a/b/f').read())",
            ["drop", "f:a"],
            ["drop", "f:a/b/f"],
            ["drop", "f:a/b"],
            ["python", "import os\nanswer = os.listdir(channels.files.scratch)"],
            ["drop", "f:never"],
        )
        self.assertEqual(answers[4], [])
        self.assertEqual(answers[8]["out"], "1\n")
        self.assertEqual(answers[12], [])

    def test_a_value_that_is_too_large_is_unserializable(self):
        answers = self.session("open('a', 'wb').write(bytes(2 << 20))")
        self.assertEqual(answers[0]["units"]["f:a"][2], "too large")
