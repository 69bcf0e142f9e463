from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hushbid.protocol import platform
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.errors import KeyFileError
from hushbid.protocol.runtime.keys import (
    PublicKey,
    curve_fingerprints,
    new_keypair,
    read_public,
    read_secret,
    write_public,
    write_secret,
)

PAIR = new_keypair()


def private_file(path: Path, content: str) -> Path:
    path.write_text(content)
    path.chmod(0o600)
    return path


def test_a_pair_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_secret(tmp_path / "secret", PAIR)
    write_public(tmp_path / "public", PAIR.public)
    assert read_secret(tmp_path / "secret") == PAIR
    assert read_public(tmp_path / "public") == PAIR.public


def test_the_files_are_one_documented_line(tmp_path: Path) -> None:
    write_secret(tmp_path / "secret", PAIR)
    write_public(tmp_path / "public", PAIR.public)
    assert (tmp_path / "secret").read_text() == f"hushbid-secret 1 {PAIR.secret} {PAIR.public.text}\n"
    assert (tmp_path / "public").read_text() == f"hushbid-public 1 {PAIR.public.text}\n"


def test_a_secret_is_its_owners_alone_from_the_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret"
    seen: list[tuple[int, int]] = []
    fsync = os.fsync

    def look(handle: int) -> None:
        status = os.fstat(handle)
        seen.append((stat.S_IMODE(status.st_mode), status.st_size))
        fsync(handle)

    def no_chmod(*_: object, **__: object) -> None:
        pytest.fail("a chmod after creation leaves a moment in which others can open the file")

    monkeypatch.setattr(os, "fsync", look)
    monkeypatch.setattr(os, "chmod", no_chmod)
    before = os.umask(0)
    try:
        write_secret(path, PAIR)
    finally:
        os.umask(before)
    assert [mode for mode, _ in seen] == [0o600]
    assert seen[0][1] > 0, "looked at when the secret was in it"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("what", ["file", "link to nothing"])
def test_nothing_is_overwritten(tmp_path: Path, what: str) -> None:
    path = tmp_path / "key"
    if what == "file":
        path.write_text("precious")
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KeyFileError, match="exists already"):
        write_secret(path, PAIR)
    with pytest.raises(KeyFileError, match="exists already"):
        write_public(path, PAIR.public)
    assert not (tmp_path / "elsewhere").exists()
    assert what != "file" or path.read_text() == "precious"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o620, 0o601])
def test_a_secret_that_others_can_use_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    write_secret(path, PAIR)
    path.chmod(mode)
    with pytest.raises(KeyFileError) as caught:
        read_secret(path)
    assert str(path) in caught.value.what
    assert f"chmod 600 {path}" in caught.value.advice
    path.chmod(0o400)
    assert read_secret(path) == PAIR


def test_a_secret_that_an_orchestrator_mounted_for_our_group_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret"
    write_secret(path, PAIR)
    path.chmod(0o440)
    asked: list[int] = []

    def is_mounted_for_us(status: os.stat_result) -> bool:
        asked.append(stat.S_IMODE(status.st_mode))
        return True

    monkeypatch.setattr(platform, "is_mounted_for_us", is_mounted_for_us)
    assert read_secret(path) == PAIR
    assert asked == [0o440]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for read in (read_secret, read_public):
        with pytest.raises(KeyFileError, match="nowhere does not exist"):
            read(tmp_path / "nowhere")
    with pytest.raises(KeyFileError, match="cannot be written"):
        write_secret(tmp_path / "no" / "directory", PAIR)


