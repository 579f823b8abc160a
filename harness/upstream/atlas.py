"""Copies of runs in a clone of harness, for its pages about what is slow today (the observatory)."""

import io
import json
import re
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import package_data
from harness.files import make_folder, write_atomically
from harness.model.errors import UsageError
from harness.model.run import Run
from harness.store import codec
from harness.store.folder import RunFolder
from harness.upstream.bundle import remove_paths

#: The folder of the copies, with a folder for each machine.
MACHINES = package_data.FOLDER / "bench" / "observatory" / "machines"


def add(path: Path, machines: Path = MACHINES) -> Path:
    """Copy a run to the folder of its machine, and return the new file. Raises UsageError for an unsuitable run.

    The copy has run.json, signed again, and the launches. The paths and the home folder of this machine are left out.
    """
    if not machines.parent.is_dir():
        raise UsageError(f"{machines.parent} doesn't exist.", "Call harness in a clone, because the file goes there.")
    folder = RunFolder.open(path)
    run = folder.read_run()
    if not folder.is_from_here():
        raise UsageError(
            f"{path / 'run.json'} isn't signed by you on this machine, or was changed.",
            "Add a run on the machine that measured it.",
        )
    launches = folder.read_launches(run)
    if run.unfinished or folder.is_torn or not launches:
        raise UsageError(f"{path} isn't finished.", f"To finish it: harness matrix --resume {path}")
    if run.machine is None or run.plan.profile_calls:
        raise UsageError(f"{path} has no results of one machine.", "Add runs of `harness matrix` or `harness repro`.")
    target = machines / re.sub(r"[^A-Za-z0-9_-]+", "-", run.machine.shown) / f"{run.id}.tar.xz"
    packed = io.BytesIO()
    with TemporaryDirectory() as temporary, tarfile.open(fileobj=packed, mode="w:xz", preset=9) as archive:
        copy = RunFolder(Path(temporary))
        copy.write_run(codec.load(Run, _clean(codec.dump(run)), path), signed=True)
        lines = [_clean(codec.dump(launch)) + b"\n" for launch in launches]
        files = {"run.json": (copy.path / "run.json").read_bytes(), "launches.jsonl": b"".join(lines)}
        for name, data in files.items():
            member = tarfile.TarInfo(name)  # without the owner
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    make_folder(target.parent)
    write_atomically(target, packed.getvalue())
    return target


def _clean(document: bytes) -> bytes:
    home = str(Path.home())
    return json.dumps(remove_paths(json.loads(document), lambda text: text.replace(home, "~"))).encode()
