import textwrap
from contextlib import nullcontext
from typing import Any

from harness.scenarios import header, skeleton

SCRIPT = '''\
"""What it is about."""
from __future__ import annotations
import os
os.environ["HARNESS_TEST_ORDER"] = "before"
import math

TEXT = """
  stays
as it is"""
count = 0

def area(r):
    global count
    count += 1
    return math.pi * r ** 2

# what is wanted
# harness: step
total = area(1) + area(2)
last = total
# harness: end
print(TEXT, round(last), count > 0)
'''


class SkeletonBench:
    """Does as the kit's, three times."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.steps = 0

    def phase(self, name: str) -> Any:
        self.phases.append(name)
        return nullcontext()

    def measure(self, step: Any) -> None:
        for _ in range(3):
            self.once(step)

    def once(self, step: Any) -> None:
        step()
        self.steps += 1


def run(text: str) -> SkeletonBench:
    """Run a scenario's function, without the kit."""
    names: dict[str, Any] = {"main": None, "__name__": "scenario_mine"}
    exec(compile(text.replace("from kit import main\n", ""), "mine.py", "exec", dont_inherit=True), names)
    bench = SkeletonBench()
    names["scenario"](bench)
    return bench


def test_what_is_marked_becomes_the_step_and_what_stands_around_it_what_it_was(tmp_path, capsys):
    text = skeleton.make_skeleton("mine", SCRIPT, 'Area "of" circles')
    scenario = header.parse(text, tmp_path / "mine.py")
    assert (scenario.title, scenario.dependencies) == ('Area "of" circles', [])
    bench = run(text)
    assert (bench.phases, bench.steps) == (["import", "build", "first call"], 3)
    assert capsys.readouterr().out == "\n  stays\nas it is 16 True\n"


def test_any_script_becomes_a_scenario_that_runs_as_one_step_without_a_mark(tmp_path, capsys):
    main = 'import math\n\ndef main():\n    print(math.floor(2.5))\n\nif __name__ == "__main__":\n    main()\n'
    scripts = [
        "",
        "import math",
        "from math import *\nprint(floor(1.5))",
        "# harness: step\nfor i in range(3):\n    x = i\n",
        "x = 0\n# harness: step\nx = x + 1\nprint(x)",
        "# harness: step\ny = 1\n# harness: end\nprint(y)",
        "def f():\n    # harness: step\n    return 1\nf()",
        "s = '''\n# harness: step\n'''\nimport os\n",
        main,
    ]
    for script in scripts:
        capsys.readouterr()
        text = skeleton.make_skeleton("mine", script, "Mine")
        header.parse(text, tmp_path / "mine.py")
        bench = run(text)
        assert bench.steps, script
    # the last one
    assert (bench.phases, bench.steps, capsys.readouterr().out) == (["import"], 1, "2\n")


def test_what_it_imports_is_what_it_needs():
    text = skeleton.make_skeleton("mine", "import os, tensorflow as tf\nfrom PIL import Image\n", "Mine")
    assert '# dependencies = ["tensorflow", "pillow"]' in text
    assert textwrap.dedent(text) == text
