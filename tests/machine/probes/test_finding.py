from harness.machine.probes.finding import Finding, Level, graded


def test_a_threshold_belongs_to_what_is_worse() -> None:
    assert [graded(value, 1.0, 3.0) for value in (0.99, 1.0, 2.99, 3.0)] == ["good", "warn", "warn", "bad"]


def test_a_name_of_two_words_has_macros_of_one() -> None:
    assert Finding("CPU quota", Level.GOOD).macro == "cpu_quota"
