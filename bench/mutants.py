"""Do the tests notice if a line of harness is wrong? Seeded mutants, and the tests that fail because of them.

    python -m bench.mutants list               show the mutants and their places
    python -m bench.mutants plant FOLDER       write them into a checkout, each behind a switch that is off
    python -m bench.mutants run FOLDER LOG     which mutants the tests of a planted checkout notice

Between `plant` and `run`, run all tests of the planted checkout once, with HARNESS_MUTANT_LOG=LOG. All mutants are in
the checkout at once, and the log has the tests that reach each mutant, also in processes that a test starts. `run`
then turns on one mutant after the other with HARNESS_MUTANT=NUMBER, and starts only the tests that reach it.

A mutant changes an operator (`<` to `<=`, `+` to `-`, `and` to `or`), a number (5 to 6), a truth value, or a sentence,
which loses a word. The mutants are drawn from SEED, with the same number for each package and kind.
"""

import argparse
import ast
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path

SEED = 20261128
PACKAGES = ("analysis", "plan", "report", "runner", "store")
KINDS = ("operator", "constant", "sentence")
EACH = 4  # mutants of a package and kind: 60 in all
FIRST = 30  # tests that run before the others: most mutants are noticed by a test of their own module

OPERATORS = {
    **{ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="},
    **{ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"},
    **{ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.And: "or", ast.Or: "and"},
}

SWITCH = '''"""Whether a mutant is on, and which test reached it: written by bench/mutants.py."""
import os

_ON, _LOG, _seen = os.environ.get("HARNESS_MUTANT"), os.environ.get("HARNESS_MUTANT_LOG"), set()


def on(number):
    if _LOG:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
        if (number, test) not in _seen:
            _seen.add((number, test))
            with open(_LOG, "a") as file:
                file.write(f"{number}\\t{test}\\n")
    return _ON == str(number)
'''


@dataclass(frozen=True)
class Mutant:
    """One change: `before` at a place (line, column and end in UTF-8 bytes) of a file becomes `after`."""

    path: str
    kind: str
    start: tuple[int, int]
    end: tuple[int, int]
    before: str
    after: str
    is_imported: bool  # the expression is evaluated at import, so that no single test reaches it

    def list_lines(self) -> set[tuple[str, int]]:
        """Return the lines that it changes."""
        return {(self.path, line) for line in range(self.start[0], self.end[0] + 1)}

    def __str__(self) -> str:
        return f"{self.path}:{self.start[0]}: {self.kind}: {self.before}  →  {self.after}"


def list_sites(path: Path, root: Path) -> Iterator[Mutant]:
    """Yield all mutants of a file, at most one for each expression and kind."""
    source = path.read_bytes()
    offsets = [0, *accumulate(len(line) for line in source.splitlines(keepends=True))]
    name = str(path.relative_to(root))

    def visit(node: ast.AST, is_imported: bool) -> Iterator[Mutant]:
        if isinstance(node, ast.expr):
            start, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
            before = source[offsets[start[0] - 1] + start[1] : offsets[end[0] - 1] + end[1]].decode()
            kind, after = _change(node, before)
            if after:
                yield Mutant(name, kind, start, end, before, after, is_imported)
        if isinstance(node, ast.JoinedStr | ast.Match) or (
            isinstance(node, ast.Subscript) and "Literal" in ast.unparse(node)
        ):
            return
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "type_params"):
                continue
            inside = is_imported and not (isinstance(node, ast.FunctionDef | ast.Lambda) and field == "body")
            for child in value if isinstance(value, list) else [value]:
                is_documentation = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
                if isinstance(child, ast.AST) and not is_documentation:
                    yield from visit(child, inside)

    yield from visit(ast.parse(source), True)


def _change(node: ast.expr, segment: str) -> tuple[str, str]:
    """Return the kind and the mutated source of an expression, or two empty strings."""
    if after := _change_operator(node):
        return "operator", after
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return "constant", str(not node.value) if isinstance(node.value, bool) else repr(node.value + 1)
    if isinstance(node, ast.JoinedStr | ast.Constant):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        words = [word for text in texts for word in text.split(" ")[1:-1] if word.isalpha() and len(word) > 2]
        lone = [word for word in sorted(words, key=len, reverse=True) if segment.count(f" {word} ") == 1]
        if lone and sum(len(text.split()) for text in texts) >= 4:
            return "sentence", segment.replace(f" {lone[0]} ", " ")
    return "", ""


def _change_operator(node: ast.expr) -> str:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
        return f"{_part(node.left)} {OPERATORS[type(node.ops[0])]} {_part(node.comparators[0])}"
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return f"{_part(node.left)} {OPERATORS[type(node.op)]} {_part(node.right)}"
    if isinstance(node, ast.BoolOp):
        return f" {OPERATORS[type(node.op)]} ".join(_part(value) for value in node.values)
    return _part(node.operand) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else ""


def _part(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def draw_mutants(root: Path, seed: int = SEED) -> list[Mutant]:
    """Return EACH mutants of each package and kind, of different lines."""
    drawn: list[Mutant] = []
    used: set[tuple[str, int]] = set()
    for package in PACKAGES:
        files = sorted((root / "harness" / package).rglob("*.py"))
        sites = [site for path in files for site in list_sites(path, root)]
        for kind in KINDS:
            of_kind = [site for site in sites if site.kind == kind]
            random.Random(f"{seed} {package} {kind}").shuffle(of_kind)
            wanted = len(drawn) + EACH
            for site in of_kind:
                if len(drawn) < wanted and not used & site.list_lines():
                    drawn.append(site)
                    used |= site.list_lines()
    return drawn


def plant(root: Path, mutants: Sequence[Mutant]) -> None:
    """Write the mutants into a checkout, each behind its switch."""
    (root / "harness" / "_switch.py").write_text(SWITCH)
    of_files = defaultdict(list)
    for number, mutant in enumerate(mutants):
        of_files[mutant.path].append((number, mutant))
    for path, numbered in of_files.items():
        text = (root / path).read_bytes()
        offsets = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]
        for number, mutant in sorted(numbered, key=lambda pair: (pair[1].start, pair[1].end), reverse=True):
            start, end = (offsets[line - 1] + column for line, column in (mutant.start, mutant.end))
            now = text[start:end].decode()
            text = (
                text[:start]
                + "".join(["((", mutant.after, f") if _on({number})", " else (", now, "))"]).encode()
                + text[end:]
            )
        tree = ast.parse((root / path).read_bytes())
        first = next(
            node for node in tree.body
            if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            and not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        )  # fmt: skip
        at = offsets[first.lineno - 1]
        text = text[:at] + b"from harness._switch import on as _on\n" + text[at:]
        ast.parse(text)
        (root / path).write_bytes(text)
    (root / "mutants.json").write_text(json.dumps([asdict(mutant) for mutant in mutants], indent=1))


def run_tests(root: Path, number: int, tests: Sequence[str]) -> str:
    """Return the first of these tests that fails if a mutant is on, or an empty string.

    Raises RuntimeError if pytest can't run the tests.
    """
    if not tests:
        return ""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(tests))
        file.flush()
        planted_python = root / ".venv" / "bin" / "python"
        python = str(planted_python) if planted_python.is_file() else sys.executable
        command = [python, "-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider", f"@{file.name}"]
        environ = {**os.environ, "HARNESS_MUTANT": str(number)}
        environ.pop("HARNESS_MUTANT_LOG", None)
        process = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=False)
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", process.stdout, re.M)
    if process.returncode in (1, 2):  # 2: a file can't be imported
        return failed[1] if failed else "a test"
    if process.returncode:
        raise RuntimeError(process.stdout[-2000:] + process.stderr[-2000:])
    return ""


