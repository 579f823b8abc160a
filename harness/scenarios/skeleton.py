"""Makes the skeleton of a scenario from a plain script: a header, and the script's statements in phases and steps.

Imports become the phase `import`, and statements above the step become the phase `build`. The step is the code that
`# harness: step` marks at the top level. Without a mark, the remaining code is one step, timed once.
"""

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.scenarios.script_files import find_imports

#: The packages of modules, if their names differ.
_PACKAGES = {"cv2": "opencv-python", "PIL": "pillow", "sklearn": "scikit-learn", "tf_keras": "tf-keras"}


@dataclass(frozen=True, slots=True)
class _Parts:
    """A script's lines: lines that can't be in a function, imports, and the lines above, in and below the step."""

    outside: Sequence[str]
    imports: Sequence[str]
    above: Sequence[str]
    step: Sequence[str]
    below: Sequence[str]
    has_mark: bool


def make_skeleton(name: str, text: str, title: str) -> str:
    """Return the text of a scenario for a script. `text` is the script's text, and must be valid Python."""
    tree = ast.parse(text)
    parts = _split_parts(text, tree)
    dependencies = json.dumps(
        [_PACKAGES.get(module, module) for module in find_imports(text) if module not in sys.stdlib_module_names]
    )
    lines = [
        "# /// script",
        '# requires-python = ">=3.6"',
        f"# dependencies = {dependencies}",
        "#",
        "# [tool.harness]",
        f"# title  = {json.dumps(title, ensure_ascii=False)}",
        '# source = ""                        # the URL of the original, if any',
        "#",
        "# # To vary a value, make it an axis, and a parameter of the function:",
        "# # [tool.harness.axes]",
        '# # size = ["32", "1024"]',
        "#",
        "# [[tool.harness.compare]]",
        '# name  = "release vs release"',
        '# along = "environment"',
        "# ///",
        f'"""Describe here what one step of {name} does."""',
        "",
        *parts.outside,
        "from kit import main",
        "",
        "",
        "def scenario(bench):",
        *_format_phase("import", parts.imports),
        *_format_phase("build", parts.above),
        *_format_step(parts),
        *_indent(parts.below, 4),
        "    # compared cells must have the same fingerprint: pass a result that every correct variant computes",
        "    # bench.fingerprint(result=float(result))",
        "",
        "",
        'if __name__ == "__main__":',
        "    main(scenario)",
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _split_parts(text: str, tree: ast.Module) -> _Parts:
    """Assign every line of the script to its part. A statement includes comments and empty lines above it."""
    lines = text.split("\n")
    marks = {number: line for number, line in _find_comments(text) if line.startswith("# harness:")}
    outside: list[str] = []
    imported: list[str] = []
    above: list[str] = []
    step: list[str] = []
    below: list[str] = []
    start, step_end, part = 0, 0, imported
    for index, statement in enumerate(tree.body):
        statement_lines, first_line = range(start, _find_end(statement)), min(_find_starts(statement))
        start, is_docstring = _find_end(statement), index == 0 and ast.get_docstring(tree) is not None
        mark_texts = [marks[number] for number in statement_lines if number in marks and number < first_line]
        if part is step and first_line > step_end:
            part = below
        elif part in (imported, above) and "# harness: step" in mark_texts:
            part = step
            ends = (number for number, word in marks.items() if number > start and word == "# harness: end")
            step_end = next(ends, 0)
        elif part is imported and not is_docstring and not _is_import_or_variable(statement):
            part = above
        code_lines = [lines[number] for number in statement_lines if number not in marks]
        if is_docstring:
            continue
        target = outside if isinstance(statement, ast.ImportFrom) and _must_be_global(statement) else part
        target.extend(code_lines)
    if not step:
        return _Parts(outside, imported, [], above, [], has_mark=False)
    return _Parts(outside, imported, above, step, below, has_mark=True)


def _find_comments(text: str) -> Iterable[tuple[int, str]]:
    """Yield the 0-based line and the text of each separate comment at the top level."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.start[1] == 0:
            yield token.start[0] - 1, " ".join(token.string.split())


def _find_starts(statement: ast.stmt) -> list[int]:
    """Return the 0-based lines in which a statement and its decorators start."""
    return [node.lineno - 1 for node in [statement, *getattr(statement, "decorator_list", ())]]


def _is_import_or_variable(statement: ast.stmt) -> bool:
    """Return whether a statement is an import, or sets a process variable before the imports."""
    if isinstance(statement, ast.Assign):
        return ast.unparse(statement.targets[0]).startswith("os.environ[")
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _must_be_global(statement: ast.ImportFrom) -> bool:
    """Return whether an import can't be in a function."""
    return statement.module == "__future__" or any(alias.name == "*" for alias in statement.names)


def _format_step(parts: _Parts) -> list[str]:
    """Return the function `step`, and the lines that measure it."""
    if not parts.has_mark:
        # one function, so that all names stay in one scope, as in the script
        return ["    def step():", *(_indent(parts.step, 8) or ["        pass"]), "", "    bench.once(step)"]
    above, step_body, below = (ast.parse("\n".join(lines)).body for lines in (parts.above, parts.step, parts.below))
    bound_above = set(_find_bound_names(above))
    outer_names = {*bound_above, *_find_bound_names(below), *_find_read_names(below)}
    shared_names = sorted(set(_find_bound_names(step_body)) & outer_names)
    return [
        *(f"    {name} = None" for name in shared_names if name not in bound_above),
        "    def step():",
        *([f"        nonlocal {', '.join(shared_names)}"] if shared_names else []),
        *_indent(parts.step, 8),
        "",
        '    with bench.phase("first call"):',
        "        step()",
        "    bench.measure(step)",
    ]


def _format_phase(name: str, lines: Sequence[str]) -> list[str]:
    body = _indent(lines, 8)
    return [f'    with bench.phase("{name}"):', *body] if any(line.strip() for line in body) else []


def _indent(lines: Sequence[str], spaces: int) -> list[str]:
    """Indent lines of Python, but not the lines within multi-line strings, whose value would change.

    `global` becomes `nonlocal`, because the script's global names become names of the function `scenario`. The check of
    `__main__` becomes true.
    """
    text = "\n".join(lines)
    string_lines = set(_find_text_lines(text))
    indented = []
    for number, line in enumerate(lines):
        if number in string_lines or not line.strip():
            indented.append(line)
            continue
        code = re.sub(r"^(\s*)global ", r"\1nonlocal ", line)
        indented.append(" " * spaces + re.sub(r"^if __name__ == .*:$", "if True:  # it was started as a program", code))
    while indented and not indented[0].strip():
        indented.pop(0)
    while indented and not indented[-1].strip():
        indented.pop()
    return indented


def _find_text_lines(text: str) -> Iterable[int]:
    """Yield the 0-based lines that start within a multi-line string."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING or tokenize.tok_name[token.type].startswith("FSTRING"):
            yield from range(token.start[0], token.end[0])


def _find_end(statement: ast.stmt) -> int:
    assert statement.end_lineno is not None, "parsed statements have positions"
    return statement.end_lineno


def _find_bound_names(body: Sequence[ast.stmt]) -> Iterable[str]:
    """Yield the names that statements bind, without names inside functions and classes."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
                yield node.id
            elif isinstance(node, ast.Import | ast.ImportFrom):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)


def _find_read_names(body: Sequence[ast.stmt]) -> Iterable[str]:
    return (node.id for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name))
