"""Ad-hoc environments from requirements (`-e tensorflow==2.7.1`), saved in the user's cache with their locks.

Python and CUDA come from the catalog's environment of the same minor release. Other packages are resolved as of the
end of the day after the upload of the newest requested version, because related packages can be uploaded some hours
later. For example, the estimator for TensorFlow 2.4.0 was uploaded 6 hours after TensorFlow, and after midnight.

`-e tf2.0+numpy==1.21.6` replaces only the requested packages in the base `tf2.0`. Its date is the date of the base or
of the requested packages, whichever is later.

`-e tf2.15@py3.9` is the base `tf2.15` with another version of Python. Its packages are resolved as of the base's date.
"""

import contextlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

from packaging.version import Version

from harness.environments.lines import resolve
from harness.environments.packages import (
    choose_package,
    find_lock_time,
    find_package,
    find_pinned_package,
    find_tensorflow,
    find_upload_day,
)
from harness.environments.requested import (
    Files,
    FromSource,
    Named,
    OnPython,
    Override,
    Pinned,
    ReleaseLine,
    Requested,
    parse_requested,
    sort_packages,
)
from harness.files import get_cache_dir, parse_json, read_text, write_atomically
from harness.model.environment import KERAS, TENSORFLOW, Environment
from harness.model.errors import HarnessError, UsageError
from harness.model.texts import find_nearest, list_valid_names


def add_requested(
    known: Mapping[str, Environment], requested: Iterable[Requested], impossible: dict[str, HarnessError] | None = None
) -> tuple[dict[str, Environment], list[str]]:
    """Return the catalog, extended by the requested environments, and the request as names and globs.

    An existing environment is also found by its name, without using the index. If an environment is requested by its
    name and also as a release line, it doesn't belong to the line. If `impossible` is given, it receives the errors of
    release lines without an installable wheel, by environment name.

    Raises UsageError for requirements without a valid environment, and CannotRunHereError if the index is needed and
    doesn't answer.
    """
    environments, names, other_names = dict(known), list[str](), list[str]()
    for value in requested:
        environment = None if str(value) in known else _find_or_create(value, known, impossible)
        if environment is not None:
            environments[environment.name] = environment
        names.append(environment.name if environment else str(value))
        if not isinstance(value, ReleaseLine):
            other_names.append(names[-1])
    for name in other_names:
        if name in environments:
            environments[name] = replace(environments[name], line="")
    return environments, names


def _find_or_create(
    requested: Requested, known: Mapping[str, Environment], impossible: dict[str, HarnessError] | None
) -> Environment | None:
    """Return an environment that isn't in the catalog, or None for a glob or an unknown name."""
    match requested:
        case Named():
            return _load_usable(requested.name, known)
        case ReleaseLine():
            return _create_for_line(requested, known, impossible)
        case Pinned() | OnPython() | Override():
            return create(requested, known)
        case FromSource():
            raise UsageError(
                f"{str(requested)!r}: only matrix, run, profile, bisect and images build a package from a source.",
                f"First build the package, and then pass the name that this command prints: harness images build "
                f"{shlex.quote(str(requested))}",
            )
        case Files():
            raise UsageError(
                f"{requested} lists packages, and only `harness run` and `harness bisect` accept such a file.",
                "Pass the packages instead. For example: -e tf2.15+numpy==1.26.4",
            )


def _create_for_line(
    line: ReleaseLine, environments: Mapping[str, Environment], impossible: dict[str, HarnessError] | None
) -> Environment:
    """Return the environment of a release line.

    If it can't be created, add the error to `impossible`, and return a placeholder.
    """
    exact, yanked = resolve(line, environments)
    try:
        if yanked:
            raise UsageError(f"{yanked}.", f"Choose another day: -e {line.name}@YYYY-MM-DD")
        environment = environments[exact.name] if isinstance(exact, Named) else create(exact, environments)
    except UsageError as error:
        if impossible is None:
            raise
        environment = _make_placeholder(exact, environments, error)
        impossible[environment.name] = error
    return replace(environment, line=line.name)


def _make_placeholder(
    exact: Named | Pinned | Override, environments: Mapping[str, Environment], error: UsageError
) -> Environment:
    """Return a placeholder for an environment that can't be created: its base, with the environment's name.

    Raises `error` if there is no base.
    """
    if not isinstance(exact, Pinned | Override):
        raise error
    spec = exact.base if isinstance(exact, Override) else exact
    if isinstance(spec, Pinned):
        base = replace(find_nearest_release(spec.version, list(environments.values())), tensorflow=spec.version)
    elif str(spec) in environments:
        base = environments[str(spec)]
    else:
        raise error
    base_name = base.name if isinstance(exact, Override) else ""
    return replace(base, name=exact.name, asked=str(exact), base=base_name, line="")


