"""Histories that the tests make: series over some nights, with what was found in them."""

import math
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from harness.history.states import JudgedSeries, judge_all
from harness.model.history import Decision, HistoryEntry, Key, Note, Origin, Series, SeriesPoint
from harness.model.run import Machine

MACHINE = Machine("m-1a2b3c4d", "desk")
FIRST = datetime(2026, 8, 1, 3, 12, tzinfo=UTC)
ORIGIN = Origin("570.86", "kit1", "77aa", "4f1c", "image1", "reference1", "desk", "1.0", "abc")


def key(scenario: str = "step", environment: str = "tf2.1", machine: str = MACHINE.id, **axes: str) -> Key:
    return Key(machine, scenario, "cpu", tuple(sorted(axes.items())), environment, "tf1.14")


def judge_series(series: Series, decisions: Sequence[Decision] = ()) -> JudgedSeries:
    (judged,) = judge_all([series], decisions)
    return judged


def run_of(night: int) -> tuple[str, str]:
    when = FIRST + timedelta(days=night, minutes=7 * (night % 5))
    return f"{when:%Y-%m-%dT%H-%M-%SZ}-{night:04x}", when.isoformat()


def series(of: Key, logs: Sequence[float | None], half: float = 0.008, seconds: float = 0.005) -> Series:
    return Series(
        of,
        [
            SeriesPoint(
                *run_of(night),
                log,
                None if log is None else log - half,
                None if log is None else log + half * 1.1,
                5,
                None if log is None else seconds * math.exp(log),
                None if log is None else seconds * math.exp(log - half),
                None if log is None else seconds * math.exp(log + half),
                "failed" if log is None else "ok",
                ORIGIN,
            )
            for night, log in enumerate(logs)
        ],
    )


def noise(nights: int, level: float = 0.0, spread: float = 0.006, seed: int = 1) -> list[float]:
    drawn = random.Random(seed)
    return [drawn.gauss(level, spread) for _ in range(nights)]


def entries(nights: int) -> list[HistoryEntry]:
    return [HistoryEntry(*run_of(night), [MACHINE], "nightly", "tf1.14", 6) for night in range(nights)]


def changed(of: Series, **at: tuple[str, int]) -> Series:
    """The series with another origin from some nights on: `lock=("lock2", 84)`."""
    points = list(of.points)
    for name, (value, night) in at.items():
        points[night:] = [point._replace(origin=point.origin._replace(**{name: value})) for point in points[night:]]
    return Series(of.key, points)


def decided(of: JudgedSeries, *, confirmed: bool) -> Decision:
    """What measuring both sides of a series' last change again said: 8.9 % more, or next to nothing."""
    result = of.findings[-1]
    size = (1.089, 1.08, 1.098) if confirmed else (1.001, 0.999, 1.003)
    return Decision(
        result.key, result.since, result.suspects, confirmed, "2026-11-20T00-00-00Z-aaaa", "2026-11-20", *size
    )


def season(nights: int = 120) -> tuple[list[JudgedSeries], list[HistoryEntry], list[Note]]:
    driver = {"driver": ("575.51", 31)}
    all_series: list[Series] = []
    for place, call in enumerate(("fit", "train_on_batch")):
        logs = [*noise(84, 0.7 + place, seed=place), *noise(nights - 84, 0.778 + place, seed=9 + place)]
        one = series(key(call=call, mode="eager"), logs, seconds=0.002)
        all_series.append(changed(one, scenario=("01bc", 60), lock=("9be2", 84), **driver))
    faster = [*noise(100, -0.2, seed=21), *noise(nights - 100, -0.31, seed=22)]
    all_series.append(changed(series(key("input", "tf2.2"), faster), **driver))
    refuted = [*noise(40, 0.1, seed=31), *noise(nights - 40, 0.15, seed=32)]
    all_series.append(series(key("gather", "tf2.1"), refuted))
    holes: list[float | None] = list(noise(nights, 0.02, seed=5))
    holes[50:58] = [None] * 8
    holes[70] = 0.4
    all_series.append(changed(series(key("gather", "tf2.2"), holes), **driver))
    for place in range(12):
        one = series(key("conv", "tf2.2", filters=str(2**place)), noise(nights, place / 3, 0.01, place), half=0.012)
        all_series.append(changed(one, **driver))
    decisions = [
        decided(judge_series(all_series[0]), confirmed=True),
        decided(judge_series(all_series[3]), confirmed=False),
    ]
    notes = [
        Note("2026-09-14", "BIOS updated, fans cleaned"),
        Note("2026-11-02T09:00:00+00:00", "the machine moved to the other room <b>&amp;</b>"),
    ]
    return [judge_series(entry, decisions) for entry in all_series], entries(nights), notes
