"""Check texts and names against docs/dev/style.md, as far as a program can.

    python -m tests.style                     the share of flagged sentences for each kind of text
    python -m tests.style --show docs/how-to/use-gpus.md  every flagged sentence of a file or folder, with its rules
    python -m tests.style --update            lower the baseline after counts fell

The rules find habits. They don't judge: a sentence that isn't flagged can still be hard to read.
"""

import argparse
import ast
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
BASELINE = Path(__file__).with_name("style_baseline.json")
UPDATE = "python -m tests.style --update"

#: Share of flagged sentences that a file may have if the baseline doesn't list it. LONG has its own limit.
SHARE, LONG_SHARE = 0.03, 0.05

#: Kind for sentences of docs that are too long. They don't count as flagged.
LONG = "long"
LONGEST = 30

#: A relative clause with "where" is right after one of these nouns.
_PLACES = "folder directory file page machine container host cluster process section table column row image cache path"
_AFTER_A_PLACE = "".join(rf"(?<!\b{noun})(?<!\b{noun}s)" for noun in _PLACES.split())
_NUMBERS = "two|three|four|five|six|seven|eight|nine|ten"
_OWN = r"(?:its|their|his) own(?=\s*(?:[.,;:)]|$)| (?:and|or|which|that|in|for|with|to|by|on|when|where|if|as)\b)"

RULES = {
    "where for if": rf"(?:^|{_AFTER_A_PLACE}[,;:(] )[Ww]here "
    r"(?!is\b|are\b|to\b|do\b|does\b|\w (?:is|are)\b|CODE (?:is|are)\b)\w+",
    "told, said, asked": r"(?i)\b(?:told|tells?|telling|(?:is|are|was|were|be) said"
    r"|(?:is|are|was|were|be|been) asked)\b",
    "is no X": r"(?<![Tt]here )\b(?:is|are|was|takes) no "
    r"(?!(?:longer|more|less|fewer|better|worse|different|faster|slower|larger|smaller|need|way|network)\b)\w+"
    r"|\btakes? none\b",
    "what-clause for a noun": r"(?:^|[.;:,(] |\*\*|\bof |\bby |\bwith |\bout |\bthan |\bis |\bfor )[Ww]hat "
    r"(?!is\b|are\b|if\b|does\b|do\b|to\b)(?![^?]*\?)\w+|\b(?:of|by|keep|than|with|place of) what (?:is|are)\b",
    "no head noun": rf"\b(?:of|has) {_OWN}|\bvalues of its own\b|\b[Oo]urs\b|\b(?:those|that) of\b(?! course)"
    r"|\b(?:is|are) there\b(?! (?:a|an|any|no)\b)",
    "inversion": r"^(?:Not kept|Of (?:each|a|an|the)|In so many|All:)|; of (?:a|an|the|each) |\bno more\b(?! than)"
    r"|\bis called so\b|\bor below\b",
    "a for per": r"\b(?:[Bb]ytes|seconds|launch(?:es)?|lines?|files?|samples|rounds?) an? "
    r"(?:call|launch|round|group|cell|step)\b",
    "else for otherwise": r"(?<!thing )(?<!body )(?<!one )(?<!what )(?<!who )(?<!where )(?<!or )\belse\b(?! branch)",
    "number in words": rf"\b(?:{_NUMBERS}) (?:halves|thirds|quarters|fifths|tenths|of (?:{_NUMBERS}))\b"
    r"|\ba (?:quarter|fifth|tenth) of\b(?! a (?:second|millisecond)\b)",
    "private term": r"(?i)(?<!network )(?<!sound )(?<!model )\bcards?\b"
    r"|(?<!at )(?<!every )(?<!each )(?<!last )(?<!\*\*)\bnights?\b"
    r"|\b(?:mends?|mended|mending|anew|begun|begins|go(?:es)? on|l(?:ies|ie|ay) (?:in|on|at|below|beyond|far)"
    r"|stands?(?! for\b)|dearer|loud|in turns|take turns|in (?:the )?place of|youngest|taken off|of the moment"
    r"|as it comes|turns them off|lacks|disturbed|disturbance|disturbs|engines? answers?|the spread|room (?:on|for))\b"
    r"|\bso many\b(?! that\b)|\bscatters?\b(?! (?:plot|chart|op|update)s?\b)"
    r"|(?<!-)\bquiet\b(?! mode\b)|\balive together\b|\b(?:is|are) alive\b"
    r"|\btyped\b(?! (?:as|dict)\b)|(?:^|[.,;:(] )type (?=CODE|-|the\b|it\b|\d|')",
}
_COMPILED = {name: re.compile(rule, re.M) for name, rule in RULES.items()}

