"""Options of the command line: their kinds, and the parsers and formats of their values, such as `10m`, `3%` and `8g`.

The errors of the functions `read_*` name the option. This module must be fast to import, like request.py.
"""

import math
import os.path
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from harness.model.defaults import MARGIN
from harness.model.environment import Device
from harness.model.errors import UsageError
from harness.model.gpu import BASE_CLOCK
from harness.model.run import Shard
from harness.model.scenario import Suite
from harness.model.texts import format_plain

#: The value of --balance without an earlier run: groups are distributed according to their number of cells.
EVENLY = Path("even")

#: The value of --warmup and --measure with which the pilot determines the length.
AUTO = "auto"

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"b": 1.0, "k": 2.0**10, "m": 2.0**20, "g": 2.0**30, "t": 2.0**40}

#: The smallest memory limit that Docker Engine accepts.
LEAST_MEMORY = 6 * 2**20

#: The keys of the durations that a suite can set.
SuiteLength = Literal["budget", "warmup", "measure"]
SUITE_LENGTHS: tuple[SuiteLength, ...] = get_args(SuiteLength)

_NUMBER = r"(\d+(?:\.\d+)?)"

#: A Python version without an environment, which continues a list such as `tf2.15@py3.9,py3.11`.
_PYTHON = re.compile(r"py3\.\d{1,2}")
#: A comma outside brackets. Brackets contain the extras of a requirement.
_COMMA = re.compile(r",(?![^\[\]]*\])")
_OPERATOR = re.compile(r"[<>=~!]")


class OptionPanel(StrEnum):
    """The headings for options in help, in order."""

    WHAT = "What to measure"
    PRECISION = "How much to measure"
    MACHINE = "This machine"
    GPU = "GPU"
    MACHINES = "Several machines"
    OUTPUT = "Output"


@dataclass(frozen=True, slots=True)
class Option:
    """The command-line option of a field.

    - `flags`: by default `--NAME`; `panel`: the heading in help
    - `metavar`: for help, an example of a value or its kind, such as `10m` or `NAME`
    - `read`: a function that converts the text (for a list or mapping, all texts) to the value. Its second argument is
      the option's name. It raises UsageError
    - `text`: a function that converts a value back to text
    - `least`: the smallest allowed number
    - `shown`: the default in help, if it isn't the text of the default value
    - `hidden`: the option isn't in help. Only commands that harness starts itself have it
    """

    help: str
    flags: Sequence[str] = ()
    read: Callable[[Any, str], Any] | None = None
    text: Callable[[Any], str] = str
    least: int | None = None
    shown: str = ""
    metavar: str = ""
    panel: OptionPanel = OptionPanel.WHAT
    hidden: bool = False


#: Options under the other headings of help.
PrecisionOption = partial(Option, panel=OptionPanel.PRECISION)
MachineOption = partial(Option, panel=OptionPanel.MACHINE)
GpuOption = partial(Option, panel=OptionPanel.GPU)
MachinesOption = partial(Option, panel=OptionPanel.MACHINES)
OutputOption = partial(Option, panel=OptionPanel.OUTPUT)


