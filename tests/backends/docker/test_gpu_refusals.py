"""What engines and NVIDIA's tools say when they refuse a GPU, in their own words, and what a user is told."""

import pytest

from harness.backends.docker.gpu_refusals import REFUSALS, GpuRefusedError, explain_refusals, find_meaning
from harness.model.errors import CannotRunHereError

#: What stands before NVIDIA's words in an engine of 2020, one of 2022 and one of 2025.
OLD = (
    "OCI runtime create failed: container_linux.go:349: starting container process caused "
    '"process_linux.go:449: container init caused \\"process_linux.go:432: running prestart hook 0 caused '
    '\\\\\\"error running hook: exit status 1, stdout: , stderr: {}\\\\\\\\n\\\\\\"\\"": unknown'
)
HOOK = (
    "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "
    "error during container init: error running hook #0: error running hook: exit status 1, stdout: , "
    "stderr: Auto-detected mode as 'legacy'\n{}: unknown"
)
NEW = (
    "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: error during container init: {}: unknown"
)
RUNTIME = (
    "failed to create task for container: failed to create shim task: OCI runtime create failed: could not apply "
    "required modification to OCI specification: error modifying OCI spec: failed to inject CDI devices: {}: unknown"
)

#: An engine's words; a part of the sentence that is told; a part of the advice.
TOLD = [
    # a CDI specification that is older than the driver
    (
        NEW.format(
            'error mounting "/usr/lib/x86_64-linux-gnu/libEGL_nvidia.so.535.161.07" to rootfs at '
            '"/usr/lib/x86_64-linux-gnu/libEGL_nvidia.so.535.161.07": stat '
            "/usr/lib/x86_64-linux-gnu/libEGL_nvidia.so.535.161.07: no such file or directory"
        ),
        "older than the NVIDIA driver: it lists /usr/lib/x86_64-linux-gnu/libEGL_nvidia.so.535.161.07",
        "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
    ),
    (
        NEW.format(
            "failed to fulfil mount request: open /usr/lib/libnvidia-gtk3.so.610.43.03: no such file or directory"
        ),
        "it lists /usr/lib/libnvidia-gtk3.so.610.43.03, which no longer exists",
        "sudo nvidia-ctk cdi generate",
    ),
    (
        "crun: cannot stat `/lib64/libEGL_nvidia.so.550.54.14`: No such file or directory: OCI runtime attempted to "
        "invoke a command that was not found",
        "it lists /lib64/libEGL_nvidia.so.550.54.14, which",
        "sudo nvidia-ctk cdi generate",
    ),
    (
        "crun: error stat'ing file /lib/x86_64-linux-gnu/libEGL_nvidia.so.535.161.07: No such file or directory: OCI "
        "runtime attempted to invoke a command that was not found",
        "it lists /lib/x86_64-linux-gnu/libEGL_nvidia.so.535.161.07, which",
        "sudo nvidia-ctk cdi generate",
    ),
    (
        NEW.format(
            "failed to fulfil mount request: open /lib/firmware/nvidia/535.161.07/gsp_tu10x.bin: no such file or "
            "directory"
        ),
        "it lists /lib/firmware/nvidia/535.161.07/gsp_tu10x.bin, which",
        "sudo nvidia-ctk cdi generate",
    ),
    (
        NEW.format("error running hook #0: fork/exec /usr/bin/nvidia-cdi-hook: no such file or directory"),
        "containers start /usr/bin/nvidia-cdi-hook, which is missing",
        "sudo nvidia-ctk cdi generate",
    ),
    (
        NEW.format("failed to fulfil mount request: open /run/nvidia-persistenced/socket: no such file or directory"),
        "which exists only while the driver's daemon runs",
        "sudo systemctl start nvidia-persistenced",
    ),
    (
        "OCI runtime create failed: container_linux.go:380: starting container process caused: process_linux.go:545: "
        "container init caused: Running hook #1:: error running hook: exit status 3, stdout: , stderr: "
        'time="2022-02-13T11:11:05+11:00" level=error msg="No help topic for \'prestart\'\n": unknown',
        "have different versions",
        "--reinstall nvidia-container-toolkit",
    ),
    # devices
    (
        'CDI device injection failed: failed to inject devices: failed to stat CDI host device "/dev/nvidia-uvm": no '
        "such file or directory",
        "/dev/nvidia-uvm is missing: the driver's CUDA module",
        "sudo nvidia-modprobe -u -c 0",
    ),
    (
        'linux runtime spec devices: error gathering device information while adding custom device "/dev/nvidia-uvm": '
        "lstat /dev/nvidia-uvm: no such file or directory",
        "/dev/nvidia-uvm is missing",
        "sudo nvidia-modprobe -u -c 0",
    ),
    (
        'CDI device injection failed: failed to inject devices: failed to stat CDI host device "/dev/nvidia1": no '
        "such file or directory",
        "/dev/nvidia1 is missing",
        "sudo nvidia-smi",
    ),
    (
        RUNTIME.format(
            'failed to inject devices: failed to stat CDI host device "/dev/dri/card0": no such file or directory'
        ),
        "lists the device /dev/dri/card0",
        "sudo nvidia-ctk cdi generate",
    ),
    (
        'CDI device injection failed: failed to inject devices: CDI device ("/dev/dri/card1", "/dev/dri/card1"), host '
        "type mismatch (c, b)",
        "lists the device /dev/dri/card1",
        "sudo nvidia-ctk cdi generate",
    ),
    (
        "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=0, nvidia.com/gpu=1:0",
        "do not describe nvidia.com/gpu=0, nvidia.com/gpu=1:0.",
        "sudo nvidia-ctk cdi generate",
    ),
    (
        RUNTIME.format("unresolvable CDI devices nvidia.com/gpu=all"),
        "do not describe nvidia.com/gpu=all.",
        "sudo nvidia-ctk cdi generate",
    ),
    (
        RUNTIME.format("unresolvable CDI devices runtime.nvidia.com/gpu=all"),
        "could not generate a description of the GPUs",
        "nvidia-ctk --debug cdi generate",
    ),
    (HOOK.format("nvidia-container-cli: device error: 1: unknown device"), "doesn't list the GPU 1.", "nvidia-smi -L"),
    (OLD.format("nvidia-container-cli: device error: 1: unknown device"), "doesn't list the GPU 1.", "nvidia-smi -L"),
    # the engine
    ('could not select device driver "cdi" with capabilities: []', "CDI is disabled", '{"features": {"cdi": true}}'),
    ("CDI device injection failed: no CDI specification directories specified", "CDI is disabled", "daemon.json"),
    (
        'could not select device driver "nvidia" with capabilities: [[gpu compute utility]]',
        "nvidia-container-runtime-hook wasn't on the PATH",
        "sudo systemctl restart docker",
    ),
    ('could not select device driver "" with capabilities: [[gpu]]', "nvidia-container-runtime-hook wasn't", "restart"),
    (
        "failed to discover GPU vendor from CDI: no known GPU vendor found",
        "can't use its device driver for NVIDIA GPUs",
        "install nvidia-container-toolkit",
    ),
    (
        "unknown or invalid runtime name: nvidia",
        "The nvidia runtime isn't registered",
        "sudo nvidia-ctk runtime configure --runtime=docker",
    ),
    ("Unknown runtime specified nvidia", "The nvidia runtime isn't registered", "runtime configure"),
    (
        "failed to create shim task: OCI runtime create failed: unable to retrieve OCI runtime error (open "
        "/run/containerd/io.containerd.runtime.v2.task/moby/88879eaf/log.json: no such file or directory): exec: "
        '"nvidia-container-runtime": executable file not found in $PATH: unknown',
        "nvidia-container-runtime is missing",
        "install nvidia-container-toolkit",
    ),
    (
        "OCI runtime create failed: unable to retrieve OCI runtime error (open /run/containerd/io.containerd.runtime.v1"
        ".linux/moby/af425d98/log.json: no such file or directory): nvidia-container-runtime did not terminate "
        "sucessfully: 2019/07/23 17:28:30 ERROR: nvidia-container-runtime: inject NVIDIA hook: stat "
        "/usr/bin/nvidia-container-runtime-hook: no such file or directory\n: unknown",
        "/usr/bin/nvidia-container-runtime-hook is missing",
        "install nvidia-container-toolkit",
    ),
    (
        HOOK.format("couldn't find binary nvidia-container-cli in PATH: executable file not found in $PATH"),
        "can't find nvidia-container-cli",
        "libnvidia-container-tools",
    ),
    (
        NEW.format(
            "error running prestart hook #0: exit status 1, stdout: , stderr: Auto-detected mode as 'csv'\ninvoking "
            "the NVIDIA Container Runtime Hook directly (e.g. specifying the docker --gpus flag) is not supported. "
            "Please use the NVIDIA Container Runtime (e.g. specify the --runtime=nvidia flag) instead."
        ),
        "their hook refuses the engine's device driver",
        "--gpu-via runtime",
    ),
    # the driver
    (
        HOOK.format("nvidia-container-cli: initialization error: nvml error: driver/library version mismatch"),
        "was updated, but it wasn't reloaded",
        "sudo rmmod",
    ),
    (
        HOOK.format(
            "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared "
            "object file: no such file or directory"
        ),
        "can't find libnvidia-ml.so.1, a part of the driver",
        "nvidia-smi",
    ),
    (
        HOOK.format("nvidia-container-cli: initialization error: nvml error: driver not loaded"),
        "is not loaded",
        "sudo modprobe nvidia",
    ),
    (
        HOOK.format("nvidia-container-cli: initialization error: nvml error: insufficient permissions"),
        "which only one group can open",
        "nvidia-container-cli.user=root:video",
    ),
    (
        HOOK.format("nvidia-container-cli: initialization error: driver rpc error: timed out"),
        "did not start before the time limit of NVIDIA's tools",
        "sudo nvidia-smi -pm 1",
    ),
    (
        HOOK.format("nvidia-container-cli: initialization error: driver rpc error: failed to process request"),
        "did not answer NVIDIA's tools (failed to process request)",
        "nvidia-smi",
    ),
    (
        OLD.format("nvidia-container-cli: initialization error: driver error: failed to process request"),
        "did not answer NVIDIA's tools (failed to process request)",
        "nvidia-smi",
    ),
    (
        HOOK.format(
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to "
            "a newer version, or use an earlier cuda container"
        ),
        "requires cuda>=12.8, which",
        "harness doctor --gpu",
    ),
    (
        OLD.format("nvidia-container-cli: requirement error: unsatisfied condition: cuda >= 9.0"),
        "requires cuda >= 9.0, which",
        "harness doctor --gpu",
    ),
    (
        HOOK.format("nvidia-container-cli: detection error: nvml error: unknown error"),
        "NVIDIA's tools failed: nvml error: unknown error.",
        "nvidia-smi",
    ),
    # rights
    (
        HOOK.format(
            "nvidia-container-cli: mount error: failed to add device rules: unable to find any existing device filters "
            "attached to the cgroup: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted"
        ),
        "can't change control groups",
        "Use CDI (--gpu-via cdi), which doesn't change control groups.",
    ),
    (
        OLD.format(
            "nvidia-container-cli: mount error: open failed: /sys/fs/cgroup/devices/user.slice/devices.allow: "
            "permission denied"
        ),
        "can't change control groups",
        "Use CDI (--gpu-via cdi), which doesn't change control groups.",
    ),
    (
        HOOK.format("nvidia-container-cli: container error: cgroup subsystem devices not found"),
        "older than version 1.8",
        "--only-upgrade",
    ),
    (
        HOOK.format("nvidia-container-cli: ldcache error: process /sbin/ldconfig failed with error code: 1"),
        "could not run /sbin/ldconfig",
        "nvidia-container-cli.ldconfig=",
    ),
    # the image
    (
        HOOK.format(
            "nvidia-container-cli: mount error: file creation failed: /var/lib/docker/overlay2/36b6/merged/usr/lib/"
            "x86_64-linux-gnu/libnvidia-ml.so.1: file exists"
        ),
        "in the image is a file of another driver",
        "harness images build",
    ),
]


