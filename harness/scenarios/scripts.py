"""Turns plain scripts and notebooks into scenarios: a generated file has a header, and contains the script.

Before the first launch, the kit finds the code that comments `# harness: step` mark, and the functions of --function.
"""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from harness import package_data
from harness.files import read as read_bytes
from harness.model.errors import FileError, Problem, UsageError
from harness.model.scenario import ENVIRONMENT, OWN, PEAK, PRINTED, PROGRAM, STEP, WHOLE
from harness.model.texts import joined
from harness.scenarios import notebooks
from harness.scenarios.catalog import write_cached
from harness.scenarios.script_checks import ScriptNeed, convert_to_compat, make_problem
from harness.scenarios.script_files import TAKEN, map_files
from harness.toml import format_value

#: Messages of Python 3's syntax errors in code for Python 2.
_PYTHON_2 = re.compile(r"Missing parentheses in call to '(?:print|exec)'|multiple exception types must be parenth")
_PYTHON_2_LINE = re.compile(
    r"(?:print|exec) [\"'`\w]|print\s*>>|raise \w+\s*,|except [\w.]+\s*,\s*\w+\s*:|"
    r"[^\"'#]*(?:<>|`\w+`|\b\d+L\b|\b0\d+\b)"
)

#: The group in --grep that matches the setting of a number instead of a number.
LABEL = "label"

#: Quotation marks of word processors and web pages.
_QUOTATION_MARKS = re.compile("[\u2018\u2019\u201c\u201d\u00ab\u00bb]")

#: Code that is appended to a script with pytest benchmarks. It runs pytest, and prints each benchmark's median time.
PYTEST = """

if __name__ == "__main__":
    import json as _json

    import pytest as _pytest

    _status = _pytest.main([__file__, "-q", "-p", "no:cacheprovider", "--benchmark-json=benchmark.json"])
    with open("benchmark.json") as _file:
        for _entry in _json.load(_file)["benchmarks"]:
            print("{}: median {!r} s".format(_entry["name"], _entry["stats"]["median"]))
    raise SystemExit(int(_status))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A plain script: the path of its file, its name and text (empty until it was read), and options of `harness run`.

    - `arguments`: the arguments of the script; `stdin`: its standard input; `files`: files that are copied next to it
    - `grep`: regular expressions for printed numbers; `compare`: pairs of these whose ratio is compared (`half/single`)
    - `functions`: functions whose calls are steps
    - `scan`: options of the script with their values: each value is measured, as an axis
    - `has_runner`: whether the script's benchmarks are called by their own runner, such as pytest
    - `programs`: the texts of several programs in one file, by their first lines. They are the values of an axis
    - `needs`: what environments must have; `compat_v1`: whether the script runs through `tensorflow.compat.v1`
    - `is_command`: the import of TensorFlow counts as its work, because the text is a shell command or imports modules
    """

    path: Path
    name: str = ""
    text: str = ""
    arguments: Sequence[str] = ()
    grep: Sequence[str] = ()
    compare: Sequence[str] = ()
    functions: Sequence[str] = ()
    scan: Mapping[str, Sequence[str]] = field(default_factory=dict)
    files: Sequence[Path] = ()
    stdin: Path | None = None
    has_runner: bool = False
    programs: Mapping[int, str] = field(default_factory=dict)
    needs: Sequence[ScriptNeed] = ()
    compat_v1: bool = False
    is_command: bool = False

    @property
    def axes(self) -> dict[str, list[str]]:
        """The axes of its scenario, with their values: its programs, and the options in `scan`."""
        programs = {PROGRAM: list(map(str, self.programs))} if self.programs else {}
        return programs | {_make_identifier(option): list(values) for option, values in self.scan.items()}

    @property
    def scenario(self) -> str:
        """The name of its scenario: for example, `my_script` for `my-script.py`."""
        stem = re.sub(r"\W+", "_", Path(self.name).stem, flags=re.ASCII).strip("_").lower() or "script"
        return f"script_{stem}" if stem in TAKEN or not stem[0].isalpha() else stem

    @property
    def numbers(self) -> dict[str, list[str]]:
        """The names of the printed numbers that each regular expression finds, one per group. Raises UsageError."""
        names_by_pattern = {pattern: find_labels(pattern) for pattern in self.grep}
        names = [name for group_names in names_by_pattern.values() for name in group_names]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(
                    f"Two groups in --grep have the name {name!r}.", "Give each group its own name: (?P<name>…)"
                )
        return names_by_pattern

    @property
    def ratios(self) -> dict[str, tuple[str, str]]:
        """The names of the two numbers in each ratio, by the ratio's name `one/other`. Raises UsageError.

        Without --compare, there is one ratio if there are exactly two numbers and both groups have names.
        """
        names = [name for group_names in self.numbers.values() for name in group_names]
        named_groups = [name for pattern in self.grep for name in re.compile(pattern).groupindex]
        if not self.compare:
            is_pair = len(names) == 2 == len(named_groups) and not self.has_runner
            return {"/".join(names): (names[0], names[1])} if is_pair else {}
        ratios = {}
        for text in self.compare:
            pairs = sorted(pair for pair in product(names, names) if "/".join(pair) == text)
            if not pairs or pairs[0][0] == pairs[0][1]:
                numbers = f"The printed numbers: {joined(names)}." if names else "Name the numbers with --grep."
                raise UsageError(
                    f"Invalid --compare {text!r}: expected ONE/OTHER, the names of two printed numbers.",
                    f"{numbers} Example: --grep 'half took (?P<half>\\S+)' --grep 'single took (?P<single>\\S+)' "
                    "--compare half/single",
                )
            ratios[text] = pairs[0]
        return ratios


