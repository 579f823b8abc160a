"""`harness --version`: what an issue about the harness begins with. Nothing is connected to."""

import typer


def show(asked: bool) -> None:
    """Print the version and what matters of this machine, and end."""
    if not asked:
        return
    from harness import __version__, shipped
    from harness.machine.host import facts

    here = facts()
    where = "installed" if shipped.IS_INSTALLED else "a checkout"
    typer.echo(f"harness {__version__} ({where}: {shipped.FOLDER})")
    typer.echo(f"Python {here['harness_python']}, {here['kernel']}, {here['system']}")
    typer.echo(f"{here['cpu']}; CPUs: {here['cores']}; memory: {here['memory_bytes'] / 1e9:.0f} GB")
    raise typer.Exit
