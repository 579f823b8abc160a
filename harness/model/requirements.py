"""Whether an environment's packages satisfy PEP 508 requirements."""

from collections.abc import Iterable, Mapping

#: Packages that bring the module `tensorflow`, in the order in which they stand for it.
TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "tf-nightly-cpu")


def installed(name: str, pins: Mapping[str, str]) -> str | None:
    """The version of a package among `pins` (normalised names to versions), None where it is absent."""
    names = TENSORFLOW if name == "tensorflow" else (name,)
    return next((pins[candidate] for candidate in names if candidate in pins), None)


def unmet(requires: Iterable[str], pins: Mapping[str, str]) -> list[str]:
    """Those of the requirements that `pins` does not satisfy. Raises packaging's InvalidRequirement."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    missing = []
    for text in requires:
        requirement = Requirement(text)
        version = installed(canonicalize_name(requirement.name), pins)
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            missing.append(text)
    return missing
