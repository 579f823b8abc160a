"""GPU images, built for real from stand-ins: no GPU, and none of the gigabytes."""

import dataclasses
import re
import secrets
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.gpu_image import check_image
from harness.backends.docker.image_verification import verify_image
from harness.model.environment import Device, Environment, Lock, Requirement
from tests.conftest import ROOT
from tests.docker.conftest import copy_images, write_catalog
from tests.fatbinaries import library
from tests.shared_objects import shared_object

pytestmark = pytest.mark.docker

BASE = "python:3.11-slim-bookworm"

#: TensorFlow's own image of 1.14 to 2.0, as far as CUDA goes: real file, the name that it is asked for by.
OFFICIAL = {
    "usr/local/cuda-10.0/lib64/libcudart.so.10.0.130": "libcudart.so.10.0",
    "usr/local/cuda-10.0/lib64/libcublas.so.10.0.130": "libcublas.so.10.0",
    "usr/local/cuda-10.0/lib64/libcufft.so.10.0.145": "libcufft.so.10.0",
    "usr/local/cuda-10.0/lib64/libcurand.so.10.0.130": "libcurand.so.10.0",
    "usr/local/cuda-10.0/lib64/libcusolver.so.10.0.130": "libcusolver.so.10.0",
    "usr/local/cuda-10.0/lib64/libcusparse.so.10.0.130": "libcusparse.so.10.0",
    "usr/local/cuda-10.0/extras/CUPTI/lib64/libcupti.so.10.0.130": "libcupti.so.10.0",
    "usr/local/cuda-10.0/lib64/libnppc.so.10.0.130": "libnppc.so.10.0",
    "usr/local/cuda-10.0/lib64/stubs/libcuda.so": "libcuda.so.1",
    "usr/lib/x86_64-linux-gnu/libcudnn.so.7.4.1": "libcudnn.so.7",
    "usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0": "libgomp.so.1",
}

#: What TensorFlow opens of them.
LOADED = {soname for soname in OFFICIAL.values() if not re.match(r"libnppc|libcuda\.|libgomp", soname)}


