"""The kit's settings, without TensorFlow: the process's variables, what is looked at, and what is refused."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from kit import settings
from kit.outcome import NotAvailable
from kit.settings import CLUSTERS, Settings

from harness.model.settings import SETTINGS, values
from tests.conftest import ROOT
from tests.errors import catch_text

VARIABLES = ["TF_XLA_FLAGS", "NVIDIA_TF32_OVERRIDE", "TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC"]
VARIABLES += ["CUDA_MODULE_LOADING", "TF_CUDNN_USE_AUTOTUNE"]
ACTIVE = {"xla": [], "precision": "float32", "deterministic": "off"}


@pytest.fixture
def environ(monkeypatch):
    monkeypatch.setattr(os, "environ", {"PATH": "/bin"})
    return os.environ


@pytest.fixture
def active(monkeypatch):
    def read(**values):
        readers = {"find_compiled": "xla", "policy": "precision", "deterministic": "deterministic"}
        for reader, name in readers.items():
            monkeypatch.setattr(settings, reader, lambda _, name=name: values.get(name))

    return read


def test_the_kit_and_the_harness_know_the_same_settings():
    assert {name: tuple(choices) for name, choices in settings.VALUES.items()} == {
        name: values(name) for name in SETTINGS
    }


VARIABLES_OF = [
    ({}, {}),
    ({"xla": "default", "tf32": "default", "deterministic": "default"}, {"NVIDIA_TF32_OVERRIDE": "0"}),
    ({"xla": "on"}, {"TF_XLA_FLAGS": "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"}),
    ({"xla": "off"}, {"TF_XLA_FLAGS": "--tf_xla_auto_jit=-1"}),
    ({"tf32": "off"}, {"NVIDIA_TF32_OVERRIDE": "0"}),
    ({"tf32": "on"}, {}),
    ({"deterministic": "on"}, {"TF_DETERMINISTIC_OPS": "1", "TF_CUDNN_DETERMINISTIC": "1"}),
    ({"deterministic": "off"}, {"TF_DETERMINISTIC_OPS": "0", "TF_CUDNN_DETERMINISTIC": "0"}),
    ({"precision": "mixed_float16"}, {}),
    ({"cuda_loading": "lazy"}, {"CUDA_MODULE_LOADING": "LAZY"}),
    ({"cudnn_autotune": "off"}, {"TF_CUDNN_USE_AUTOTUNE": "0"}),
    ({"cudnn_autotune": "on"}, {"TF_CUDNN_USE_AUTOTUNE": "1"}),
]


def test_variables_are_set_before_tensorflow_is_imported(environ):
    for requested, variables in VARIABLES_OF:
        environ.clear()
        environ["NVIDIA_TF32_OVERRIDE"] = "0"  # of the shell: only a setting that is asked for changes it
        Settings({"tf32": "on", **requested}).prepare(thorough=False)
        assert {name: environ[name] for name in VARIABLES if name in environ} == variables, requested
    environ["TF_XLA_FLAGS"] = "--tf_xla_min_cluster_size=1"
    Settings({"xla": "off"}).prepare(thorough=True)
    assert environ["TF_XLA_FLAGS"] == "--tf_xla_min_cluster_size=1 --tf_xla_auto_jit=-1"


FAULTS = """
import resource, sys
from kit.settings import Settings

Settings({"malloc": sys.argv[1]}).prepare(thorough=False)

def work():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [b"x" * (4 << 20) for _ in range(20)]
    del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

