"""Which training loop runs, in real releases: the names that the recorder gives, for both calls in both modes."""

import pytest

from harness.model.launch import Status
from tests.lacking import for_a_campaign

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

#: Both calls in one launch: it is the mode that a process cannot change.
BOTH = b"""
import keras_step

class Prefixed:
    def __init__(self, bench, prefix):
        self.phase = bench.phase
        self.observe = lambda name, value: bench.observe(prefix + " " + name, value)

def scenario(bench, mode):
    import tensorflow as tf
    keras_step.choose_mode(tf, mode)
    keras = keras_step.import_keras(tf, "tf.keras")
    bench.device()
    for call in ("fit", "train_on_batch"):
        keras_step.observe_loops(
            Prefixed(bench, call), tf, keras, call=call, inputs="numpy", dtype="float32", mode=mode
        )
"""

GRAPH, EAGER = "backend.GraphExecutionFunction", "backend.EagerExecutionFunction"
OP_BY_OP = "training_v2_utils.train_on_batch, training_eager.train_on_batch"
ARRAYS_V1 = "training_arrays_v1.ArrayLikeTrainingLoop, training_arrays_v1.fit_loop"

#: The first call and later ones of `fit`, then of `train_on_batch`.
LOOPS = {
    ("tf1.14", "graph"): [f"training_arrays.fit_loop, {GRAPH}"] * 2 + [GRAPH] * 2,
    ("tf1.14", "eager"): [f"training_arrays.fit_loop, {EAGER}"] * 2 + [EAGER] * 2,
    ("tf2.0", "graph"): [f"training_arrays.ArrayLikeTrainingLoop, training_arrays.fit_loop, {GRAPH}"] * 2 + [GRAPH] * 2,
    # every step of 2.0's train_on_batch goes op by op: the slow path of the famous question, ...
    ("tf2.0", "eager"): [f"training_v2.Loop, {OP_BY_OP}", "training_v2.Loop", OP_BY_OP, OP_BY_OP],
    # ... and 2.1 does so only while it traces
    ("tf2.1", "eager"): [
        f"training_v2.Loop, {OP_BY_OP}",
        "training_v2.Loop",
        OP_BY_OP,
        "training_v2_utils.train_on_batch",
    ],
    ("tf2.5", "graph"): [f"{ARRAYS_V1}, {GRAPH}"] * 2 + [GRAPH] * 2,
    ("tf2.5", "eager"): ["training.Model.make_train_function, def_function.Function"] * 4,
    ("tf2.15", "graph"): [f"{ARRAYS_V1}, {GRAPH}"] * 2 + [GRAPH] * 2,
    ("tf2.15", "eager"): ["training.Model.make_train_function, polymorphic_function.Function"] * 4,
    ("tf2.21", "eager"): [
        "trainer.TensorFlowTrainer.make_train_function, a function around polymorphic_function.Function"
    ]
    * 4,
}


#: The two sides of the famous question; others are for a campaign.
FAMOUS = (("tf1.14", "graph"), ("tf2.0", "eager"))
OTHERS = for_a_campaign(*sorted(LOOPS.keys() - FAMOUS))


@pytest.mark.parametrize(("environment", "mode"), [*FAMOUS, *OTHERS])
def test_the_loops_of_fit_and_train_on_batch(launched, environment, mode):
    outcome = launched(environment, BOTH, {"mode": mode})
    assert outcome.status is Status.OK, outcome.error + outcome.stderr
    names = [f"{call} {name}" for call in ("fit", "train_on_batch") for name in ("loop (first call)", "loop")]
    assert [outcome.observations.get(name) for name in names] == LOOPS[environment, mode]
