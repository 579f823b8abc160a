"""What engines and NVIDIA's tools say when they refuse a GPU (refusals.json), and what a user is told."""

import json
from pathlib import Path

import pytest

from harness.backends.docker.gpu_refusals import REFUSALS, GpuRefusedError, explain_refusals, find_meaning
from harness.model.errors import CannotRunHereError

#: Of engines of 2020, 2022 and 2025.
WORDS: list[str] = json.loads(Path(__file__).with_name("refusals.json").read_text())


def explain(words: str, gpus: list[str]) -> CannotRunHereError:
    with pytest.raises(CannotRunHereError) as error, explain_refusals(gpus):
        raise CannotRunHereError(words, "Look elsewhere.")
    return error.value


def test_a_refusal_that_is_known_has_a_sentence_and_what_mends_it(snapshot):
    meanings = []
    for words in WORDS:
        error = explain(f"refused: {words}", ["0", "1"])
        assert type(error) is GpuRefusedError
        first, _, rest = error.message.partition("\n")
        # the engine's own words can be searched for
        assert rest == f"refused: {words}"
        meanings.append([first, *error.advice.splitlines()])
    assert meanings == snapshot
    refusals = [find_meaning(words) for words in WORDS]
    assert {meaning.words for meaning in refusals if meaning} == {refusal.words for refusal in REFUSALS}


def test_refusals_that_are_not_known_are_told_as_they_are():
    error = explain("CDI device injection failed: the moon is full", ["0"])
    assert type(error) is GpuRefusedError
    assert error.message == "--gpus 0: CDI device injection failed: the moon is full"
    assert "harness doctor --gpu" in error.advice
    for gpus, words in (["0"], "Requested CPUs are not available"), ([], "unresolvable CDI devices vendor.com/net=eth"):
        error = explain(words, gpus)
        assert (type(error), error.message, error.advice) == (CannotRunHereError, words, "Look elsewhere.")
