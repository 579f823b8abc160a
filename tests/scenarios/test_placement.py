"""Where TensorFlow puts things, asked of libraries with the interfaces of several generations."""

import sys
from contextlib import nullcontext
from types import SimpleNamespace as Thing

import pytest
from kit import device, placement
from kit.bench import Bench
from kit.outcome import CpuFallback
from kit.ptx import CompiledCode
from kit.sampling import Document
from kit.telemetry import Telemetry

FULL = "/job:localhost/replica:0/task:0/device:"
CPU, GPU, XLA_GPU = FULL + "CPU:0", FULL + "GPU:0", FULL + "XLA_GPU:0"


def eager(*devices, at="config", put=None):
    """A TensorFlow in eager mode with these devices; `at`: where it lists them; `put`: where it puts operations."""
    listing = Thing(list_logical_devices=lambda: [Thing(name=name) for name in devices])
    config = Thing(experimental=listing, **(vars(listing) if at == "config" else {}))
    tensor = Thing(device=put or devices[-1], numpy=lambda: None, shape=Thing())
    return Thing(
        __version__="2.0.0",
        executing_eagerly=lambda: True,
        config=config,
        ones=lambda shape: tensor,
        constant=lambda value: tensor,
        matmul=lambda *_, **__: tensor,
        nn=Thing(relu=lambda x: x, conv2d=lambda *_: tensor),
        test=Thing(is_built_with_cuda=lambda: False),
    )


class Placeholder:
    shape = Thing(as_list=lambda: [8, 8])


def graph_mode(*devices, placed=None):
    """A TensorFlow in graph mode with these devices; `placed`: the device of each operation by name."""
    fetched = []

    def run(fetches, fed, options, run_metadata):
        fetched.append(fetches)
        nodes = [Thing(name=name, device=device) for name, device in (placed or {}).items()]
        run_metadata.partition_graphs = [Thing(node=nodes[:1]), Thing(node=nodes[1:])]

    session = Thing(list_devices=lambda: [Thing(name=name) for name in devices], run=run)
    names = Thing(
        Session=lambda graph, config=None: nullcontext(session),
        placeholder=lambda *_: Placeholder(),
        ConfigProto=lambda **_: None,
        RunOptions=lambda **_: None,
        RunMetadata=Thing,
    )
    return Thing(
        __version__="1.14.0",
        executing_eagerly=lambda: False,
        config=Thing(experimental=Thing()),
        Graph=lambda: Thing(as_default=nullcontext),
        float32="float32",
        matmul=lambda *_, **__: None,
        fetched=fetched,
        compat=Thing(v1=names),
        test=Thing(is_built_with_cuda=lambda: False),
    )


def test_devices_that_are_listed_and_whether_a_gpu_is_among_them():
    for at in ("config", "experimental"):
        assert placement.list_devices(eager("/device:CPU:0", "/device:GPU:0", at=at)) == ["CPU:0", "GPU:0"]
    assert placement.list_devices(graph_mode(CPU, GPU)) == ["CPU:0", "GPU:0"]
    names = {GPU: "GPU:0", "/device:GPU:1": "GPU:1", "/gpu:0": "GPU:0", "elsewhere": "elsewhere"}
    assert {name: placement.short(name) for name in names} == names
    for library in (eager(CPU, GPU), graph_mode(CPU, GPU), graph_mode(CPU, XLA_GPU, GPU)):
        placement.require_gpu(library)
    for library in (eager(CPU), graph_mode(CPU), eager(CPU, XLA_GPU), graph_mode(CPU, XLA_GPU)):
        with pytest.raises(CpuFallback, match=r"lists no GPU, only CPU:0.*: it is built without CUDA"):
            placement.require_gpu(library)


#: What TensorFlow prints, and what of it is the reason.
COMPLAINTS = {
    "I dso_loader.cc:53] Could not dlopen library 'libcudart.so.10.0'; dlerror: no such file\\nW more": (
        "Could not dlopen library 'libcudart.so.10.0'; dlerror: no such file"
    ),
    "W Could not load dynamic library 'libnvinfer.so.7';\\nE failed call to cuInit: CUDA_ERROR_NO_DEVICE": (
        "failed call to cuInit: CUDA_ERROR_NO_DEVICE"
    ),
    "I gpu_device.cc:1] Ignoring visible gpu device (device: 0, name: K80)": "Ignoring visible gpu device (device",
}


