"""`transcript verify` of a curator that cannot link: its choices beside scores, its boxes beside bids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hushbid.curator.machine import CuratorMachine
from hushbid.curator.selection.unlinked import UnlinkedSelection
from hushbid.owner.party import owner_party
from hushbid.owner.unlinked import UnlinkedOwnerNumerics
from hushbid.protocol.crypto.blinding import MASK_BYTES, NOT_SENT
from hushbid.protocol.names import CURATOR
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.unlinked import Choice, Picked
from hushbid.simulation.network import SteadyNetwork
from tests.support.forgeries import Recording, session_of
from tests.unit.hushbid.transcripts.test_awards import FORGER, ROUNDS, checked, with_curator

SESSION = session_of("blind", ROUNDS)


@pytest.fixture(autouse=True)
def _unlinked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "unlinked", True)


class _Other(CuratorMachine):
    """Forwards something else than it should, in the second round."""

    def send(self, peer: str, message: Any, body: bytes | None = None) -> None:
        if isinstance(message, Choice | Picked) and message.round == 2:
            message = self._changed(message)
        super().send(peer, message, body)

    def _changed(self, message: Any) -> Any:
        raise NotImplementedError


class _OtherScore(_Other):
    def _changed(self, message: Any) -> Any:
        if isinstance(message, Picked):
            return message
        (chosen,) = message.chosen
        other = chosen.model_copy(update={"score": bytes(MASK_BYTES - 1) + b"\1"})
        return message.model_copy(update={"chosen": (other,)})


class _OtherBox(_Other):
    def _changed(self, message: Any) -> Any:
        if isinstance(message, Choice):
            return message
        (box,) = message.boxes
        changed = bytes([box.candidate.box[0] ^ 1]) + box.candidate.box[1:]
        candidate = box.candidate.model_copy(update={"box": changed})
        return message.model_copy(update={"boxes": (box.model_copy(update={"candidate": candidate}),)})


class _Worst(UnlinkedSelection):
    def best(self, present: list[str], count: int) -> list[tuple[bytes, str, int]]:
        return super().best(present, 1000)[-count:]


class _ChoosesTaken(UnlinkedSelection):
    """Ignores what was bought; the consumer refuses it."""

    def candidates(self, owner: str) -> Any:
        self._taken[owner] = self._taken[owner][:0]
        return super().candidates(owner)


class _Boasting(UnlinkedOwnerNumerics):
    """Scores the box in its last place with the highest possible score."""

    def _masked(self, mask: Any, weights: Any) -> bytes:
        scores = super()._masked(mask, weights)
        assert scores[-MASK_BYTES:] != NOT_SENT
        return scores[:-MASK_BYTES] + b"\x3f" + scores[1 - MASK_BYTES :]


def boasting(session: Any, name: str, *given: Any, **more: Any) -> Any:
    machine, numerics = owner_party(session, name, *given, **more)
    if name == FORGER:
        numerics.__class__ = _Boasting
    return machine, numerics


@pytest.mark.parametrize("away", ["", FORGER])
def test_choices_of_honest_parties_are_the_best_of_who_was_present(tmp_path: Path, away: str) -> None:
    gone = (lambda number: (away,) if number == 2 else ()) if away else None
    found, told = checked(Recording(SESSION, network=SteadyNetwork(gone)).run(), tmp_path)
    assert found["ok"], told
    (awards,) = found["awards"]
    assert (awards["checked"], awards["others"], awards["void"]) == (ROUNDS, [], [])
    assert f"each of {ROUNDS} awards has the best boxes" in told
    assert all(pair["ok"] for pair in found["pairs"])
    assert not found["equivocations"], "what owners were sent is what the consumer opened rounds with"


@pytest.mark.parametrize(
    ("kind", "dispute", "what"),
    [
        (_OtherScore, "the score is not the point's", "the owner's score in this place was different"),
        (_OtherBox, "the box does not open", "the owner bid another box under this number"),
    ],
)
def test_what_a_curator_changed_is_found(
    tmp_path: Path, kind: type[CuratorMachine] | type[UnlinkedSelection], dispute: str, what: str
) -> None:
    found, told = checked(Recording(SESSION, curator=with_curator(kind)).run(), tmp_path)
    assert not found["ok"]
    assert "a box of" in told
    assert "That is the curator's doing." in told
    (awards,) = found["awards"]
    assert [(other["round"], other["what"]) for other in awards["others"]] == [(2, what)]
    assert [(void["round"], void["what"], void["by"]) for void in awards["void"]] == [(2, dispute, CURATOR)]


def test_a_curator_that_passed_over_better_places_is_found(tmp_path: Path) -> None:
    found, told = checked(Recording(SESSION, curator=with_curator(_Worst)).run(), tmp_path)
    assert not found["ok"]
    assert "had better boxes" in told


def test_a_consumer_refuses_a_place_whose_box_was_bought(tmp_path: Path) -> None:
    recording = Recording(SESSION, curator=with_curator(_ChoosesTaken))
    found, _ = checked(recording.run(), tmp_path)
    assert not found["ok"]
    assert {other["what"] for other in found["awards"][0]["others"]} == {
        "owners that were present had better boxes",
        "it is among the best, and was not awarded",
    }


def test_an_owner_that_boasts_sells_void_boxes_and_that_is_its_doing(tmp_path: Path) -> None:
    found, told = checked(Recording(SESSION, owner=boasting).run(), tmp_path)
    assert found["ok"], told
    (awards,) = found["awards"]
    assert awards["others"] == []
    assert {void["by"] for void in awards["void"]} == {FORGER}
    assert {void["what"] for void in awards["void"]} == {"the score is not the point's"}


def test_without_the_consumers_file_nothing_is_said_of_void_boxes(tmp_path: Path) -> None:
    (awards,) = checked(Recording(SESSION).run(), tmp_path, CURATOR)[0]["awards"]
    assert (awards["checked"], awards["void"]) == (ROUNDS, None)
