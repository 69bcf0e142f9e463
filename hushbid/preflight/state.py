"""The state directory, and the free space on its disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final, cast

from hushbid.preflight.subject import Subject, Warned
from hushbid.protocol.config.key_request import Role
from hushbid.protocol.crypto.blinding import MASK_BYTES
from hushbid.protocol.crypto.sealing import DIGEST_BYTES
from hushbid.protocol.errors import ConfigError, ExitCode
from hushbid.protocol.machine.machine import Finish
from hushbid.protocol.runtime.party import beginning, check_transcript, transcript_header
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.reader import TranscriptReader

__all__ = ["disk", "ended_with", "expected_bytes", "state"]

OWNERS_ROUND_BYTES: Final = 1400
CONSUMERS_ROUND_BYTES: Final = 700
CURATORS_ROUND_BYTES: Final = 2500
BID_BYTES: Final = 450
"""A round's records in each role's transcript without arrays and boxes, and each bid in the curator's:
measured, and rounded up.
"""
POINT_BYTES: Final = 100
"""The overhead of one point among several, beyond its features and the point itself."""
PATH_BYTES: Final = 300
"""A submitted point's path and place, once as bytes and once in the record of its purchase."""
SPARE_BYTES: Final = 2**20


def state(subject: Subject) -> str | Warned:
    """Whether the transcript can be begun, or an existing one continued."""
    directory = subject.file.state
    there = next(path for path in (directory, *directory.parents) if os.path.exists(path))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(
            f"{directory}: this user cannot make or write the state directory.",
            advice=f"Correct the owner and the mode of {there}, or name another directory with `state`.",
        )
    path = subject.transcript
    if not beginning(path):
        return f"{directory}: a new transcript can be begun there"
    check_transcript(path, transcript_header(subject.session, subject.role, subject.name))
    if (code := ended_with(path)) is None:
        return f"{path} is of this session and this version: the party will go on with it"
    came = "well" if code is ExitCode.DONE else f"with exit code {code.value}"
    return Warned(
        f"{path} is of this session, which is over for this party and ended {came}: nothing is left to do",
        "Started again, it reports that and its outcome. Another session needs another `session.nonce`.",
    )


def ended_with(path: Path) -> ExitCode | None:
    """The exit code that the session ended with for the party; None: it can go on.

    A time-out of the session reads like one of the process, which does not end the session.
    """
    with TranscriptReader(path) as records:
        codes = [
            ExitCode(cast(int, effect.public["code"]))
            for record in records
            for effect in record.effects
            if effect.kind == Finish.KIND
        ]
    return next((code for code in codes if code not in (ExitCode.TIMEOUT, ExitCode.CONNECTION)), None)


def disk(subject: Subject) -> str:
    """Whether there is room for the longest transcript that the session can have."""
    directory = subject.file.state
    there = next(path for path in (directory, *directory.parents) if os.path.exists(path))
    needed = expected_bytes(subject.session, subject.role) - _written(directory)
    free = shutil.disk_usage(there).free
    if free < needed:
        raise ConfigError(
            f"{directory}: {_size(free)} are free, and the session may take {_size(needed)}.",
            advice="Make room, or name a directory on another disk with `state`.",
        )
    return f"{_size(free)} are free at {directory}; the session may take {_size(max(0, needed))}"


def expected_bytes(session: Session, role: Role) -> int:
    """Estimated size of a party's state if every round is run: an upper estimate, not a bound."""
    file = session.file
    dimension, rounds, owners = session.space.dimension, session.rounds, len(file.owners)
    # A point travels in its box, or unboxed, at 8 bytes a column at most.
    point = session.box_length if session.rule.sealed else 8 * session.space.columns
    if not session.curator_reads:
        return rounds * _blind_round_bytes(session, role, point) + SPARE_BYTES
    handed_over = session.messages * session.batch
    if role == "curator":
        # Each box is kept in a file of its own.
        bid = BID_BYTES + handed_over * (8 * dimension + POINT_BYTES + point)
        one = 4 * dimension + CURATORS_ROUND_BYTES + owners * bid
    elif role == "owner":
        # A box is stored in the record that made it and in the one that sent it.
        one = OWNERS_ROUND_BYTES + handed_over * (8 * dimension + POINT_BYTES + 2 * point)
    else:
        # In the transcript, and opened.
        bought = session.bought_in(1)
        if session.rule.herds:  # each point has its path, and there is only one round beside the target
            point += PATH_BYTES
        one = CONSUMERS_ROUND_BYTES + bought * (5 * dimension + POINT_BYTES + 2 * point)
    return rounds * one + SPARE_BYTES


def _blind_round_bytes(session: Session, role: Role, point: int) -> int:
    """A middle round, if the curator is blind: a bid has a score of each box so far."""
    dimension, owners, batch = session.space.dimension, len(session.file.owners), session.batch
    digests = DIGEST_BYTES * (batch + 1)
    bid = BID_BYTES + batch * (POINT_BYTES + point) + digests + MASK_BYTES * batch * (session.rounds + 1) // 2
    award = batch * (POINT_BYTES + point + digests)
    if role == "curator":
        return CURATORS_ROUND_BYTES + 4 * dimension * (owners + 1) + owners * bid + award
    if role == "owner":
        # The weight and the bid are stored in a frame, and beside it.
        return OWNERS_ROUND_BYTES + 8 * dimension + 2 * bid
    return CONSUMERS_ROUND_BYTES + 24 * dimension + award + batch * (5 * dimension + POINT_BYTES + point)


def _written(directory: Path) -> int:
    """Bytes that a session to be resumed already occupies."""
    if not directory.is_dir():
        return 0
    return sum(path.stat().st_size for path in directory.iterdir() if path.is_file())


def _size(count: int) -> str:
    if count >= 10**9:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:.1f} MB"