def test_the_reason_is_in_tensorflows_own_words_and_stderr_has_them_too(monkeypatch, capsys):
    library = Thing(test=Thing(is_built_with_cuda=lambda: True))
    for words, reason in COMPLAINTS.items():
        monkeypatch.setattr(placement, "ASK", f"""print("{words}")""")
        assert placement.find_complaint(library).startswith(reason)
        assert capsys.readouterr().err.startswith(reason)
    monkeypatch.setattr(placement, "ASK", "raise ImportError('no module named tensorflow')")
    assert placement.find_complaint(library) == "it gave no reason"
    assert "ImportError: no module named tensorflow" in capsys.readouterr().err
    monkeypatch.setattr(placement, "ASK", "import time; time.sleep(60)")
    monkeypatch.setattr(placement, "ASK_SECONDS", 0.1)
    assert "gave no reason within 0.1 s" in placement.find_complaint(library)


class EagerTensor(Thing):
    """As in TensorFlow 2: its operation raises."""

    @property
    def op(self):
        raise AttributeError("Tensor.op is undefined when eager execution is enabled.")


ARRAY = Thing(device="cpu")  # as a NumPy array says


def test_the_devices_of_tensors_and_variables_however_nested():
    library = eager(CPU)
    inner = Thing(value=EagerTensor(device=GPU))  # a variable of Keras 3
    values = {"loss": (EagerTensor(device=CPU), [inner]), "count": 3, "array": ARRAY, "none": None}
    assert placement.devices(library, values) == {"CPU:0", "GPU:0"}
    assert placement.devices(library, Thing(data=EagerTensor(device=GPU))) == {"GPU:0"}  # an array of 2.4's NumPy API
    assert placement.devices(library, [1.5, ARRAY, "text", None]) == set()

    # a function's int32 products say GPU:0, and are multiplied and kept on the CPU
    assert placement.devices(library, EagerTensor(device=GPU, backing_device=CPU)) == {"CPU:0"}
    assert placement.devices(library, EagerTensor(device=GPU, backing_device=GPU)) == {"GPU:0"}


T4 = {"name": "Tesla T4", "capability": "7.5", "pci": "0000:00:1e.0"}
A100 = {"name": "NVIDIA A100", "capability": "8.0", "pci": "0000:3b:00.0"}


def test_tensorflow_counts_gpus_as_the_driver_does(monkeypatch):
    monkeypatch.setattr(placement.driver, "gpus", lambda: [A100, T4])
    library = eager(CPU, XLA_GPU, GPU, FULL + "GPU:1")
    assert placement.gpus(library, ["GPU:0"]) == [A100]
    assert placement.gpus(library, ["GPU:0", "GPU:1"]) == [A100, T4]
    assert placement.gpus(graph_mode(CPU, GPU, FULL + "GPU:1"), ["GPU:1"]) == [T4]


def test_where_tensorflow_leaves_a_gpu_out_it_is_asked_which_one(monkeypatch):
    devices = [
        Thing(physical_device_desc=""),
        Thing(physical_device_desc="device: XLA_GPU device"),
        Thing(physical_device_desc="device: 1, name: NVIDIA A100, pci bus id: 0000:3b:00.0, compute capability: 8.0"),
    ]
    client = Thing(device_lib=Thing(list_local_devices=lambda: devices))
    monkeypatch.setitem(sys.modules, "tensorflow.python.client", client)
    monkeypatch.setattr(placement.driver, "gpus", lambda: [T4, A100])
    assert placement.gpus(eager(CPU, GPU), ["GPU:0"]) == [A100]
    monkeypatch.setattr(placement.driver, "gpus", list)
    monkeypatch.setattr(placement, "read_descriptions", list)
    assert placement.gpus(eager(CPU, GPU), ["GPU:0"]) == []


def test_a_graphs_variables_are_where_the_placer_puts_them_and_nothing_else_is_run():
    graph = Thing
    operations = {"kernel": "VarHandleOp", "bias": "VarHandleOp", "train": "NoOp"}
    things = [Thing(op=Thing(name=name, graph=graph, type=kind), device="") for name, kind in operations.items()]
    library = graph_mode(placed={"kernel": GPU, "bias": CPU, "train": CPU})
    assert placement.devices(library, things) == {"GPU:0", "CPU:0"}
    assert library.fetched == [[variable.op for variable in things[:2]]]