#: Names that no module, class or function may get (docs/dev/style.md). The baseline counts those that exist.
FORBIDDEN = {
    "module": re.compile(
        r"again|alarm|answer|asked|bill|by_hand|cards|chosen|conditions|confirming|course|cover|epochs|flames"
        r"|guarded|heard|kept|known|lacking|lookup|meanwhile|measured|mended|missing|moves|observed|observing"
        r"|picture|probing|quantified|said|sentences|shape|shipped|spending|stand_ins|statements|stopping"
        r"|subject|surroundings|swept|taken|tell|telling|told|turns|twins|typed|walk|watch|week|work"
    ),
    "class": re.compile(
        r"AbsentError|Alone|Asked|Break|ByHand|Card|Centre|EndsError|Errand|Forest|Heard|Held|Hidden|Judged"
        r"|Judgement|Keeper|Known|Lead|Ledger|Likeness|Lone|Noting|NowhereError|Outlook|Question|Race|Said|Seen"
        r"|Settling|Strong|Taken|Teller|Told|Walk|Wish|WrongWayError"
    ),
    "function": re.compile(
        r"again|apart|ask|asked|asks|begin|begins|begun|facts|heard|judged|kept|lies|lines|mended|odd|place|said"
        r"|say|says|taken|tell|tells|told|typed|within|words"
    ),
}


#: Words that don't say what a variable, a parameter or a function is. They may be a share of the names of a folder.
FORBIDDEN_VARIABLE = re.compile(
    r"again|alone|asked|done|each|ended|found|given|heard|kept|known|made|of|opened|own|ran|refused|said|seen|shown"
    r"|taken|told|typed|whole"
)
NAME_SHARES = {"harness": 0.01, "bench": 0.03, "scenarios": 0.01, "tests": 0.02}

Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def flagged(sentence: str) -> list[str]:
    """Return the names of the rules that a sentence breaks."""
    return [name for name, rule in _COMPILED.items() if rule.search(sentence)]


def is_long(sentence: str) -> bool:
    """Return whether a sentence has too many words, or two semicolons."""
    return len(sentence.split()) > LONGEST or sentence.count(";") > 1


def sentences(text: str) -> list[str]:
    """Split prose into sentences of at least 4 words. Code in backticks becomes CODE."""
    text = re.sub(r"``[^`]+``|`[^`]*`", "CODE", text)
    parts = re.split(r"(?<=[.!?:])\s+(?=[A-Z*\"])|\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.) )", text)
    return [" ".join(part.split()) for part in parts if len(part.split()) >= 4]


def markdown(text: str) -> dict[str, list[str]]:
    """Return the sentences of a Markdown page. Code blocks, tables and link targets are left out."""
    text = re.sub(r"^( *)(```|~~~).*?^\1\2", "", text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"^(?: {4}|\t|\|).*$", "", text, flags=re.M)
    prose = sentences(re.sub(r"\]\([^)]*\)", "]", text))
    return {"docs": prose, LONG: prose}


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def definitions(node: ast.AST) -> Iterator[Definition]:
    """Yield a module, and each class and function inside it. Expressions aren't visited, which is fast."""
    if isinstance(node, Definition):
        yield node
    for field in ("body", "orelse", "handlers", "finalbody"):
        children = getattr(node, field, ())
        for child in children if isinstance(children, list) else ():
            yield from definitions(child)


def docstrings(module: ast.Module) -> list[str]:
    """Return the sentences of the docstrings of a module, its classes and its functions."""
    return [sentence for node in definitions(module) for sentence in sentences(ast.get_docstring(node) or "")]


