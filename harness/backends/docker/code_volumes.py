"""Volumes of an engine with GPU code that the driver compiled. They outlive the containers."""

from harness.backends.docker.engine import Engine, raise_as_sentences

#: The folder of compiled code in a container. In the GPU images, the image's user owns it, and a new volume that is
#: mounted there gets the same owner.
FOLDER = "/cache"

#: The folder with the code of the first start, in launches of scenarios.
FIRST_FOLDER = "/cache-first"

LABEL = "harness.cache"
VALUE = "ptx"


def make(engine: Engine, name: str) -> None:
    """Create the volume unless it exists."""
    with raise_as_sentences("create a volume"):
        engine.api.create_volume(name, labels={LABEL: VALUE})


def list_names(engine: Engine) -> list[str]:
    """Return the names of all volumes of compiled code."""
    with raise_as_sentences("list volumes"):
        response = engine.api.volumes(filters={"label": f"{LABEL}={VALUE}"})
    return sorted(volume["Name"] for volume in response["Volumes"] or ())


def remove_all(engine: Engine) -> int:
    """Remove the volumes of compiled code, and return their number."""
    names = list_names(engine)
    with raise_as_sentences("remove volumes"):
        for name in names:
            engine.api.remove_volume(name)
    return len(names)