@dataclass
class Builder:
    """Builds GPU images of environments of its own; `tags` are removed at the end."""

    root: Path
    tags: list[str] = field(default_factory=list)

    def environment(self, **pins: str) -> Environment:
        pins = {"cuda": "10.0", "cudnn": "7.4", "gpu_code": "compute_70", **pins}
        return Environment(f"test-{secrets.token_hex(4)}", "0", "3.11", "2020-01-01T00:00:00Z", **pins)

    def build(self, environment: Environment, lock: str = "# nothing\n") -> str:
        """Returns the tag; fails with the builder's words."""
        project = self.root / environment.name
        copy_images(project)
        (project / "images" / "locks" / f"{environment.name}-gpu.txt").write_text(lock)
        write_catalog(project, [environment])
        self._run("buildx", "bake", "--load", "--progress=plain", f"gpu-{environment.name}", cwd=project)
        self.tags.append(f"harness/{environment.name}:gpu")
        return self.tags[-1]

    def stand_in(self, files: Mapping[str, str | bytes], *lines: str) -> str:
        """An image with these shared objects, or files of this content, and with further lines of a Dockerfile."""
        folder = self.root / secrets.token_hex(4)
        for path, wanted in files.items():
            (folder / "files" / path).parent.mkdir(parents=True, exist_ok=True)
            content = wanted if isinstance(wanted, bytes) else shared_object(wanted)
            (folder / "files" / path).write_bytes(content)
        copy = ["COPY files /"] if files else []
        (folder / "Dockerfile").parent.mkdir(exist_ok=True)
        (folder / "Dockerfile").write_text("\n".join([f"FROM {BASE}", *copy, *lines, ""]))
        tag = f"harness-test/stand-in:{secrets.token_hex(4)}"
        self._run("buildx", "build", "--load", "--tag", tag, str(folder))
        self.tags.append(tag)
        return tag

    def remove(self) -> None:
        for tag in self.tags:
            self._run("image", "rm", "--force", tag)

    def _run(self, *arguments: str, cwd: Path | None = None) -> None:
        process = subprocess.run(["docker", *arguments], cwd=cwd, capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stderr


@pytest.fixture(scope="module")
def builder(need_bases, tmp_path_factory):
    need_bases()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("REGISTRY", raising=False)
        builder = Builder(tmp_path_factory.mktemp("gpu"))
        yield builder
        builder.remove()


@pytest.fixture(scope="module")
def copied(builder):
    """An image whose CUDA is copied, and its environment."""
    links = "RUN ln -s cuda-10.0 /usr/local/cuda && ldconfig /usr/local/cuda/lib64 /usr/local/cuda/extras/CUPTI/lib64"
    cudnn = "usr/lib/x86_64-linux-gnu/libcudnn.so.7.4.1"
    files = {**OFFICIAL, cudnn: shared_object(OFFICIAL[cudnn]) + library([["sm_30", "sm_60"], ["sm_70", "ptx_70"]])}
    environment = builder.environment(cuda_image=builder.stand_in(files, links))
    return builder.build(environment), environment


def read_output(engine, image, *command):
    from harness.backends.docker.container import create_container
    from harness.backends.docker.specification import Specification
    from harness.backends.untrusted_text import Tail
    from harness.model.launch import Limits

    stdout, stderr = Tail(), Tail()
    specification = Specification(image, command, {}, {}, Limits(seconds=60))
    with create_container(engine, specification) as container:
        ending = container.run(stdout.feed, stderr.feed)
    assert ending.clean, stderr.text()
    return stdout.text()


def test_what_tensorflow_loads_is_copied_and_opens_and_nothing_else(engine, copied):
    image, environment = copied
    report = check_image(engine, image, environment)
    assert set(report.opened) == LOADED
    assert report.missing == {}
    # these say nothing themselves; their files' names do
    assert report.opened["libcudart.so.10.0"] == "10.0.130"
    assert report.opened["libcudnn.so.7"] == "7.4.1"
    # XLA's tools are only noted
    assert [note for note in report.notes if "ptxas" in note]
    assert not report.is_complete
    assert "'tensorflow'" in report.disagreements[0]
    names = read_output(engine, image, "ls", "/usr/local/cuda/lib64").split()
    assert "libgomp.so.1" in names  # cuSOLVER asks for it
    assert not [name for name in names if re.match(r"libnppc|libcuda\.|libc\.", name)]
    # a launch may write where it has to
    assert read_output(engine, image, "sh", "-c", "touch /harness/x /cache/x && id -un").strip() == "harness"


def test_the_gpu_code_of_tensorflow_and_cudnn_is_read_in_the_image(engine, builder, copied):
    image, environment = copied
    modules = [["sm_60", "sm_70", "ptx_70"], ["sm_60", "ptx_70:6.3/sm_70"]]
    files = {
        "tf/__init__.py": b"from . import sysconfig",
        "tf/sysconfig.py": b"",
        "tf/libtensorflow_framework.so.1": shared_object("libtensorflow_framework.so.1") + library(modules),
    }
    # a launch starts in this folder, so it is where the package is found
    with_tensorflow = builder.stand_in(files, f"FROM {image}", "COPY --from=0 /tf /harness/tensorflow")
    catalogued = dataclasses.replace(environment, gpu_code="compute_70", cudnn_code="sm_60")
    report = check_image(engine, with_tensorflow, catalogued)
    read = (
        "TensorFlow sm_60 compute_70 (compute_70 of PTX 6.3 for sm_70 alone in some kernels), cuDNN sm_30 sm_60 sm_70"
    )
    assert f"GPU code: {read}" in report.notes
    sentences = [sentence for sentence in report.disagreements if "gpu-code.json" in sentence]
    assert [re.findall(r"`(\w+)`", sentence) for sentence in sentences] == [["gpu_code"], ["ptx_alone"], ["cudnn_code"]]


def test_code_that_a_plan_assumed_is_read_in_the_packages_of_the_image(engine, builder, copied):
    image, environment = copied
    files = {
        "packages/tensorflow/libtensorflow_cc.so.2": library([["sm_60", "sm_70", "ptx_70"]]),
        "packages/nvidia/cudnn/lib/libcudnn_ops.so.9": library([["sm_60", "sm_70"]]),
    }
    packages = "/opt/environment/lib/python3.11/site-packages"
    with_packages = builder.stand_in(files, f"FROM {image}", f"COPY --from=0 /packages {packages}")
    assumed = dataclasses.replace(environment, gpu_code_of="2.21.0")
    requirement = Requirement(assumed, Device.GPU, Lock(Path("none"), "0", {}))
    read = verify_image(engine, with_packages, requirement, "run").read
    assert read is not None
    assert (read.gpu_code, read.cudnn_code, read.is_unread) == ("sm_60 compute_70", "sm_60 sm_70", False)


def test_a_cuda_image_that_lacks_a_library_is_named_by_the_build(builder):
    files = {path: soname for path, soname in OFFICIAL.items() if soname != "libcudnn.so.7"}
    environment = builder.environment(cuda_image=builder.stand_in(files, "RUN ln -s cuda-10.0 /usr/local/cuda"))
    with pytest.raises(AssertionError, match="no libcudnn"):
        builder.build(environment)


@pytest.mark.campaign
def test_of_packages_what_opens_what_is_missing_and_what_is_too_old(engine, builder):
    real = (ROOT / "images" / "locks" / "tf2.15-gpu.txt").read_text()
    packages = re.findall(r"^nvidia-(?:cuda-runtime|curand)-cu12==(?:.*\\\n)*.*\n", real, flags=re.MULTILINE)
    environment = builder.environment(cuda="12.9", cudnn="9.3")
    image = builder.build(environment, "".join(packages))
    # nothing was copied as into another image
    assert "cuda" not in read_output(engine, image, "ls", "/usr/local").split()
    report = check_image(engine, image, environment)
    assert report.opened == {"libcudart.so.12": "12.2", "libcurand.so.10": "10.3.3"}
    assert "libcublas.so.12" in report.missing
    assert [line for line in report.disagreements if "12.2" in line and "12.9" in line]


def test_nvidias_own_image_keeps_its_packages_and_says_nothing_at_start(engine, builder):
    stand_in = builder.stand_in(
        {},
        "RUN useradd --create-home --uid 1000 ubuntu",  # as in Ubuntu 24.04
        "RUN echo nothing==1 >/constraint.txt && mv /usr/local/bin/python /gone",
        "ENV NVIDIA_VISIBLE_DEVICES=all PIP_CONSTRAINT=/constraint.txt",
        'ENTRYPOINT ["sh", "-c", "echo a greeting; exec \\"$@\\"", "sh"]',
    )
    environment = builder.environment(gpu_image=stand_in)
    image = builder.build(environment, (ROOT / "images" / "locks" / "tf1.15-ngc-gpu.txt").read_text())
    script = "import os; from importlib.metadata import version; print(version('keras'), os.environ)"
    output = read_output(engine, image, "python", "-c", script)
    assert output.startswith("2.2.5 ")
    assert "'NVIDIA_VISIBLE_DEVICES': 'void'" in output
    assert read_output(engine, image, "id", "--user", "--name").strip() == "harness"
    assert read_output(engine, image, "stat", "--format=%U", "/cache").strip() == "harness"
