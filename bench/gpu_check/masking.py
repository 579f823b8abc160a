"""Masks the parts of a text that identify its machine or its user."""

import getpass
import ipaddress
import json
import re
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.machine.identity import load_machine
from harness.model.errors import HarnessError

_UUID = re.compile(r"\b(GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
#: A PCI address with a domain of four digits, as the kernel writes it, or of eight digits, as NVML does.
_PCI = re.compile(r"\b([0-9a-fA-F]{4}|[0-9a-fA-F]{8}):([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\b")
#: A process in the output of `harness doctor` and in a run's warnings.
_PROCESS = re.compile(r"[^\s,(]+ \(process \d+\)")
_HOME = re.compile(r"/(?:home|Users)/[^/\s\"':,;]+")
_BARE_UUID = re.compile(r"(?<![\w-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![\w-])")
_SERIAL = re.compile(r"(?i)\b(serial(?:[ _-]?(?:number|no\.?))?[\"']?\s*[:=|]\s*[\"']?)[\w-]+")
#: An engine's address, and a mail address. The domain ends with letters, in contrast to `tf2.15@py3.9`.
_ENGINE = re.compile(r"\b(tcp|ssh)://[^\s\"'<>|,;)]+")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b")
#: A text that may be an IP address or a hardware address, and the words before a version of four numbers.
_ADDRESS = re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)|[0-9a-fA-F:]{4,}(?:\.\d+){0,3}(?![\w:]))")
_HARDWARE_ADDRESS = re.compile(r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")
_VERSION = re.compile(r"(?i)(?:nvidia|cudnn|cublas|cuda|version)[\w.-]*[\"'\s:=|<>~]{1,8}\Z")
#: The first two names of a path that isn't in a folder of the system or of a container.
_FOLDER = re.compile(
    r"(?<![\w./~:<#*-])/(?!(?:bin|boot|dev|etc|harness|lib\w*|nix|opt|proc|root|run|sbin|sys|tmp|usr|var)\b)"
    r"[^/\s\"':,;|<>()]+/[^/\s\"':,;|<>()]+"
)
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

    def text(self, text: str, key: str = "") -> str:
        """Return the masked text. `key` is its key in a JSON object, such as the package of a version."""
        if text and "serial" in key.lower():
            return "0"
        # the longest words first, because the project's folder may be in the user's folder
        for word in sorted(self._words, key=len, reverse=True):
            # no part of another word
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _, word=word: self._words[word], text)
        text = _HOME.sub("~", text)
        text = _UUID.sub(lambda match: self._uuid(match[1], match[0].lower()), text)
        text = _PCI.sub(lambda match: self._place(int(match[1], 16), match[2].lower()), text)
        text = _BARE_UUID.sub(lambda match: self._uuid("GPU", f"gpu-{match[0].lower()}")[4:], text)
        text = _SERIAL.sub(r"\g<1>0", text)
        text = _ENGINE.sub(r"\1://host", _MAIL.sub("user@host", _PROCESS.sub("program (process 1)", text)))
        text = _ADDRESS.sub(lambda match: _mask_address(match, key), text)
        return _FOLDER.sub("/FOLDER", text)

    def value(self, value: Any, key: str = "") -> Any:
        """Return a JSON value with masked texts. Keys and process ids don't change."""
        if isinstance(value, str):
            return self.text(value, key)
        if isinstance(value, Mapping):
            return {name: self.value(element, name) for name, element in value.items()}
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


def _mask_address(match: re.Match[str], key: str) -> str:
    """Return the replacement of an IP or hardware address. A version of four numbers stays, as in `cuDNN 8.9.2.26`."""
    before = f"{key} {match.string[max(0, match.start() - 60) : match.start()]}"
    if _HARDWARE_ADDRESS.fullmatch(match[0]):
        return "00:00:00:00:00:00"
    try:
        address = ipaddress.ip_address(match[0])
    except ValueError:
        return match[0]
    return match[0] if address.is_loopback or _VERSION.search(before) else "ADDRESS"


def here() -> dict[str, str]:
    """Return the folders, the user name, and the names and the id of this machine, each with its replacement."""
    name = socket.gethostname()
    names = {name: "host", name.partition(".")[0]: "host", getpass.getuser(): "user"}
    with suppress(HarnessError):
        machine = load_machine()
        names |= {machine.id: "machine-id", machine.name: "machine"}
    folders = {str(Path.home()): "~", str(Path(__file__).resolve().parents[2]): "PROJECT"}
    # a short name doesn't identify anybody, and may be any word
    kept = {word: mask for word, mask in names.items() if len(word) > 2 and word not in _COMMON}
    return {**kept, **{folder: mask for folder, mask in folders.items() if folder != "/"}}
