"""A standalone script of a scenario, which runs without harness: one file with the parts of the kit that it needs."""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import package_data
from harness.model.errors import UsageError
from harness.model.scenario import Scenario
from harness.model.texts import joined

#: Names in the kit that aren't copied, because the template defines them itself.
_TEMPLATE_NAMES = ("main", "NotAvailable")

_TEMPLATE = package_data.FOLDER / "templates" / "repro.py"


def make_standalone(
    scenario: Scenario, text: str, kit: Path, sides: Sequence[Mapping[str, Any]], *, of: str, about: str
) -> str:
    """Return a Python file that runs the two sides alternately, and prints their values and the ratio.

    `text` is the scenario's file, and `kit` is the folder of the kit. Each side has a `label`, the `arguments` of the
    scenario's function, and `environ`, the environment variables of its process. `of` is the name of the compared
    quantity, and `about` is the file's docstring. Raises UsageError if the scenario uses the kit in a way that can't be
    inlined.
    """
    document = _TEMPLATE.read_text(encoding="utf-8")
    # Python treats \r as a line break too
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    work = _extract_script(text, kit) if scenario.script else _extract_work(text, kit)
    if scenario.files:
        about += (
            f"\n\nThis program needs files that aren't in the bundle: {joined(scenario.files)}. Copy them to the "
            "folder of this program, and run it there."
        )
    docstring = (
        "\n\n".join([about, *([] if scenario.script else [ast.get_docstring(ast.parse(text)) or ""])]).strip() + "\n"
    )
    parts = {
        "@about@": docstring.replace("\\", "\\\\").replace('"""', "'''"),
        '"@sides@"': "[\n" + "".join(f"    {json.dumps(dict(side))},\n" for side in sides) + "]",
        '"@of@"': json.dumps(of),
        "# @work@": work.strip("\n"),
    }
    for placeholder, part in parts.items():
        document = document.replace(placeholder, part, 1)
    return document


def _parse(text: str) -> ast.Module:
    """Parse a scenario's file, which may come from another user. Raises UsageError if it isn't valid Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        problem = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else "it is nested too deeply"
        raise UsageError(
            f"The scenario's text in run.json isn't valid Python ({problem}), so no script can be written.",
            "For the results of the run, see its report.md.",
        ) from None


def _extract_script(text: str, kit: Path) -> str:
    """Return the scenario function for a plain script, which runs the whole script once, as the kit does."""
    tree = _parse(text)
    source = next((node for node in tree.body if "SCRIPT" in _list_definitions(node)), None)
    call = next((node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_script_call(node)), None)
    if source is None or call is None:
        raise UsageError("The scenario's text in run.json isn't the text that harness generates for a plain script.")
    name = ast.unparse(call.args[1])
    options = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    parts: dict[str, str] = {}
    for function in ("write_script", "connect"):
        _copy_definition(function, "script", kit, parts)
    parts["SCRIPT"] = ast.get_source_segment(text, source) or ""
    # a script often ends with sys.exit(0), after which this process must still print its numbers
    parts["run_script"] = f"""\
def run_script():
    path = write_script({name}, SCRIPT)
    try:
        exec(compile(SCRIPT, path, "exec"), {{"__name__": "__main__", "__file__": path}})
    except SystemExit as error:
        if error.code not in (None, 0):
            raise"""
    parts["scenario"] = f"""\
def scenario(bench):
    connect({name}, {options.get("arguments", "[]")}, {options.get("stdin", "None")})
    bench.once(run_script)"""
    return "\n\n\n".join(parts.values())


def _is_script_call(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "run_script" and len(call.args) > 1


def _extract_work(text: str, kit: Path) -> str:
    """Return the parts of the kit that the scenario uses, and the scenario without its header and its main block."""
    tree = _parse(text)
    docstring = tree.body[0] if ast.get_docstring(tree) is not None else None
    kept_nodes, kit_names = [], []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "kit" and not node.level:
            if any(alias.asname for alias in node.names):
                raise UsageError(
                    "The scenario imports from the kit under another name, which can't be copied into a script."
                )
            kit_names += [alias.name for alias in node.names if alias.name not in _TEMPLATE_NAMES]
        elif not _is_main_block(node) and node is not docstring:
            kept_nodes.append(node)
    lines = _split_lines(text)
    for node in tree.body:
        if node not in kept_nodes:
            span = _find_lines(node)
            lines[span] = [""] * len(lines[span])
    scenario_code = re.sub(r"# /// script\n(#[^\n]*\n)*?# ///\n", "", "".join(lines), count=1)
    kit_sources = _collect_sources(kit_names, kit)
    definitions = {
        name
        for node in kept_nodes
        for name in _list_definitions(node)
        if not isinstance(node, ast.Import | ast.ImportFrom)
    }
    template = ast.parse(_TEMPLATE.read_text(encoding="utf-8"))
    template_names = {name for node in template.body for name in _list_definitions(node)}
    conflicts = sorted(definitions & (kit_sources.keys() | template_names))
    if conflicts:
        raise UsageError(
            f"The scenario and the code that runs it both define {conflicts[0]}, so they can't be in one file."
        )
    return re.sub(r"\n{4,}", "\n\n\n", "\n\n\n".join([*dict.fromkeys(kit_sources.values()), scenario_code.strip("\n")]))


def _collect_sources(names: Sequence[str], kit: Path) -> dict[str, str]:
    """Return the source code of each name in the kit. Names that a definition needs come before it."""
    modules = {
        alias.name: f"{node.module}"
        for node in ast.parse((kit / "__init__.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    sources: dict[str, str] = {}
    for name in names:
        if name not in modules:
            raise UsageError(f"The kit's {name} can't be copied into a script.")
        _copy_definition(name, modules[name], kit, sources)
    return sources


def _copy_definition(name: str, module: str, kit: Path, sources: dict[str, str]) -> None:
    text = (kit / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    statements = ast.parse(text).body
    node = next((node for node in statements if name in _list_definitions(node)), None)
    if node is None or name in sources or name in _TEMPLATE_NAMES:
        return
    if isinstance(node, ast.ImportFrom) and node.level:
        _copy_definition(name, f"{node.module}", kit, sources)
        return
    used_names = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)} - {name}
    # names that the definition needs come first; this entry ends the recursion if names need each other
    sources[name] = ""
    for dependency in sorted(used_names):
        if any(dependency in _list_definitions(other) for other in statements):
            _copy_definition(dependency, module, kit, sources)
    del sources[name]
    sources[name] = "".join(_split_lines(text)[_find_lines(node)]).strip("\n")


def _list_definitions(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (child.id for target in targets for child in ast.walk(target) if isinstance(child, ast.Name))
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names)


def _is_main_block(node: ast.stmt) -> bool:
    """Return whether a statement is `if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and "__name__" in ast.dump(node.test)


def _split_lines(text: str) -> list[str]:
    """Return the lines that `ast` counts. `splitlines` would also split at a form feed and at U+2028."""
    return [f"{line}\n" for line in text.split("\n")]


def _find_lines(node: ast.stmt) -> slice:
    """Return the indexes of a statement's lines, with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return slice(min([node.lineno, *(decorator.lineno for decorator in decorators)]) - 1, node.end_lineno)