def create(requested: Pinned | OnPython | Override, known: Mapping[str, Environment]) -> Environment:
    """Return an environment with requirements or another version of Python. A new one is saved."""
    match requested:
        case OnPython():
            return _change_python(requested, known)
        case Override():
            override, base = _resolve_base(requested, known)
            saved = load_saved(override.name)
            if saved is not None and saved.asked == str(override) and _is_of_base(saved, override, base):
                return saved
            return keep(_replace_packages(override, base))
        case Pinned():
            saved = _load_usable(requested.name, known)
            if saved is not None and saved.asked == str(requested):
                return saved
            return keep(_create_environment(requested, list(known.values())))


def _get_base(requested: Override | OnPython, environments: Mapping[str, Environment]) -> Environment:
    """Return the base of a request. Raises UsageError if there is no such environment."""
    if not isinstance(requested.base, Named):
        return create(requested.base, environments)
    name = requested.base.name
    if (base := environments.get(name) or _load_usable(name, environments)) is not None:
        return base
    nearest = find_nearest(name, environments)
    hint = f" Did you mean {nearest}?" if nearest else ""
    raise UsageError(
        f"Unknown environment {name!r} in {requested}.{hint}",
        list_valid_names(name, list(environments), "harness images list"),
    )


def _change_python(requested: OnPython, environments: Mapping[str, Environment]) -> Environment:
    """Return an environment with another version of Python, and with the packages of the same date.

    Raises UsageError if there is no such environment, or if its TensorFlow has no wheel for this Python.
    """
    base = _get_base(requested, environments)
    if base.gpu_image or base.base:
        reason = "comes from an image" if base.gpu_image else "has replaced packages"
        raise UsageError(f"{requested}: the Python of {base.name} can't be changed, because it {reason}.")
    if base.python == requested.python:
        return base
    if requested.name in environments:
        return environments[requested.name]
    original = _read_request(base)
    asked = OnPython(original.base if isinstance(original, OnPython) else original, requested.python)
    environment = replace(base, name=asked.name, python=asked.python, asked=str(asked))
    if load_saved(asked.name) == environment:
        return environment
    package = asked.base.package if isinstance(asked.base, Pinned) else TENSORFLOW[0]
    package = choose_package(package, base.tensorflow, base.architecture)
    find_package(f"{package}=={base.tensorflow}", environment)
    return keep(environment)


def read_requirements(environment: Environment) -> Pinned | None:
    """Return the requirements from which an environment was created, or None if there are none."""
    original = parse_requested(environment.asked)
    if isinstance(original, OnPython):
        original = original.base
    return original if isinstance(original, Pinned) else None


def _read_request(environment: Environment) -> Named | Pinned | OnPython:
    """Return the request for an environment without replaced packages."""
    requested = parse_requested(environment.asked) if environment.asked else Named(environment.name)
    assert isinstance(requested, Named | Pinned | OnPython)
    return requested


def keep(environment: Environment) -> Environment:
    """Save an environment, so that it can be found by its name later."""
    # if the file can't be written, the next command queries the index again
    with contextlib.suppress(OSError):
        write_atomically(get_file(environment.name), json.dumps(asdict(environment), indent=2))
    return environment


def find_base(environment: Environment, known: Mapping[str, Environment]) -> Environment:
    """Return the base in which packages are replaced to get this environment. Raises the errors of `create`."""
    requested = parse_requested(environment.asked)
    if isinstance(requested, FromSource) and requested.base is not None:
        environments, (name,) = add_requested(known, [requested.base])
        return environments[name]
    assert isinstance(requested, Override)
    return _resolve_base(requested, known)[1]


def _resolve_base(override: Override, environments: Mapping[str, Environment]) -> tuple[Override, Environment]:
    """Return the override with its original base, and the base. Overrides of an overridden environment are merged."""
    base = _get_base(override, environments)
    if base.gpu_image:
        raise UsageError(f"Packages of {base.name} can't be replaced: they come from an image, not from a lock file.")
    if base.base:
        original = parse_requested(base.asked)
        if not isinstance(original, Override):
            raise UsageError(f"Packages of {base.name} can't be replaced: one of them comes from a source.")
        packages = sort_packages([*original.packages, *override.packages], str(original.base))
        merged = parse_requested("+".join([str(original.base), *packages]))
        assert isinstance(merged, Override)
        return _resolve_base(merged, environments)
    request = _read_request(base)
    return replace(override, base=request, packages=sort_packages(override.packages, str(request))), base


def _is_of_base(environment: Environment, override: Override, base: Environment) -> bool:
    """Return whether a saved environment was created from this base, and not from another base with the same name."""
    is_same_release = environment.tensorflow == base.tensorflow or any(name in TENSORFLOW for name in override.by_name)
    target, own_target = ((each.python, each.cuda, each.architecture) for each in (base, environment))
    return is_same_release and own_target == target


