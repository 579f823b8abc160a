"""The inputs of the modules: `make(module, seed)`."""

import random

import numpy


def make(module, seed):
    """Return an input of a module."""
    return globals()[f"_make_{module}"](random.Random(seed))


def _make_words(chance):
    return " ".join("".join(chance.choices("abcdE.", k=4)) for _ in range(3000))


def _make_spans(chance):
    starts = [chance.randrange(20000) for _ in range(3000)]
    return [(start, start + chance.randrange(1, 12)) for start in starts]


def _make_edits(chance):
    return [tuple("".join(chance.choices("abcd", k=14)) for _ in range(2)) for _ in range(30)]


def _make_table(chance):
    return "\n".join(
        f" name{chance.randrange(50)} , {chance.random():.6f} , {chance.randrange(9)}" for _ in range(1500)
    )


def _make_smooth(chance):
    return numpy.array([chance.random() for _ in range(800)])


def _make_nearest(chance):
    return numpy.array([[chance.random() for _ in range(3)] for _ in range(200)])


def _make_paths(chance):
    return {node: [(chance.randrange(400), chance.randrange(1, 50)) for _ in range(8)] for node in range(400)}


def _make_wrap(chance):
    return " ".join("x" * chance.randrange(1, 12) for _ in range(4000))


def _make_flat(chance):
    return {
        f"group{group}": [{"a": chance.random(), "b": [1, 2, {"c": chance.random()}]} for _ in range(20)]
        for group in range(20)
    }


def _make_curves(chance):
    return [[chance.random() for _ in range(9)] for _ in range(20)]
