import ast
from pathlib import Path

import pytest

from bench import gpu_image_probe
from harness.backends import fatbins

#: What TensorFlow 2.10.1 and 2.21.0 wrote.
LOG = """\
2026-11-21 15:15:30.37: I tensorflow/stream_executor/platform/default/dso_loader.cc:53] Successfully opened dynamic \
library libcudart.so.11.0

harness asks for Cublas
2026-11-21 15:15:31.91: I tensorflow/stream_executor/platform/default/dso_loader.cc:53] Successfully opened dynamic \
library libcublas.so.11

harness asks for Cupti
2026-11-21 15:15:32.00: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library \
'libcupti.so.11.2'; dlerror: libcupti.so.11.2: cannot open shared object file: No such file or directory
I0000 00:00:1795274424.764795       1 dso_loader.cc:133] Successfully opened dynamic library libcupti.so
"""


def test_what_the_loader_tried_is_read_from_its_log():
    assert gpu_image_probe.parse_attempts(LOG) == {
        "Cublas": [("libcublas.so.11", "")],
        "Cupti": [
            ("libcupti.so.11.2", "libcupti.so.11.2: cannot open shared object file: No such file or directory"),
            ("libcupti.so", ""),
        ],
    }


@pytest.mark.slow
def test_modules_that_cannot_be_imported_are_found_with_their_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name in gpu_image_probe.MODULES:
        (tmp_path / f"{name}.py").write_text("")
    for keras, broken in (
        ("", {}),
        ("raise ImportError('no libhdf5.so.200')", {"keras": "ImportError: no libhdf5.so.200"}),
        ("import os; os._exit(3)", dict.fromkeys(gpu_image_probe.MODULES, "the process ended with code 3")),
    ):
        (tmp_path / "keras.py").write_text(keras)
        assert gpu_image_probe.find_broken() == broken


def test_what_runs_in_images_runs_on_the_catalogues_oldest_python():
    for module in (gpu_image_probe, fatbins):
        ast.parse(Path(module.__file__).read_text(), feature_version=(3, 7))
