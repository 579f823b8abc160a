"""`harness clean`."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from harness.backends import registry
from harness.cli import completion
from harness.machine.lock import hold_machine, hold_run_lock
from harness.model.errors import CannotRunHereError
from harness.model.texts import counted, joined
from harness.project import Project
from harness.store.folder import RunFolder


def clean(
    run: Annotated[str, completion.RunFolderArgument(help="A run's id or folder. Default: every run.")] = "",
    caches: Annotated[
        bool, typer.Option("--caches", help="Also remove the cached GPU code that drivers compiled during runs.")
    ] = False,
) -> None:
    """Remove leftovers of a killed run from this machine.

    Leftovers are containers, temporary folders and GPU clock locks. Runs that are in progress aren't touched.
    """
    from harness.machine.gpu import clocks  # noqa: PLC0415 - not needed for --help

    removals, kept_caches, removed_count = [], [], 0
    folder = Path(run)
    run_id = folder.resolve().name if run else ""
    # a run in progress holds its lock or the machine's lock, so its files aren't removed
    with hold_run_lock(run_id) if run_id else hold_machine():
        for backend in registry.open_all(Project.find().root):
            try:
                count = backend.clean(run_id)
                removed_count += count
                removals.append(f"{count} {backend.leftovers}")
                if caches and backend.caches():
                    removals.append(f"{backend.clean_caches()} caches of compiled GPU code")
                kept_caches += backend.caches()
            except CannotRunHereError as error:
                removals.append(f"no {backend.leftovers} ({error.message.splitlines()[0]})")
        typer.echo(f"Removed {joined(removals)}.")
        if run and not (removed_count or folder.exists() or Path("results", run_id).exists()):
            typer.echo(f"Nothing of a run {run!r} was found on this machine.")
        with suppress(PermissionError):  # somebody else's folder
            # the folder of a run that was killed before its first launch
            if run and RunFolder.is_unbegun(folder) and RunFolder(folder).discard():
                typer.echo(f"Removed {folder}: its run was killed before it launched anything.")
        unlocked_count = 0 if run else clocks.unlock()
    if unlocked_count:
        typer.echo(f"Unlocked the clocks of {counted(unlocked_count, 'GPU')}.")
    if kept_caches:
        typer.echo(
            f"Kept {counted(len(kept_caches), 'cache')} of compiled GPU code (such as {kept_caches[0]}). To remove "
            "compiled GPU code too, pass --caches."
        )