work()
print(work())
"""


def test_memory_that_is_kept_is_taken_again_without_page_faults():
    """In a process of its own: what malloc is told it is not asked about, and it cannot be told to forget."""
    for value, is_kept in {"keep": True, "default": False}.items():
        command = [sys.executable, "-c", FAULTS, value]
        completed = subprocess.run(command, cwd=ROOT / "scenarios", capture_output=True, text=True, check=True)
        assert (int(completed.stdout) < 1000) is is_kept, value


def test_what_cannot_be_read_is_left_out(monkeypatch, active):
    def fails(_):
        raise AttributeError("a release has another name for it")

    active(**ACTIVE)
    monkeypatch.setattr(settings, "find_compiled", fails)
    monkeypatch.setattr(settings, "policy", lambda _: None)
    assert Settings().observe(None, "cpu") == {"deterministic": "off"}


#: What is set, what is active, and on which device.
INEFFECTIVE = [
    ({"precision": "float32"}, {"precision": None}, "cpu"),
    ({"xla": "off"}, {"xla": ["step"]}, "cpu"),
    ({"precision": "mixed_float16"}, {}, "cpu"),
    ({"deterministic": "on"}, {}, "cpu"),
    ({"tf32": "on"}, {}, "cpu"),
    ({"malloc": "keep"}, {}, "cpu"),
    ({"cuda_loading": "lazy"}, {"loading": "eager"}, "gpu"),
    ({"cuda_loading": "lazy"}, {}, "gpu"),
    ({"cpus": "4"}, {}, "cpu"),
]


def test_a_setting_that_does_nothing_is_no_cell(active, monkeypatch, snapshot):
    monkeypatch.setattr(settings, "keep_freed_memory", lambda: False)
    monkeypatch.setattr(settings, "tf32", lambda _: "off")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3}, raising=False)
    reasons = {}
    for requested, changes, device in INEFFECTIVE:
        active(**{**ACTIVE, **changes})
        monkeypatch.setattr(settings.driver, "loading", lambda changes=changes: changes.get("loading"))
        setting = Settings(requested)
        setting.prepare(thorough=False)
        reasons[f"{requested}, and {changes} is active"] = catch_text(NotAvailable, setting.observe, None, device)
    assert reasons == snapshot


def test_xla_that_finds_nothing_to_compile_is_no_cell(environ, active):
    active(**{**ACTIVE, "xla": [CLUSTERS]})
    for graph, runs in {"attr { key: '_XlaCluster' }": True, "node { op: 'MatMul' }": False}.items():
        setting = Settings({"xla": "on"})
        setting.prepare(thorough=True)
        folder = Path(environ["TF_DUMP_GRAPH_PREFIX"])
        assert "--tf_xla_clustering_debug" in environ["TF_XLA_FLAGS"]
        (folder / "mark_for_compilation.pbtxt").write_text(graph)
        if runs:
            assert setting.observe(None, "cpu")["xla"] == [CLUSTERS]
        else:
            with pytest.raises(NotAvailable, match="XLA finds nothing to compile"):
                setting.observe(None, "cpu")
        assert not folder.exists()


def tensorflow(*definitions, eager=True, jit=False):
    """A TensorFlow that knows functions by name and whether each asks for XLA."""
    functions = [
        SimpleNamespace(signature=SimpleNamespace(name=name), attr={"_XlaMustCompile": SimpleNamespace(b=asks)})
        for name, asks in definitions
    ]
    graph = SimpleNamespace(as_graph_def=lambda: SimpleNamespace(library=SimpleNamespace(function=functions)))
    return SimpleNamespace(
        executing_eagerly=lambda: eager,
        config=SimpleNamespace(optimizer=SimpleNamespace(get_jit=lambda: jit)),
        compat=SimpleNamespace(v1=SimpleNamespace(get_default_graph=lambda: graph)),
    )


def test_functions_that_ask_for_xla_are_told_and_whether_it_compiles_what_it_can(environ):
    traced = ("__inference__update_step_xla_123", True), ("__forward_step_4_56", True), ("__inference_other_7", False)
    assert settings.find_compiled(tensorflow(*traced, eager=False)) == ["_update_step_xla", "step"]
    for flags, jit, is_on in [
        ("", False, False),
        ("", True, True),
        ("--tf_xla_auto_jit=2", False, True),
        ("--tf_xla_auto_jit=fusible", False, True),
        ("--tf_xla_auto_jit=0", True, True),
        ("--tf_xla_auto_jit=2 --tf_xla_auto_jit=-1", True, False),
    ]:
        environ["TF_XLA_FLAGS"] = flags
        assert settings.auto_jit(tensorflow(jit=jit)) is is_on, flags


def release(number, **experimental):
    """Return a TensorFlow with these functions of `tf.config.experimental`. In 1.15, `tf.config` itself has none."""
    return SimpleNamespace(__version__=number, config=SimpleNamespace(experimental=SimpleNamespace(**experimental)))


@pytest.fixture
def on_gpu(monkeypatch):
    """Return a function that gives this process GPUs of these compute capabilities, by the driver's answers."""
    return lambda *capabilities: monkeypatch.setattr(
        settings.driver, "gpus", lambda: [{"name": "a GPU", "capability": text} for text in capabilities]
    )


def test_tf32_is_on_where_the_gpu_has_it_and_nothing_turns_it_off(environ, on_gpu):
    for number in ("1.15.5", "2.4.4", "2.15.1"):
        environ.pop("NVIDIA_TF32_OVERRIDE", None)
        on = release(number, tensor_float_32_execution_enabled=lambda: True)
        off = release(number, tensor_float_32_execution_enabled=lambda: False)
        for capability, value in {"7.5": "off", "8.0": "on", "8.6": "on", "12.0": "on"}.items():
            on_gpu(capability)
            assert (settings.tf32(on), settings.tf32(off)) == (value, "off"), (number, capability)
        environ["NVIDIA_TF32_OVERRIDE"] = "0"
        assert settings.tf32(on) == "off"


