"""Identity of this machine: a random id that is stored on it. CPU model and host name can't identify a machine."""

import json
import os
import re
import secrets
from pathlib import Path

from harness.files import create_file, get_data_dir, parse_json, read, write_atomically
from harness.model.errors import CannotRunHereError, DamagedError, UsageError
from harness.model.run import Machine

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TEXT = re.compile(r"[^\x00-\x1f\x7f]{0,64}")


def load_machine() -> Machine:
    """Return the id and the name of this machine. The first call creates the id and stores it.

    `HARNESS_MACHINE_ID` is the id of a machine without a persistent folder, such as a CI container. `HARNESS_MACHINE`
    replaces the stored name. Raises UsageError for an invalid variable or file, and CannotRunHereError if the id can't
    be stored.
    """
    identity, new_name = os.environ.get("HARNESS_MACHINE_ID"), os.environ.get("HARNESS_MACHINE")
    if identity is not None and not _ID.fullmatch(identity):
        raise UsageError(
            f"Invalid HARNESS_MACHINE_ID {identity!r}.", "Use at most 64 letters, digits, `.`, `_` and `-`."
        )
    machine = Machine(identity) if identity else _read_or_create(_get_path())
    return machine if new_name is None else Machine(machine.id, _check_name(new_name, "HARNESS_MACHINE"))


def name_machine(name: str) -> Machine:
    """Give this machine a name for its later runs; an empty name removes it. Raises the errors of `load_machine`."""
    path = _get_path()
    machine = Machine(_read_or_create(path).id, _check_name(name, "The name"))
    try:
        write_atomically(path, _format_record(machine))
    except OSError as error:
        raise _make_storage_error(path, error) from None
    return machine


def _get_path() -> Path:
    return get_data_dir() / "machine.json"


def _check_name(name: str, what: str) -> str:
    if not _TEXT.fullmatch(name):
        raise UsageError(f"{what} {name!r} isn't a valid name for a machine.", "Use at most 64 characters on one line.")
    return name.strip()


def _format_record(record: Machine) -> str:
    return json.dumps({"id": record.id, "name": record.name}) + "\n"


def _read_or_create(path: Path) -> Machine:
    """Return the machine in the file. If the file is missing, write a new id first."""
    try:
        if not path.exists():
            # if several processes do this at once, the first one wins
            with create_file(path) as part:
                part.write_text(_format_record(Machine(f"m-{secrets.token_hex(4)}")), encoding="utf-8")
        document = parse_json(read(path))
        identity, name = document["id"], document.get("name", "")
    except OSError as error:
        raise _make_storage_error(path, error) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DamagedError(path, "it doesn't contain the id of this machine") from None
    if not (isinstance(identity, str) and isinstance(name, str) and _ID.fullmatch(identity) and _TEXT.fullmatch(name)):
        raise DamagedError(path, "it contains an invalid id or an invalid name of this machine")
    return Machine(identity, name)


def _make_storage_error(path: Path, error: OSError) -> CannotRunHereError:
    return CannotRunHereError(
        f"The id of this machine cannot be saved in {path}: {error.strerror}.",
        "Set HARNESS_DATA_DIR to another folder, or set HARNESS_MACHINE_ID.",
    )
