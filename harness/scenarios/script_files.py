"""Finds the files that launches get with a script: files that the user lists, and files that the script names."""

import ast
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.model.errors import UsageError
from harness.package_data import load_kit_module

#: Modules of an environment. A file with such a name next to the script would hide the module.
TAKEN = {"kit", "numpy", "tensorflow", "keras", "tf_keras"}

#: The maximum number of files in a folder that is copied to launches.
MOST_FILES = 1000
#: The maximum size in bytes of a file or folder that is copied to launches without --with.
MOST_BYTES = 64 * 1024**2

#: The name of Keras's cache folder, on this machine and in a launch.
_KERAS = ".keras"


def map_files(listed: Sequence[Path], script: Path) -> dict[str, Path]:
    """Return the listed files by their paths in a launch, relative to the script. A folder stands for all its files.

    If several files have the same path in a launch, the first one counts. Raises UsageError if a folder has too many
    files.
    """
    files: dict[str, Path] = {}
    for path in listed:
        target = _get_relative_path(path, script)
        if not path.expanduser().is_dir():
            files.setdefault(target, path)
            continue
        folder_files = _list_files(path.expanduser())
        if len(folder_files) > MOST_FILES:
            raise UsageError(f"The folder {path} has more than {MOST_FILES:,} files.", "Pass a smaller folder.")
        files = {f"{target}/{name}": file for name, file in folder_files.items()} | files
    return files


def _get_relative_path(path: Path, script: Path) -> str:
    """Return the path of a copied file relative to the script.

    A file in the Keras cache or in the script's folder keeps its path in that folder. Any other file has the path that
    was passed, or only its name if that path is absolute or starts outside the current folder.
    """
    parts = path.expanduser().absolute().parts
    if _KERAS in parts:
        return "/".join(parts[parts.index(_KERAS) :])
    absolute = Path(os.path.normpath(path.expanduser().absolute()))
    folder = Path(os.path.normpath(script.absolute())).parent
    if absolute.is_relative_to(folder) and absolute != folder:
        return absolute.relative_to(folder).as_posix()
    is_relative = not path.is_absolute() and not {"..", "~"} & {*path.parts} and path.parts
    return path.as_posix() if is_relative else absolute.name


def _list_files(folder: Path) -> dict[str, Path]:
    """Return all files below a folder by their relative paths, without hidden files and compiled code."""
    files = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if (
            path.is_file()
            and not path.is_symlink()
            and not any(part[0] == "." or part == "__pycache__" for part in parts)
        ):
            files["/".join(parts)] = path
            if len(files) > MOST_FILES:
                break
    return files


def find_beside(path: Path, text: str) -> list[Path]:
    """Return the modules that a script imports from its own folder, and the files and folders that its strings name.

    The imports and strings of these modules count too. Hidden files, files outside the folder, and files and folders
    above the limits MOST_BYTES and MOST_FILES aren't included. As in `python SCRIPT`, a file can hide a module of the
    standard library, except a built-in one. A pasted text doesn't belong to its folder, so it gets no such file.
    """
    folder, paths, texts = path.absolute().parent, [], [text]
    standard = sys.builtin_module_names if path.suffix in (".py", ".ipynb") else sys.stdlib_module_names
    while texts:
        modules, named_paths = _find_names(texts.pop())
        modules = [name for name in modules if name not in standard]
        names = [file for name in modules for file in (f"{name}.py", name)] + named_paths
        for name in dict.fromkeys(names):
            file = folder / name
            if file in paths or file == path.absolute() or not _can_copy(file, folder):
                continue
            if file.is_dir() and name in modules and not any(file.glob("*.py")):
                continue
            paths.append(file)
            sources = [file] if file.suffix == ".py" else list(file.glob("**/*.py")) if file.is_dir() else []
            texts += [source.read_text("utf-8", "replace") for source in sources]
    return paths


def _find_names(text: str) -> tuple[list[str], list[str]]:
    """Return the top-level modules that a script imports, and the strings in it that could be relative paths of files.

    Both are in order, and empty after a syntax error. Modules of an environment are left out.
    """
    tree = load_kit_module("names").parse(text)
    modules, strings = list[str](), list[str]()
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            modules += [alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            modules.append(node.module.partition(".")[0])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.append(node.value)
    named_paths = [name for name in strings if re.fullmatch(r"(?!\.*/*$)[^\n\0]{1,200}", name)]
    return [name for name in dict.fromkeys(modules) if name not in TAKEN], named_paths


def _can_copy(file: Path, folder: Path) -> bool:
    """Return whether a file or folder is below the script's folder, small, and not hidden."""
    try:
        normalized = Path(os.path.normpath(file))
        parts = normalized.relative_to(folder).parts
        is_inside = file.resolve().is_relative_to(folder.resolve())
        if not parts or not is_inside or any(part[0] == "." or part == "__pycache__" for part in parts):
            return False
        files = list(_list_files(file).values()) if file.is_dir() else [file] if file.is_file() else []
        return 0 < len(files) <= MOST_FILES and sum(path.stat().st_size for path in files) <= MOST_BYTES
    except (OSError, ValueError):
        return False
