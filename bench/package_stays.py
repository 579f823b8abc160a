"""Counts the packages that a command enters on its way to a plan: `python -m bench.package_stays matrix --dry-run`.

A stay is a series of calls from `cli` or `session` into one package below them. Calls that this package makes itself
belong to the stay. A return is a stay in a package that the command had already left. The data model and single modules
aren't counted.
"""

import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import harness.cli
import harness.session

ROOT = Path(harness.__file__).parent
#: The packages whose calls are counted, and what every package may use.
CALLERS, UNCOUNTED = ("cli", "session"), ("model",)


def find_room(code: CodeType) -> str:
    """Return the package of harness in which some code is; empty for other code, and for code that isn't counted."""
    path = Path(code.co_filename)
    names = path.relative_to(ROOT).parts if path.is_relative_to(ROOT) else ()
    return names[0] if len(names) > 1 and names[0] not in UNCOUNTED else ""


def find_stays(words: list[str]) -> list[tuple[str, str]]:
    """Run a command, and return its stays before the plan is complete: the package, and the first function in it."""
    stays: list[tuple[str, str]] = []

    def note_call(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "return" and code.co_qualname == "plan" and code.co_filename.endswith("planning/plan.py"):
            sys.setprofile(None)
        room = find_room(code) if event == "call" else ""
        if not room or room in CALLERS or (stays and stays[-1][0] == room):
            return
        while caller := frame.f_back:
            if caller.f_code.co_name == "<module>" and find_room(caller.f_code):
                return  # definitions in a module that is imported
            if find_room(caller.f_code) not in ("", *CALLERS):
                return
            frame = caller
        stays.append((room, code.co_qualname))

    sys.argv = ["harness", *words]
    sys.setprofile(note_call)
    try:
        harness.cli.main()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    return stays


if __name__ == "__main__":
    entered = find_stays(sys.argv[1:])
    rooms = [room for room, _ in entered]
    for index, (room, function) in enumerate(entered):
        print(f"{room}: {function}{' (return)' if room in rooms[:index] else ''}", file=sys.stderr)
    print(f"{len(entered)} stays, {len(entered) - len(set(rooms))} returns", file=sys.stderr)
