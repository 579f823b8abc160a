"""The names of upstream issues: `T#33487` is issue 33487 of tensorflow/tensorflow."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from harness.model.errors import UsageError
from harness.model.texts import LISTED

#: The abbreviations of repositories, which precede the `#` in an issue's name.
REPOSITORIES = {"T": "tensorflow/tensorflow", "K": "keras-team/keras", "TK": "keras-team/tf-keras"}

_LETTERS = {repository: letters for letters, repository in REPOSITORIES.items()}
_REPOSITORY, _NUMBER = r"[a-z0-9][\w-]*/[a-z0-9][\w.-]*", r"0*([1-9][0-9]{0,8})"
_FLAGS = re.IGNORECASE | re.ASCII
_URL = re.compile(rf"(?:https?://)?(?:www\.)?github\.com/({_REPOSITORY})/(?:issues|pull)/{_NUMBER}(?:[/?#].*)?", _FLAGS)
#: The repositories by abbreviation, and by name without the owner: `tensorflow#40261`.
_BY_NAME = {**REPOSITORIES, **{repository.partition("/")[2].upper(): repository for repository in _LETTERS}}
_REFERENCE = re.compile(rf"(?:({'|'.join(_BY_NAME)}|{_REPOSITORY})?#)?{_NUMBER}", _FLAGS)

HOW_TO_WRITE = (
    "Use T#33487 for tensorflow/tensorflow, K#13118 for keras-team/keras, TK#238 for keras-team/tf-keras, or the "
    "URL of an issue on GitHub."
)


@dataclass(frozen=True, slots=True, order=True)
class Issue:
    """An issue or a pull request of a repository on GitHub (`owner/name`)."""

    repository: str
    number: int

    @property
    def short(self) -> str:
        """The short name, such as `T#33487`. Other repositories have their full name: `tensorflow/addons#2273`."""
        return f"{_LETTERS.get(self.repository, self.repository)}#{self.number}"

    @property
    def url(self) -> str:
        """The URL of the issue."""
        return f"https://github.com/{self.repository}/issues/{self.number}"

    def __str__(self) -> str:
        return self.short


def parse(text: str) -> Issue:
    """Return the issue with a name, a number (in tensorflow/tensorflow) or a URL.

    Raises UsageError, with the expected format, for any other text.
    """
    match = _URL.fullmatch(text.strip()) or _REFERENCE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a valid issue name.", HOW_TO_WRITE)
    repository = _BY_NAME.get((match[1] or "T").upper(), match[1])
    # names of repositories are case-insensitive on GitHub
    return Issue(repository.lower() if repository.lower() in _LETTERS else repository, int(match[2]))


def make_unknown_error(issue: Issue, known: Iterable[Issue]) -> UsageError:
    """Return the error for an issue that no scenario has a claim about. `known` contains the issues with claims."""
    issues = sorted(set(known), key=lambda other: (other.repository, other.number))
    shorts = [other.short for other in issues]
    listing = f"Issues with claims: {', '.join(shorts) or 'none'}."
    if len(shorts) > LISTED:
        listing = f"To list the {len(shorts)} issues with claims, run `harness repro list`."
    return UsageError(f"No scenario checks a claim of {issue.short}.", f"{listing} {HOW_TO_WRITE}")
