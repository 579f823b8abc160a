"""Creates the requested environments. If a package comes from a source, its wheel is built first."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.backends import registry
from harness.backends.protocol import RegisteredBackend
from harness.backends.wheels import VARIABLE as WHEELS_VARIABLE
from harness.environments import adhoc, sources
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.environments.requested import FromSource, Named, Requested, parse_requested
from harness.environments.sources import Wheel, open_place
from harness.files import get_cache_dir, get_wheel_path, parse_json, read_text, write_atomically
from harness.machine import git
from harness.model.backend import WheelRecipe
from harness.model.environment import TENSORFLOW, Environment, Requirement
from harness.model.errors import CannotRunHereError, HarnessError, NothingSelectedError, UsageError
from harness.model.texts import counted
from harness.plan.claims import find_newest
from harness.plan.selection import make_unknown_error
from harness.project import Project
from harness.session import trust
from harness.session.request import Request

#: The files in images/ that affect how a wheel is built.
_RECIPE = ("wheel.Dockerfile", "install.sh", "build.sh", "uv.txt")

#: The id of a source in the name of an environment that was created earlier.
_SAVED_ID = re.compile(r"(?P<commit>[0-9a-f]{12})(?P<dirty>-dirty-[0-9a-f]{8})?|whl-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class WheelMaker:
    """Creates environments with packages from sources.

    - `backend`: the requested backend; `repository`: a folder or an address, for sources that are revisions
    - `is_trusted`: whether a source may be built with the user's rights if there are no containers
    - `builds`: without it, no wheel is built. `unbuilt` then gets the bases of environments without a wheel, by name
    - `say`: gets a message about each build; `lock`: is held during builds
    """

    project: Project
    backend: str = registry.AUTO
    repository: str = ""
    is_trusted: bool = False
    builds: bool = True
    say: Callable[[str], object] = lambda _: None
    lock: Callable[[], AbstractContextManager[None]] = nullcontext
    unbuilt: dict[str, Environment] = field(default_factory=dict)

    def resolve(
        self,
        known: Mapping[str, Environment],
        requested: Iterable[Requested],
        impossible: dict[str, HarnessError] | None = None,
    ) -> tuple[dict[str, Environment], list[str]]:
        """Return the catalog with the requested environments, and the request as names and globs.

        Finished wheels are in the user's cache. Raises UsageError for an unknown source or a source of another package,
        UntrustedError for other people's code without a container, and CannotRunHereError if a build isn't possible.
        """
        environments, others = dict(known), list[Requested]()
        for value in requested:
            if isinstance(value, FromSource):
                environment = self._make(value, environments)
                environments[environment.name] = environment
            others.append(Named(environment.name) if isinstance(value, FromSource) else value)
        return adhoc.add_requested(environments, others, impossible)

    def _make(self, spec: FromSource, known: Mapping[str, Environment]) -> Environment:
        """Return the environment of a source, with its wheel in the cache."""
        base = _find_base_environment(spec, known)
        if (saved_environment := _find_saved_environment(spec, base)) is not None:
            return saved_environment
        if (path := sources.find_wheel(spec)) is not None:
            wheel = sources.keep_wheel(path, spec.package, base.python, base.architecture)
            digest = wheel.name.partition("/")[0]
            short = f"{re.sub(r'[^a-z0-9.]+', '-', wheel.version)}-{digest[:8]}"
            description = f"the file {path.name} ({digest[:12]})"
            ids = (short, f"whl-{digest[:12]}")
            return adhoc.keep(sources.make_environment(base, spec.package, wheel, ids, description))
        with open_place(spec, self.repository) as source:
            built_wheel = self._get_wheel(spec, base, source)
            if built_wheel is None:
                name = f"{base.name}-{spec.package}-{source.short}"
                self.unbuilt[name] = base
                return replace(
                    base, name=name, base=base.name, line="", source=f"{spec.package} from {source.description}"
                )
            ids = (source.short, source.long)
            return adhoc.keep(sources.make_environment(base, spec.package, built_wheel, ids, source.description))

    def _get_wheel(self, spec: FromSource, base: Environment, source: git.Snapshot) -> Wheel | None:
        """Return the wheel of a source, from the cache or from a build; None if nothing may be built."""
        instant = max(datetime.fromisoformat(base.as_of), datetime.fromtimestamp(source.instant, UTC))
        try:
            backend = self._choose_builder(spec)
        except (CannotRunHereError, registry.UntrustedError) as error:
            if self.builds:
                raise
            self.say(f"{spec.package} is not built: {error}")
            return None
        recipe = [hashlib.sha256((self.project.root / "images" / name).read_bytes()).hexdigest() for name in _RECIPE]
        parts = [git.get_tree_id(source), spec.package, base.python, self._make_version(spec, base, source)]
        parts += [instant.isoformat(), backend.name, *recipe]
        path = get_cache_dir() / "wheels" / "builds" / f"{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}.json"
        with suppress(OSError, ValueError, TypeError):
            cached_wheel = Wheel(**parse_json(read_text(path)))
            if cached_wheel.path.is_file():
                return cached_wheel
        if os.environ.get(WHEELS_VARIABLE):
            raise UsageError(
                f"With {WHEELS_VARIABLE}, no wheel is built from a source: the build needs packages from the index.",
                f"Build the wheel on another machine, and pass it: -e {spec.base}+{spec.package}@FILE.whl",
            )
        if not self.builds:
            self.say(f"A run builds {spec.package} from {source.description}, {backend.builds_in}.")
            return None
        with self.lock():
            self.say(f"Building {spec.package} from {source.description}, {backend.builds_in}.")
            wheel = self._build_wheel(spec, base, source, instant, backend)
        with suppress(OSError):
            write_atomically(path, json.dumps({"name": wheel.name, "version": wheel.version}))
        return wheel

    def _choose_builder(self, spec: FromSource) -> RegisteredBackend:
        """Return the backend for a build: containers if an engine is running, and otherwise only with --trust.

        With --backend local, the launches have the user's rights. So other people's code is refused before it is built.
        """
        kind = trust.classify_package(spec, self.project, self.repository)
        untrusted = trust.find_untrusted({spec.package: kind})
        if untrusted and not self.is_trusted and not registry.is_contained(self.backend):
            raise registry.UntrustedError(self.backend, untrusted)
        name = self.backend if registry.is_contained(self.backend) else registry.AUTO
        try:
            return registry.choose(
                name, self.project.root, "wheel", untrusted={} if self.is_trusted else {spec.package: kind.description}
            )[0]
        except CannotRunHereError as error:
            if name != registry.AUTO:
                raise
            reason = error.message.splitlines()[0]
            raise CannotRunHereError(
                f"A build of {spec.package} runs the source's own code, and there are no containers here: {reason}",
                "If you trust the source, build and measure it without containers: --trust",
            ) from None

    def _make_version(self, spec: FromSource, base: Environment, source: git.Snapshot) -> str:
        """Return the version for a package that takes it from git: the version in the base's lock, plus the commit."""
        pinned_version = load_lock(self.project, base, base.devices[0]).lock.pins.get(spec.package, "0")
        return f"{pinned_version.partition('+')[0]}+g{source.commit[:7]}"

    def _build_wheel(
        self, spec: FromSource, base: Environment, source: git.Snapshot, instant: datetime, backend: RegisteredBackend
    ) -> Wheel:
        with TemporaryDirectory() as temporary_folder:
            files, lock, wheels = (Path(temporary_folder, name) for name in ("source/files", "lock", "wheel"))
            for folder in (files, lock, wheels):
                folder.mkdir(parents=True)
            source.export(files)
            sources.check_name(files, spec.package)
            lock_text = sources.build_lock(files, base.python, instant, base.architecture)
            (lock / "build.txt").write_text(lock_text, encoding="utf-8")
            backend.build_wheel(
                WheelRecipe(
                    package=spec.package,
                    python=base.python,
                    source=files.parent,
                    lock=lock / "build.txt",
                    instant=source.instant,
                    version=self._make_version(spec, base, source),
                ),
                wheels,
            )
            wheel_paths = [path for path in wheels.glob("*.whl") if path.is_file() and not path.is_symlink()]
            if len(wheel_paths) != 1:
                raise CannotRunHereError(
                    f"The build of {spec.package} created {counted(len(wheel_paths), 'wheel')} instead of one."
                )
            return sources.keep_wheel(wheel_paths[0], spec.package, base.python, base.architecture)


