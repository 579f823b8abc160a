"""The GPU code that drivers compiled, kept in volumes that outlive containers.

A release that has no machine code for a GPU brings PTX, which the driver compiles at the first start, for half an hour
and longer. There is one volume per image and GPU model: nothing else makes use of the same code.
"""

import re
from collections.abc import Mapping, Sequence

from harness.backends.engine import Engine, sentences

#: Where a container has it; the GPU images' user owns the folder, and a new volume takes that over.
FOLDER = "/cache"

#: What tells the driver. The size, in bytes, is the one that TensorFlow's own warning asks for: the older drivers'
#: default is an eighth of it, and what does not fit is compiled again at each start.
ENVIRON: Mapping[str, str] = {"CUDA_CACHE_PATH": FOLDER, "CUDA_CACHE_MAXSIZE": str(2**31)}

LABEL = "harness.cache"
VALUE = "ptx"


def volume(image: str, models: Sequence[str]) -> str:
    """The volume's name: the image's id and the GPU models, as far as they are known, tell what is in it."""
    slugs = [re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-") for model in models]
    return "-".join(["harness-ptx", image.rpartition(":")[2][:12], *dict.fromkeys(slugs or ["gpu"])])[:200]


def make(engine: Engine, name: str) -> None:
    """Make the volume unless it is there."""
    with sentences("make a volume"):
        engine.api.create_volume(name, labels={LABEL: VALUE})


def kept(engine: Engine) -> list[str]:
    """The names of all such volumes that the engine has."""
    with sentences("list volumes"):
        found = engine.api.volumes(filters={"label": f"{LABEL}={VALUE}"})
    return sorted(volume["Name"] for volume in found["Volumes"] or ())


def remove(engine: Engine) -> int:
    """Remove them all; returns how many there were."""
    names = kept(engine)
    with sentences("remove volumes"):
        for name in names:
            engine.api.remove_volume(name)
    return len(names)