@dataclass(frozen=True, slots=True)
class FieldOption:
    """The option of a request's field: its name, its type and its flags."""

    name: str
    type: Any
    option: Option

    @property
    def flags(self) -> Sequence[str]:
        """Return the flags, the long form last."""
        return self.option.flags or (f"--{self.name.replace('_', '-')}",)

    @property
    def is_whole_number(self) -> bool:
        """Return whether the values are whole numbers."""
        return self.type is int or int in get_args(self.type)

    def parse(self, value: Any) -> Any:
        """Return the value of the field for the text on the command line, or for its texts. Raises UsageError."""
        if self.option.read:
            return self.option.read(value, self.flags[-1])
        return read_whole(value, self.flags[-1], least=self.option.least or 0) if self.is_whole_number else value

    def words(self, value: Any) -> list[str]:
        """Return the arguments for a value that isn't the default."""
        flag = self.flags[0]
        if value is True:
            return [flag]
        if isinstance(value, Mapping):
            return [word for axis, values in value.items() for word in (flag, f"{axis}={','.join(values)}")]
        values = [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
        return [word for entry in values for word in (flag, self.option.text(entry))]


def split_names(typed: Sequence[str], option: str) -> list[str]:
    """Split texts at commas into names, globs and files: `tf2.12,tf2.13`.

    Requirements can contain commas: `tf2.0,tensorflow==2.0.0,keras==2.3.1` are two environments, and
    `tf2.0+numpy>=1.18,<1.20,tf2.1` are also two. `tf2.15@py3.9,py3.11` are `tf2.15@py3.9` and `tf2.15@py3.11`.
    """
    texts: list[str] = []
    for text in typed:
        parts = [part.strip() for part in _COMMA.split(text)]
        # Path.exists() raises OSError for text that is longer than a file name can be
        if not all(parts) or os.path.exists(text):  # noqa: PTH110
            parts = [text]
        names: list[str] = []
        for part in parts:
            base = names[-1] if names else ""
            if _PYTHON.fullmatch(part) and "@py" in base:
                names.append(f"{base.partition('@')[0]}@{part}")
            elif _OPERATOR.match(part) or (_has_more_requirements(base, text) and not re.match(r"[^<>=~!]+\+", part)):
                names[-1:] = [f"{base},{part}" if base else part]
            else:
                names.append(part)
        texts += names
    return texts


def _has_more_requirements(before: str, text: str) -> bool:
    """Return whether the requirements in the text `before` a comma continue after the comma."""
    is_requirements = _OPERATOR.search(before) or (before.startswith("tf-nightly") and _OPERATOR.search(text))
    return bool(is_requirements) and "+" not in before


def read_whole(text: str, option: str, *, least: int = 0) -> int:
    """Parse a whole number of at least `least` and at most 18 digits, such as `5`. Raises UsageError."""
    if re.fullmatch(r"\d{19,}", text.strip(), re.ASCII):
        raise UsageError(f"Invalid {option} {text!r}: expected a whole number of at most {10**18 - 1}.")
    if not re.fullmatch(r"-?\d{1,18}", text.strip(), re.ASCII) or int(text) < least:
        raise UsageError(
            f"Invalid {option} {text!r}: expected a whole number of at least {least}.",
            f"Example: {option} {max(least, 5)}",
        )
    return int(text)


def read_seconds(text: str, option: str, *, or_none: bool = False) -> float:
    """Parse a duration such as `90s`, `10m` or `1.5h`. 0 is valid only with `or_none`. Raises UsageError."""
    value = _parse_quantity(text, option, _SECONDS, "a length of time such as 90s, 10m or 1h", "{0}s or {0}m")
    if not value and not or_none:
        raise UsageError(f"Invalid {option} {text!r}: expected more than 0.")
    return value


def read_length(text: str, option: str, *, or_none: bool = False) -> float | None:
    """Parse a duration such as `0.5s`, or None for `auto`. Raises UsageError."""
    return None if text == AUTO else read_seconds(text, option, or_none=or_none)


def read_share(text: str, option: str) -> float:
    """Parse a share between 0 and 1, such as `3%`, `2.5 %` or `0.03`, into a number. Raises UsageError."""
    match = re.fullmatch(rf"{_NUMBER}\s*(%?)", text.strip())
    value = float(match[1]) / (100.0 if match[2] else 1.0) if match else 0.0
    if not 0.0 < value < 1.0:
        advice = f"Use {match[1]}%." if match and not match[2] and 1.0 <= value < 100.0 else ""
        raise UsageError(
            f"Invalid {option} {text!r}: expected more than 0% and less than 100%, such as "
            f"{format_share(MARGIN)} or {format_plain(MARGIN)}.",
            advice,
        )
    return value


def read_size(text: str, option: str) -> int:
    """Parse a size of at least LEAST_MEMORY, such as `512m`, `8g` or `8GiB`. Raises UsageError."""
    number_text = re.sub(r"(?i)(?<=[kmgt])i?b$", "", text.strip())
    value = int(_parse_quantity(number_text, option, _BYTES, "a size such as 512m or 8g", "{0}m or {0}g"))
    if value < LEAST_MEMORY:
        raise UsageError(f"Invalid {option} {text!r}: expected at least {LEAST_MEMORY // 2**20}m.")
    return value


def _parse_quantity(text: str, option: str, units: dict[str, float], what: str, example: str) -> float:
    """Parse a number with a unit. Only 0 needs no unit: `--budget 10` could be seconds or minutes."""
    match = re.fullmatch(rf"{_NUMBER}\s*([a-z]*)", text.strip().lower())
    if match and not match[2]:
        if float(match[1]) == 0.0:
            return 0.0
        raise UsageError(f"Invalid {option} {text!r}: the unit is missing.", f"Example: {example.format(match[1])}.")
    value = float(match[1]) * units.get(match[2], math.nan) if match else math.nan
    if not math.isfinite(value):
        raise UsageError(f"Invalid {option} {text!r}: expected {what}.")
    return value


def read_clock(text: str, option: str) -> str:
    """Parse the clock speed to which GPUs are locked: `base`, `1410` or `1410MHz`. Raises UsageError."""
    match = re.fullmatch(r"(?i)(\d{2,5})\s*(?:mhz)?", text.strip())
    if text.strip() == BASE_CLOCK:
        return BASE_CLOCK
    if not match or not int(match[1]):
        raise UsageError(f"Invalid {option} {text!r}: expected a clock speed in MHz, such as 1410, or `{BASE_CLOCK}`.")
    return str(int(match[1]))


def read_devices(typed: Sequence[str], option: str) -> list[Device]:
    """Parse `cpu`, `gpu` or `cpu,gpu`. The first device is the baseline. Raises UsageError."""
    device_names = [name.strip().lower() for text in typed for name in text.split(",")]
    example = f"Example: {option} cpu,gpu compares the GPU with the CPU."
    if not set(device_names) <= set(Device):
        raise UsageError(f"Invalid {option} {','.join(typed)!r}: expected cpu, gpu or both.", example)
    if len(set(device_names)) < len(device_names):
        raise UsageError(f"{option} {','.join(typed)!r} has a device twice.", example)
    return [Device(name) for name in device_names]


def read_shard(text: str, option: str) -> Shard:
    """Parse a shard such as `2/5`, the second of five. Raises UsageError."""
    match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text.strip())
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(
            f"Invalid {option} {text!r}: expected INDEX/COUNT.", f"Example: {option} 2/5 measures part 2 of 5."
        )
    return Shard(int(match[1]), int(match[2]))


