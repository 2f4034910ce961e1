"""Submodules: which steps read and write them, and how they are removed and restored."""

from world import WorldTest

DOM = "p:import/xml.dom"


def names(entities):
    return {entity for entity in entities if entity.startswith("p:import/")}


class SubmodulesTest(WorldTest):
    def test_an_import_writes_and_a_look_reads(self):
        answers = self.good("import xml.dom", "import xml\nx = xml.dom", "import xml.dom\ny = xml.dom", "import math")
        self.assertEqual(answers[0]["wrote"], {DOM: "bound"})
        self.assertEqual(names(answers[0]["reads"]), set())
        self.assertEqual(names(answers[1]["reads"]), {DOM})
        self.assertEqual(answers[1]["wrote"], {})
        # It would exist without the others.
        self.assertEqual(names(answers[2]["reads"]), set())
        self.assertEqual(answers[2]["wrote"], {DOM: "bound"})
        self.assertEqual(names(answers[3]["reads"]), set())

    def test_one_that_is_not_there_is_read_too(self):
        answers = self.session("import xml", "x = xml.dom", "x = hasattr(xml, 'sax')")
        self.assertEqual(names(answers[1]["reads"]), {DOM})
        self.assertIn("p:import/xml.sax", names(answers[2]["reads"]))

    def test_what_a_package_loads_itself_is_no_entity(self):
        answers = self.good("import json", "x = json.decoder", "import json.decoder")
        for answer in answers:
            self.assertEqual(names(answer["reads"]) | names(answer["wrote"]), set())

    def test_what_an_import_loads_with_it_is_written(self):
        answers = self.good("import xml.dom.minidom", "import xml.dom.minidom", "from xml.dom import minidom")
        for answer in answers:
            self.assertLessEqual({DOM, "p:import/xml.dom.minidom"}, names(answer["wrote"]))

    def test_one_that_loads_at_the_second_attempt_is_written_with_what_it_loads(self):
        answers = self.session(
            "import sys\nsys.modules['xml.dom.minicompat'] = None\ntry:\n    import xml.dom.minidom\n"
            "except ImportError:\n    del sys.modules['xml.dom.minicompat']",
            "import xml.dom.minidom",
        )
        self.assertIn("p:import/xml.dom.xmlbuilder", names(answers[1]["wrote"]))

    def test_a_lost_one_is_hidden_until_it_is_imported(self):
        answers = self.session(
            "import xml.dom\nkept = xml.dom",
            ["drop", DOM],
            "import xml\nprint(hasattr(xml, 'dom'))",
            "import sys\nprint('xml.dom' in sys.modules)",
            "import xml.dom\nprint(xml.dom is kept)",
            "print(hasattr(xml, 'dom'))",
        )
        self.assertEqual([answer["out"] for answer in answers[2:]], ["False\n", "False\n", "True\n", "True\n"])

    def test_one_that_is_put_back_is_there_once_its_package_is(self):
        answers = self.good(
            ["load_blob", DOM, ""],
            "import sys\nx = len(sys.argv)",
            "import xml\nprint(xml.dom.__name__)",
        )
        self.assertEqual(answers[2]["out"], "xml.dom\n")
        self.assertEqual(names(answers[2]["wrote"]), set())

    def test_one_that_a_function_written_in_c_loads_for_itself_is_no_entity(self):
        call = "import ctypes\nfound = ctypes.pythonapi.PyImport_ImportModule(b'xml.dom')"
        answers = self.session(call, call, "import xml\nx = xml.dom")
        # Such functions keep what they have loaded: at the second call they may import nothing.
        for answer in answers:
            self.assertEqual(names(answer["reads"]) | names(answer["wrote"]), set())

    def test_one_that_a_pickle_names_is_written(self):
        load = "import pickle\nfound = pickle.loads(b'cxml.dom\\nNode\\n.')"
        for answer in self.good(load, load):
            self.assertEqual(names(answer["wrote"]), {DOM})

    def test_a_step_that_fails_leaves_none(self):
        answers = self.session("import xml.dom\n1 / 0", "import xml\nprint(hasattr(xml, 'dom'))")
        self.assertEqual(answers[0]["dirty"], [DOM])
        self.assertEqual(answers[1]["out"], "False\n")

    def test_an_import_that_fails_shows_no_frame_of_ours(self):
        answers = self.good(
            "import traceback\nfor name in ('import xml.nothing', 'from xml import nothing', 'import nothing.b'):\n"
            "    try:\n        exec(name)\n    except ImportError:\n        print(traceback.format_exc())",
        )
        self.assertNotIn("harness", answers[0]["out"])
        self.assertNotIn("importlib", answers[0]["out"])