def has_header(path: Path) -> bool:
    """Return whether a file has a scenario's header."""
    try:
        text = read_bytes(path).decode("utf-8", "replace")
    except OSError:
        return False
    return not notebooks.is_notebook(path) and bool(re.search(r"(?m)^# \[tool\.harness\]", text))


def add_runner(script: Script) -> tuple[Script, list[str]]:
    """Return the script, changed so that its benchmarks' own runner runs them, and a sentence about the change.

    Such benchmarks are `tf.test.Benchmark` classes and tests for pytest-benchmark. Other scripts, and scripts with
    arguments or --function, aren't changed.
    """
    own_code = package_data.load_kit_module("own_code")
    kind = own_code.kind(script.text)
    if script.arguments or script.functions:
        return script, []
    if kind == own_code.BENCHMARKS:
        names = {
            name: rf'name: "{re.escape(name)}"(?:\n.*)*?\n\s*wall_time: ' for name in own_code.benchmarks(script.text)
        }
        grep = [*script.grep, *(f"{pattern}(?P<{_make_identifier(name)}>\\S+)" for name, pattern in names.items())]
        sentence = f"{script.path.name} has benchmarks: it gets the argument --benchmarks=. to run and compare them."
        return replace(script, arguments=["--benchmarks=."], grep=grep, has_runner=True), [sentence]
    # a script can have other code above its tests
    tests = own_code.benchmarked_tests(script.text) if kind in {own_code.TESTS, own_code.CODE} else []
    if not tests or "pytest.main(" in script.text:
        return script, []
    patterns = [
        rf"^{re.escape(name.rpartition('.')[2])}(?:\[.*\])?: median (?P<{_make_identifier(name)}>\S+)" for name in tests
    ]
    sentence = f"{script.path.name} has benchmarks for pytest: pytest runs them, and their medians are compared."
    text = script.text.rstrip("\n") + PYTEST
    return replace(script, text=text, grep=[*script.grep, *patterns], has_runner=True), [sentence]