def rename_requirements(requirements: Mapping[str, Requirement], environment: Environment) -> dict[str, Requirement]:
    """Return the locks of a base as the locks of an environment whose wheel isn't built yet, by name."""
    renamed = [
        replace(requirement, environment=environment, lock=replace(requirement.lock, sha256=""))
        for requirement in requirements.values()
    ]
    return {requirement.name: requirement for requirement in renamed}


def _find_base_environment(spec: FromSource, known: Mapping[str, Environment]) -> Environment:
    if spec.base is not None:
        environments, (name,) = adhoc.add_requested(known, [spec.base])
        if name not in environments:
            raise make_unknown_error(name, list(known), "environment")
        return environments[name]
    path = sources.find_wheel(spec) if spec.package in TENSORFLOW else None
    if path is None:
        raise UsageError(
            f"{spec.package}@{spec.place} doesn't name the environment in which {spec.package} is replaced.",
            f"For example: -e tf2.21+{spec.package}@{spec.place}",
        )
    version = path.name.split("-")[1] if "-" in path.name else ""
    return adhoc.find_nearest_release(version, list(known.values()))


def _find_saved_environment(spec: FromSource, base: Environment) -> Environment | None:
    """Return the environment that was created from this source earlier, if the spec has its id; otherwise None."""
    match = _SAVED_ID.fullmatch(spec.place)
    if match is None:
        return None
    text = f"{base.asked or base.name}+{spec.package}@{spec.place}"
    names = [path.stem for path in adhoc.get_folder().glob(f"{base.name}-{spec.package}-*.json")]
    for environment in filter(None, map(adhoc.load_saved, names)):
        is_same = (environment.asked, environment.architecture) == (text, base.architecture)
        if is_same and get_wheel_path(environment.wheel).is_file():
            return environment
    return None


