"""`harness ask`."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.messages import tell, tell_json
from harness.model.errors import NothingSelectedError

if TYPE_CHECKING:
    from harness.upstream.stored import StoredEntry

#: The largest number of answers.
_MOST = 5


def ask(
    words: Annotated[
        list[str], typer.Argument(metavar="WORD...", help="Words of a question, such as: predict slower 2.16.")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print the answers as JSON.")] = False,
) -> None:
    """Search the stored results, without a measurement.

    It searches claims of upstream issues, examples, scenarios and releases.
    """
    from harness.upstream import stored  # noqa: PLC0415 - not needed for --help

    question = " ".join(words)
    entries = stored.find_entries(stored.load_index().entries, question)[:_MOST]
    if not entries:
        raise NothingSelectedError(
            f"No stored result matches {question!r}.", "To measure your own code: harness run FILE -e tf2.15,tf2.16"
        )
    if json:
        tell_json([asdict(entry) for entry in entries])
    else:
        tell("\n".join(line for entry in entries for line in _list_lines(entry)))


def _list_lines(entry: "StoredEntry") -> Iterator[str]:
    yield f"{entry.name}: {entry.title}"
    if entry.result:
        yield f"  {entry.result}"
    if entry.machine:
        yield f"  measured {entry.date}, {entry.machine.partition(' (')[0]}; again: {entry.command}"
    else:
        yield f"  to measure: {entry.command}"