@pytest.mark.parametrize(("words", "sentence", "advice"), TOLD)
def test_a_refusal_that_is_known_has_a_sentence_and_what_mends_it(words: str, sentence: str, advice: str) -> None:
    with pytest.raises(GpuRefusedError) as error, explain_refusals(["0", "1"]):
        raise CannotRunHereError(f"Docker Engine refused to run a container: {words}")
    first, *rest = error.value.message.splitlines()
    assert first.startswith("--gpus 0,1: ")
    assert sentence in first
    # the engine's own words can be searched for
    assert "\n".join(rest) == f"Docker Engine refused to run a container: {words}"
    assert advice in error.value.advice


def test_control_groups_are_disabled_for_rootless_engines_alone() -> None:
    """In an engine with root, no container could open the GPUs after that."""
    words = "nvidia-container-cli: mount error: failed to add device rules: bpf_prog_query(BPF_CGROUP_DEVICE) failed"
    with_root, rootless = find_meaning(words), find_meaning(words, rootless=True)
    assert with_root
    assert rootless
    assert "no-cgroups" not in with_root.do + with_root.command
    assert "no-cgroups" in rootless.command


def test_a_specification_is_refreshed_where_the_toolkit_does_so_by_itself() -> None:
    """Its service writes to /var/run/cdi, whose specifications replace those in /etc/cdi."""
    found = find_meaning('CDI device injection failed: failed to stat CDI host device "/dev/gone": no such file')
    assert found
    assert found.command.startswith("sudo systemctl restart nvidia-cdi-refresh || ")


def test_every_refusal_that_is_known_is_one_that_was_seen() -> None:
    found = [find_meaning(words) for words, *_ in TOLD]
    assert {entry.words for entry in found if entry} == {refusal.words for refusal in REFUSALS}


def test_a_refusal_about_gpus_that_is_not_known_is_told_as_it_is() -> None:
    with pytest.raises(GpuRefusedError) as error, explain_refusals(["0"]):
        raise CannotRunHereError("CDI device injection failed: the moon is full")
    assert error.value.message == "--gpus 0: CDI device injection failed: the moon is full"
    assert "harness doctor --gpu" in error.value.advice


@pytest.mark.parametrize(
    ("gpus", "words"),
    [(["0"], "Requested CPUs are not available"), ([], "unresolvable CDI devices vendor.com/net=eth")],
)
def test_any_other_refusal_is_let_be(gpus: list[str], words: str) -> None:
    with pytest.raises(CannotRunHereError) as error, explain_refusals(gpus):
        raise CannotRunHereError(words, "Look elsewhere.")
    assert (error.value.message, error.value.advice) == (words, "Look elsewhere.")