def read_on(text: str, option: str) -> str:
    """Parse `ray`, `http://head:8265`, `ray://head:10001` or `ssh://one,user@other:2222`. Raises UsageError."""
    if text != "ray" and not re.fullmatch(r"(https?|ray)://[^\s/]+/?|ssh://[^\s/]+(,(ssh://)?[^\s/]+)*/?", text):
        raise UsageError(
            f"Invalid {option} {text!r}: expected ray, http://HEAD:PORT or ssh://HOST,USER@HOST.",
            f"Example: {option} ssh://one,me@two:2222, or for a Ray cluster the address of its dashboard: "
            f"{option} http://HEAD:8265",
        )
    return text


def read_slots(text: str, option: str) -> str:
    """Parse `auto` or a number of slots. Raises UsageError."""
    if text != AUTO and not (text.isdecimal() and 1 <= int(text) <= 1024):
        raise UsageError(
            f"Invalid {option} {text!r}: expected auto or a whole number from 1 to 1024.", f"Example: {option} 2"
        )
    return text


def read_suite_seconds(suite: Suite, key: SuiteLength) -> float | None:
    """Return a length of time in a suite, in seconds, or None if the suite doesn't set it. Raises UsageError."""
    text = getattr(suite, key)
    return read_seconds(text, f"{key} in the suite {suite.name}:", or_none=key == "warmup") if text else None


def format_share(value: float) -> str:
    """Return a share between 0 and 1 as options accept it: `3%`."""
    return f"{format_plain(value * 100, 6)}%"


def format_seconds(seconds: float) -> str:
    """Return a duration as options accept it: `90s`, `0.2s`."""
    return f"{format_plain(seconds)}s"


def format_length(seconds: float) -> str:
    """Return seconds as text in the largest unit without a fraction: `90s`, `10m`, `0.2s`."""
    return next(
        f"{format_plain(seconds / _SECONDS[unit])}{unit}"
        for unit in "hms"
        if unit == "s" or not seconds % _SECONDS[unit]
    )
