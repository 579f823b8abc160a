"""Masks the parts of a text that identify its machine or its user."""

import getpass
import json
import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_UUID = re.compile(r"\b(GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
#: A PCI address with a domain of four digits, as the kernel writes it, or of eight digits, as NVML does.
_PCI = re.compile(r"\b([0-9a-fA-F]{4}|[0-9a-fA-F]{8}):([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\b")
#: A process in the output of `harness doctor` and in a run's warnings.
_PROCESS = re.compile(r"[^\s,(]+ \(process \d+\)")
_HOME = re.compile(r"/(?:home|Users)/[^/\s\"':,;]+")
#: Names that aren't masked, because many machines and users have them, and they occur in ordinary sentences.
_COMMON = frozenset({"root", "localhost", "user", "harness", "docker", "ubuntu", "gpu", "cpu", "tensorflow"})


class Mask:
    """Replaces UUIDs and PCI addresses of GPUs by numbers, in the order of their occurrence, and names by words.

    `words` maps other whole words to their replacements. By default, these are the folders and user names of this
    machine. A bundle has one mask, so that each GPU has the same name in the whole bundle.
    """

    def __init__(self, words: Mapping[str, str] | None = None) -> None:
        self._words = {word: mask for word, mask in (here() if words is None else words).items() if word}
        self._uuids: dict[str, int] = {}
        self._places: dict[tuple[int, str], int] = {}

    def text(self, text: str) -> str:
        """Return the masked text."""
        # the longest words first, because the project's folder may be in the user's folder
        for word in sorted(self._words, key=len, reverse=True):
            # no part of another word
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _, word=word: self._words[word], text)
        text = _HOME.sub("~", text)
        text = _UUID.sub(lambda match: self._uuid(match[1], match[0].lower()), text)
        text = _PCI.sub(lambda match: self._place(int(match[1], 16), match[2].lower()), text)
        return _PROCESS.sub("program (process 1)", text)

    def value(self, value: Any) -> Any:
        """Return a JSON value with masked texts. Keys and process ids don't change."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self.value(element) for key, element in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(element) for element in value]
        return value

    def file(self, path: Path) -> str:
        """Return the masked contents of a file. In a JSON file, only texts are masked, so that it stays valid."""
        text = path.read_text(encoding="utf-8", errors="replace")
        masks: Mapping[str, Callable[[str], str]] = {
            ".json": lambda whole: json.dumps(self.value(json.loads(whole)), indent=2, ensure_ascii=False) + "\n",
            ".jsonl": lambda lines: "".join(
                json.dumps(self.value(json.loads(line)), ensure_ascii=False) + "\n" for line in lines.splitlines()
            ),
        }
        try:
            return masks.get(path.suffix, self.text)(text)
        except ValueError:  # a stopped command may have left half a line
            return self.text(text)

    def _uuid(self, kind: str, uuid: str) -> str:
        return f"{kind}-00000000-0000-0000-0000-{self._uuids.setdefault(uuid, len(self._uuids)):012x}"

    def _place(self, domain: int, place: str) -> str:
        return f"0000:{self._places.setdefault((domain, place), len(self._places) + 1):02x}:00.0"


def here() -> dict[str, str]:
    """Return the folder and user names of this machine, each with its replacement."""
    name = socket.gethostname()
    names = {name: "host", name.partition(".")[0]: "host", getpass.getuser(): "user"}
    folders = {str(Path.home()): "~", str(Path(__file__).resolve().parents[2]): "PROJECT"}
    # a short name doesn't identify anybody, and may be any word
    kept = {word: mask for word, mask in names.items() if len(word) > 2 and word not in _COMMON}
    return {**kept, **{folder: mask for folder, mask in folders.items() if folder != "/"}}
