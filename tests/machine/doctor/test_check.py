from harness.machine.doctor.check import format_number


def test_numbers_have_two_digits():
    texts = {0.0: "0", 0.423: "0.42", 9.96: "10", 12.3: "12", 130.4: "130"}
    assert {value: format_number(value) for value in texts} == texts
