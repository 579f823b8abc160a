"""What containers need: Docker, its builder, and room for images."""

import re

from harness.machine.probes.finding import Finding, Level

#: Docker before this one limits neither CPUs nor memory where the kernel has control groups of version 2 only.
OLDEST_DOCKER = (20, 10)
#: The bake file has a matrix, which an older builder does not know.
OLDEST_BUILDX = (0, 11)

#: Less than this beside the images stops other things: logs, results, the builder itself.
SPARE_BYTES = 2 * 10**9


def docker(version: str, *, api: str = "", where: str = "", error: str = "", wanted: bool = False) -> Finding:
    """The engine's version, or the `error` with which none answered; that is bad where containers are `wanted`."""
    facts = {"version": version, "api": api, "where": where, "error": error, "old": _is_older(version, OLDEST_DOCKER)}
    if error:
        return Finding("Docker", Level.BAD if wanted else Level.WARN, facts)
    return Finding("Docker", Level.WARN if facts["old"] else Level.GOOD, facts)


def buildx(said: str | None) -> Finding:
    """The builder, by what `docker buildx version` said, None where there is none."""
    found = re.search(r"\bv?(\d+\.\d+\.\d+)", said or "")
    version = found[1] if found else ""
    facts = {"version": version, "found": said is not None, "old": _is_older(version, OLDEST_BUILDX)}
    if said is None or facts["old"]:
        return Finding("buildx", Level.WARN, facts)
    return Finding("buildx", Level.GOOD if version else Level.UNKNOWN, facts)


def disk_room(free: int | None, needed: int, images: int, where: str) -> Finding:
    """Whether there is room for so many `images`, which need `needed` bytes; `free` is None where it is not shown."""
    facts = {"free": free, "needed": needed, "images": images, "where": where}
    if free is None:
        return Finding("disk room", Level.UNKNOWN, facts)
    if free < needed:
        return Finding("disk room", Level.BAD, facts)
    return Finding("disk room", Level.WARN if free < needed + SPARE_BYTES else Level.GOOD, facts)


def _is_older(version: str, than: tuple[int, int]) -> bool:
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) < than
