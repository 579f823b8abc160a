"""Signatures of files, made with a secret of this user on this machine. They show whether a file was written here.

Somebody who sends the folder of a run to this user doesn't have the secret. So requests in a received run.json can't be
mistaken for requests of this user.
"""

import fcntl
import hmac
import os
import re
import secrets
from pathlib import Path

from harness.files import create_file, get_data_dir, open_regular_file, read, write_atomically

#: The length of the secret in bytes. The hash has the same length.
_LENGTH = 32

#: The end of a JSON object with several lines. The first is without a signature, and the second is with a signature.
_END = b"\n}\n"
_SIGNED_END = re.compile(rb',\n  "signature": "([0-9a-f]{64})"\n}\n\Z')


def sign(document: bytes) -> bytes:
    """Add a signature to a JSON object (indented by 2 spaces), as its last key, and return the object.

    The signature is the HMAC-SHA-256 of the other keys, in hexadecimal digits. The secret is created at its first use.
    If the secret can't be stored, the object is returned without a signature.
    """
    try:
        signature = _compute_signature(_load_secret(), document)
    except (OSError, ValueError):
        return document
    return document.removesuffix(_END) + f',\n  "signature": "{signature}"'.encode() + _END


def is_from_here(document: bytes) -> bool:
    """Return whether this user signed the document with `sign` on this machine."""
    match = _SIGNED_END.search(document)
    if match is None:
        return False
    try:
        expected = _compute_signature(read(_get_path()), document[: match.start()] + _END)
    except (OSError, ValueError):
        return False
    return hmac.compare_digest(expected.encode(), match[1])


def _get_path() -> Path:
    return get_data_dir() / "secret"


def _compute_signature(secret: bytes, data: bytes) -> str:
    if len(secret) < _LENGTH:  # an incomplete secret could be guessed
        raise ValueError("The secret is too short.")
    return hmac.new(secret, data, "sha256").hexdigest()


def _load_secret() -> bytes:
    """Return the secret. If it is missing or too short, create it. If several processes do this, the first one wins.

    Raises OSError if the secret can't be stored.
    """
    path = _get_path()
    if not path.exists():
        with create_file(path) as temporary_path:
            descriptor = os.open(temporary_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_LENGTH))
                file.flush()
                os.fsync(file.fileno())
    secret = read(path)
    if len(secret) < _LENGTH:
        _replace_short_secret(path)
        secret = read(path)
    return secret


def _replace_short_secret(path: Path) -> None:
    """Replace a secret that is empty or too short, unless another user owns it. Raises OSError."""
    handle = open_regular_file(Path(path.name), within=path.parent)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        file = os.fstat(handle)
        # another process may have replaced it in the meantime
        if file.st_size < _LENGTH and file.st_uid == os.geteuid() and os.path.samestat(file, path.lstat()):
            write_atomically(path, secrets.token_bytes(_LENGTH), synced=True)
    finally:
        os.close(handle)
