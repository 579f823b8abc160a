"""Scripts whose own code needs a runner, or a call."""

import ast

from kit import own_code

BENCHMARK = """
import tensorflow as tf

class Products(tf.test.Benchmark):
    def benchmarkSmall(self):
        self.report_benchmark(iters=1, wall_time=1, name="small")

    def benchmarkLarge(self):
        self.report_benchmark(iters=1, wall_time=1)

    def other(self):
        pass
"""


KINDS = {
    "import os\nprint(1)": own_code.CODE,
    "x = = 1": own_code.CODE,
    "import os\nfor i in range(3):\n    pass": own_code.CODE,
    "import os\nX = 3": own_code.IMPORTS,
    "try:\n    import os\nexcept ImportError:\n    os = None": own_code.IMPORTS,
    "def main():\n    print(1)": own_code.DEFINITIONS,
    "def main():\n    print(1)\nif __name__ == '__main__':\n    main()": own_code.CODE,
    "def test_sum():\n    assert 1": own_code.TESTS,
    "class TestSum:\n    def test_sum(self):\n        pass": own_code.DEFINITIONS,
    BENCHMARK: own_code.BENCHMARKS,
    BENCHMARK + "if __name__ == '__main__':\n    tf.test.main()": own_code.BENCHMARKS,
    BENCHMARK + "print(1)": own_code.CODE,
}


def test_a_file_is_code_or_needs_a_runner():
    assert {source: own_code.kind(source) for source in KINDS} == KINDS


def test_code_under_a_name_that_no_script_has_never_runs():
    guard = "if __name__ == {!r}:\n    main()"
    assert own_code.wrong_guard("import os\n" + guard.format("main")) == (2, "main")
    for source in (guard.format("__main__"), guard.format("main") + "\nelse:\n    main()", "main()"):
        assert own_code.wrong_guard(source) is None
    assert own_code.wrong_guard("print(1)\n" + guard.format("main")) is None


def test_benchmarks_have_the_names_that_tensorflow_reports_and_those_of_pytest_are_found():
    assert own_code.benchmarks(ast.parse(BENCHMARK)) == ["Products.small", "Products.benchmarkLarge"]
    source = "def test_a(benchmark):\n    pass\ndef test_b():\n    pass\ndef helper(benchmark):\n    pass"
    assert own_code.benchmarked_tests(source) == ["test_a"]
    assert own_code.benchmarked_tests("x = = 1") == []
