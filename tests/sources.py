"""Repositories of a small package, which builds itself: nothing is fetched for that."""

from pathlib import Path

from tests.commands import git

_PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "mine"
version = "1.0"
"""

_BACKEND = """\
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    if open("mine.py").read().startswith("broken"):
        raise SystemExit("the last line of the build")
    name = "mine-1.0-py3-none-any.whl"
    info = "mine-1.0.dist-info"
    files = {
        "mine.py": open("mine.py").read(),
        info + "/METADATA": "Metadata-Version: 2.1\\nName: mine\\nVersion: 1.0\\n" + open("requires.txt").read(),
        info + "/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    record = "".join("%s,,\\n" % file for file in [*files, info + "/RECORD"])
    with zipfile.ZipFile(folder + "/" + name, "w") as wheel:
        for file, text in {**files, info + "/RECORD": record}.items():
            wheel.writestr(zipfile.ZipInfo(file), text)
    return name
"""


class SourceRepository:
    """A git repository of the package `mine`, whose module has the number `calls`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        (folder / "pyproject.toml").write_text(_PYPROJECT)
        (folder / "backend.py").write_text(_BACKEND)
        (folder / "requires.txt").write_text("")

    def git(self, *arguments: str) -> str:
        """Run git in the repository, and return its output."""
        return git(self.folder, *arguments)

    def commit(self, text: str, message: str = "a change") -> str:
        """Write the module, commit all files, and return the commit."""
        (self.folder / "mine.py").write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")
