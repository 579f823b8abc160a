"""Searches for stored results: queries of users, and the entries that answer them."""

import json
from dataclasses import replace

import pytest

from bench import stored as generator
from harness.model.issues import Issue
from harness.project import Project
from harness.scenarios.catalog import find_scenario_files
from harness.upstream import stored
from tests.claims import CLAIM, claimed_scenario

#: Titles of issues as they stand upstream, questions from the docs, and the names of the entries with the answer: an
#: issue, the same one in other repositories, or an example with its scenario.
QUESTIONS = {
    "Tensorflow version 2.16.1 has retracing problem for keras.model.train_on_batch()": "T#67033",
    "Why is TensorFlow 2 much slower than TensorFlow 1?": "T#33487",
    "Poor performance of model.fit and/or model.predict in TF 2.1.0-rc1": "T#35124",
    "memory leak in tf.keras.Model.predict": "T#44711",
    "Memory leak on TF 2.0 with model.predict or/and model.fit with keras": "T#33030",
    "[TF==2.0.0-alpha0] Memory leak with tf.keras.models.load_model": "T#27511",
    "TF-2.0: Keras model save load memory leakage": "T#32234",
    "Dataset from generator is far slower than from tensor slices, anything I can improve?": "T#56258",
    "Adding Augumentation Layer extremely slow on Tensorflow 2.9 and 2.10": "T#58108",
    "SSIM performance degradation in TF v2.5.0.": "T#49206 T#49205",
    "MirroredStrategy compared to OneDeviceStrategy slower": "T#35095",
    "Slowdown training LSTM on TensorFlow 2.4+": "T#44917",
    "Performance drop with tensorflow 2.13": "T#61363 K#18301 TK#155",
    "Training time for one epoch on TF 1.12 is almost 2 times slower than TF 1.5": "T#29151",
    "[TF 2.1rc0] The `{predict,train,test}_on_batch` trace functions with fixed batch size": "T#34907",
    "import tensorflow takes 10 s": "T#37729",
    "keras training step slower in 2.17 than in 1.14": "releases/keras_step",
    "latency p99 predict": "latency/latency",
    "int8 slower than float32 tflite": "T#49011",
    "40261": "T#40261",
}


@pytest.mark.usefixtures("claiming")
def test_a_scenario_that_is_not_in_the_index_is_read_from_its_file():
    (claim,) = stored.load_index().find_claims("long sum ten times")[:1]
    assert (claim["issue"], claim["families"], claim["environments"]) == ("T#1001", ["calls"], ["old"])
    assert (claim["ratio"], claim["result"]) == ((5.0, 30.0), {})
    assert [name for name, _ in stored.load_index().find_scenarios("sums")] == ["sums"]


def test_questions_have_their_answers_among_the_first_three():
    entries = stored.load_index().entries
    missed = [
        question
        for question, names in QUESTIONS.items()
        if not {entry.name for entry in stored.find_entries(entries, question)[:3]} & {*names.split()}
    ]
    assert len(QUESTIONS) == 20
    assert len(missed) <= 2, missed


def test_words_are_found_in_other_forms_and_as_synonyms():
    texts = [("predict leaks", ""), ("loading models", "predict"), ("tf2.16 slower", ""), ("nothing", "")]

    def rank(query: str) -> list[int]:
        return stored.select(range(len(texts)), texts, query)

    assert rank("Prediction") == [0]
    assert rank("memory") == [0]
    assert rank("load_model") == [1]
    assert rank("regression in TensorFlow 2.16.1") == [2]
    assert rank("tfdbg") == []


def test_the_index_has_the_files_and_results_of_today():
    document = json.loads(stored.PLACE.read_text())
    hashes = {path.stem: stored.hash_text(path.read_bytes()) for path in find_scenario_files(Project.find())}
    assert {name: entry["hash"] for name, entry in document["scenarios"].items()} == hashes, "make reference"
    assert document["results"] == generator.make_results(), "make reference"


@pytest.mark.slow
def test_the_index_is_current():
    assert json.loads(stored.PLACE.read_text()) == json.loads(json.dumps(generator.make_document())), "make reference"


def test_an_issue_of_another_repository_has_the_text_of_the_first():
    again = replace(CLAIM, issue=Issue("keras-team/keras", 8), reported="the same in another repository")
    first, second = stored.describe(claimed_scenario(CLAIM, again))["claims"]
    assert (first["title"], second["title"]) == (CLAIM.reported, f"{again.reported}: {CLAIM.reported}")
