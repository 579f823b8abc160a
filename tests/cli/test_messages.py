import fcntl
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace

import pytest

from harness import cli
from harness.cli import messages
from harness.cli.messages import handle_signals


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    # started with nohup, this process ignores one of them
    for number, default in zip(before, (signal.default_int_handler, signal.SIG_DFL, signal.SIG_DFL), strict=True):
        signal.signal(number, default)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_would_end_the_process_interrupts_it_and_is_answered_at_once(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), handle_signals():
        signal.raise_signal(number)
    assert capfd.readouterr().err == "\nStopping…\n"
    assert signal.getsignal(number) is before


def test_each_further_signal_has_words_of_its_own(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "ECHO_SECONDS", 0.0)
    with handle_signals(lambda count: f"number {count}"):
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    assert capfd.readouterr().err.split() == ["number", "1", "number", "2"]


def test_a_signal_that_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with handle_signals():
        signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize("error", [RecursionError("deep"), KeyError("a\x1b[31m\n" + "x" * 1000)])
def test_an_error_that_nobody_foresaw_is_a_sentence_with_what_to_attach(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(cli, "app", fail)
    for debug in ("", "1"):
        monkeypatch.setenv("HARNESS_DEBUG", debug)
        with pytest.raises(SystemExit) as raised:
            cli.main()
        assert raised.value.code == 70
        said = capsys.readouterr().err
        told = said[said.index("harness: this") :]
        assert type(error).__name__ in told
        assert "harness/cli/__init__.py:" in told
        assert "HARNESS_DEBUG=1" in told
        assert "\x1b" not in told
        assert len(told) < 800
        assert ("Traceback" in said) is bool(debug)


def test_too_little_memory_is_a_sentence_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "app", lambda: bytearray(sys.maxsize))
    with pytest.raises(SystemExit) as raised:
        cli.main()
    assert raised.value.code == 4
    assert "Run it on a machine with more memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pressed", "heard"),
    [
        ([0.0, 0.05], 1),  # once, told by the terminal and by what started this one
        ([0.0, 1.9], 1),
        ([0.0, 2.1], 2),
        ([0.0, 1.2, 2.4], 2),  # again and again: who does that wants it to end
        ([0.0, 0.8, 1.6, 2.4, 3.2, 4.0], 2),
    ],
)
def test_a_second_signal_is_told_from_an_echo(
    pressed: list[float], heard: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    times = iter(pressed)
    monkeypatch.setattr(messages, "time", SimpleNamespace(monotonic=lambda: next(times)))
    with handle_signals(lambda count: f"number{count}"):
        for _ in pressed:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    assert len(capfd.readouterr().err.split()) == heard


def test_a_signal_that_is_told_twice_is_one(capfd: pytest.CaptureFixture[str]) -> None:
    with handle_signals(lambda count: f"number {count}"):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert capfd.readouterr().err.split() == ["number", "1"]


def test_on_a_terminal_lines_break_between_words_and_no_path_and_no_command_is_split(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    command = "harness matrix --resume results/2026-11-25T03-31-40Z-37c6 --rounds 8"
    path = "results/2026-11-25T03-31-40Z-37c6/launches.jsonl"
    told = f"The run is complete: it has 4 rounds in {path}. To continue it: {command}\n  begun below"
    with os.fdopen(writer, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        messages.say(told)
        read = b""
        while not read.endswith(b"begun below\r\n"):  # the kernel may hand it over in parts
            read += os.read(reader, 4096)
        shown = read.decode().replace("\r\n", "\n")
    os.close(reader)
    assert shown == (f"The run is complete: it has 4 rounds in\n{path}.\nTo continue it:\n{command}\n  begun below\n")


def test_elsewhere_lines_stay_whole(capfd: pytest.CaptureFixture[str]) -> None:
    messages.say("word " * 100)
    assert capfd.readouterr().err == "word " * 100 + "\n"
