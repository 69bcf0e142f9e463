"""`transcript verify` with a blind curator: awards beside bids, and who is responsible for a void box."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hushbid.curator.machine import CuratorMachine
from hushbid.curator.party import curator_party
from hushbid.curator.selection.blind import BlindSelection
from hushbid.owner.numerics import BlindOwnerNumerics
from hushbid.owner.party import owner_party
from hushbid.protocol.crypto.blinding import MASK_BYTES
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.session.points import NOT_SIGNED
from hushbid.protocol.session.session import open_session
from hushbid.protocol.wire.blind import Award, SealedBroadcast
from hushbid.protocol.wire.codec import Direction, decode_message, encode_message
from hushbid.transcripts.verification.text import render_verification
from hushbid.transcripts.verification.whole_session import verify_all
from tests.simulation.harness import session_file
from tests.support.forgeries import Recording, recorded, rewritten, session_of, with_frame, written

ROUNDS = 4
OWNERS = ("owner-0", "owner-1")
FORGER = OWNERS[0]
SESSION = session_of("blind", ROUNDS)


class _Other(CuratorMachine):
    """A blind curator that forwards something else than the best boxes."""

    def send(self, peer: str, message: Any, body: bytes | None = None) -> None:
        if isinstance(message, Award) and message.round == 2:
            (purchase,) = message.purchases
            message = message.model_copy(update={"purchases": (self._changed(purchase),)})
        super().send(peer, message, body)

    def _changed(self, purchase: Any) -> Any:
        raise NotImplementedError


class _OtherScore(_Other):
    def _changed(self, purchase: Any) -> Any:
        return purchase.model_copy(update={"score": bytes(MASK_BYTES - 1) + b"\1"})


class _OtherBox(_Other):
    def _changed(self, purchase: Any) -> Any:
        box = bytes([purchase.candidate.box[0] ^ 1]) + purchase.candidate.box[1:]
        return purchase.model_copy(update={"candidate": purchase.candidate.model_copy(update={"box": box})})


class _Unsigned(CuratorMachine):
    """A blind curator that removes owners' signatures."""

    def send(self, peer: str, message: Any, body: bytes | None = None) -> None:
        if isinstance(message, Award):
            purchases = tuple(_unsigned(purchase) for purchase in message.purchases)
            message = message.model_copy(update={"purchases": purchases})
        super().send(peer, message, body)


def _unsigned(purchase: Any) -> Any:
    candidate = purchase.candidate.model_copy(update={"signature": bytes(64)})
    return purchase.model_copy(update={"candidate": candidate})


class _Worst(BlindSelection):
    """Chooses the worst boxes instead of the best."""

    def best(self, present: list[str], count: int) -> list[tuple[bytes, str, int]]:
        return super().best(present, 1000)[-count:]


class _Boasting(BlindOwnerNumerics):
    """Scores its newest box with the highest possible score."""

    def _masked(self, mask: Any, weights: Any) -> bytes:
        scores = super()._masked(mask, weights)
        return scores[:-MASK_BYTES] + b"\x3f" + scores[1 - MASK_BYTES :]


def with_curator(kind: type[CuratorMachine] | type[BlindSelection]) -> Callable[..., Any]:
    """Makes curators with another machine or selection."""

    def made(session: Any, *, noise: Any) -> Any:
        machine, numerics = curator_party(session, noise=noise)
        if issubclass(kind, CuratorMachine):
            return kind(session), numerics
        machine.selection = kind(session, machine.seats, machine.ledger)
        return machine, numerics

    return made


def boasting(session: Any, name: str, *given: Any, **more: Any) -> Any:
    machine, numerics = owner_party(session, name, *given, **more)
    if name == FORGER:
        numerics.__class__ = _Boasting
    return machine, numerics


def checked(images: Mapping[str, bytes], place: Path, *parties: str) -> tuple[dict[str, Any], str]:
    """The findings about transcripts, for programs and for people."""
    found = verify_all(written(images, place, *parties))
    console = Console(file=io.StringIO(), width=300)
    render_verification(found, console)
    assert isinstance(console.file, io.StringIO)
    return json.loads(json.dumps(found, allow_nan=False)), console.file.getvalue()


@pytest.mark.parametrize("away", ["", FORGER])
def test_awards_of_honest_parties_have_the_best_boxes_of_who_was_present(tmp_path: Path, away: str) -> None:
    found, told = checked(recorded("blind", ROUNDS, away=away), tmp_path)
    assert found["ok"], told
    (awards,) = found["awards"]
    assert (awards["checked"], awards["others"], awards["void"]) == (ROUNDS, [], [])
    assert f"each of {ROUNDS} awards has the best boxes" in told
    assert all(pair["ok"] for pair in found["pairs"])


