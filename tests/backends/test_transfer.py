import pytest

from harness.backends import transfer
from harness.model.errors import CannotRunHereError


class Engine:
    """Sends messages; `left` are those that were not asked for."""

    def __init__(self, *messages):
        self.left = list(messages)
        self.api = self

    def pull(self, tag, stream, decode):
        while self.left:
            yield self.left.pop(0)

    push = pull


@pytest.mark.parametrize("way", ["push", "pull"])
def test_an_error_on_the_way_is_a_sentence(way):
    engine = Engine({"status": "layer 1"}, {"error": "unexpected\n\x1b[31mEOF"})
    more = [lambda: False] if way == "pull" else []
    with pytest.raises(CannotRunHereError, match=rf"would not {way} harness/x:cpu: unexpected \\x1b\[31mEOF"):
        getattr(transfer, way)(engine, "harness/x:cpu", *more)


def test_a_pull_can_be_stopped():
    engine = Engine({"status": "layer 1"}, {"status": "layer 2"})
    transfer.pull(engine, "harness/x:cpu", lambda: True)
    assert engine.left == [{"status": "layer 2"}]


def test_a_transfer_goes_to_its_end():
    engine = Engine({"status": "layer 1"}, {"status": "layer 2"})
    transfer.push(engine, "harness/x:cpu")
    assert engine.left == []
