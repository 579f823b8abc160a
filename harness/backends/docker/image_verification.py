"""Checks of an image: its packages, and the GPU code in its libraries."""

from dataclasses import replace
from pathlib import Path

from harness.backends import fatbins
from harness.backends.docker import recipe
from harness.backends.docker.container import run_script
from harness.backends.docker.engine import Engine
from harness.backends.gpu_code import replace_assumed_code
from harness.backends.verification import SCRIPT, Verification, verify_output
from harness.files import parse_json
from harness.model.environment import Device, Environment, Requirement
from harness.model.errors import CannotRunHereError

#: The time limits in seconds for listing the packages, and for reading the GPU code in up to 4 GB of libraries.
_PACKAGES_SECONDS, _CODE_SECONDS = 60.0, 300.0

#: A program that computes with TensorFlow, and the time limit with an emulated processor.
_IMPORT = b"import platform, tensorflow as tf; print(tf.__version__, platform.machine(), int(tf.constant(2) * 3))"
_IMPORT_SECONDS = 600.0


def verify_image(engine: Engine, image: str, requirement: Requirement, run: str) -> Verification:
    """Compare the packages in an image with the lock, and read the image's GPU code if it was assumed.

    `image` is the image's id, and `run` is the run in the containers' label. Raises CannotRunHereError if the image
    doesn't start.
    """
    environment = requirement.environment
    stdout, stderr, ending = run_script(engine, image, SCRIPT.encode(), run=run, seconds=_PACKAGES_SECONDS)
    if not ending.clean:
        tag = recipe.make_tag(requirement)
        raise CannotRunHereError(f"{tag} could not list the installed packages ({ending}):\n{stderr}")
    verification = verify_output(requirement.lock.pins, stdout)
    if environment.gpu_image:
        # NVIDIA's image has packages that aren't in the lock
        verification = replace(verification, extra={})
    if environment.architecture != engine.architecture:  # the processor is emulated
        stdout, stderr, ending = run_script(engine, image, _IMPORT, run=run, seconds=_IMPORT_SECONDS)
        if not ending.clean:
            raise CannotRunHereError(f"{environment.name} could not import TensorFlow ({ending}):\n{stderr}")
        verification = replace(verification, imported=stdout.strip())
    if requirement.device is Device.GPU and environment.is_unread:
        verification = replace(verification, read=_read_gpu_code(engine, image, environment, run))
    return verification


def _read_gpu_code(engine: Engine, image: str, environment: Environment, run: str) -> Environment | None:
    """Return an environment of assumed GPU code with the code in its image; None if it contains no GPU code."""
    source = Path(fatbins.__file__).read_bytes()
    stdout, stderr, ending = run_script(engine, image, source, run=run, seconds=_CODE_SECONDS)
    try:
        return replace_assumed_code(environment, parse_json(stdout))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise CannotRunHereError(
            f"The GPU code of {environment.name} could not be read ({ending}):\n{stderr}"
        ) from None
