"""`make examples`: generate the reports in docs/examples from the launches that are stored next to them.

`make examples ARGS="NAME results/RUN"` first stores the launches of another run.
"""

import json
import re
import shutil
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import session
from harness.report.blocks import Drawing, walk_blocks
from harness.upstream import bundle
from harness.upstream.bundle_subject import subject

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
LAUNCHES = "launches.tar.xz"
#: The files in a run's folder from which reports are generated.
RUN = "run.json"
STORED = (RUN, "launches.jsonl", "artifacts")
#: The generated files that an example contains. A page with every launch is too large for the repository.
KEPT = re.compile(r"(report|details|profile)\.md|charts/.+\.svg")
#: The style of a drawing in a separate file. In a report, the page has it.
ALONE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="1200"',
    "<style>svg { background: #fff; font-family: ui-monospace, monospace; } rect { fill: #cfe0f3; } "
    "rect.same { fill: #e2e5e8; } rect.more1 { fill: #fbdccb; } rect.more2 { fill: #f7b797; } "
    "rect.more3 { fill: #f0946a; } rect.less1 { fill: #d3e6f5; } rect.less2 { fill: #a6cdeb; } "
    "rect.less3 { fill: #79b3df; } text { fill: #16202b; } @media (prefers-color-scheme: dark) { "
    "svg { background: #12161b; } rect.same { fill: #3a4149; } rect.more1 { fill: #5b3a2a; } "
    "rect.more2 { fill: #7f4023; } rect.more3 { fill: #a34a1c; } rect.less1 { fill: #25415a; } "
    "rect.less2 { fill: #235278; } rect.less3 { fill: #1f6396; } text { fill: #f0f5fa; } }</style>",
)


def find_examples() -> list[Path]:
    """Return the folders of the examples whose launches are stored."""
    return sorted(path.parent for path in EXAMPLES.glob(f"*/{LAUNCHES}"))


def store(name: str, run: Path) -> None:
    """Store the launches of a run's folder as the example `name`.

    The raw profiles and the path of the project on the measuring machine are left out.
    """
    folder = EXAMPLES / name
    folder.mkdir(exist_ok=True)
    with TemporaryDirectory() as temporary, tarfile.open(folder / LAUNCHES, "w:xz", preset=9) as archive:
        for file in STORED:
            if file == RUN:
                path = Path(temporary) / RUN
                path.write_bytes(read_without_paths(run))
                archive.add(path, RUN, filter=_plain)
            elif (run / file).exists():
                archive.add(run / file, file, filter=_plain)


def read_without_paths(run: Path) -> bytes:
    """Return run.json of a run's folder without the paths of the measuring machine."""
    document = json.loads((run / RUN).read_text())
    for scenario in document["scenarios"]:
        scenario["path"] = "/".join(Path(scenario["path"]).parts[-2:])
    document["command"] = [_shorten(word) for word in document["command"]]
    if document.get("folder"):
        document["folder"] = _shorten(document["folder"])
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def _shorten(word: str) -> str:
    """Return a word of a command, or only the last part of an absolute path."""
    return Path(word).name if word.startswith("/") else word


def generate(example: Path) -> dict[str, str]:
    """Generate the files of the example from its stored launches, and return their texts by name."""
    with TemporaryDirectory() as folder:
        with tarfile.open(example / LAUNCHES) as archive:
            archive.extractall(folder, filter="data")
        written = session.report(Path(folder))
        kept = sorted(path for path in Path(folder).rglob("*") if KEPT.fullmatch(str(path.relative_to(folder))))
        texts = {str(path.relative_to(folder)): path.read_text() for path in kept}
        results = session.read(Path(folder))
        # without this hash, a bundle has today's file of the scenario, in which only texts differ from the measured one
        results.run = replace(results.run, own={})
        pasted = bundle.files(results, Path(folder), subject(results)) if results.claims else {}
        texts |= {f"bundle/{name}": text for name, text in pasted.items() if name != RUN}
        drawings = [
            block for section in written.sections for block in walk_blocks(section.blocks) if _is_drawing(block)
        ]
    return {**texts, **dict(_alone(drawings))}


def write(example: Path) -> None:
    """Replace the generated files of the example."""
    for made_before in ("charts", "bundle"):
        shutil.rmtree(example / made_before, ignore_errors=True)
    for path in [*example.glob("*.md"), *example.glob("*.svg")]:
        path.unlink()
    for name, text in generate(example).items():
        path = example / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Return a file without its owner and its time, which aren't part of the run; None for a raw profile."""
    if member.name.endswith(".pstats"):
        return None
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def _is_drawing(block: object) -> bool:
    return isinstance(block, Drawing)


def _alone(drawings: list[Drawing]) -> Iterator[tuple[str, str]]:
    """Yield a file with the flame graph of each cell's later calls. First calls are only on the page."""
    for drawing in drawings:
        if title := re.search(r"<title>([^:<]+), steady:", drawing.svg):
            opened, rest = drawing.svg.split(">", 1)
            name = re.sub(r"[^a-z0-9.]+", "-", title[1].lower())
            yield f"flame-{name}.svg", f"{opened.replace('<svg', ALONE[0], 1)}>{ALONE[1]}{rest}\n"


def main(arguments: list[str]) -> None:
    """Store the launches of the named run, if any, and generate all examples."""
    if arguments:
        name, run = arguments
        store(name, Path(run))
    for example in find_examples():
        write(example)
        print(f"{example.relative_to(EXAMPLES.parent.parent)}: made from {(example / LAUNCHES).stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
