"""`harness profile`."""

import typer

from harness.cli import options
from harness.cli.dryrun import show_plan
from harness.session.request import ProfileRequest


@options.of(ProfileRequest, configured=True)
def profile(request: ProfileRequest, *, wait: options.Wait = False, dry_run: options.DryRun = False) -> None:
    """Profile scenarios: show which functions take the time.

    The first call and later calls have separate profiles.
    """
    if dry_run:
        raise typer.Exit(show_plan(request))
    from harness.cli import running  # noqa: PLC0415 - as in `matrix`

    raise typer.Exit(running.run(request, wait=wait))
