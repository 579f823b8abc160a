"""Golden files: `__snapshots__/TEST_FILE/TEST.SUFFIX` for each assertion, which a reviewer reads as a reader would."""

from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

EXTENSIONS = {
    suffix: type(
        f"{suffix.title()}File",
        (SingleFileSnapshotExtension,),
        {"file_extension": suffix, "_write_mode": WriteMode.TEXT},
    )
    for suffix in ("html", "json", "md")
}


def use_files(snapshot: SnapshotAssertion, suffix: str) -> SnapshotAssertion:
    """Return what equals the golden file of the test with this suffix. `make golden` writes the files."""
    return snapshot.use_extension(EXTENSIONS[suffix])
