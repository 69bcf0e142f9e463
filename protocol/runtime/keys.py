"""Identity keys (`hushbid.protocol.crypto.identity`) and their files.

A key is 32 bytes, written as 40 characters of Z85. A key file is one line of ASCII::

    hushbid-secret 1 <Ed25519 seed, Z85> <Ed25519 verify key, Z85>
    hushbid-public 1 <Ed25519 verify key, Z85>

The number is the format's version. Empty lines and lines that begin with ``#`` are comments. The secret file
also has the public key, so that reading it, not a failed handshake, reveals halves that do not belong
together.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final, TypeAlias

from hushbid.protocol import platform
from hushbid.protocol.crypto.identity import KEY_BYTES, Identity, PublicIdentity, fingerprint_of
from hushbid.protocol.errors import ConfigError, KeyFileError
from hushbid.protocol.plain_files import read_plain
from hushbid.protocol.runtime.files.durable import new_file

__all__ = [
    "KEY_BYTES",
    "KeyPair",
    "PublicKey",
    "curve_fingerprints",
    "new_keypair",
    "read_public",
    "read_secret",
    "write_public",
    "write_secret",
]

KeyPair: TypeAlias = Identity
"""An identity, in the terms of files and sockets."""
PublicKey: TypeAlias = PublicIdentity

SECRET_MODE: Final = 0o600
PUBLIC_MODE: Final = 0o644

_SECRET_TAG: Final = "hushbid-secret"  # noqa: S105 - a file format's name
_PUBLIC_TAG: Final = "hushbid-public"
_EARLIER_TAG: Final = "hushbid-curve-"
"""The first words of former key files, whose keys could not sign."""
_FORMAT: Final = "1"
_LONGEST_FILE: Final = 4096
_FIELD: Final = 2**255 - 19
"""The prime of Curve25519's field."""


def new_keypair() -> KeyPair:
    """A fresh pair, its secret from the operating system's random source."""
    return _locked(Identity(os.urandom(KEY_BYTES)))


def curve_fingerprints(curve: bytes) -> tuple[str, str]:
    """The fingerprints of the two identities that can have an X25519 public key.

    Operators see them for a stranger's connection, as they know parties by their identities. The two differ
    in the sign of x, which the map from Ed25519 forgets: y = (u − 1)/(u + 1) (RFC 7748, section 4.1).

    Args:
        curve: 32 bytes, any that a stranger sent as its key.
    """
    u = int.from_bytes(curve, "little") % 2**255
    y = (u - 1) * pow(u + 1, _FIELD - 2, _FIELD) % _FIELD
    even, odd = (fingerprint_of((y + sign * 2**255).to_bytes(KEY_BYTES, "little")) for sign in (0, 1))
    return even, odd


def write_secret(path: Path, pair: KeyPair) -> None:
    """Write a pair to a new file that only its owner can read.

    Raises:
        KeyFileError: The file exists already, or cannot be written.
    """
    _create(path, f"{_SECRET_TAG} {_FORMAT} {pair.secret} {pair.public}\n", SECRET_MODE)


def write_public(path: Path, key: PublicKey) -> None:
    """Write a public key to a new file; raises as `write_secret`."""
    _create(path, f"{_PUBLIC_TAG} {_FORMAT} {key}\n", PUBLIC_MODE)


def read_secret(path: Path) -> KeyPair:
    """The pair of a secret key file.

    Raises:
        KeyFileError: The file is missing, can be read by anyone but its owner, or is malformed. One of root's
            that only the process's own group may read is taken: so an orchestrator mounts secrets.
    """
    words = _read(path, _SECRET_TAG, 2, private=True)
    try:
        pair, public = Identity.from_secret(words[0]), PublicIdentity(words[1])
    except ConfigError as error:
        raise _malformed(path, error.what) from None
    if pair.public != public:
        raise _malformed(path, "Its secret and its public half do not belong together.")
    return _locked(pair)


def read_public(path: Path) -> PublicKey:
    """The key of a public key file.

    Raises:
        KeyFileError: The file is missing or malformed.
    """
    words = _read(path, _PUBLIC_TAG, 1, private=False)
    try:
        return PublicIdentity(words[0])
    except ConfigError as error:
        raise _malformed(path, error.what) from None


def _locked(pair: KeyPair) -> KeyPair:
    """The pair, its secret kept out of swap space where the system permits that."""
    for buffer in pair.buffers:
        platform.lock_in_memory(buffer)
    return pair


def _create(path: Path, content: str, mode: int) -> None:
    try:
        with new_file(path, mode) as file:
            file.write(content.encode("ascii"))
    except FileExistsError:
        raise KeyFileError(
            f"The key file {path} exists already and was left as it is.",
            advice="Choose another name, or move the old file away if no session needs it any more.",
        ) from None
    except OSError as error:
        raise KeyFileError(
            f"The key file {path} cannot be written: {error.strerror}.",
            advice="Check that its directory exists, that you may write there, and that there is room.",
        ) from None


def _read(path: Path, tag: str, count: int, *, private: bool) -> list[str]:
    """The words after tag and version of a key file's one line."""
    try:
        content, status = read_plain(path, _LONGEST_FILE)
    except OSError as error:
        what = "does not exist" if error.errno == errno.ENOENT else f"cannot be read: {error.strerror}"
        raise KeyFileError(
            f"The key file {path} {what}.", advice="Check the path, or make a key with `hushbid keys new`."
        ) from None
    if any(line.startswith(_EARLIER_TAG.encode()) for line in content.splitlines()):
        raise KeyFileError(
            f"The key file {path} is of an earlier version of hushbid, whose keys could not sign.",
            advice="Move it away, make a new key with `hushbid keys new`, and have it put on the roster.",
        )
    if private:
        # Before its mode: a public key file may be read by all, and closing it to them would not help.
        if any(line.startswith(_PUBLIC_TAG.encode()) for line in content.splitlines()):
            raise KeyFileError(
                f"{path} is a public key file, where a secret key file is needed.",
                advice="Name the secret key file, which `hushbid keys new` wrote beside it.",
            )
        _check_mode(path, status)
    if len(content) > _LONGEST_FILE:
        raise _malformed(path, f"It is longer than {_LONGEST_FILE} bytes.")
    try:
        lines = content.decode("ascii").splitlines()
    except UnicodeDecodeError:
        raise _malformed(path, "It is not ASCII text.") from None
    found = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    if len(found) != 1:
        raise _malformed(path, f"One line was expected, {len(found)} were found.")
    words = found[0]
    if words[0] != tag:
        raise _malformed(path, f"Its line does not begin with `{tag}`.")
    if len(words) < 2 or words[1] != _FORMAT:
        raise _malformed(path, f"It is not in format {_FORMAT}, the only one that this version reads.")
    if len(words) != 2 + count:
        raise _malformed(path, f"{2 + count} words were expected, {len(words)} were found.")
    return words[2:]


def _check_mode(path: Path, status: os.stat_result) -> None:
    if platform.others_may_use(status) and not platform.is_mounted_for_us(status):
        raise KeyFileError(
            f"The key file {path} can be used by others than its owner "
            f"(mode {stat.S_IMODE(status.st_mode):04o}), so its key may be known already.",
            advice=f"Run `chmod 600 {path}`, and make a new key if others use this machine.",
        )


def _malformed(path: Path, why: str) -> KeyFileError:
    return KeyFileError(
        f"The key file {path} is malformed. {why}",
        advice="Restore it, or make a new key with `hushbid keys new`; the others then need its public half.",
    )