def test_without_the_consumers_file_nothing_is_said_of_void_boxes(tmp_path: Path) -> None:
    (awards,) = checked(recorded("blind", ROUNDS), tmp_path, CURATOR)[0]["awards"]
    assert (awards["checked"], awards["void"]) == (ROUNDS, None)


def test_where_the_curator_is_not_blind_there_are_no_awards(tmp_path: Path) -> None:
    assert checked(recorded("sealed"), tmp_path)[0]["awards"] == []


@pytest.mark.parametrize(
    ("kind", "dispute", "what"),
    [
        (_OtherScore, "the score is not the point's", "the owner gave it another score"),
        (_OtherBox, "the box does not open", "the owner bid another box under this number"),
    ],
)
def test_what_a_curator_made_void_is_the_curators_doing(
    tmp_path: Path, kind: type[CuratorMachine] | type[BlindSelection], dispute: str, what: str
) -> None:
    images = Recording(SESSION, curator=with_curator(kind)).run()
    found, told = checked(images, tmp_path)
    assert not found["ok"]
    (awards,) = found["awards"]
    assert [(other["round"], other["what"]) for other in awards["others"]] == [(2, what)]
    assert [(void["round"], void["what"], void["by"]) for void in awards["void"]] == [(2, dispute, CURATOR)]
    assert "That is the curator's doing." in told


def test_a_bid_without_its_signature_is_one_fault_of_all_its_boxes(tmp_path: Path) -> None:
    file = session_file(owners=OWNERS, points=6, rule="blind", dimension=8, columns=3, batch=3)
    images = Recording(open_session(file), curator=with_curator(_Unsigned)).run()
    found, told = checked(images, tmp_path)
    (awards,) = found["awards"]
    assert len(awards["void"]) == 6
    assert {void["what"] for void in awards["void"]} == {NOT_SIGNED}
    bids = {(fault["owner"], fault["bid_round"]) for fault in awards["faults"]}
    assert len(bids) == len(awards["faults"]) < 6, "one for each bid that boxes were of"
    assert sum(fault["boxes"] for fault in awards["faults"]) == 6
    most = max(awards["faults"], key=lambda fault: fault["boxes"])
    assert f"{most['boxes']} boxes that {most['owner']} bid in round {most['bid_round']} were void" in told


def test_what_an_owner_made_void_is_the_owners_doing_and_no_contradiction(tmp_path: Path) -> None:
    found, told = checked(Recording(SESSION, owner=boasting).run(), tmp_path)
    assert found["ok"], "owners and curator did what they say"
    (awards,) = found["awards"]
    assert awards["others"] == []
    assert [(void["round"], void["owner"], void["by"]) for void in awards["void"]] == [
        (number, FORGER, FORGER) for number in range(1, ROUNDS + 1)
    ]
    assert {void["what"] for void in awards["void"]} == {"the score is not the point's"}
    assert "That is its owner's doing." in told


def test_a_curator_that_passed_over_better_boxes_is_found(tmp_path: Path) -> None:
    found, told = checked(Recording(SESSION, curator=with_curator(_Worst)).run(), tmp_path)
    assert not found["ok"]
    (awards,) = found["awards"]
    said = {other["what"] for other in awards["others"]}
    assert said == {
        "owners that were present had better boxes",
        "it is among the best, and was not awarded",
    }
    assert awards["void"] == [], "the consumer cannot know of it"
    assert "had better boxes" in told


def test_owners_were_sent_the_broadcast_that_the_consumer_made(tmp_path: Path) -> None:
    """Consumer and owner share no frame: two broadcasts of a round show even without the curator's file."""

    def other(frame: dict[str, Any]) -> bytes:
        message = decode_message(Direction.CURATOR_TO_OWNER, frame["body"])
        assert isinstance(message, SealedBroadcast)
        return encode_message(message.model_copy(update={"box": bytes(len(message.box))}))

    def change(record: Any) -> Any:
        return with_frame(
            record,
            lambda kind, frame: (
                kind == "received" and frame["message"] == "sealed-broadcast" and frame["sequence"] == 4
            ),
            body=other,
        )

    images = dict(recorded("blind", ROUNDS))
    assert not checked(images, tmp_path, CONSUMER, FORGER)[0]["equivocations"]
    images[FORGER] = rewritten(images[FORGER], tmp_path, change, session=SESSION)
    found, told = checked(images, tmp_path, CONSUMER, FORGER)
    assert not found["ok"]
    (equivocation,) = found["equivocations"]
    parties = {each["party"] for one in equivocation["broadcasts"] for each in one["records"]}
    assert parties == {CONSUMER, FORGER}
    assert "sent by consumer" in told
    assert f"received by {FORGER}" in told
