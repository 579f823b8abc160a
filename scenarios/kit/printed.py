"""Reads the output of a script: the text that a terminal would show, and the numbers in it with their units."""

import re
from bisect import bisect_right

# Control characters and escape sequences. Text between them is written unchanged; unknown sequences have no effect.
TOKEN = re.compile(
    "\x1b\\[(?P<parameters>[0-?]*)[ -/]*(?P<command>[@-~])"
    "|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\x1b[@-_]?"
    "|(?P<control>[\r\n]|\b+)|(?P<text>[^\x1b\r\n\b]+)"
)

# The last column to which the cursor can move, because a script can request any column.
COLUMNS = 4096

NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")

# Seconds per unit. Unicode has two characters for µ.
UNITS = {
    1e-9: ("ns", "nsec", "nsecs", "nanosecond", "nanoseconds"),
    1e-6: ("us", "\u00b5s", "\u03bcs", "usec", "usecs", "microsecond", "microseconds"),
    1e-3: ("ms", "msec", "msecs", "millisecond", "milliseconds"),
    1.0: ("s", "sec", "secs", "second", "seconds"),
    60.0: ("min", "mins", "minute", "minutes"),
    3600.0: ("h", "hour", "hours"),
}
SECONDS = {name: seconds for seconds, names in UNITS.items() for name in names}
UNIT = re.compile(r"[ \t\xa0]?({})(?![^\W_]|_)".format("|".join(sorted(SECONDS, key=len, reverse=True))))
SPACE = re.compile(r"[ \t\xa0]*")

# Days, hours, minutes and seconds, as `datetime.timedelta` and progress bars print them: `0:00:02.67`, `01:40`.
CLOCK = re.compile(r"(?:(\d+) days?, )?(?:(\d+):)?(\d+):(\d\d(?:\.\d+)?)(?![\d:])")

CHARACTERS = 200

# A word in front of a number, and the largest number of different labels that are kept.
WORD = re.compile(r"\d+(?::\d\d)+|[=:]|[^\s=:,;()\[\]]+")
LABELS = 100


class NumberError(ValueError):
    """A regular expression found text that isn't a number, or numbers of which only some have a unit."""


class Screen:
    """The lines of a terminal of any width. `row` and `column` are the cursor.

    After a carriage return, the next text replaces the whole line, even if the line is longer than the text.
    """

    def __init__(self):
        self.lines = [""]
        self.row = self.column = 0
        self._returned = False

    def write(self, text):
        """Write text without control characters at the cursor."""
        line = "" if self._returned else self.lines[self.row]
        self._returned = False
        self.lines[self.row] = line[: self.column].ljust(self.column) + text + line[self.column + len(text) :]
        self.column += len(text)

    def control(self, characters):
        """Apply a carriage return, a line feed or backspaces."""
        if characters == "\r":
            self.column, self._returned = 0, True
        elif characters == "\n":
            self.row, self.column, self._returned = self.row + 1, 0, False
            if self.row == len(self.lines):
                self.lines.append("")
        else:
            self._move(-len(characters))

    def escape(self, command, parameters):
        """Apply an ANSI sequence: cursor movements and erasing. All other sequences, such as colors, have no effect."""
        first = re.match(r"[0-9]{1,6}(?![0-9])|", parameters).group()
        count = max(1, int(first or 1))
        if command == "A":
            self.row, self._returned = max(0, self.row - count), False
        elif command == "B":
            self.row, self._returned = min(len(self.lines) - 1, self.row + count), False
        elif command in "CD":
            self._move(count if command == "C" else -count)
        elif command == "G":
            self._move(count - 1 - self.column)
        elif command == "K":
            self._erase(first)
        elif command == "J" and first in ("", "0"):
            self._erase("0")
            del self.lines[self.row + 1 :]

    def _move(self, columns):
        self.column, self._returned = min(max(0, self.column + columns), max(self.column, COLUMNS)), False

    def _erase(self, mode):
        line = self.lines[self.row]
        if mode in ("", "0"):
            self.lines[self.row] = line[: self.column]
        elif mode == "1":
            self.lines[self.row] = " " * min(self.column + 1, len(line)) + line[self.column + 1 :]
        elif mode == "2":
            self.lines[self.row] = ""


def render_output(text):
    """Return the text that a terminal shows after this output, without control characters except tabs and line ends.

    Text that a carriage return, a backspace or an erase sequence replaced is missing.
    """
    if not re.search("[\x1b\r\b]", text):
        return text
    screen = Screen()
    for match in TOKEN.finditer(text):
        if match.group("text"):
            screen.write(match.group("text"))
        elif match.group("control"):
            screen.control(match.group("control"))
        elif match.group("command"):
            screen.escape(match.group("command"), match.group("parameters"))
    return "\n".join(screen.lines)


def read_number(text, start, end):
    """Return the number at `start` of a text, and its unit: "s" if it is a time, otherwise an empty text.

    The number must start before `end`, but its unit can be after `end`. A time is in seconds: `916us`, `1.2 ms`,
    `1min 2s`, `0:01:02.5`. Raises NumberError if there is no number.
    """
    start = SPACE.match(text, start, end).end()
    clock = CLOCK.match(text, start, end)
    if clock is not None:
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return decimal(((days * 24 + hours) * 60 + minutes) * 60 + seconds), "s"
    match = NUMBER.match(text, start, end)
    if match is None:
        raise NumberError("{!r}, which isn't a number".format(text[start:end][:CHARACTERS]))
    number, unit = float(match.group().replace(",", "")), UNIT.match(text, match.end())
    if unit is None:
        return number, ""
    scale = SECONDS[unit.group(1)]
    number = decimal(number * scale)
    parts = 1
    while True:  # 1min 2s
        end_of_space = SPACE.match(text, unit.end()).end()
        has_sign = text[end_of_space : end_of_space + 1] in ("+", "-")
        match = NUMBER.match(text, end_of_space) if scale > 1.0 and not has_sign else None
        smaller = match and UNIT.match(text, match.end())
        if not smaller or SECONDS[smaller.group(1)] >= scale:
            break
        unit, scale, parts = smaller, SECONDS[smaller.group(1)], parts + 1
        number += decimal(float(match.group().replace(",", "")) * scale)
    has_space = text[unit.start() : unit.start() + 1].isspace()
    if parts == 1 and has_space and scale > 1.0 and re.compile(r"\s*[:=]?\s*[-+.]?\d").match(text, unit.end()):
        return number / scale, ""  # `mean 3 min 2 max 5`
    return number, "s"