def _make_identifier(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def find_labels(pattern: str) -> list[str]:
    """Return the names of the numbers that a regular expression finds, at least one. Raises UsageError.

    If a group has no name, its number is called by the text around the group: `predict: … ms`. The group LABEL isn't a
    number.
    """
    try:
        groups, indexes_by_name = re.compile(pattern).groups, re.compile(pattern).groupindex
    except re.error as error:
        raise UsageError(
            f"--grep '{pattern}' is not a valid regular expression: {error}.", "Example that finds a number: (\\S+)."
        ) from None
    label = _mask_groups(pattern)
    names = {number: name for name, number in indexes_by_name.items() if name != LABEL}
    unnamed = [number for number in range(1, groups + 1) if number not in {*names, indexes_by_name.get(LABEL)}]
    for number in unnamed:
        names[number] = label if len(unnamed) == 1 else f"{label} ({number})"
    return [names[number] for number in sorted(names)] or [label]


def _mask_groups(pattern: str) -> str:
    """Return the text of a regular expression, with `…` for its groups."""
    text, previous = pattern, ""
    while text != previous:  # the innermost groups first
        previous, text = text, re.sub(r"(?<!\\)\((?:\\.|[^()\\])*\)[*+?]*", "…", text)
    # keep escaped punctuation, and remove classes such as \S, anchors and repetitions
    text = re.sub(r"\\(\W)|(\\\w[*+?]*)|[\^$*+?]", lambda match: match[1] or ("…" if match[2] else ""), text)
    text = " ".join(re.sub("…+", "…", text).split())
    return text if re.search(r"[^\W_]", text) else "print"


def check(script: Script) -> bool:
    """Return whether the script has steps. Raises FileError for syntax errors, and for invalid marks and functions."""
    marks = package_data.load_kit_module("marks")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, has_steps = marks.instrument(script.text, script.name, script.functions)
    except SyntaxError as error:
        sentence = _describe_syntax_error(error)
        raise FileError([make_problem(script.path, script.text, error.lineno or 1, sentence)]) from None
    except (RecursionError, MemoryError):
        raise FileError([Problem(script.path, 0, "The code is nested too deeply to find its steps.")]) from None
    except (marks.MarkError, ValueError) as error:
        line = re.match(r"line (\d+): ", str(error))
        text = str(error)[line.end() if line else 0 :]
        raise FileError([Problem(script.path, int(line[1]) if line else 0, f"{text[0].upper()}{text[1:]}.")]) from None
    return bool(has_steps)


def _describe_syntax_error(error: SyntaxError) -> str:
    line = (error.text or "").strip()
    if _PYTHON_2.search(error.msg or "") or _PYTHON_2_LINE.match(line):
        return (
            f"This is Python 2: `{line[:80]}`. No environment has Python 2. Convert the script to Python 3, "
            "for example print(...) and `except Error as error`. The tool 2to3 in Python 3.12 and earlier does this."
        )
    advice = " Replace these quotation marks with \" or '." if _QUOTATION_MARKS.search(line) else ""
    return f"This is not valid Python: {error.msg}.{advice}"


def write(script: Script, kind: str, taken: Sequence[str] = ()) -> Path:
    """Write the scenario of a script into the user's cache, and return its path. The same script has the same path.

    `kind` is the folder in the cache, and `taken` are the names of the project's scenarios. Raises UsageError,
    FileError and CannotRunHereError.
    """
    has_steps = {check(replace(script, text=text)) for text in script.programs.values() or [script.text]} == {True}
    copied_files = {name: _read_bytes(path) for name, path in map_files(script.files, script.path).items()}
    if script.compat_v1:
        for module in [name for name in copied_files if name.endswith(".py")]:
            text = copied_files[module].decode("utf-8", "surrogateescape")
            copied_files[module] = convert_to_compat(text).encode("utf-8", "surrogateescape")
    stdin = None
    if script.stdin is not None:
        stdin = f"stdin-{script.stdin.name}"
        copied_files[stdin] = _read_bytes(script.stdin)
    is_taken = script.scenario in taken or f"{script.scenario}.py" in copied_files
    name = f"{script.scenario}_script" if is_taken else script.scenario
    text = _format_scenario(script, name, has_steps=has_steps, files=list(copied_files), stdin=stdin)
    scenario_file = {f"{name}.py": text.encode("utf-8", "surrogateescape")}
    return write_cached(kind, copied_files | scenario_file) / f"{name}.py"


def _read_bytes(path: Path) -> bytes:
    try:
        return read_bytes(path.expanduser())
    except OSError as error:
        raise UsageError(f"The file {path} can't be copied to launches: {error.strerror}.") from None


def _format_scenario(script: Script, name: str, *, has_steps: bool, files: Sequence[str], stdin: str | None) -> str:
    """Return the scenario's text: a header, the script's text as a string, and the script's options."""
    title = f"{script.path.name}{', through tensorflow.compat.v1' if script.compat_v1 else ''}"
    header = [
        "# /// script",
        '# requires-python = ">=3.6"',
        "# dependencies = []",
        "#",
        "# [tool.harness]",
        f"# title  = {format_value(title)}",
        f"# script = {format_value(title)}",
        *([f"# files  = {format_value(list(files))}"] if files else []),
        *(["#", "# [tool.harness.axes]"] if script.axes else []),
        *(f"# {axis} = {format_value(list(values))}" for axis, values in script.axes.items()),
        *(line for need in script.needs for line in ("#", *_format_need(need))),
        *(line for entry in _list_comparisons(script, has_steps=has_steps) for line in ("#", *entry)),
        "# ///",
    ]
    literals = [f"    '{line}': {_format_program(text, script)}," for line, text in script.programs.items()]
    source = ["PROGRAMS = {", *literals, "}"] if literals else [f"SCRIPT = {_format_program(script.text, script)}"]
    text = f"PROGRAMS[axes[{PROGRAM!r}]]" if literals else "SCRIPT"
    return "\n".join(
        [
            *header,
            f'"""{script.name} as a scenario, which `harness run` generated."""',
            "",
            "from kit import main",
            "from kit.script import run_script",
            "",
            *source,
            "",
            "",
            f"def scenario(bench{', **axes' if script.axes else ''}):",
            f"    run_script(bench, {script.name!r}, {text}{_format_options(script, stdin)})",
            "",
            "",
            'if __name__ == "__main__":',
            "    main(scenario)",
            "",
        ]
    )


def _format_options(script: Script, stdin: str | None) -> str:
    """Return the options of a script as arguments of a call."""
    keywords: Mapping[str, object] = {
        "grep": [[pattern, [PRINTED + name for name in names]] for pattern, names in script.numbers.items()],
        "compare": [[PRINTED + name for name in (ratio, *pair)] for ratio, pair in script.ratios.items()],
        "functions": list(script.functions),
        "stdin": stdin,
        "shown": script.path.name if script.path.name != script.name else "",
        "is_command": script.is_command,
    }
    options = "".join(f", {key}={value!r}" for key, value in keywords.items() if value)
    scanned = "".join(f", {'--' + option!r}, axes[{_make_identifier(option)!r}]" for option in script.scan)
    own = f", arguments=[*{list(script.arguments)!r}{scanned}]" if script.scan or script.arguments else ""
    return options + own


def _format_program(text: str, script: Script) -> str:
    return format_literal(convert_to_compat(text) if script.compat_v1 else text)


def _format_need(need: ScriptNeed) -> list[str]:
    requires, reason, advice = need
    values = {"requires": list(requires), "reason": reason, "advice": advice}
    return ["# [[tool.harness.needs]]", *(f"# {key} = {format_value(value)}" for key, value in values.items() if value)]


def _list_comparisons(script: Script, *, has_steps: bool) -> list[list[str]]:
    """Return the header's comparisons between environments: the step first, then the other quantities.

    Other programs are compared with the first one, and the values of --scan with the first value: the time, the printed
    numbers and, for programs, the time without imports.
    """
    quantities = {"step": STEP, "first call": "first call", WHOLE: WHOLE} if has_steps else {WHOLE: STEP}
    quantities |= {name: name for name in (OWN, PEAK)}
    quantities |= {PRINTED + name: PRINTED + name for names in script.numbers.values() for name in names}
    quantities |= {PRINTED + name: PRINTED + name for name in script.ratios}
    entries = [{"name": name, "along": ENVIRONMENT, "of": of} for name, of in quantities.items()]
    for axis, (first, *values) in script.axes.items():
        compared = (STEP, OWN) if axis == PROGRAM else (STEP,)
        entries += [
            {"name": f"{axis} {value}", "along": axis, "plus": value, "against": first, "of": of}
            for of in quantities.values()
            for value in values
            if of in compared or of.startswith(PRINTED)
        ]
    return [
        ["# [[tool.harness.compare]]", *(f"# {key} = {format_value(value)}" for key, value in entry.items())]
        for entry in entries
    ]


def format_literal(text: str) -> str:
    r"""Return a text as a Python literal of several lines, with the same value in every Python version.

    No line of the literal can start or end a header.
    """
    body = re.sub(r"'{3,}|'+\Z", lambda match: "\\'" * len(match[0]), text.replace("\\", "\\\\"))
    body = re.sub(r"[^\n\t -~]", lambda match: match[0].encode("unicode_escape").decode(), body)
    body = re.sub(r"(?m)^# ///", r"\\x23 ///", body)
    return f"'''\\\n{body}'''"
