"""The job: the request of harness to a worker, read from a JSON file and checked."""

import json
from collections import namedtuple

from .sampling import Document, TimeBounded

SCHEMA = 1

# script: a path; axes: values by name; sampling: TimeBounded or Document; limit: the time limit in seconds, or None;
# artifacts: a folder's path; thorough: see Bench; profile_calls: the number of later calls to profile, or None to
# measure times; settings: values by name, see settings.py; waits: see Bench.
Job = namedtuple(
    "Job",
    "script axes environment device sampling die_with_parent limit artifacts thorough profile_calls settings waits",
)


class JobError(Exception):
    """The job is invalid. The message is a sentence."""


def read_job(path):
    """Read the job file at `path`. Raises JobError."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        raise JobError("the job {} cannot be read: {}".format(path, error)) from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise JobError(
            "the job {} doesn't have the schema {}, the only schema that this worker reads".format(path, SCHEMA)
        )
    try:
        cell = data["cell"]
        return Job(
            script=data["script"],
            axes=dict(cell["axes"]),
            environment=cell["environment"],
            device=cell["device"],
            sampling=read_sampling(data["sampling"]),
            die_with_parent=bool(data.get("limits", {}).get("die_with_parent", False)),
            limit=read_limit(data.get("limits", {}).get("seconds")),
            artifacts=data.get("artifacts", "artifacts"),
            thorough=bool(data.get("thorough", False)),
            profile_calls=read_profile(data.get("profile")),
            settings=dict(data.get("settings") or {}),
            waits=bool(data.get("waits", False)),
        )
    except KeyError as missing:
        raise JobError("the job {} has no {}".format(path, missing)) from None
    except (TypeError, ValueError, AttributeError) as error:
        raise JobError("the job {} is malformed: {}".format(path, error)) from None


def read_limit(seconds):
    """Return the time limit of a job as a number, or None. Raises ValueError."""
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds <= 0):
        raise ValueError("the time limit is {!r}: expected a positive number of seconds".format(seconds))
    return seconds


def read_profile(data):
    """Return the number of calls to profile, or None for a job that measures times. Raises KeyError or ValueError."""
    if data is None:
        return None
    calls = data["calls"]
    if not isinstance(calls, int) or calls < 1:
        raise ValueError("the profile's calls are {!r}: expected an integer".format(calls))
    return calls


def read_sampling(data):
    """Return the requested sampling. Raises KeyError, TypeError or ValueError."""
    if data["mode"] == Document.mode:
        if data.get("turns") is not None:
            raise ValueError("the document's protocol can't be interleaved")
        return Document()
    if data["mode"] != TimeBounded.mode:
        raise ValueError("unknown sampling '{}': expected 'time' or 'document'".format(data["mode"]))
    calls, turns = read_count(data, "calls_per_sample"), read_count(data, "turns")
    warmup, measure, sample = (float(data[key]) for key in ("warmup_seconds", "measure_seconds", "sample_seconds"))
    if not (0 <= warmup < float("inf") and 0 < measure < float("inf") and 0 < sample < float("inf")):
        raise ValueError("the sampling's seconds aren't valid durations")
    return TimeBounded(warmup, measure, sample, calls, turns)


def read_count(data, key):
    """Return a whole number above zero, or None if the job leaves it open. Raises ValueError."""
    value = data.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ValueError("{} is {!r}: expected an integer".format(key, value))
    return value
