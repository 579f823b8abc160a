"""What was written here is known again, and nothing else is."""

import json

from harness.files import get_data_dir
from harness.store.signature import is_from_here, sign

DOCUMENT = (json.dumps({"id": "run", "plan": {"rounds": 1}}, indent=2) + "\n").encode()


def test_a_signed_document_is_known_again_and_says_the_same():
    signed = sign(DOCUMENT)
    assert is_from_here(signed)
    read = json.loads(signed)
    assert len(read.pop("signature")) == 64
    assert read == json.loads(DOCUMENT)
    assert sign(DOCUMENT) == signed


def test_whoever_changes_a_document_cannot_sign_it():
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


def test_a_secret_that_was_cut_short_signs_nothing():
    signed = sign(DOCUMENT)
    (get_data_dir() / "secret").write_bytes(b"")
    assert sign(DOCUMENT) == DOCUMENT
    assert not is_from_here(signed)