def find_tests(mutant: Mutant, number: int, log: Sequence[tuple[int, str]]) -> list[str]:
    """Return the tests that reach a mutant. Tests of the same module and package come first.

    No single test reaches an expression that is evaluated at import. It needs all tests that reach any mutant.
    """
    package, name = mutant.path.split("/")[1], Path(mutant.path).stem
    numbers = {number} if not mutant.is_imported else {other for other, _ in log}
    tests = {test for other, test in log if other in numbers and test}
    per_file = Counter(test.partition("::")[0] for test in tests)

    def find_order(test: str) -> tuple[bool, bool, bool, int, str]:
        file = test.partition("::")[0]
        return "docker" in file, name not in file, not file.startswith(f"tests/{package}/"), -per_file[file], test

    return sorted(tests, key=find_order)


def run_all(root: Path, log_file: Path, ignored: Sequence[str]) -> None:
    """Print for each mutant which test notices it, and the share of those that are noticed."""
    mutants = [Mutant(**{**fields, "start": tuple(fields["start"]), "end": tuple(fields["end"])})
               for fields in json.loads((root / "mutants.json").read_text())]  # fmt: skip
    log = [
        (int(number), test) for number, _, test in (line.partition("\t") for line in log_file.read_text().splitlines())
    ]
    noticed = 0
    for number, mutant in enumerate(mutants):
        tests = [test for test in find_tests(mutant, number, log) if test not in ignored]
        first = run_tests(root, number, tests[:FIRST]) or run_tests(root, number, tests[FIRST:])
        noticed += bool(first)
        print(
            f"{number:2} {'noticed' if first else 'MISSED '} {mutant}\n      {first or f'{len(tests)} tests'}",
            flush=True,
        )
    print(f"{noticed} of {len(mutants)} mutants noticed")


def main() -> None:
    """Run the command that the module's docstring describes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("list", "plant", "run"))
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parents[1])
    parser.add_argument("log", type=Path, nargs="?")
    parser.add_argument("--ignore", type=Path, help="a file with the names of tests that fail without a mutant, too")
    options = parser.parse_args()
    if options.command == "list":
        for number, mutant in enumerate(draw_mutants(options.folder)):
            print(number, mutant)
    elif options.command == "plant":
        plant(options.folder, draw_mutants(options.folder))
    elif options.log is None:
        parser.error("run needs the LOG of a run of all tests")
    else:
        run_all(options.folder, options.log, options.ignore.read_text().split() if options.ignore else ())


if __name__ == "__main__":
    main()
