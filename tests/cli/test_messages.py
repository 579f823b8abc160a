import errno
import fcntl
import io
import os
import pty
import re
import signal
import struct
import termios
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace

import pytest

from harness import cli
from harness.cli import messages
from harness.cli.messages import handle_signals


def test_a_question_that_is_not_answered_interrupts_the_command(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(KeyboardInterrupt):
        messages.confirm_on_terminal("Run it?")


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    # started with nohup, this process ignores one of them
    for number, default in zip(before, (signal.default_int_handler, signal.SIG_DFL, signal.SIG_DFL), strict=True):
        signal.signal(number, default)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_that_would_end_the_process_interrupts_it_at_once_and_an_ignored_one_stays_so(capfd):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        before = signal.getsignal(number)
        with pytest.raises(KeyboardInterrupt), handle_signals():
            signal.raise_signal(number)
        assert capfd.readouterr().err == "\nStopping…\n"
        assert signal.getsignal(number) is before
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with handle_signals():
        signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_an_error_that_nobody_foresaw_is_a_sentence_with_what_to_attach(monkeypatch, capsys, snapshot):
    errors = {
        "deep": RecursionError("deep"),
        "long": KeyError("a\x1b[31m\n" + "x" * 1000),
        "memory": MemoryError(),
        "disk": OSError(errno.ENOSPC, "No space left on device", "results/launches.jsonl"),
    }
    sentences = {}
    for case, error in errors.items():

        def fail(error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(cli, "app", fail)
        texts = []
        for debug in ("", "1"):
            monkeypatch.setenv("HARNESS_DEBUG", debug)
            with pytest.raises(SystemExit) as ending:
                cli.main()
            texts.append(capsys.readouterr().err)
        assert ("Traceback" in texts[0], "Traceback" in texts[1]) == (False, case in ("deep", "long"))
        sentences[case] = [int(ending.value.code or 0), re.sub(r"__init__\.py:\d+", "__init__.py:LINE", texts[0])]
    assert sentences == snapshot


def test_a_second_signal_is_told_from_an_echo(monkeypatch, capfd):
    for seconds, count in (
        ([0.0, 0.05], 1),  # once, told by the terminal and by what started this one
        ([0.0, 1.9], 1),
        ([0.0, 2.1], 2),
        ([0.0, 1.2, 2.4], 2),  # again and again: who does that wants it to end
        ([0.0, 0.8, 1.6, 2.4, 3.2, 4.0], 2),
    ):
        times = iter(seconds)
        monkeypatch.setattr(messages, "time", SimpleNamespace(monotonic=lambda times=times: next(times)))
        with handle_signals(lambda count: f"number{count}"):
            for _ in seconds:
                with suppress(KeyboardInterrupt):
                    signal.raise_signal(signal.SIGINT)
        assert len(capfd.readouterr().err.split()) == count, seconds


def test_on_a_terminal_lines_break_between_words_and_no_path_and_no_command_is_split(monkeypatch):
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    command = "harness matrix --resume results/2026-11-25T03-31-40Z-37c6 --rounds 8"
    path = "results/2026-11-25T03-31-40Z-37c6/launches.jsonl"
    text = f"The run is complete: it has 4 rounds in {path}. To continue it: {command}\n  begun below"
    with os.fdopen(writer, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        messages.say(text)
        read = b""
        while not read.endswith(b"begun below\r\n"):  # the kernel may hand it over in parts
            read += os.read(reader, 4096)
        output = read.decode().replace("\r\n", "\n")
    os.close(reader)
    assert output == (f"The run is complete: it has 4 rounds in\n{path}.\nTo continue it:\n{command}\n  begun below\n")


def test_elsewhere_lines_stay_whole(capfd):
    messages.say("word " * 100)
    assert capfd.readouterr().err == "word " * 100 + "\n"
