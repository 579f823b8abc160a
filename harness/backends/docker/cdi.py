"""CDI specifications: files that describe to an engine which devices of NVIDIA it can give to containers."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harness.files import parse_json
from harness.model.gpu import KIND

#: The usual folders of CDI specifications. An engine with CDI disabled doesn't report its folders.
FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))


def list_device_names(folders: Iterable[Path]) -> list[str]:
    """Return the names of NVIDIA's devices in folders of CDI specifications, in order, each once."""
    return list(dict.fromkeys(name for path in _list_files(folders) for name in read_device_names(path)))


def _list_files(folders: Iterable[Path]) -> list[Path]:
    return [path for folder in folders for path in sorted(folder.glob("*")) if path.suffix in (".json", ".yaml")]


def read_device_names(path: Path) -> list[str]:
    """Return the names of NVIDIA's devices in one specification; none for another vendor or an unknown format."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        document = parse_json(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return []  # the engine also ignores such a file
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        return []
    entries = document.get("devices")
    names = [entry.get("name") for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    return [str(name) for name in names if name is not None]


def find_specification(folders: Iterable[Path], gpus: Sequence[str]) -> Path | None:
    """Return the CDI specification that an engine uses for the GPUs, or None. Later folders take precedence."""
    paths = [path for path in _list_files(folders) if not set(gpus).isdisjoint(read_device_names(path))]
    return paths[-1] if paths else None
