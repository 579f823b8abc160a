"""Profiles as launches leave them: JSON among their artifacts, which an untrusted script wrote."""

import math
from pathlib import Path

from harness.model.errors import DamagedError, UsageError
from harness.model.launch import Launch
from harness.model.profile import SCHEMA, Part, Profile
from harness.store import codec


def read_profiles(folder: Path, launch: Launch) -> dict[Part, Profile]:
    """What a launch's artifacts hold, those under the run's `folder`; a part that it lacks is not there.

    Raises UsageError for a file that is damaged or of a newer schema.
    """
    kept = {Path(name).name: folder / name for name in launch.artifacts}
    return {part: _load(kept[f"{part.file}.json"]) for part in Part if f"{part.file}.json" in kept}


def _load(path: Path) -> Profile:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    profile = codec.load(Profile, data, SCHEMA, path)
    _check(profile, path)
    return profile


def _check(profile: Profile, path: Path) -> None:
    """Refuse what would lead astray: counts of nothing, callers that are no functions, times that are none."""
    if profile.calls < 1 or profile.steps < 1:
        raise DamagedError(path, "its calls or steps are no count")
    if not all(0.0 <= seconds < math.inf for seconds in (profile.seconds, profile.plain_seconds or 0.0)):
        raise DamagedError(path, "its seconds are no length of time")
    count = len(profile.functions)
    for function in profile.functions:
        numbers = [function.own, function.cumulative, *(each.cumulative for each in function.callers)]
        if not all(0 <= each.place < count for each in function.callers) or not all(
            0.0 <= number < math.inf for number in numbers
        ):
            raise DamagedError(path, f"{function.name!r} has a caller or a time that cannot be")
    for seconds, stack in profile.stacks:
        if not 0.0 <= seconds < math.inf or not all(0 <= place < count for place in stack):
            raise DamagedError(path, "a stack has a function or a time that cannot be")
