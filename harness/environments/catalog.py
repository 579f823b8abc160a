"""The catalog of environments in docker-bake.hcl, from which the images are built."""

import contextlib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.files import get_cache_dir, parse_json, read_text, write_atomically
from harness.model.environment import Environment
from harness.model.errors import UsageError
from harness.project import Project
from harness.toml import hide_linked_file

VARIABLE = "ENVIRONMENTS"

#: The GPU code of environments, by name: `gpu_code`, `ptx_alone` and `cudnn_code`.
_Code = Mapping[str, Mapping[str, str]]

#: The largest size of a bake file in bytes. Its parser takes a second for 32 KB.
_MAX_BYTES = 128 * 1024

_FIELDS = {field.name for field in fields(Environment)}.difference(
    ("architecture", "asked", "base", "gpu_code_of", "line", "source", "wheel")
)
_REQUIRED = ("name", "tensorflow", "python", "as_of")
#: If an entry has one of these keys, it must have all of them.
_GPU_KEYS = ("cuda", "cudnn")


def _is_instant(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


_CODE_FORMAT = (
    re.compile(r"(\s*(sm|compute)_\d{2,3}\b)*\s*").fullmatch,
    "architectures such as `sm_60 sm_70 compute_80`",
)
_INSTANT_FORMAT = (_is_instant, "a date and time with a time zone, such as 2019-09-01T00:00:00Z")
#: For each key, a check of its format, and a description of the format.
_FORMATS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "name": (re.compile(r"[a-z0-9][a-z0-9._-]*").fullmatch, "lower-case letters, digits, `.`, `_`, `-`"),
    "tensorflow": (re.compile(r"\d+(\.\d+)*((a|b|rc|\.dev|\.post)\d+)?(\+[a-z\d]+(\.[a-z\d]+)*)?").fullmatch, "X.Y.Z"),
    "python": (re.compile(r"\d+\.\d+").fullmatch, "X.Y"),
    "as_of": _INSTANT_FORMAT,
    "cuda_as_of": _INSTANT_FORMAT,
    "gpu_code": _CODE_FORMAT,
    "ptx_alone": (
        re.compile(r"compute_\d{2,3} of PTX \d+\.\d+( for sm_\d+\w*)?").fullmatch,
        "a text such as `compute_90 of PTX 8.5`",
    ),
    "cudnn_code": _CODE_FORMAT,
}


def load_environments(project: Project) -> dict[str, Environment]:
    """Return every environment by name, for the project's architecture. Raises UsageError for an invalid bake file."""
    try:
        text = read_text(project.bake_file, most=_MAX_BYTES)
    except OSError as error:
        raise UsageError(f"{project.bake_file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{project.bake_file} cannot be read: it isn't UTF-8.") from None
    code = _read_gpu_code(project.gpu_code_file)
    with hide_linked_file(project.bake_file):
        entries = _load_cached(text, project.bake_file, code)
        return {entry["name"]: Environment(**{**entry, "architecture": project.architecture}) for entry in entries}


def _read_gpu_code(path: Path) -> _Code:
    """Return the GPU code of environments by name. A catalog without the file has its GPU code in the bake file."""
    try:
        code = parse_json(read_text(path, most=_MAX_BYTES)) if path.exists() else {}
        return {name: dict(entry) for name, entry in code.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is not valid: {error}.") from None


def _load_cached(text: str, path: Path, code: _Code) -> list[dict[str, str]]:
    # The HCL parser takes longer than everything else before a command starts, so its result is cached.
    entry = get_cache_dir() / "catalog" / f"{hashlib.sha256((text + json.dumps(code)).encode()).hexdigest()}.json"
    with contextlib.suppress(OSError, ValueError):
        cached = parse_json(read_text(entry))
        if _is_catalog(cached):
            return list(cached)
    entries = [asdict(environment) for environment in parse(text, str(path), code)]
    # without write access to the cache, each command parses the file again
    with contextlib.suppress(OSError):
        write_atomically(entry, json.dumps(entries))
    return entries


def _is_catalog(cached: Any) -> bool:
    """Return whether a cache entry was written by this version of harness."""
    names = {field.name for field in fields(Environment)}
    return isinstance(cached, list) and all(
        isinstance(entry, dict) and entry.keys() == names and all(isinstance(value, str) for value in entry.values())
        for entry in cached
    )


def parse(text: str, where: str, code: _Code | None = None) -> list[Environment]:
    """Parse the environments in a bake file's text, with the GPU `code` of the environments by name.

    Raises UsageError. Its message names the file as `where`.
    """
    import hcl2
    from lark.exceptions import LarkError, UnexpectedInput

    options = hcl2.SerializationOptions(strip_string_quotes=True, with_comments=False, explicit_blocks=False)
    try:
        document = hcl2.loads(text, serialization_options=options)
    except RecursionError:
        raise UsageError(f"{where} is nested too deeply.") from None
    except (LarkError, RuntimeError) as error:  # RuntimeError: a block and an attribute with one name
        location = f"{where}:{error.line}" if isinstance(error, UnexpectedInput) and error.line > 0 else where
        raise UsageError(f"{location} is not valid HCL: {str(error).splitlines()[0]}") from None
    except ValueError:  # an integer that is too long for Python
        digits = re.search(r"[0-9]{4000}", text)
        line = text.count("\n", 0, digits.start()) + 1 if digits else 1
        raise UsageError(f"{where}:{line} is not valid HCL: expected integers of at most 4,000 digits.") from None
    blocks = document.get("variable", [])
    blocks = [block[VARIABLE] for block in blocks if VARIABLE in block] if _are_objects(blocks) else []
    entries = blocks[0].get("default") if len(blocks) == 1 and _are_objects(blocks) else None
    if not isinstance(entries, list):
        raise UsageError(f'{where} has no `variable "{VARIABLE}"` whose default is a list of environments.')
    if code and _are_objects(entries):
        entries = [{**code.get(str(entry.get("name")), {}), **entry} for entry in entries]
    environments = [_parse_environment(entry, f"{where}, environment {i}") for i, entry in enumerate(entries, 1)]
    for name, count in Counter(environment.name for environment in environments).items():
        if count > 1:
            raise UsageError(f"{where} has two environments named {name}.")
    return environments


def _are_objects(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, Mapping) for value in values)


def _parse_environment(entry: Any, location: str) -> Environment:
    if not isinstance(entry, Mapping) or not all(isinstance(value, str) for value in entry.values()):
        raise UsageError(f"{location}: expected an object of strings.")
    required = _REQUIRED + (_GPU_KEYS if any(entry.get(key) for key in _GPU_KEYS) else ())
    missing = [key for key in required if not entry.get(key)]
    unknown = sorted(set(entry) - _FIELDS)
    if missing or unknown:
        problems = [f"`{key}` is missing" for key in missing] + [f"`{key}` is not a known key" for key in unknown]
        raise UsageError(f"{location}: {', '.join(problems)}. The keys are {', '.join(sorted(_FIELDS))}.")
    for key, (is_valid, expected) in _FORMATS.items():
        value = entry.get(key)
        if value and not is_valid(value):
            raise UsageError(f"{location}: invalid `{key}` {value!r}: expected {expected}.")
    return Environment(**entry)
