"""Time series from the summaries of runs: one series for each key, with a point for each run."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from harness.model.environment import Device, name_on
from harness.model.history import CellPoint, Key, Origin, Series, SeriesPoint, Summary
from harness.model.scenario import DEVICE
from harness.store.folder import pause_garbage_collection


def parse_time(started: str) -> datetime:
    """Parse a time in ISO 8601. The default time zone is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(started)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def convert_to_utc(started: str) -> str:
    """Convert an ISO 8601 time to UTC, so that sorting the texts sorts the times. Raises ValueError."""
    return parse_time(started).isoformat(timespec="seconds")


def make_series(
    summaries: Iterable[Summary],
    scenario: Sequence[str],
    environment: Sequence[str],
    axes: Mapping[str, Sequence[str]],
    only: Collection[Key] | None,
) -> list[Series]:
    """Return the series of some runs, which are in the order of their starts. For the others, see `History.series`."""
    points: dict[Key, list[SeriesPoint]] = {}
    # the points of a key by its parts: a year has hundreds of thousands of points, and keys take longer to compare
    by_parts: dict[tuple[object, ...], list[SeriesPoint] | None] = {}
    shared_origins: dict[Origin, Origin] = {}
    with pause_garbage_collection():
        for summary in summaries:
            run, started, way = summary.run, convert_to_utc(summary.started), summary.way
            origins: dict[tuple[object, ...], Origin] = {}
            for point in summary.points:
                sides = point.machine, point.scenario, point.device, point.environment, point.reference
                parts = sides, tuple(point.axes.items()), tuple(point.against.items()), way, point.quantity
                if parts not in by_parts:
                    key = _make_key(point, way)
                    is_selected = (only is None or key in only) and _matches(key, scenario, environment, axes)
                    by_parts[parts] = points.setdefault(key, []) if is_selected else None
                own_points = by_parts[parts]
                if own_points is None or (own_points and own_points[-1].run == run):
                    continue
                facts = sides, point.against.get(DEVICE)
                if facts not in origins:
                    origin = _make_origin(point, summary)
                    origins[facts] = shared_origins.setdefault(origin, origin)  # so that comparing them is fast
                numbers = point.ratio, point.low, point.high, point.rounds
                times = point.seconds, point.seconds_low, point.seconds_high
                own_points.append(
                    SeriesPoint(run, started, *numbers, *times, point.status, origins[facts], point.reason, point.calls)
                )
    return [Series(key, points[key]) for key in sorted(points)]


def _make_key(point: CellPoint, way: str) -> Key:
    return Key(
        point.machine,
        point.scenario,
        point.device,
        tuple(sorted(point.axes.items())),
        point.environment,
        point.reference,
        tuple(sorted(point.against.items())),
        way,
        point.quantity,
    )


def _make_origin(point: CellPoint, summary: Summary) -> Origin:
    """Return the software and the machine of a point."""
    measurer = next(measurer for measurer in summary.machines if measurer.machine.id == point.machine)
    all_software, scenario = summary.software, summary.scenarios.get(point.scenario)
    software = all_software.get(name_on(point.environment, point.device, all_software))
    reference = all_software.get(name_on(point.reference, point.against.get(DEVICE, point.device), all_software))
    return Origin(
        driver=measurer.driver if point.device == Device.GPU else "",
        kit=summary.kit,
        scenario=scenario.hash if scenario else "",
        lock=software.lock if software else "",
        image=software.image if software else "",
        reference_lock=reference.lock if reference else "",
        machine=measurer.machine.name,
        harness=summary.harness,
        commit=summary.commit,
        version=software.version if software else "",
        reference_version=reference.version if reference else "",
    )


def _matches(key: Key, scenario: Sequence[str], environment: Sequence[str], axes: Mapping[str, Sequence[str]]) -> bool:
    values = dict(key.axes)
    filters = [(key.scenario, scenario), (key.environment, environment)]
    filters += [(values.get(axis, ""), globs) for axis, globs in axes.items()]
    return all(not globs or any(fnmatchcase(value, glob) for glob in globs) for value, globs in filters)
