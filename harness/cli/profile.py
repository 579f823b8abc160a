"""`harness profile`."""

import typer

from harness.cli import options
from harness.session.request import ProfileRequest


@options.of(ProfileRequest)
def profile(request: ProfileRequest, *, wait: options.Wait = False, dry_run: options.DryRun = False) -> None:
    """Profile scenarios over environments, the first call and later ones separately, and report where the time goes."""
    if dry_run:
        from harness.cli.dryrun import show_plan

        raise typer.Exit(show_plan(request))
    from harness.cli import running

    raise typer.Exit(running.run(request, wait=wait))
