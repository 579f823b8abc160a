"""Series of a history, as nights make them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from harness.analysis.statistics import student
from harness.model.history import Key, Origin, Series, SeriesPoint

KEY = Key("m-1", "step", "cpu", (("call", "fit"),), "tf2.1", "tf1.14")
ORIGIN = Origin(
    driver="", kit="k1", scenario="s1", lock="aaaaaaaaaaaa", image="sha256:1111111111", reference_lock="cccccccccccc"
)
ROUNDS = 5


def point(night: int, log_ratio: float | None, origin: Origin = ORIGIN, error: float = 0.01) -> SeriesPoint:
    started = datetime(2026, 1, 1, 4, tzinfo=UTC) + timedelta(days=night)
    half = error * student(ROUNDS - 1)
    ends = (None, None) if log_ratio is None else (log_ratio - half, log_ratio + half)
    return SeriesPoint(
        f"run-{night:03}", started.isoformat(), log_ratio, *ends, ROUNDS, 0.01, 0.009, 0.011, "ok", origin
    )


def series(
    logs: Sequence[float | None], origins: Mapping[int, Mapping[str, str]] | None = None, key: Key = KEY
) -> Series:
    """Nights with these log ratios; `origins` says what is another from a night on."""
    points, origin = [], ORIGIN
    for night, log in enumerate(logs):
        origin = origin._replace(**(origins or {}).get(night, {}))
        points.append(point(night, log, origin))
    return Series(key, points)


def of_line(logs: Sequence[float | None]) -> Series:
    versions = {
        at: {"version": f"tf-nightly==2.23.0.dev{at:03}", "lock": f"lock{at}", "reference_version": "tf1.14"}
        for at in range(len(logs))
    }
    return series(logs, versions, replace(KEY, environment="tf-nightly"))


def noise(nights: int, level: float = 0.0, *, spread: float = 0.01, seed: int = 0) -> list[float]:
    drawn = np.random.default_rng(seed).normal(size=nights) * spread + level
    return [float(entry) for entry in drawn]


def stepped(at: int, nights: int, share: float = 0.08, seed: int = 0) -> list[float]:
    return [*noise(at, seed=seed), *noise(nights - at, math.log1p(share), seed=seed + 100)]
