"""Builds images with `podman build`, because Podman's interface has no BuildKit, which docker-bake.hcl needs."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from harness.backends.docker.bake import Builder
from harness.backends.docker.engine import Engine
from harness.model.errors import CannotRunHereError

#: The options of `podman build` for the builder's settings, by the part of a setting's name before the first dot.
_OPTIONS = {"args": "--build-arg", "contexts": "--build-context", "labels": "--label", "tags": "--tag"}


class PodmanBuilder(Builder):
    """Builds images with the Podman that `engine` is. The settings of a build must be complete."""

    def __init__(self, root: Path, engine: Engine) -> None:
        super().__init__(root)
        self._engine = engine

    def check(self, *, uses_images: bool) -> None:
        """Raise CannotRunHereError if Podman isn't on this machine, or its command isn't installed."""
        if not self._engine.is_here or not shutil.which("podman"):
            reason = "the podman command isn't installed" if self._engine.is_here else "Podman is on another machine"
            raise CannotRunHereError(
                f"Images can't be built with `podman build`, because {reason}.",
                "Install Podman on this machine, and set DOCKER_HOST to its socket, or pass --backend local.",
            )

    def _make_command(self, target: str, settings: Mapping[str, str], folder: Path | None) -> list[str]:
        all_settings = {"dockerfile": f"{target}.Dockerfile", "contexts.locks": "images/locks", **settings}
        command = ["podman", "--remote", "--url", self._engine.address, "build", "--layers=false"]
        command += ["--file", f"images/{all_settings.pop('dockerfile')}"]
        command += ["--output", f"type=local,dest={folder}"] if folder else []
        for key, value in all_settings.items():
            kind, _, name = key.partition(".")
            command += [_OPTIONS[kind], f"{name}={value}" if name else value]
        return [*command, "images"]