def make_comparison_request(asked: Request, package: str, base: str, head: str = "") -> Request:
    """Return the request that measures a package at the revision `base` against `head`, in one environment.

    `head` is a revision, a folder or a pull request. By default, it is the working copy. Raises UsageError for an
    unknown revision, and NothingSelectedError if both sides are equal.
    """
    environment = _select_environment(asked.environments)
    repository = asked.repository or _find_repository(package)
    # absolute, because a relative path could also be a revision
    working_copy = repository if "://" in repository else str(Path(repository).expanduser().absolute())
    specs = [FromSource(parse_requested(environment), package, place) for place in (base, head or working_copy)]
    with open_place(specs[0], repository) as before, open_place(specs[1], repository) as after:
        if before.long == after.long:
            raise NothingSelectedError(
                f"--base and --head are the same: {before.description}.",
                "Pass two different commits, or change a file.",
            )
    return replace(asked, environments=list(map(str, specs)), repository=repository)


def _select_environment(environments: Sequence[str]) -> str:
    """Return the environment in which a package is replaced. By default, it is the newest one in the catalog."""
    if len(environments) > 1:
        raise UsageError(
            f"--package replaces a package in one environment, but -e selects {len(environments)}.",
            f"Pass only one, such as -e {environments[0]}",
        )
    return environments[0] if environments else find_newest(load_environments(Project.find()))


def _find_repository(package: str) -> str:
    """Return the repository that contains the current folder, or otherwise the package's repository."""
    try:
        return str(git.find_top(Path.cwd()))
    except UsageError:
        if package in sources.REPOSITORIES:
            return sources.REPOSITORIES[package]
        raise
