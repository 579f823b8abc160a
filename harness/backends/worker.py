"""What both backends hand to the worker: its files, its command line, its environment variables."""

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from harness.model.errors import UsageError
from harness.model.job import Job

#: The folder, beside the job, that artifacts are taken from.
ARTIFACTS = "artifacts"

#: Arguments after the interpreter. Unbuffered, so that what a killed process printed is not lost.
ARGUMENTS = ("-u", "-m", "kit", "job.json")

#: TensorFlow's chatter is silenced below errors; nothing is compiled to disk in a folder that is thrown away.
ENVIRON: Mapping[str, str] = {"TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONDONTWRITEBYTECODE": "1"}


def files(job: Job, *, die_with_parent: bool) -> dict[str, bytes]:
    """Everything that goes into the folder where the worker starts, by relative name."""
    document = job.document(die_with_parent=die_with_parent, artifacts=ARTIFACTS)
    contents = {"job.json": json.dumps(document).encode()} | dict(job.files)
    for name in contents:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise UsageError(f"A scenario's file must lie in its own folder: {name!r}")
    return contents


def safe_name(name: str) -> str:
    """A stranger's file name as a relative path that can do no harm, or empty where nothing is left of it."""
    parts = (re.sub(r"[^A-Za-z0-9._+-]", "_", part)[:100].lstrip(".") for part in PurePosixPath(name).parts)
    return "/".join([part for part in parts if part.strip("_")][:8])
