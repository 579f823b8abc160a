"""Error messages of engines and NVIDIA's tools that refuse GPUs to a container: their meaning and the fix.

The messages come from Docker Engine 19.03 to 29, runc, crun, the NVIDIA Container Toolkit (its runtime, its hook and
nvidia-ctk) and nvidia-container-cli. They were found in the source code of these programs and in issues.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from harness.model.errors import CannotRunHereError

#: From version 1.18 on, the toolkit's service writes /var/run/cdi/nvidia.yaml, which takes precedence over /etc/cdi.
#: Older versions have no such service.
GENERATE = "sudo systemctl restart nvidia-cdi-refresh || sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
INSTALL = "sudo apt-get install nvidia-container-toolkit && sudo systemctl restart docker"
CONFIGURE = "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"
SWITCH_CDI_ON = 'Put {"features": {"cdi": true}} into /etc/docker/daemon.json, and restart the engine'
RESTART = "sudo systemctl restart docker"
DOCTOR = "harness doctor --gpu"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A known refusal. `words` is a regular expression, and `sentence` refers to its groups by number.

    `do` is the advice without its full stop, and `command`, if any, the command for it.
    """

    words: str
    sentence: str
    do: str
    command: str = ""


class GpuRefusedError(CannotRunHereError):
    """Containers can't get a GPU.

    `sentence`, `do` and `command` are as in a Refusal; `words` are the engine's message, if there is one.
    """

    def __init__(self, sentence: str, do: str, command: str = "", *, words: str = "") -> None:
        super().__init__("\n".join(filter(None, [sentence, words])), f"{do}: {command}" if command else f"{do}.")
        self.sentence = sentence
        self.do = do
        self.command = command
        self.words = words