def strings(module: ast.Module) -> list[str]:
    """Return the sentences of the strings that aren't docstrings, such as messages and help."""
    skipped = {node.body[0].value for node in definitions(module) if ast.get_docstring(node, clean=False)}
    messages = []
    for node in ast.walk(module):  # an f-string comes before its parts
        if isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
            parts = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
            messages += sentences("".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            messages += sentences(node.value)
    return messages


def comments(text: str) -> list[str]:
    """Return the sentences of the comments of a Python file. Comments on adjacent lines are one text."""
    blocks, last = [], -1
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1:
                blocks.append([])
            blocks[-1].append(token.string.lstrip("#: "))
            last = token.start[0]
    return [sentence for block in blocks if block[0] != "/// script" for sentence in sentences(" ".join(block))]


def files(paths: Sequence[Path] = ()) -> list[Path]:
    """Return the files to check that git knows or would add: all, or those at and below the paths.

    Golden files, bundles, the nights of an earlier version, and scripts that tests run as hostile input are left out.
    """
    wanted = [str(path) for path in paths] or ["."]
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *wanted]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    skipped = ("docs/examples/upstream/bundle/", "docs/examples/week/", "tests/hostile/scripts/", "tests/fuzz/corpus/")
    names = {name for name in listed if name.endswith((".md", ".py")) and "/__snapshots__/" not in name}
    return [ROOT / name for name in sorted(names) if not name.startswith(skipped) and (ROOT / name).is_file()]


def modules(folder: str) -> list[Path]:
    """Return the Python files of a folder."""
    return [path for path in files([ROOT / folder]) if path.suffix == ".py"]


@cache
def texts(path: Path) -> Mapping[str, list[str]]:
    """Return the sentences of a file by kind. For tests, these are the docstrings: their strings are data."""
    if path.suffix == ".md":
        prose = markdown(path.read_text(encoding="utf-8"))
        # the lists of facts in reports aren't sentences
        return {"docs": prose["docs"]} if path.is_relative_to(ROOT / "docs/examples") else prose
    module = tree(path)
    if path.is_relative_to(ROOT / "tests"):
        return {"docstrings": docstrings(module)}
    text = path.read_text(encoding="utf-8")
    return {"docstrings": docstrings(module), "strings": strings(module), "comments": comments(text)}


def broken(kind: str, sentence: str) -> list[str]:
    """Return the names of the rules that a sentence of a kind breaks."""
    if kind == LONG:
        return [f"over {LONGEST} words"] if is_long(sentence) else []
    return flagged(sentence)


def counted(path: Path) -> dict[str, int]:
    """Return the number of flagged sentences of a file, for each kind that has any."""
    counts = {kind: sum(bool(broken(kind, sentence)) for sentence in prose) for kind, prose in texts(path).items()}
    return {kind: count for kind, count in counts.items() if count}


def allowance(path: Path) -> dict[str, int]:
    """Return how many flagged sentences of each kind a file may have that the baseline doesn't list."""
    return {kind: int((LONG_SHARE if kind == LONG else SHARE) * len(prose)) for kind, prose in texts(path).items()}


