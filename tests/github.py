"""A fake of GitHub's command `gh`, with the issues of one repository in a file.

`python tests/github.py FILE issue list …` does what `gh issue list …` does.
"""

import argparse
import json
import os
import shutil
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

TOKEN, REPOSITORY = "a-token", "someone/fork"

#: The environment of a job that uses `gh`.
ENVIRON = {"GH_TOKEN": TOKEN, "GH_REPO": REPOSITORY}


class RefusedError(Exception):
    """An error of `gh`, with its text on standard error."""


class Repository:
    """The issues of a repository: `issues` in the words of gh, and `writes`, one line per command that changed some."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.issues: list[dict[str, Any]] = []
        self.writes: list[str] = []
        self.labels: list[str] = []
        self.comments: list[str] = []
        #: Open pull requests, and their comments: [id, author, text].
        self.pulls: list[dict[str, Any]] = []
        self.talk: list[list[Any]] = []
        #: The states of the jobs at each look; the last one stays.
        self.states: list[dict[str, str]] = [{}]
        if path.exists():
            vars(self).update(json.loads(path.read_text()))

    def load(self) -> "Repository":
        """Return the repository as it is now: another process may have changed it."""
        return Repository(self._path)

    def save(self) -> None:
        """Write the file."""
        self._path.write_text(json.dumps({key: value for key, value in vars(self).items() if key != "_path"}))

    def install(self, folder: Path) -> None:
        """Put a command `gh` into a folder that is on the PATH."""
        command = folder / "gh"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" "{self._path}" "$@"\n')
        command.chmod(0o755)

    def add(self, **values: Any) -> None:
        """Add an issue."""
        defaults = {"number": len(self.issues) + 1, "title": "", "body": "", "state": "OPEN", "stateReason": ""}
        self.issues.append({**defaults, "closedAt": None, "labels": [], **values})

    def close(self, number: int, when: str, reason: str = "COMPLETED") -> None:
        """Close an issue, as a person does."""
        self.issues[number - 1] |= {"state": "CLOSED", "closedAt": when, "stateReason": reason}

    def gh(self, *words: str, body: str | None = None, check: bool = True) -> str:
        """Return what `gh` prints. Raises RefusedError if `check` is true and `gh` would fail."""
        parser = argparse.ArgumentParser()
        for name in (
            "--method",
            "--input",
            "--title",
            "--body-file",
            "--state",
            "--json",
            "--comment",
            "--limit",
            "--jq",
            "--pattern",
            "--dir",
        ):
            parser.add_argument(name)
        parser.add_argument("--label", action="append", default=[])
        parser.add_argument("--paginate", action="store_true")
        parser.add_argument("words", nargs="+")
        options = parser.parse_intermixed_args(words)
        try:
            return self._download(options) if options.dir else self._done(options, body)
        except RefusedError:
            if check:
                raise
            return ""

    def _done(self, options: argparse.Namespace, body: str | None) -> str:
        command, arguments = " ".join(options.words[:2]), options.words[2:]
        if options.words[0] in ("pr", "api"):
            return self._looked_up(options, body)
        if command == "issue list":
            assert options.state == "all"
            listed = [issue for issue in self.issues if {*options.label} <= {*issue["labels"]}][: int(options.limit)]
            return json.dumps([{field: entry[field] for field in options.json.split(",")} for entry in listed])
        if command == "label create":
            if arguments[0] in self.labels:
                raise RefusedError(f"label with name {arguments[0]!r} already exists")
            self.labels.append(arguments[0])
            return ""
        if not {*options.label} <= {*self.labels}:
            raise RefusedError("could not add label")
        if body is not None and (options.body_file != "-" or len(body) > 65536):
            raise RefusedError("body is too long")
        self.writes.append(" ".join([command, *arguments]))
        if command == "run cancel":
            return ""
        if command == "issue create":
            self.add(title=options.title, body=body, labels=options.label)
        elif command == "issue edit":
            self.issues[int(arguments[0]) - 1] |= {"title": options.title, "body": body}
        elif command == "issue reopen":
            self.issues[int(arguments[0]) - 1] |= {"state": "OPEN", "closedAt": None, "stateReason": "REOPENED"}
            self.comments.append(options.comment)
        elif command == "issue close":
            self.close(int(arguments[0]), "2026-11-30T12:00:00Z")
            self.comments.append(options.comment)
        else:
            raise AssertionError(f"no stand-in for gh {command}")
        return f"https://github.com/{REPOSITORY}/issues/{arguments[0] if arguments else len(self.issues)}"

    def _download(self, options: argparse.Namespace) -> str:
        """Copy artifacts, each into a folder of its name."""
        paths = [path for path in Path(os.environ["ARTIFACTS"]).iterdir() if fnmatchcase(path.name, options.pattern)]
        if not paths:
            raise RefusedError("no artifact matches any of the names or patterns provided")
        for path in paths:
            shutil.copytree(path, Path(options.dir) / path.name)
        return ""

    def _looked_up(self, options: argparse.Namespace, body: str | None) -> str:
        if options.words[0] == "pr":
            return json.dumps(self.pulls)
        if "/comments" in options.words[1]:
            return self._comments(options, body)
        assert "/jobs" in options.words[1]
        states = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return "\n".join(json.dumps([f"Night / {name}", state]) for name, state in states.items())

    def _comments(self, options: argparse.Namespace, body: str | None) -> str:
        path = options.words[1].removeprefix(f"repos/{REPOSITORY}/issues/")
        if not options.method:
            return "\n".join(map(json.dumps, self.talk))
        assert options.input == "-"
        assert body
        self.writes.append(f"{options.method} {path}")
        if options.method == "PATCH":
            self.talk = [[identifier, who, json.loads(body)["body"] if f"comments/{identifier}" == path else text]
                         for identifier, who, text in self.talk]  # fmt: skip
        else:
            self.talk.append([len(self.talk) + 1, "github-actions[bot]", json.loads(body)["body"]])
        return ""


def main() -> None:
    """Do one command."""
    if any(os.environ.get(name) != value for name, value in ENVIRON.items()):
        sys.exit("gh: to use GitHub CLI in a GitHub Actions workflow, set the GH_TOKEN environment variable")
    repository = Repository(Path(sys.argv[1]))
    body = sys.stdin.read() if {"--body-file", "--input"} & {*sys.argv} else None
    try:
        print(repository.gh(*sys.argv[2:], body=body))
    except RefusedError as error:
        sys.exit(f"gh: {error}")
    repository.save()


if __name__ == "__main__":
    main()