def load_saved(name: str) -> Environment | None:
    """Return the saved environment of this name, or None."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        return None
    try:
        environment = Environment(**parse_json(read_text(get_file(name))))
    except (OSError, ValueError, TypeError):
        return None
    return environment if all(isinstance(value, str) for value in asdict(environment).values()) else None


def _load_usable(name: str, known: Mapping[str, Environment]) -> Environment | None:
    """Return the saved environment of this name, or None if there is none for the architecture of the catalog."""
    saved = load_saved(name)
    return saved if saved is not None and saved.architecture == next(iter(known.values())).architecture else None


def get_folder() -> Path:
    """Return the folder of ad-hoc environments and their locks."""
    return get_cache_dir() / "locks"


def get_file(name: str) -> Path:
    """Return the path of the saved environment of this name."""
    return get_folder() / f"{name}.json"


def _create_environment(spec: Pinned, environments: Sequence[Environment]) -> Environment:
    neighbor = find_nearest_release(spec.version, environments)
    package, python = find_tensorflow(spec, neighbor.python, environments)
    others = [find_pinned_package(name, version, python, neighbor.architecture) for name, version in spec.pins.items()]
    as_of = find_lock_time([package, *others])
    environment = Environment(
        name=spec.name,
        tensorflow=spec.version,
        python=python,
        as_of=as_of.isoformat().replace("+00:00", "Z"),
        keras=spec.pins.get("keras", ""),
        released=find_upload_day(package).date().isoformat(),
        asked=str(spec),
        architecture=neighbor.architecture,
    )
    if spec.package.endswith("-cpu") or _parse_release(spec.version) < _parse_release(neighbor.tensorflow):
        return environment
    # packages from NVIDIA are at least as recent as in the nearest release
    instant = neighbor.cuda_as_of or neighbor.as_of
    return replace(
        environment,
        cuda=neighbor.cuda,
        cudnn=neighbor.cudnn,
        gpu_code=neighbor.gpu_code,
        gpu_code_of=neighbor.tensorflow if _parse_release(spec.version) > _parse_release(neighbor.tensorflow) else "",
        ptx_alone=neighbor.ptx_alone,
        # the GPU code of a requested cuDNN isn't known
        cudnn_code="" if any(name.startswith("nvidia-cudnn-") for name in spec.pins) else neighbor.cudnn_code,
        cuda_image=neighbor.cuda_image,
        cuda_as_of=instant if datetime.fromisoformat(instant) > as_of and not neighbor.cuda_image else "",
    )


def _replace_packages(override: Override, base: Environment) -> Environment:
    """Return the base with replaced packages, as of the date of the base or of the packages, whichever is later.

    Raises UsageError if a package is missing.
    """
    packages = {name: find_package(text, base) for name, text in override.by_name.items()}
    pins = override.pins
    releases = [name for name in packages if name in TENSORFLOW]
    if any(name not in pins for name in releases):
        raise UsageError(f"{override}: pass an exact version of TensorFlow.", "For example: tensorflow==2.7.1")
    instants = [find_lock_time([packages[name] for name in pins])] if pins else []
    as_of = max([datetime.fromisoformat(base.as_of), *instants])
    cuda = base.cuda_as_of
    environment = replace(
        base,
        name=override.name,
        as_of=as_of.isoformat().replace("+00:00", "Z"),
        keras=next((pins.get(name, "") for name in KERAS if name in packages), base.keras),
        cudnn_code="" if any(name.startswith("nvidia-cudnn-") for name in packages) else base.cudnn_code,
        cuda_as_of=cuda if cuda and datetime.fromisoformat(cuda) > as_of else "",
        asked=str(override),
        base=base.name,
    )
    if not releases:
        return environment
    tensorflow = packages[releases[0]]
    released = find_upload_day(tensorflow).date().isoformat()
    return replace(environment, tensorflow=str(tensorflow.version), released=released)


def _parse_release(version: str) -> tuple[int, ...]:
    return Version(version).release[:2]


def find_nearest_release(version: str, known: Sequence[Environment]) -> Environment:
    """Return the stable environment of the same minor release, or of the nearest earlier one, or the oldest."""

    def get_minor(environment: Environment) -> tuple[int, ...]:
        return _parse_release(environment.tensorflow)

    releases = [environment for environment in known if environment.is_stable_release]
    if not releases:
        raise UsageError("The catalog is empty, so the versions of Python and CUDA are unknown.")
    earlier = [environment for environment in releases if get_minor(environment) <= _parse_release(version)]
    return max(earlier, key=get_minor) if earlier else min(releases, key=get_minor)
