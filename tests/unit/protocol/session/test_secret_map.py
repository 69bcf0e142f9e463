"""The secret map travels from the consumer to one owner of one session, and to nobody else."""

from __future__ import annotations

import pytest

from hushbid.protocol import limits
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.errors import Offence, RemoteProtocolError
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.secret_map import open_map, seal_map
from hushbid.protocol.session.session import Session
from tests.support.sealed_parties import OWNERS, sealed_session

SEED, NONCE = bytes(range(32)), bytes(range(24))
A, B = OWNERS
SESSION = sealed_session()


def sealed(session: Session = SESSION, owner: str = A, digest: bytes | None = None) -> bytes:
    made = session.space.map(SEED).digest if digest is None else digest
    consumer = SESSION.simulated_identity(CONSUMER)
    return seal_map(SEED, made, session, SESSION.simulated_identity(owner).public, consumer, NONCE)


def opened(box: bytes, owner: Identity | None = None, consumer: str = CONSUMER) -> bytes:
    sender = SESSION.simulated_identity(consumer).public
    return open_map(box, SESSION, sender, owner or SESSION.simulated_identity(A))[0].digest


def refusal(box: bytes, owner: str = A, consumer: str = CONSUMER) -> RemoteProtocolError:
    with pytest.raises(RemoteProtocolError) as caught:
        opened(box, SESSION.simulated_identity(owner), consumer)
    assert caught.value.advice
    assert SEED.hex() not in str(caught.value)
    return caught.value


def test_an_owner_has_the_consumers_map() -> None:
    box = sealed()
    assert len(box) == limits.MAP_BOX_BYTES
    assert opened(box) == SESSION.space.map(SEED).digest


def test_a_box_tells_nothing_of_the_seed() -> None:
    assert SEED not in sealed()
    assert SESSION.space.map(SEED).digest not in sealed()
    assert sealed(owner=A) != sealed(owner=B)


def test_a_box_for_another_owner_does_not_open() -> None:
    assert refusal(sealed(owner=B)).offence is Offence.MISMATCH


def test_a_box_of_another_session_does_not_open() -> None:
    assert refusal(sealed(sealed_session(points=7))).offence is Offence.MISMATCH


@pytest.mark.parametrize("sender", [A, B, "curator"])
def test_a_box_that_is_not_from_the_consumer_does_not_open(sender: str) -> None:
    assert refusal(sealed(), consumer=sender).offence is Offence.MISMATCH


def test_a_box_that_was_altered_anywhere_does_not_open() -> None:
    box = sealed()
    for place in range(len(box)):
        altered = box[:place] + bytes([box[place] ^ 1]) + box[place + 1 :]
        assert refusal(altered).offence is Offence.MISMATCH
    assert refusal(box[:-1]).offence is Offence.MISMATCH


def test_a_seed_that_makes_another_map_here_is_told_as_a_difference_of_software() -> None:
    found = refusal(sealed(digest=bytes(32)))
    assert found.offence is Offence.CONFIGURATION
    assert "digests of W and b differ" in found.what
    assert "same version of hushbid" in found.advice
