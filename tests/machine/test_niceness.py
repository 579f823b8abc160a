import os

from harness.machine import niceness


class NiceKernel:
    """What the kernel has of this thread: its nice value, and the lowest that it allows."""

    nice, lowest = 0, niceness.LOWEST

    def setpriority(self, _: int, __: int, value: int) -> None:
        if value < self.lowest:
            raise PermissionError
        self.nice = value


def test_the_nice_value_is_lowered_if_that_is_allowed_and_counts_in_more_than_a_session(monkeypatch, tmp_path):
    kernel = NiceKernel()
    monkeypatch.setattr(os, "getpriority", lambda *_: kernel.nice)
    monkeypatch.setattr(os, "setpriority", kernel.setpriority)
    monkeypatch.setattr(niceness, "_AUTOGROUP_FILE", tmp_path / "autogroup")
    assert niceness.can_lower()
    for text, can in (("1\n", False), ("0\n", True)):
        (tmp_path / "autogroup").write_text(text)
        assert niceness.can_lower() is can
    with niceness.run_at_nice_value(-5):
        assert kernel.nice == -5
    assert kernel.nice == 0
    kernel.lowest = 0
    assert not niceness.can_lower()
    # the value that the user chose stays
    kernel.nice, kernel.lowest = 10, niceness.LOWEST
    assert not niceness.can_lower()
    assert kernel.nice == 10
