"""Downloads code from a link to an issue, a gist or a file on GitHub, with `gh` or git."""

import os
import re
import shutil
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote

from harness.files import DOWNLOADS, get_cache_dir, write_atomically
from harness.machine import child_process, git
from harness.machine.uv import get_last_lines
from harness.model.errors import CannotRunHereError, UsageError

_LINK = re.compile(r"https?:/{1,2}[^\s<>()\"'`\]]+")
_PATH_PART = r"[\w.][\w.-]*"

#: The parts of links to code. Colab also shows notebooks of gists and repositories.
_ISSUE = re.compile(rf"https://github\.com/(?P<repository>{_PATH_PART}/{_PATH_PART})/(?:issues|pull)/(?P<number>\d+)")
_GIST = re.compile(
    rf"https://(?:gist\.github\.com|colab\.research\.google\.com/gist)/(?:{_PATH_PART}/)?(?P<id>[0-9a-f]{{6,}})"
)
_FILE = re.compile(
    rf"https://(?:github\.com|colab\.research\.google\.com/github|raw\.githubusercontent\.com)/"
    rf"(?P<repository>{_PATH_PART}/{_PATH_PART})/(?:blob/|raw/)?(?P<revision>(?:refs/\w+/)?{_PATH_PART})/"
    r"(?P<path>[^?#]+\.\w+)"
)

#: Files of a gist that can be run.
_CODE = (".py", ".ipynb", ".md", ".txt")

#: The time limit for a download in seconds.
_SECONDS = 120


def is_link(path: Path) -> bool:
    """Return whether a path is a URL. A path has lost one of the two slashes."""
    return bool(re.match(r"https?:/", str(path)))


def suggest_download(text: str) -> str:
    """Return how to get the code behind a link in a text."""
    links = _LINK.findall(text)
    known_links = [link for link in links if any(pattern.match(link) for pattern in (_ISSUE, _GIST, _FILE))]
    if known_links:
        return f"It has a link. To download the code and run it: harness run {known_links[0]}"
    if not links:
        return "Save the code as a Python file (.py), and pass that file."
    if "colab.research.google.com" in links[0]:
        return f"It has a link: open {links[0]}, select File > Download > Download .ipynb, and pass that notebook."
    return f"It has a link: download the code from {links[0]}, and pass that file."


def fetch(link: Path) -> Path:
    """Download the code behind a link into the user's cache, and return its file.

    Raises UsageError for a link to something else, and CannotRunHereError if the download fails.
    """
    url = re.sub(r":/+", "://", str(link), count=1)
    folder = get_cache_dir() / DOWNLOADS / sha256(url.encode()).hexdigest()[:16]
    advice = f"Check the network, or download the code from {url} and pass that file."
    if match := _ISSUE.match(url):
        if not shutil.which("gh"):
            raise CannotRunHereError(
                f"{url} can't be downloaded: GitHub's command gh isn't installed.",
                "Install gh, or copy the text of the issue into a file such as issue.md, and pass that file.",
            )
        command = ["gh", "issue", "view", match["number"], "--repo", match["repository"]]
        code, output = child_process.run(command, {**os.environ, "GH_PROMPT_DISABLED": "1", "NO_COLOR": "1"}, _SECONDS)
        if code:
            raise CannotRunHereError(f"{url} can't be downloaded: {get_last_lines(output, 3)}", advice)
        path = folder / f"issue-{match['number']}.md"
        write_atomically(path, output)
        return path
    if match := _GIST.match(url):
        address, revision, name = f"https://gist.github.com/{match['id']}.git", "HEAD", ""
    elif match := _FILE.match(url):
        address, revision, name = f"https://github.com/{match['repository']}.git", match["revision"], match["path"]
    else:
        raise UsageError(f"harness can't download {url}.", suggest_download(url))
    snapshot = git.fetch_commit(address, revision, advice)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    snapshot.export(folder)
    paths = [folder / unquote(name)] if name else sorted(path for path in folder.iterdir() if path.suffix in _CODE)
    files = [path for path in paths if path.is_file() and path.resolve().is_relative_to(folder.resolve())]
    if len(files) != 1:
        listed = " ".join(str(path) for path in files)
        raise UsageError(f"{url} has {len(files)} files with code.", f"Pass one of them: {listed}" if files else advice)
    return files[0]
