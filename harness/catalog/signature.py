"""Whether a file's function `scenario` takes what its header gives it. The file is parsed, and never imported."""

import ast
import warnings
from collections.abc import Iterator, Sequence

from harness.catalog.toml import Findings, choices
from harness.model.scenario import Scenario

_NAME = "scenario"
_MINORS = range(6, 100)


def check(text: str, scenario: Scenario, findings: Findings) -> None:
    """Note what is wrong with a file's Python: its syntax, and the parameters of its function and their defaults."""
    oldest = oldest_python(scenario.requires_python)
    try:
        with warnings.catch_warnings():
            # what Python warns of is said when the scenario runs
            warnings.simplefilter("ignore")
            tree = ast.parse(text, feature_version=oldest)
    except (SyntaxError, ValueError) as error:
        findings.at(getattr(error, "lineno", None) or 1, *not_python(str(getattr(error, "msg", error)), oldest))
        return
    definitions = [node for node in tree.body if _NAME in _bound(node)]
    if not definitions:
        fix = f"The harness calls `def {_NAME}(bench{''.join(f', {axis}' for axis in _arguments(scenario))})`."
        findings.at(len(text.split("\n")) if not tree.body else tree.body[-1].lineno, f"There is no {_NAME}().", fix)
        return
    last = definitions[-1]
    # what a decorator or a name bound in another way takes cannot be read here: the worker looks at it
    if isinstance(last, ast.FunctionDef) and not last.decorator_list:
        _check_parameters(last, scenario, findings)


def oldest_python(requires: str) -> tuple[int, int]:
    """The oldest Python from 3.6 on that `requires-python` admits, 3.6 where it admits none."""
    from packaging.specifiers import SpecifierSet

    admitted = SpecifierSet(requires)
    # `>3.6` and `>=3.6.1` admit some 3.6
    return 3, next((minor for minor in _MINORS if admitted.contains(f"3.{minor}.99")), 6)


def not_python(message: str, version: tuple[int, int]) -> tuple[str, str]:
    """The problem and the fix where a Python of that version cannot compile a file."""
    shown = f"{version[0]}.{version[1]}"
    fix = f"It has to compile with the oldest Python that `requires-python` claims, {shown}."
    return f"This is no Python {shown}: {message.rstrip('.')}.", fix


def _arguments(scenario: Scenario) -> list[str]:
    """The axes that are arguments."""
    return [axis for axis in scenario.axes if axis not in scenario.environ]


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.Assign() | ast.AnnAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
        case ast.Import() | ast.ImportFrom():
            yield from (alias.asname or alias.name for alias in node.names)
        case ast.If() | ast.Try() | ast.With():
            yield from (
                name for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.stmt) for name in _bound(inner)
            )


def _check_parameters(function: ast.FunctionDef, scenario: Scenario, findings: Findings) -> None:
    axes, taken = _arguments(scenario), function.args
    positional = [*taken.posonlyargs, *taken.args]
    if not positional and taken.vararg is None:
        findings.at(
            function.lineno, f"{_NAME}() takes no `bench`.", f"It is its first argument: `def {_NAME}(bench, …)`."
        )
    parameters = [*positional[1:], *taken.kwonlyargs]
    names = {parameter.arg for parameter in parameters}
    if taken.kwarg is None:
        for axis in axes:
            if axis not in names:
                fix = f"Give it the parameter `{axis}`, or take the axis out of the header."
                findings.at(function.lineno, f"{_NAME}() lacks the axis `{axis}`.", fix)
    defaults = _defaults(taken)
    for parameter in parameters:
        name, default = parameter.arg, defaults.get(parameter.arg)
        if name not in axes and default is None:
            fix = f"{choices(name, axes, 'axes')} Write it in [tool.harness.axes], or give the parameter a default."
            findings.at(parameter.lineno, f"The parameter `{name}` of {_NAME}() is no axis and has no default.", fix)
        elif name in axes and isinstance(default, ast.Constant) and _is_strange(default, scenario.axes[name]):
            fix = f"By hand it is what the axis takes. {choices(str(default.value), scenario.axes[name], 'values')}"
            findings.at(default.lineno, f"The default {default.value!r} of `{name}` is no value of the axis.", fix)


def _defaults(taken: ast.arguments) -> dict[str, ast.expr]:
    positional = [*taken.posonlyargs, *taken.args]
    first = len(positional) - len(taken.defaults)
    found = {parameter.arg: default for parameter, default in zip(positional[first:], taken.defaults, strict=True)}
    named = zip(taken.kwonlyargs, taken.kw_defaults, strict=True)
    return found | {parameter.arg: default for parameter, default in named if default is not None}


def _is_strange(default: ast.Constant, values: Sequence[str]) -> bool:
    """Whether a parameter's default is none of its axis's values, where these could be read."""
    return bool(values) and default.value not in values
