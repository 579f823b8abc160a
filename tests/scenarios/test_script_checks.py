from pathlib import Path

import pytest

from harness.model.errors import FileError
from harness.scenarios import script_checks
from tests.errors import catch_text

V1 = """\
import tensorflow as tf
def main():
    x = tf.placeholder(tf.float32)
    with tf.Session() as session:
        session.run(tf.contrib.layers.flatten(x))
if tf.__version__[0] == "1":
    tf.get_variable("x", [1])
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = np.ones(3)", ["a.py:1: `np`", "import numpy as np"]),
        ("x = 1\ntfp.mcmc", ["a.py:2: `tfp`", "import tensorflow_probability"]),
        ("os.getcwd()", ["`os`", "import os"]),
        ("for i in xrange(3): pass", ["Only Python 2 has `xrange`", "Write range."]),
        ("import cPickle", ["Only Python 2 has the module cPickle"]),
        ("open('data.csv')", ["'data.csv' is missing", "--with PATH/data.csv"]),
        (
            "import numpy as np\nnp.load('/home/me/x.npy')",
            ["a.py:2", "'/home/me/x.npy' is missing", "read it as 'x.npy'"],
        ),
    ],
)
def test_what_is_defined_nowhere_is_an_error_with_the_line_and_advice(text, words, tmp_path):
    error = catch_text(FileError, script_checks.check_names, tmp_path / "a.py", text, ())
    assert [word for word in words if word not in error] == []


@pytest.mark.parametrize(
    "text",
    [
        "from math import *\ncos(0)",
        "try:\n    unicode\nexcept NameError:\n    unicode = str",
        "def f():\n    global g\n    g = 1\nf()\nprint(g, __file__)",
        "open('out.txt', 'w')",
        "save('a.npy')\nload('a.npy')" + "\ndef load(x): pass\nsave = load",
        "open('brought.csv')",
        "import tensorflow_datasets as tfds\ntfds.load('mnist')",
        "x = [y for y in (1,)]\nf = lambda z: z\nclass C:\n    a = 1\n    b = a",
    ],
)
def test_what_can_be_defined_is_no_error(text, tmp_path):
    assert script_checks.check_names(tmp_path / "a.py", text, ["brought.csv"]) == []


def test_what_may_never_run_is_a_sentence(tmp_path):
    (sentence,) = script_checks.check_names(tmp_path / "a.py", "def f():\n    g()\n", ())
    assert "a.py:2: `g`" in sentence


def test_packages_and_tensorflow_1_are_needs_of_the_environment():
    def list_needs(text, *, strict=True, compat_v1=False):
        return [
            (*requires, advice)
            for requires, _, advice in script_checks.list_needs(text, {"mine"}, strict=strict, compat_v1=compat_v1)
        ]

    assert list_needs("import os, psutil, cv2, mine\ntry:\n    import torch\nexcept ImportError: pass") == [
        ("psutil", ""),
        ("opencv-python-headless", ""),
    ]
    assert "--with unknown.py" in list_needs("import unknown")[0][1]
    assert list_needs("import unknown", strict=False) == []
    with_contrib, without_contrib = V1, V1.replace(".contrib.layers.flatten(x)", ".reduce_sum(x)")
    assert list_needs(without_contrib) == [("tensorflow<2", script_checks.V1_ADVICE)]
    assert list_needs(without_contrib, compat_v1=True) == []
    for compat_v1 in (False, True):
        assert "tf.contrib.layers.flatten" in list_needs(with_contrib, compat_v1=compat_v1)[0][1]
    assert list_needs("import tensorflow.compat.v1 as tf\ntf.Session()") == []


def test_scripts_for_tensorflow_1_import_it_through_compat_v1_on_the_same_lines():
    text = "import os, tensorflow as tf  # a\nif 1:\n    import tensorflow\nimport tensorflow.keras\n"
    text += "from tensorflow import app"
    lines = script_checks.convert_to_compat(text).split("\n")
    compile("\n".join(lines), "a.py", "exec")
    assert [line.rpartition("; ")[2] for line in lines] == [
        "import os, tensorflow.compat.v1 as tf  # a",
        "if 1:",
        "import tensorflow.compat.v1 as tensorflow",
        "import tensorflow.keras",
        "from tensorflow.compat.v1 import app",
    ]
    assert sum("disable_v2_behavior" in line for line in lines) == 3


def test_a_line_of_a_notebook_is_counted_in_its_cell():
    problem = script_checks.make_problem(Path("a.ipynb"), "# cell 2\nx = 1\n# cell 4\ny\nz", 5, "No.")
    assert (problem.line, problem.text) == (0, "cell 4, line 2: No.")