#: The first match wins, so special patterns come before general ones.
REFUSALS = (
    Refusal(
        r"[dD]river/library version mismatch",
        "The NVIDIA driver was updated, but it wasn't reloaded, so its libraries and the kernel module have "
        "different versions.",
        "Restart the machine or, if nothing uses the GPU, reload the driver",
        "sudo rmmod nvidia_drm nvidia_modeset nvidia_uvm nvidia && sudo modprobe nvidia",
    ),
    Refusal(
        r"(/dev/nvidia-uvm[\w-]*)\"?: no such file",
        "{0} is missing: the driver's CUDA module hasn't been loaded since the machine started.",
        "Load the module",
        "sudo nvidia-modprobe -u -c 0",
    ),
    Refusal(
        r"(?:failed to stat CDI host device|CDI device \(\"[^\"]*\",) \"([^\"]*)\"",
        "The CDI specification lists the device {0}, which is missing or has been replaced.",
        "Regenerate the specification",
        GENERATE,
    ),
    Refusal(
        r"unresolvable CDI devices ((?:[^\s,:]|:\d)+(?:, (?:[^\s,:]|:\d)+)*)",
        "The CDI specifications of Docker Engine do not describe {0}. They are missing, they were generated before "
        "the GPUs changed, or they are in folders that a rootless engine does not read (cdi-spec-dirs in its "
        "daemon.json).",
        "Regenerate the specifications",
        GENERATE,
    ),
    Refusal(
        r"could not select device driver \"cdi\"|no CDI specification directories specified"
        r"|CDI registry initialization failure|no CDI device driver registered",
        "CDI is disabled in Docker Engine.",
        SWITCH_CDI_ON,
        RESTART,
    ),
    Refusal(
        r"could not select device driver|no known GPU vendor found",
        "Docker Engine can't use its device driver for NVIDIA GPUs, because nvidia-container-runtime-hook wasn't on "
        "the PATH when Docker Engine started.",
        "Install the NVIDIA Container Toolkit, and restart the engine",
        INSTALL,
    ),
    Refusal(
        r"unknown or invalid runtime name: nvidia|[Uu]nknown runtime specified nvidia",
        "The nvidia runtime isn't registered in Docker Engine.",
        "Register the runtime",
        CONFIGURE,
    ),
    Refusal(
        r"(?:exec: \"?|stat |fork/exec |binary )(\S*nvidia-(?:container-|cdi-hook|ctk)[\w.-]*)(?:\"?| in PATH): "
        r"(?:executable file not found|no such file)",
        "{0} is missing, but Docker Engine is configured to use it.",
        "Install the NVIDIA Container Toolkit again",
        INSTALL,
    ),
    Refusal(
        r"(?:stat(?:'ing file)?|open|lstat) [`'\"]?(/[^\s:`'\"]+)[`'\"]?: [nN]o such file or directory",
        "The CDI specification doesn't fit the NVIDIA driver: it lists {0}, which doesn't exist.",
        "Regenerate the specification",
        GENERATE,
    ),
    Refusal(
        r"load library failed: (lib[\w.-]+)",
        "NVIDIA's tools can't find {0}, a part of the driver. On the machine of Docker Engine, the driver is "
        "missing or incomplete.",
        "The driver must work on this machine before containers can use it. Check the output of this command",
        "nvidia-smi; ldconfig -p | grep -E 'libcuda|libnvidia-ml'",
    ),
    Refusal(
        r"(?:unsatisfied condition|requirements? not met): ([a-z]+ ?[<>=]+ ?[\w.]+)",
        "The image requires {0}, which this NVIDIA driver doesn't provide.",
        "Update the driver, or use an environment with an older CUDA (-e). To see which environments run on this "
        "machine",
        DOCTOR,
    ),
    Refusal(
        r"device error: (\S+): unknown device",
        "The NVIDIA driver doesn't list the GPU {0}.",
        "Use a GPU that the driver lists",
        "nvidia-smi -L",
    ),
    Refusal(
        r"failed to add device rules|bpf_prog_(?:query|load|attach)|devices\.allow: (?:permission|operation not)",
        "NVIDIA's tools can't change control groups, for example because the engine is rootless or in a container.",
        "Use CDI (--gpu-via cdi), which doesn't change control groups",
    ),
    Refusal(
        r"nvidia-container-cli: (?:\w+ error: )?([^\n\\]+?)(?:: unknown\.?)?(?:$|\\)",
        "NVIDIA's tools failed: {0}.",
        "For details, run NVIDIA's tools without Docker Engine",
        "nvidia-smi; sudo nvidia-container-cli --load-kmods --debug=/dev/stdout info",
    ),
)

#: Words by which an unknown message is recognized as a message about GPUs.
_ABOUT_GPUS = re.compile(r"\bCDI\b|could not select device driver|nvidia|NVML|error running \w* ?hook", re.IGNORECASE)


def find_meaning(words: str) -> Refusal | None:
    """Return the refusal that matches an engine's message, with its sentence filled in; None for an unknown message."""
    for refusal in REFUSALS:
        match = re.search(refusal.words, words, re.MULTILINE)
        if match:
            return replace(refusal, sentence=refusal.sentence.format(*(group or "" for group in match.groups())))
    return None


@contextmanager
def explain_refusals(gpus: Sequence[str]) -> Iterator[None]:
    """Explain an engine's refusal if it is about GPUs. Many refusals occur only when a container starts.

    Raises GpuRefusedError instead of the engine's error.
    """
    try:
        yield
    except CannotRunHereError as error:
        prefix, refusal = f"--gpus {','.join(gpus)}: ", find_meaning(error.message)
        if not gpus or isinstance(error, GpuRefusedError) or not (refusal or _ABOUT_GPUS.search(error.message)):
            raise
        if refusal is None:
            do = "To see which parts of the GPU setup are available, and which are missing"
            raise GpuRefusedError(prefix + error.message, do, DOCTOR) from error
        raise GpuRefusedError(prefix + refusal.sentence, refusal.do, refusal.command, words=error.message) from error
