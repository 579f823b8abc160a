"""Checks that a file's function `scenario` has the axes as parameters. The file is parsed, never imported."""

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence

from harness.package_data import load_kit_module
from harness.toml import Findings, list_choices

_FUNCTION = "scenario"
_MINORS = range(6, 100)


def check(text: str, axes: Mapping[str, Sequence[str]], requires_python: str, findings: Findings) -> None:
    """Add problems of a file's Python code to `findings`: syntax errors, and parameters that don't match the `axes`."""
    oldest = find_oldest_python(requires_python)
    try:
        with warnings.catch_warnings():
            # Python prints warnings about the code when the scenario runs
            warnings.simplefilter("ignore")
            tree = ast.parse(text, feature_version=oldest)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        findings.at(
            getattr(error, "lineno", None) or 1, *find_version_problem(str(getattr(error, "msg", error)), oldest)
        )
        return
    definitions = [node for node in tree.body if _FUNCTION in _find_bound_names(node)]
    if not definitions:
        fix = f"harness calls this function: write `def {_FUNCTION}({', '.join(['bench', *axes])}):`."
        line = tree.body[-1].lineno if tree.body else len(text.split("\n"))
        findings.at(line, f"The file doesn't define {_FUNCTION}().", fix)
        return
    definition = definitions[-1]
    # the parameters of a decorated function, or of another object, aren't known here; the worker checks them
    if isinstance(definition, ast.FunctionDef) and not definition.decorator_list:
        _check_parameters(definition, axes, findings)


def uses_keras(text: str) -> bool:
    """Return whether a file's code, as far as it can be parsed, imports Keras or uses it from TensorFlow."""
    if "keras" not in text:
        return False
    tree = load_kit_module("names").parse(text)
    return tree is not None and any(_is_keras(node) for node in ast.walk(tree))


def _is_keras(node: ast.AST) -> bool:
    match node:
        case ast.Name(id="keras" | "tf_keras") | ast.Attribute(attr="keras"):
            return True
        case ast.Import():
            return any("keras" in alias.name.partition(".")[0] for alias in node.names)
        case ast.ImportFrom():
            return "keras" in (node.module or "")
    return False


def find_oldest_python(requires: str) -> tuple[int, int]:
    """Return the oldest Python, from 3.6 on, that `requires-python` allows; 3.6 if it allows none or is invalid."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        allowed = SpecifierSet(requires)
    except InvalidSpecifier:
        return 3, 6
    # `>3.6` and `>=3.6.1` allow some versions of 3.6
    return 3, next((minor for minor in _MINORS if allowed.contains(f"3.{minor}.99")), 6)


def find_version_problem(message: str, version: tuple[int, int]) -> tuple[str, str]:
    """Return the problem and the fix for a file that this version of Python can't compile."""
    version_text = f"{version[0]}.{version[1]}"
    fix = f"The file must be valid in the oldest Python version that `requires-python` allows: {version_text}."
    return f"This is not valid Python {version_text}: {message.rstrip('.')}.", fix


def _find_bound_names(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module binds."""
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
                name
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.stmt)
                for name in _find_bound_names(child)
            )


def _check_parameters(function: ast.FunctionDef, axes: Mapping[str, Sequence[str]], findings: Findings) -> None:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    if not positional and arguments.vararg is None:
        fix = f"Make `bench` the first parameter: `def {_FUNCTION}(bench, …)`."
        findings.at(function.lineno, f"{_FUNCTION}() has no parameter `bench`.", fix)
    parameters = [*positional[1:], *arguments.kwonlyargs]
    missing = [axis for axis in axes if axis not in {parameter.arg for parameter in parameters}]
    for axis in missing if arguments.kwarg is None else ():
        fix = f"Add the parameter `{axis}`, or remove the axis from the header."
        findings.at(function.lineno, f"{_FUNCTION}() needs a parameter for the axis `{axis}`.", fix)
    # defaults belong to the last of the positional parameters
    positional_defaults = zip(reversed(positional), reversed(arguments.defaults), strict=False)
    keyword_defaults = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    defaults = {parameter.arg: value for parameter, value in (*positional_defaults, *keyword_defaults)}
    for parameter in parameters:
        name, default = parameter.arg, defaults.get(parameter.arg)
        if name not in axes and default is None:
            fix = f"{list_choices(name, axes, 'axes')} Add the parameter to [tool.harness.axes], or give it a default."
            text = f"The parameter `{name}` of {_FUNCTION}() is not an axis and has no default."
            findings.at(parameter.lineno, text, fix)
        elif name in axes and isinstance(default, ast.Constant):
            # an axis without values is invalid, which is reported elsewhere
            values = axes[name]
            if values and default.value not in values:
                fix = (
                    "If you run the file without harness, it uses this default. "
                    f"{list_choices(str(default.value), values, 'values')}"
                )
                text = f"The default {default.value!r} of `{name}` is not a value of the axis."
                findings.at(default.lineno, text, fix)
