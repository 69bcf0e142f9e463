"""The longest frame that a session's socket accepts exceeds any that its parties may send."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hushbid.protocol import limits
from hushbid.protocol.crypto.sealing import DIGEST_BYTES
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.session.sizes import longest_to_curator
from hushbid.protocol.wire.codec import HEADER_BYTES, encode_message
from hushbid.protocol.wire.messages import (
    Batch,
    Bid,
    Candidate,
    Candidates,
    Hello,
    Message,
    Receipt,
    SealedCandidate,
    SealedCandidates,
    Target,
    fixed,
)
from tests.simulation.harness import names, session_file
from tests.support.session_files import load

SEALED = {"acquisition.rule": "sealed", "features.seed": None}
SESSIONS: dict[str, dict[str, Any]] = {
    "small": {},
    "wide": {"features.columns": limits.MAX_COLUMNS},
    "fine": {"features.dimension": limits.MAX_DIMENSION},
    "large boxes": SEALED | {"acquisition.box_bytes": limits.MAX_CONTENT_BYTES},
    "crowded": SEALED | {"roster.owners": {f"owner-{number}": "" for number in range(limits.MAX_OWNERS)}},
}


def longest_messages(session: Session) -> list[Message]:
    """The largest message of each kind that grows with the session."""
    d, columns = session.space.dimension, session.space.columns
    features = np.full(d, -(2**15), np.int16)
    candidate: Candidate | SealedCandidate
    if session.rule.sealed:
        box = bytes(session.box_length)
        candidate = SealedCandidate.model_construct(features=features, box=box, signature=bytes(64))
    else:
        candidate = Candidate.model_construct(
            point=np.ones(columns), features=features, attributes=bytes(limits.MAX_ATTRIBUTES)
        )
    number = 2**53
    return [
        Hello.model_construct(
            versions=(2**16,) * limits.MAX_VERSIONS,
            role="consumer",
            name="x" * 64,
            session=bytes(32),
            software="\N{GRINNING FACE}" * limits.MAX_TEXT,
            sent=number,
            received=number,
        ),
        Bid.model_construct(
            round=number, exhausted=False, score=fixed(number), handle=fixed(number), candidate=candidate
        ),
        Target.model_construct(
            embedding=np.ones(d),
            size=number,
            seed_total=np.ones(d, np.int64),
            seed_size=number,
            maps=bytes(limits.MAP_BOX_BYTES * len(session.file.roster.owners)),
            noise="x" * 64,
        ),
        Receipt.model_construct(part=2**31, disputed=bytes((limits.MAX_PURCHASES + 7) // 8)),
    ]


@pytest.mark.parametrize("name", SESSIONS)
def test_every_frame_of_a_session_is_taken(name: str) -> None:
    session = open_session(load(SESSIONS[name]))
    lengths = [HEADER_BYTES + len(encode_message(message)) for message in longest_messages(session)]
    assert max(lengths) <= longest_to_curator(session) <= HEADER_BYTES + limits.MAX_TARGET_BYTES


@pytest.mark.parametrize("rule", ["ask-all", "sealed"])
@pytest.mark.parametrize("batch", [2, 20, 94])
@pytest.mark.parametrize(("columns", "dimension"), [(3, 140), (3, 1024), (784, 140)])
def test_every_batch_of_a_session_is_taken(rule: str, batch: int, columns: int, dimension: int) -> None:
    session = open_session(
        session_file(
            owners=names(2), points=1000, rule=rule, batch=batch, columns=columns, dimension=dimension
        )
    )
    features = np.full(batch * dimension, -(2**15), np.int16)
    numbers = np.full(batch, -(2**62), np.int64)
    candidates: Candidates | SealedCandidates
    if session.rule.sealed:
        candidates = SealedCandidates.model_construct(
            features=features,
            boxes=bytes(batch * (session.box_length)),
            digests=bytes(batch * DIGEST_BYTES),
            signature=bytes(64),
        )
    else:
        candidates = Candidates.model_construct(
            points=np.ones(batch * columns),
            features=features,
            attributes=bytes(batch * limits.MAX_ATTRIBUTES),
        )
    message = Batch.model_construct(
        kind="batch", round=limits.MAX_POINTS, scores=numbers, handles=numbers, candidates=candidates
    )
    length = len(encode_message(message))
    assert length <= limits.MAX_MESSAGE_BYTES
    assert HEADER_BYTES + length <= longest_to_curator(session)


def test_a_small_session_takes_small_frames() -> None:
    assert longest_to_curator(open_session(load({}))) < 2 * limits.SMALL_FRAME_BYTES
