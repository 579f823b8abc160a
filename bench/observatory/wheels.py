"""The differences between two wheels of a pure-Python package, and a wheel in which old functions are put back."""

import ast
import base64
import hashlib
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

#: The local version of wheels with functions that are put back.
PUT_BACK = "putback"


@dataclass(frozen=True, slots=True)
class Function:
    """A function in a file of a wheel: its name with the names of its classes, and its lines, from 1 on."""

    name: str
    first: int
    last: int
    text: str


def find_day(version: str) -> str:
    """Return the day of a nightly version, in ISO 8601. Raises ValueError if the version has none."""
    match = re.search(r"\.dev(\d{4})(\d{2})(\d{2})", version)
    if not match:
        raise ValueError(f"{version} names no day")
    return "-".join(match.groups())


def fetch_wheel(package: str, version: str, folder: Path) -> Path:
    """Download the wheel of a version into a folder, if it isn't there, and return its path."""
    prefix = f"{package.replace('-', '_')}-{version}-"
    if not (found := sorted(folder.glob(f"{prefix}*.whl"))):
        words = ["download", "--quiet", "--no-deps", "--pre", "--only-binary", ":all:", "--dest", str(folder)]
        subprocess.run([sys.executable, "-m", "pip", *words, f"{package}=={version}"], check=True)
        found = sorted(folder.glob(f"{prefix}*.whl"))
    return found[0]


def read_files(wheel: Path) -> dict[str, str]:
    """Return the Python files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".py")}


def find_folders(wheel: Path) -> set[str]:
    """Return the top folders of a wheel's Python files."""
    return {name.split("/")[0] for name in read_files(wheel)}


def find_functions(text: str) -> dict[str, Function]:
    """Return the functions of a file by their name with the names of their classes, without nested functions."""
    lines = text.splitlines(keepends=True)
    functions: dict[str, Function] = {}

    def visit(body: Iterable[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                last = node.end_lineno or node.lineno
                name = f"{prefix}{node.name}"
                functions[name] = Function(name, first, last, "".join(lines[first - 1 : last]))
            elif isinstance(node, ast.If | ast.Try | ast.With):
                visit(node.body, prefix)

    visit(ast.parse(text).body, "")
    return functions


def compare_files(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the changed files with their changed, new and removed functions.

    Files without a changed function have an empty list. Comments and blank lines don't count.
    """
    changed: dict[str, list[str]] = {}
    for path in sorted({*before, *after}):
        old, new = before.get(path, ""), after.get(path, "")
        if old == new or ast.dump(ast.parse(old)) == ast.dump(ast.parse(new)):
            continue
        functions = find_functions(old), find_functions(new)
        changed[path] = [
            name
            for name in dict.fromkeys([*functions[1], *functions[0]])
            if _dump(functions[0].get(name)) != _dump(functions[1].get(name))
        ]
    return changed


def _dump(function: Function | None) -> str:
    return ast.dump(ast.parse(_dedent(function.text))) if function else ""


def _dedent(text: str) -> str:
    indent = len(text) - len(text.lstrip(" "))
    return "if True:\n" + text if indent else text


def put_back(text: str, old: str, names: Iterable[str]) -> str:
    """Return a file's text with the functions `names` from `old`.

    A function that only `old` has is added, after the last function of its class or at the end of the file. A function
    that only `text` has stays.
    """
    lines = text.splitlines(keepends=True)
    functions, earlier = find_functions(text), find_functions(old)
    changes: list[tuple[int, int, str]] = []
    for name in names:
        if name not in earlier:
            continue
        owner = name.rpartition(".")[0]
        own = [each for each in functions.values() if owner and each.name.rpartition(".")[0] == owner]
        if name in functions:
            changes.append((functions[name].first - 1, functions[name].last, earlier[name].text))
        elif own or not owner:
            end = max(each.last for each in own) if own else len(lines)
            changes.append((end, end, f"\n{earlier[name].text}"))
    for first, last, replacement in sorted(changes, reverse=True):
        lines[first:last] = [replacement]
    return "".join(lines)


def write_wheel(wheel: Path, files: Mapping[str, str], folder: Path) -> Path:
    """Write a copy of a wheel with other texts of some files. Its local version has a hash of these texts."""
    package, version, *tags = wheel.name.split("-")
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:8]
    new = f"{version}+{PUT_BACK}.{digest}"
    path = folder / "-".join([package, new, *tags])
    info, new_info = (f"{package}-{each}.dist-info/" for each in (version, new))
    record = []
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            if name.endswith(".dist-info/RECORD"):
                continue
            data = files[name].encode() if name in files else source.read(name)
            if name == f"{info}METADATA":
                data = data.replace(f"\nVersion: {version}\n".encode(), f"\nVersion: {new}\n".encode(), 1)
            new_name = name.replace(info, new_info)
            hashed = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{new_name},sha256={hashed},{len(data)}\n")
            target.writestr(new_name, data)
        target.writestr(f"{new_info}RECORD", "".join(record) + f"{new_info}RECORD,,\n")
    return path
