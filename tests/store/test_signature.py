"""What was written here is known again, and nothing else is."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.files import get_data_dir
from harness.store.signature import is_from_here, sign

DOCUMENT = (json.dumps({"id": "run", "plan": {"rounds": 1}}, indent=2) + "\n").encode()


def test_a_signed_document_is_known_again_until_it_is_changed():
    signed = sign(DOCUMENT)
    assert is_from_here(signed)
    read = json.loads(signed)
    assert len(read.pop("signature")) == 64
    assert read == json.loads(DOCUMENT)
    assert sign(DOCUMENT) == signed
    signed = sign(DOCUMENT)
    for other in (DOCUMENT, signed.replace(b'"rounds": 1', b'"rounds": 2'), signed[:-1], signed + signed, b""):
        assert not is_from_here(other)


def test_another_users_signature_is_none_here(tmp_path, monkeypatch):
    signed = sign(DOCUMENT)
    monkeypatch.setenv("HARNESS_DATA_DIR", str(tmp_path / "other"))
    assert not is_from_here(signed)
    assert is_from_here(sign(DOCUMENT))
    assert not (get_data_dir() / "secret").stat().st_mode & 0o077


def test_where_no_secret_can_be_kept_nothing_is_signed(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HARNESS_DATA_DIR", str(tmp_path / "file"))
    assert sign(DOCUMENT) == DOCUMENT


@pytest.mark.parametrize("kept", [0, 31])
def test_a_secret_that_was_cut_short_is_replaced_once(kept):
    signed = sign(DOCUMENT)
    path = get_data_dir() / "secret"
    path.write_bytes(path.read_bytes()[:kept])
    assert not is_from_here(signed)
    with ThreadPoolExecutor(8) as pool:
        documents = [*pool.map(sign, [DOCUMENT] * 8)]
    assert all(map(is_from_here, documents))
    assert not is_from_here(signed)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_short_secret_of_another_user_signs_nothing_and_stays(tmp_path):
    path = get_data_dir() / "secret"
    (tmp_path / "theirs").write_bytes(b"short")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(tmp_path / "theirs")
    assert sign(DOCUMENT) == DOCUMENT
    path.unlink()
    path.write_bytes(b"short")
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
        assert sign(DOCUMENT) == DOCUMENT
    assert (path.read_bytes(), (tmp_path / "theirs").read_bytes()) == (b"short", b"short")
