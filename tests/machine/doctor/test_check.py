from harness.machine.doctor.check import Level, format_number, grade, make_result


def test_a_threshold_belongs_to_what_is_worse():
    assert [grade(value, 1.0, 3.0) for value in (0.99, 1.0, 2.99, 3.0)] == ["good", "warn", "warn", "bad"]


def test_nothing_is_advised_where_nothing_is_known_to_be_wrong():
    checks = [make_result("power", level, "value", {}, advice="Plug it in.", command="plug") for level in Level]
    assert {(check.level, check.advice, check.command) for check in checks} == {
        ("good", "", ""),
        ("unknown", "", ""),
        ("warn", "Plug it in.", "plug"),
        ("bad", "Plug it in.", "plug"),
    }


def test_numbers_have_two_digits():
    texts = {0.0: "0", 0.423: "0.42", 9.96: "10", 12.3: "12", 130.4: "130"}
    assert {value: format_number(value) for value in texts} == texts
