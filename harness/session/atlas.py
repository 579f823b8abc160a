"""Copies of finished runs in a clone of harness, for the pages about what is slow today (the observatory).

A copy has what a report needs: run.json, signed as before, and the launches. The paths of this machine are left out.
"""

import io
import re
import tarfile
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import package_data
from harness.files import make_folder, write_atomically
from harness.model.errors import UsageError
from harness.model.run import Run
from harness.store.folder import RunFolder

#: The folder of the copies, with a folder for each machine.
MACHINES = package_data.FOLDER / "bench" / "observatory" / "machines"

_FILES = ("run.json", "launches.jsonl")


def add(path: Path, machines: Path = MACHINES) -> Path:
    """Copy a run to the folder of its machine, and return the new file. Raises UsageError for an unsuitable run."""
    if not machines.parent.is_dir():
        raise UsageError(f"{machines.parent} doesn't exist.", "Call harness in a clone, because the file goes there.")
    folder = RunFolder.open(path)
    run = folder.read_run()
    if not folder.is_from_here():
        raise UsageError(
            f"{path / 'run.json'} isn't signed by you on this machine, or was changed.",
            "Add a run on the machine that measured it.",
        )
    if run.unfinished or folder.is_torn or not folder.read_launches(run):
        raise UsageError(f"{path} isn't finished.", f"To finish it: harness matrix --resume {path}")
    if run.machine is None or run.plan.profile_calls:
        raise UsageError(f"{path} has no results of one machine.", "Add runs of `harness matrix` or `harness repro`.")
    target = machines / re.sub(r"[^A-Za-z0-9._-]+", "-", run.machine.shown).lstrip(".") / f"{run.id}.tar.xz"
    make_folder(target.parent)
    write_atomically(target, _pack(path, run))
    return target


def _pack(path: Path, run: Run) -> bytes:
    scenarios = [replace(one, path=Path(*Path(one.path).parts[-2:])) for one in run.scenarios]
    command = [Path(word).name if word.startswith("/") else word for word in run.command]
    packed = io.BytesIO()
    with TemporaryDirectory() as temporary, tarfile.open(fileobj=packed, mode="w:xz", preset=9) as archive:
        copy = RunFolder(Path(temporary))
        copy.write_run(replace(run, scenarios=scenarios, command=command, folder=""), signed=True)
        for name in _FILES:
            data = ((copy.path if name == "run.json" else path) / name).read_bytes()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()
