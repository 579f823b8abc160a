"""The wheel's package data: the top-level files that the harness reads, as `harness/_data/` (harness/shipped.py)."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHIPPED = ("docker-bake.hcl", "images", "requirements.txt", "scenarios", "templates")


class PackageData(BuildHookInterface[Any]):
    """An editable installation gets no copy: it reads the files where they are."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is built."""
        if version != "editable":
            build_data["force_include"] |= {name: f"harness/_data/{name}" for name in SHIPPED}
