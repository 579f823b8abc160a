"""Sentences about the error of a script, with its line and advice."""

import os
import re
import sys
import traceback

from .names import ALIASES, MOVED, PACKAGES, RENAMED
from .outcome import TRACEBACK_CHARACTERS, ScriptFailed, one_line
from .printed import render_output

# The largest number of characters of the last line on standard error.
CHARACTERS = 200

_CELL = re.compile(r"# cell (\d+)$")


def describe_exit(status, errors, source):
    """Return the reason for an exit status other than 0: the last line on standard error, and missing arguments."""
    reason = "it ended with exit status {}".format(status)
    lines = [line.strip() for line in render_output(errors).split("\n") if line.strip() and "--helpshort" not in line]
    if not lines:
        return reason
    advice = advise_arguments(lines[-1], source)
    return "{}: {}{}".format(reason, lines[-1][:CHARACTERS].rstrip("."), ". " + advice if advice else "")


def advise_arguments(line, source):
    """Return a hint to pass the arguments that the script requires, or an empty text."""
    required = re.search(r"the following arguments are required: (.+)", line)
    names = required.group(1).split(", ") if required else []
    if not required:
        names = re.findall(r"(?:[Mm]issing (?:option|argument)|[Ff]lag) ['\"]?(--[\w-]+)", line)[:1]
    parts = []
    for name in names:
        option = next((part for part in name.split("/") if part.startswith("--")), name.split("/")[0])
        number = r"add_argument\([^)]*['\"]{}['\"][^)]*type\s*=\s*(?:int|float)\b".format(re.escape(option))
        value = "N" if re.search(number, source) else option.lstrip("-").upper().replace("-", "_")
        parts.append("{} {}".format(option, value) if option.startswith("-") else value)
    return "Pass the script's arguments at the end of the command: -- {}".format(" ".join(parts)) if parts else ""


def report_error(error, path, name, source):
    """Print the traceback of a script's error as Python would, and return the exception for it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace or error.__traceback__))
    sys.stderr.write(text)
    lines = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    location = " ({})".format(describe_line(name, source, lines[-1])) if lines else ""
    reason = "{}: {}".format(type(error).__name__, one_line(error)).rstrip(" :")
    advice = advise(error)
    message = "{}. {}".format(reason.rstrip(".") + location, advice) if advice else reason + location
    return ScriptFailed(message, text[-TRACEBACK_CHARACTERS:])


def advise(error):
    """Return advice for an error that comes from the environment of the script; empty for other errors."""
    path = getattr(error, "filename", None)
    text = str(error)
    if isinstance(error, FileNotFoundError):
        match = re.search(r"([^\s'\"]+) not found|No such file or directory: '([^']+)'", text)
        path = path or (match and (match.group(1) or match.group(2)))
        if isinstance(path, str):
            return "To pass the file: --with {}".format(make_relative(path))
    if isinstance(error, (NameError, ImportError)):
        return advise_name(error) if isinstance(error, NameError) else advise_import(error)
    if isinstance(error, EOFError) and "EOF when reading" in text:
        return "The script's standard input is empty. To pass a file: --stdin FILE"
    if re.search(
        r"name resolution|Name or service not known|URL fetch failure|Network is unreachable|urlopen error", text
    ):
        return advise_download(text)
    if re.search(r"GPU:\d+\S* (?:unknown device|because no|but available)|satisfy device specification \S*GPU", text):
        return "Pass --gpu on a machine with a GPU, or replace the GPU in the script's tf.device by '/cpu:0'"
    return ""


def advise_download(text):
    """Return advice for the error of a download. Keras loads a file from its folder instead of downloading it."""
    match = re.search(r"/(?:keras-(?P<models>applications)|tf-keras-datasets)/(?:[\w.-]+/)*(?P<file>[\w.-]+)", text)
    folder = "~/.keras/{}/".format("models" if match.group("models") else "datasets") if match else ""
    place = " to {}".format(folder.rstrip("/")) if folder else ""
    name = folder + match.group("file") if match else "FILE"
    return "A launch has no network: download the file first{}, and pass it with --with {}".format(place, name)


def advise_name(error):
    """Return advice for a missing name."""
    name = (re.findall(r"name '(\w+)' is not defined", str(error)) or [""])[0]
    if name in ALIASES:
        return "Add this line to its start: {}".format(ALIASES[name])
    return "Only Python 2 has this name. Write {}".format(RENAMED[name]) if name in RENAMED else ""


def advise_import(error):
    """Return advice for a missing module, or for a missing package that an installed package requires."""
    needed = re.search(r"requires? ['`]?([\w-]+)['`]? to be installed", str(error))
    if needed:
        return "Add the package to the environment: -e ENVIRONMENT+{}".format(needed.group(1))
    if not (error.name and "No module named" in str(error)):
        return ""
    package = error.name.partition(".")[0]
    if package in MOVED:
        return "Only Python 2 has this module. Write {}".format(MOVED[package])
    if package in PACKAGES:
        return "Add the package to the environment: -e ENVIRONMENT+{}".format(PACKAGES[package])
    text = (
        "If {0} is your own file or folder, pass it: --with {0}.py. "
        "If it is a package, add it to the environment: -e ENVIRONMENT+{0}"
    )
    return text.format(package)


def make_relative(path):
    """Return a path relative to the script's folder. The path of a file outside of this folder isn't changed."""
    for folder in (os.getcwd(), os.path.dirname(sys.modules["__main__"].__file__)):
        if path.startswith(folder + os.sep):
            return path[len(folder) + 1 :]
    return path


def describe_line(name, source, line):
    """Describe a line of the script; in a notebook, with its cell and the line in the cell."""
    if name.endswith((".py", ".ipynb")):
        earlier_lines = source.split("\n")[: line - 1]
        for distance, text in enumerate(reversed(earlier_lines)):
            match = _CELL.match(text)
            if match and _CELL.match(source.split("\n")[0]):
                return "cell {}, line {}".format(match.group(1), distance + 1)
    return "{}, line {}".format(name, line)