def test_before_2_4_only_nvidias_own_build_has_tf32_and_all_deterministic_operations(environ, on_gpu, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow.python.framework", SimpleNamespace(config=SimpleNamespace()))
    on_gpu("8.6")
    environ["TF_DETERMINISTIC_OPS"] = "1"
    assert settings.tf32(release("1.15.5")) == "off"
    assert settings.deterministic(release("1.15.5")) == "of cuDNN"
    environ["NVIDIA_TENSORFLOW_VERSION"] = "23.03-tf1"
    assert settings.tf32(release("1.15.5")) == "on"
    assert settings.deterministic(release("1.15.5")) == "on"
    on_gpu("7.5")
    assert settings.tf32(release("1.15.5")) == "off"


def test_both_values_of_tf32_are_observed_in_nvidias_tensorflow_1(environ, on_gpu, active):
    on_gpu("8.6")
    active(**ACTIVE)
    for value in ("on", "off"):
        environ["NVIDIA_TENSORFLOW_VERSION"] = "23.03-tf1"
        setting, states = Settings({"tf32": value}), [True]
        experimental = {
            "enable_tensor_float_32_execution": states.append,
            "tensor_float_32_execution_enabled": lambda states=states: states[-1],
        }
        setting.prepare(thorough=False)
        setting.apply(release("1.15.5", **experimental))
        assert setting.observe(release("1.15.5", **experimental), "gpu")["tf32"] == value


def test_keras_asks_for_xla_no_more(monkeypatch):
    class Optimizer:
        def __init__(self):
            self.jit_compile = True

        def _update_step_xla(self):
            pass

    class Trainer:
        def _resolve_auto_jit_compile(self):
            return True

    module = "keras.src.optimizers.optimizer"
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(_BaseOptimizer=Optimizer, version="2.15"))
    monkeypatch.setitem(sys.modules, "keras.src.trainers.trainer", SimpleNamespace(Trainer=Trainer))
    settings.have_keras_compile_nothing()
    assert Optimizer().jit_compile is False
    assert Trainer()._resolve_auto_jit_compile() is False


def test_a_keras_that_forgets_its_state_keeps_the_policy(monkeypatch):
    policies = []

    def clear_session():
        policies.append("forgotten")

    state = SimpleNamespace(clear_session=clear_session)
    backend = SimpleNamespace(clear_session=clear_session)
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(__version__="3.3.3"))
    monkeypatch.setitem(sys.modules, "keras.src.backend.common.global_state", state)
    monkeypatch.setitem(sys.modules, "keras.backend", backend)
    mixed = SimpleNamespace(set_global_policy=policies.append)
    tf = SimpleNamespace(__version__="2.16.1", keras=SimpleNamespace(mixed_precision=mixed))
    settings.set_policy(tf, "mixed_float16")
    backend.clear_session()
    assert policies == ["mixed_float16", "forgotten", "mixed_float16"]


def test_a_package_keras_without_policies_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(__version__="2.3.1"))
    with pytest.raises(NotAvailable, match=r"the package keras 2\.3\.1 doesn't support precision policies"):
        settings.set_policy(SimpleNamespace(__version__="2.1.0"), "mixed_float16")


def test_settings_are_prepared_before_the_import_applied_before_the_device_and_observed_after_the_work(
    perform, environ, monkeypatch
):
    events = []
    monkeypatch.setattr(Settings, "observe", lambda *_: events.append("observed") or {})
    library = SimpleNamespace(
        __version__="2.15.0",
        events=events,
        executing_eagerly=lambda: True,
        compat=SimpleNamespace(v1=SimpleNamespace(set_random_seed=lambda seed: events.append("applied"))),
        constant=lambda value: events.append("device") or SimpleNamespace(numpy=lambda: value),
    )
    monkeypatch.setitem(sys.modules, "tensorflow", library)
    source = """
import os
from tensorflow import events

events.append(os.environ["TF_DETERMINISTIC_OPS"])

def scenario(bench):
    bench.device()
    events.append("built")
    bench.observe("axes", bench.axes)
"""
    launched = perform(source, settings={"deterministic": "on", "tf32": "default"})
    assert launched.end["status"] == "ok", launched.end
    assert events == ["1", "applied", "device", "built", "observed"]
    assert launched.observed("axes") == {}


def test_settings_are_observed_where_they_are_asked_for(monkeypatch, active):
    active(**ACTIVE)
    monkeypatch.setattr(settings, "keep_freed_memory", lambda: True)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3}, raising=False)
    monkeypatch.setattr(settings, "tf32", lambda _: "off")
    monkeypatch.setattr(settings.driver, "loading", lambda: "lazy")
    assert Settings().observe(None, "cpu") == ACTIVE
    assert Settings().observe(None, "gpu") == {**ACTIVE, "tf32": "off"}
    requested = {"malloc": "keep", "cpus": "2", "cuda_loading": "lazy"}
    setting = Settings(requested)
    setting.prepare(thorough=False)
    assert setting.observe(None, "gpu") == {**ACTIVE, "tf32": "off", **requested}
    active(xla=[], precision="mixed_float16", deterministic="of cuDNN")
    values = {"xla": "off", "precision": "mixed_float16", "deterministic": "on"}
    assert Settings(values).observe(None, "cpu")["deterministic"] == "of cuDNN"