def test_a_directory_or_a_pipe_in_its_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError):
        read_secret(tmp_path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(KeyFileError, match="not a plain file"):
        read_secret(tmp_path / "pipe")  # must not wait for a writer


OTHER = new_keypair()
MALFORMED_SECRETS = {
    "empty": "",
    "comment only": "# nothing\n",
    "truncated": f"hushbid-secret 1 {PAIR.secret[:-1]} {PAIR.public.text}\n",
    "no public key": f"hushbid-secret 1 {PAIR.secret}\n",
    "version 2": f"hushbid-secret 2 {PAIR.secret} {PAIR.public.text}\n",
    "no version": "hushbid-secret\n",
    "two keys": f"hushbid-secret 1 {PAIR.secret} {PAIR.public.text}\n" * 2,
    "trailing word": f"hushbid-secret 1 {PAIR.secret} {PAIR.public.text} x\n",
    "halves of two pairs": f"hushbid-secret 1 {PAIR.secret} {OTHER.public.text}\n",
    "halves exchanged": f"hushbid-secret 1 {PAIR.public.text} {PAIR.secret}\n",
    "not Z85": f"hushbid-secret 1 {'~' * 40} {PAIR.public.text}\n",
    "over 32 bits": f"hushbid-secret 1 {'#' * 40} {PAIR.public.text}\n",
    "not ASCII": f"hushbid-secret 1 {'é' * 40} {PAIR.public.text}\n",
    "endless": f"hushbid-secret 1 {PAIR.secret} {PAIR.public.text}" + " " * 5000,
}


@pytest.mark.parametrize("content", MALFORMED_SECRETS.values(), ids=list(MALFORMED_SECRETS))
def test_a_malformed_secret_is_refused_without_showing_it(tmp_path: Path, content: str) -> None:
    path = private_file(tmp_path / "secret", content)
    with pytest.raises(KeyFileError, match="malformed") as caught:
        read_secret(path)
    assert str(path) in caught.value.what
    assert PAIR.secret[:-1] not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_public_file_for_a_secret_one_is_said_to_be_that_whatever_its_mode(
    tmp_path: Path, mode: int
) -> None:
    path = tmp_path / "alpha.pub"
    write_public(path, PAIR.public)
    path.chmod(mode)
    with pytest.raises(KeyFileError, match=r"alpha\.pub is a public key file") as caught:
        read_secret(path)
    assert "secret key file" in caught.value.advice
    assert "chmod" not in str(caught.value)


def test_comments_and_empty_lines_are_skipped(tmp_path: Path) -> None:
    line = f"hushbid-secret 1 {PAIR.secret} {PAIR.public.text}"
    assert read_secret(private_file(tmp_path / "s", f"# curator, 2031\n\n{line}\n")) == PAIR


@pytest.mark.parametrize("mode", [0o600, 0o644])
@pytest.mark.parametrize("kind", ["secret", "public"])
def test_a_file_of_keys_that_could_not_sign_is_said_to_be_that(tmp_path: Path, kind: str, mode: int) -> None:
    keys = f"{PAIR.secret} {PAIR.public}" if kind == "secret" else PAIR.public.text
    path = private_file(tmp_path / "old", f"hushbid-curve-{kind} 1 {keys}\n")
    path.chmod(mode)
    for read in (read_secret, read_public):
        with pytest.raises(KeyFileError, match="of an earlier version of hushbid") as caught:
            read(path)
        assert str(path) in caught.value.what
        assert "hushbid keys new" in caught.value.advice
        assert PAIR.secret not in str(caught.value)


def test_pairs_are_the_operating_systems_randomness(monkeypatch: pytest.MonkeyPatch) -> None:
    assert new_keypair() != new_keypair()
    monkeypatch.setattr(os, "urandom", lambda count: b"\7" * count)
    assert new_keypair() == Identity(b"\7" * 32)


def test_fingerprints_are_short_stable_and_differ() -> None:
    key = PublicKey(Identity(bytes(32)).public.text)
    assert key.fingerprint == "COPD-SQHG-JNKJ-C4RA"
    assert key.fingerprint == PublicKey(key.text).fingerprint
    groups = key.fingerprint.split("-")
    assert [len(group) for group in groups] == [4, 4, 4, 4]
    assert PAIR.public.fingerprint != OTHER.public.fingerprint


def test_a_strangers_transport_key_has_the_fingerprint_of_its_identity_among_two() -> None:
    for pair in (PAIR, OTHER, *(new_keypair() for _ in range(8))):
        found = curve_fingerprints(bytes(pair.public.sealing))
        assert len(set(found)) == 2
        assert found.count(pair.public.fingerprint) == 1


@pytest.mark.parametrize("curve", [b"\0" * 32, b"\xff" * 32, (2**255 - 20).to_bytes(32, "little")])
def test_a_transport_key_of_nobody_has_fingerprints_all_the_same(curve: bytes) -> None:
    assert all(len(text) == 19 for text in curve_fingerprints(curve))


def test_the_secret_s_own_buffers_are_locked_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[int] = []
    monkeypatch.setattr(platform, "lock_in_memory", lambda secret: locked.append(id(secret)))
    pair = new_keypair()
    assert {id(each) for each in pair.buffers} <= set(locked)
    assert all(each[:32] == pair.seed for each in pair.buffers[:3])
    write_secret(tmp_path / "north.key", pair)
    locked.clear()
    read = read_secret(tmp_path / "north.key")
    assert {id(each) for each in read.buffers} <= set(locked)
    assert id(read.signing._signing_key) in locked
    assert id(read.sealing._private_key) in locked