@pytest.fixture
def bench(monkeypatch):
    """A function that gives a bench on a device with a TensorFlow, and the events that it writes."""
    monkeypatch.setattr(placement.driver, "gpus", lambda: [T4])

    def make(library, device="gpu", folder=None):
        monkeypatch.setitem(sys.modules, "tensorflow", library)
        events = []
        new_bench = Bench(
            lambda event, **fields: events.append((event, fields)),
            Document(),
            Telemetry(),
            axes={},
            device_name=device,
            compiled=CompiledCode(folder, driver="/nowhere"),
            thorough=False,
        )
        return new_bench, events

    return make


def names(events, kind="phase"):
    return [fields["name"] for event, fields in events if event == kind]


def test_a_gpu_that_is_new_to_the_image_is_filled_once_and_where_none_is_no_work_begins(bench, tmp_path):
    first, events = bench(eager(CPU, GPU), folder=str(tmp_path))
    first.device()
    assert names(events) == ["device", "first fill"]
    second, events = bench(eager(CPU, GPU), folder=str(tmp_path))
    second.device()
    assert names(events) == ["device"]
    without, events = bench(eager(CPU), folder=str(tmp_path / "other"))
    with pytest.raises(CpuFallback):
        without.device()
    assert names(events) == ["device"]


def test_what_a_step_returned_and_what_the_scenario_shows_tell_where_the_work_was(bench):
    for result, values, is_elsewhere in [
        (EagerTensor(device=CPU), [], True),
        (1.5, [EagerTensor(device=CPU)], True),
        (EagerTensor(device=CPU), [EagerTensor(device=GPU)], False),
        (EagerTensor(device=GPU), [], False),
        (1.5, [], False),
    ]:
        bench_, events = bench(eager(CPU, GPU))
        bench_.measure(lambda result=result: result)
        bench_.placed(values)
        if is_elsewhere:
            with pytest.raises(CpuFallback, match="has a GPU, and the work was on CPU:0"):
                bench_.prove_gpu()
        else:
            bench_.prove_gpu()
            observed = ["placed on"] if isinstance(result, EagerTensor) or values else []
            assert [name for name in names(events, "observation") if name != "settings"] == observed
            assert [fields for event, fields in events if event == "gpus"] == [{"gpus": [T4]}]


def test_where_the_work_shows_nothing_an_operation_of_ours_decides(bench):
    assert placement.probe(graph_mode(placed={"fed": CPU, "probe": GPU})) == "GPU:0"
    bench_, _ = bench(eager(CPU, GPU, put=CPU))
    bench_.measure(lambda: 1.5)
    with pytest.raises(CpuFallback, match="the work was on CPU:0"):
        bench_.prove_gpu()


def test_on_a_cpu_nothing_is_asked(bench):
    bench_, events = bench(Thing(executing_eagerly=lambda: True, constant=lambda _: Thing(numpy=int)), device="cpu")
    bench_.device()
    bench_.measure(lambda: EagerTensor(device=CPU))
    bench_.placed([EagerTensor(device=CPU)])
    bench_.prove_gpu()
    assert names(events) == ["device", "steady state"]
    assert names(events, "observation") == []
    assert "gpus" not in [event for event, _ in events]


def test_the_most_memory_that_tensors_took_is_told_where_the_release_tells_it(bench):
    def refuse(device):
        raise ValueError("Allocator stats not available")

    def answer(device):
        return {"GPU:0": {"current": 5, "peak": 7}}[device]

    for question, peaks in [(answer, [7]), (refuse, []), (None, [])]:
        library = eager(CPU, GPU)
        if question:
            library.config.experimental.get_memory_info = question
        bench_, events = bench(library)
        bench_.measure(lambda: EagerTensor(device=GPU))
        bench_.prove_gpu()
        assert [fields["gpu_peak_bytes"] for _, fields in events if "gpu_peak_bytes" in fields] == peaks


def test_tensorflow_1_tells_the_memory_by_an_operation_of_contribs(monkeypatch):
    library = Thing(
        __version__="1.15.0",
        config=Thing(experimental=Thing()),
        sysconfig=Thing(get_lib=lambda: "/tensorflow_core"),
        Graph=lambda: Thing(as_default=nullcontext),
        device=lambda name: nullcontext(places.append(name)),
        load_op_library=lambda path: libraries.append(path) or Thing(max_bytes_in_use=lambda: "most"),
        compat=Thing(v1=Thing(Session=lambda graph: nullcontext(Thing(run={"most": 11}.get)))),
    )
    places, libraries = [], []
    assert device.peak_memory(library, ["GPU:0", "GPU:1"]) == 22
    assert places == ["/GPU:0", "/GPU:1"]
    assert libraries[0].startswith("/tensorflow_core/contrib/memory_stats/")
