"""The real thing without an engine: a real TensorFlow in a local environment, started by the real command."""

import pytest

from harness import session
from harness.model.launch import Status
from tests.commands import run_harness
from tests.lacking import python

STEP = ["-s", "keras_step", "-a", "model=small", "-a", "data=small", "-a", "call=train_on_batch", "-a", "inputs=numpy"]
SHORT = ["--rounds", "1", "--warmup", "10ms", "--measure", "50ms", "--seed", "1", "--backend", "local"]


@pytest.mark.slow
def test_tensorflow_1_14_trains_in_a_local_environment_made_from_its_lock(tmp_path):
    python("3.7")
    selected = [*STEP, "-e", "tf1.14", "-a", "api=tf.keras,keras", "-a", "mode=graph"]
    process = run_harness("matrix", *selected, *SHORT, "--results", str(tmp_path))
    assert process.returncode == 0, process.stderr
    (folder,) = tmp_path.iterdir()
    measured = [launch for launch in session.read(folder).launches if launch.round]
    assert {launch.status for launch in measured} == {Status.OK}
    # a round that others disturbed is done again
    assert len([launch for launch in measured if launch.attempt == 0]) == 2
    for launch in measured:
        assert launch.observations["tensorflow"] == "1.14.0"
        assert launch.fingerprint["steps_counted"] == launch.fingerprint["steps_called"]
        assert session.read(folder).run.pins["tf1.14"]["keras"] == "2.2.5"