def names(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the kind and the name of a module and of its classes and functions. Leading underscores are dropped."""
    yield "module", path.stem.strip("_")
    for node in definitions(tree(path)):
        if isinstance(node, ast.ClassDef):
            yield "class", node.name.strip("_")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield "function", node.name.strip("_")


def forbidden_names() -> dict[str, int]:
    """Return how often each forbidden name is used, such as `class Card`. In tests/, functions only have a share."""
    counts = Counter(
        f"{kind} {name}"
        for folder in NAME_SHARES
        for path in modules(folder)
        for kind, name in names(path)
        if FORBIDDEN[kind].fullmatch(name) and (folder, kind) != ("tests", "function")
    )
    return dict(sorted(counts.items()))


def bindings(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Yield the line and the name of each assignment to a variable, parameter and function, and if it is forbidden.

    The names of tests are sentences, and don't count.
    """
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id, bool(FORBIDDEN_VARIABLE.fullmatch(node.id.strip("_")))
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg, bool(FORBIDDEN_VARIABLE.fullmatch(node.arg.strip("_")))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("test_"):
            name = node.name.strip("_")
            forbidden = FORBIDDEN_VARIABLE.fullmatch(name) or FORBIDDEN["function"].fullmatch(name)
            yield node.lineno, node.name, bool(forbidden)


def name_shares() -> dict[str, float]:
    """Return the share of forbidden names among the variables, parameters and functions of each folder."""
    flags = {folder: [flag for path in modules(folder) for _, _, flag in bindings(path)] for folder in NAME_SHARES}
    return {folder: sum(forbidden) / len(forbidden) for folder, forbidden in flags.items()}


def excessive_names(shares: Mapping[str, float]) -> list[str]:
    """Return a message for each folder that has too many forbidden names."""
    return [
        f"{folder}/: {share:.2%} of the names of variables, parameters and functions are forbidden words, "
        f"at most {NAME_SHARES[folder]:.0%}. See: python -m tests.style --show {folder}"
        for folder, share in shares.items()
        if share > NAME_SHARES[folder]
    ]


def current() -> dict[str, dict]:
    """Return the counts of the checkout, in the format of the baseline."""
    counts = {str(path.relative_to(ROOT)): counted(path) for path in files()}
    return {"sentences": {name: count for name, count in counts.items() if count}, "names": forbidden_names()}


def load_baseline() -> dict[str, dict]:
    """Return the counts that the checkout may not exceed."""
    return json.loads(BASELINE.read_text(encoding="utf-8"))


def excess(counts: Mapping[str, int], allowed: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the current and the allowed count wherever a count is too high."""
    return {name: (count, allowed.get(name, 0)) for name, count in counts.items() if count > allowed.get(name, 0)}


def problems(counts: Mapping[str, dict], baseline: Mapping[str, dict], allowances: Mapping[str, dict]) -> list[str]:
    """Return a message for each count that is higher than the baseline, or than the allowance of an unlisted file."""
    messages = []
    for name, of_file in counts["sentences"].items():
        allowed = baseline["sentences"].get(name, {})
        limits = {kind: max(allowed.get(kind, 0), allowances[name].get(kind, 0)) for kind in of_file}
        for kind, (count, limit) in excess(of_file, limits).items():
            messages.append(
                f"{name}: {count} flagged sentences ({kind}), at most {limit}. See: python -m tests.style --show {name}"
            )
    for name, (count, limit) in excess(counts["names"], baseline["names"]).items():
        messages.append(f"{name}: {count} definitions, at most {limit}. Choose a name as docs/dev/style.md says.")
    return messages


def lowered(counts: Mapping[str, dict], baseline: Mapping[str, dict]) -> dict[str, dict]:
    """Return the baseline with each count lowered to the current one. Counts of 0 and of deleted files are dropped."""
    sentences = {}
    for name, allowed in baseline["sentences"].items():
        of_file = counts["sentences"].get(name, {})
        kinds = {kind: min(count, of_file[kind]) for kind, count in allowed.items() if kind in of_file}
        if kinds:
            sentences[name] = kinds
    names = {
        name: min(count, counts["names"][name]) for name, count in baseline["names"].items() if name in counts["names"]
    }
    return {"sentences": sentences, "names": names}


def write_baseline(baseline: Mapping[str, dict]) -> None:
    """Write the baseline, with one line for each file, so that changes on two branches merge."""
    parts = []
    for part, entries in baseline.items():
        lines = [f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(entries.items())]
        parts.append(f"  {json.dumps(part)}: {{\n" + ",\n".join(lines) + "\n  }")
    BASELINE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the shares of flagged sentences, or update the baseline. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders of the repository; default: all")
    parser.add_argument("--show", action="store_true", help="print every flagged sentence")
    parser.add_argument("--update", action="store_true", help="lower the counts of the baseline to the current ones")
    options = parser.parse_args(arguments)
    if options.update:
        counts = current()
        baseline = load_baseline()
        write_baseline(lowered(counts, baseline))
        allowances = {name: allowance(ROOT / name) for name in counts["sentences"]}
        messages = problems(counts, baseline, allowances)
        print("\n".join([*messages, f"Updated {BASELINE.relative_to(ROOT)}."]))
        return int(bool(messages))
    flags, totals = Counter(), Counter()
    for path in files([path.resolve() for path in options.paths]):
        for kind, prose in texts(path).items():
            for sentence in prose:
                rules = broken(kind, sentence)
                flags[kind] += bool(rules)
                if rules and options.show:
                    print(f"{path.relative_to(ROOT)}: {', '.join(rules)}: {sentence[:160]}")
            totals[kind] += len(prose)
        if options.show and path.suffix == ".py":
            for line, name, is_forbidden in bindings(path):
                if is_forbidden:
                    print(f"{path.relative_to(ROOT)}:{line}: forbidden name: {name}")
    for kind, total in totals.items():
        print(f"{kind}: {flags[kind]} of {total} sentences flagged, {100 * flags[kind] / max(total, 1):.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