def decimal(number):
    """Round a number to remove the floating-point errors of a conversion: 916 µs are 0.000916 s."""
    return float("{:.15g}".format(number))


def plain(number):
    """Return a number as text without an exponent and without needless zeros: `0.002`, `5`."""
    return "{:.12f}".format(number).rstrip("0").rstrip(".")


def find_numbers(text, pattern, names):
    """Return what a regular expression finds, by the names of its groups: the numbers, their unit, and their labels.

    The labels are the result of `find_labels`. A group with the name `label` matches labels instead of numbers. Raises
    NumberError if a group isn't a number, or only some numbers of a group have a unit.
    """
    compiled = re.compile(pattern, re.MULTILINE)
    own_label = compiled.groupindex.get("label")
    groups = [group for group in range(1, 1 + compiled.groups) if group != own_label] or [0]
    numbers, units, texts, places = ({name: kind() for name in names} for kind in (list, dict, list, list))
    for match in compiled.finditer(text):
        for name, group in zip(names, groups):  # noqa: B905
            if match.group(group) is None:
                continue
            number, unit = read_number(text, match.start(group), match.end(group))
            numbers[name].append(number)
            places[name].append(match.start(group))
            line_start = text.rfind("\n", 0, match.start(group)) + 1
            texts[name].append(match.group(own_label) if own_label else text[line_start : match.start(group)])
            if number:  # 0 needs no unit
                units[name].setdefault(unit, number)
    for name, by_unit in units.items():
        if len(by_unit) > 1:
            message = "{} s and {} without a unit for {!r}: match numbers of one kind only"
            raise NumberError(message.format(plain(by_unit["s"]), plain(by_unit[""]), name))
    return {
        name: (
            values,
            next(iter(units[name]), ""),
            ["label", texts[name], False]
            if own_label
            else find_labels(texts[name]) or find_heading_labels(text, places[name]),
        )
        for name, values in numbers.items()
    }


def find_heading_labels(text, places):
    """Return the setting that the lines above the numbers at these places state, as `find_labels` does.

    The heading of a number is the last line above it without such a number. Headings with a decimal number, such as a
    loss, aren't settings, and neither are headings that only count.
    """
    starts = [0] + [match.end() for match in re.finditer("\n", text)]
    rows = [bisect_right(starts, place) - 1 for place in places]
    matched, headings, heading = set(rows), {}, ""
    for row, line in enumerate(text.split("\n")):
        if row not in matched:
            heading = line.strip() or heading
        headings[row] = heading
    labels = find_labels([headings[row] for row in rows])
    is_setting = labels and not labels[2] and not any(re.search(r"\d\.\d", label) for label in labels[1])
    return labels if is_setting else None


def find_labels(texts):
    """Return the name and the values of the setting that the text in front of each number states, and if they count.

    The result is None without a setting.

    Only words that differ between the texts count: `num_calls = 2, cost: ` and `num_calls = 4, cost: ` have the labels
    2 and 4 of the setting `num_calls`. Times and percentages, such as the time left in a progress bar, aren't labels.
    """
    rows = [[word for word in WORD.findall(text) if not is_measured(word)] for text in texts]
    name = ""
    if len({len(row) for row in rows}) != 1:
        labels = [" ".join(row).strip(" =:") for row in rows]
    else:
        places = [place for place in range(len(rows[0])) if len({row[place] for row in rows}) > 1]
        names = [find_name(rows[0][:place]) for place in places]
        if len(places) == 1:
            name, names = names[0], [""]
        labels = [
            ", ".join("{} {}".format(before, row[place]).strip() for before, place in zip(names, places))  # noqa: B905
            for row in rows
        ]
    is_usable = labels and all(labels) and 1 < len(set(labels)) <= LABELS
    return [name or "label", [label[:CHARACTERS] for label in labels], is_count(labels)] if is_usable else None


def is_count(labels):
    """Return whether labels only count: `0`, `1`, or `1/3`, `2/3`, `3/3`, or `100`, `200`, `300`, `400`."""
    numbers = [int(label.partition("/")[0]) for label in labels if re.match(r"\d{1,9}(/|$)", label)]
    steps = {number - before for before, number in zip(numbers, numbers[1:])}  # noqa: B905, RUF007
    is_regular = len(numbers) == len(labels) and len(steps) == 1 and numbers[0] in {0, 1, *steps}
    return is_regular and (steps == {1} or (min(steps) > 0 and len(labels) > 3))


def find_name(words):
    """Return the word that names the value after these words: `batch` for `batch = 32` and `batch 32`; or nothing."""
    word = next((word for word in reversed(words) if word not in "=:"), "")
    return word if re.match(r"[^\W\d]\w*$", word) else ""


def is_measured(word):
    """Return whether a word is a time or a percentage."""
    match = NUMBER.match(word)
    return bool(match and (UNIT.match(word, match.end()) or word.endswith("%"))) or CLOCK.match(word) is not None
