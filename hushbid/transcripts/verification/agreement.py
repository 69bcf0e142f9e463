"""Whether two parties' transcripts agree: one party's sent frames, and the other's received ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from hushbid.transcripts.verification.account import Account, Noted, Traffic
from protocol.transcript.verify import SignedHead
from protocol.wire.messages import CONTROL_SEQUENCE

__all__ = ["Disagreement", "Pair", "Place", "compare"]

_LISTED: Final = 10
"""Most disagreements of two files that are listed individually."""


class Place(NamedTuple):
    """A record of a file, and its digest of the item in question.

    Args:
        path: The file.
        record: Number of the record.
        digest: SHA-256 of a frame's body, or a head.
    """

    path: str
    record: int
    digest: str


class Disagreement(NamedTuple):
    """A disagreement between two files.

    Args:
        what: "never-sent", "never-received", "other-bytes"; "acknowledged": the receiver said that it had
            the frame, and its file has not; "other-head": the signed head is not the one that the signer's
            file has signed, or, where that does not come to the end, none of its chain.
        sender: The party that sent the frame or signed the head.
        sequence: The frame's number; 0 for messages that make a link, and for heads.
        message: The kind of the frame's message; empty if no record of it is left.
        sent: Its place in the sender's file; None if it has none.
        received: Its place in the receiver's file; None if it has none.
    """

    what: str
    sender: str
    sequence: int
    message: str
    sent: Place | None
    received: Place | None

    def as_json(self) -> dict[str, Any]:
        return self._asdict() | {
            "sent": None if self.sent is None else self.sent._asdict(),
            "received": None if self.received is None else self.received._asdict(),
        }


@dataclass(frozen=True)
class Pair:
    """The result of comparing the curator's file with a peer's.

    Attributes:
        curator: The curator's file.
        peer: The peer's.
        party: The peer.
        compared: Whether frames were compared; they are not if a file is redacted.
        frames: Numbered frames that both have, with the same bytes.
        under_way: Numbered frames at the end that were sent, and that the other had not received when its
            file ends.
        count: Number of disagreements.
        disagreements: The first of them.
    """

    curator: str
    peer: str
    party: str
    compared: bool
    frames: int
    under_way: int
    count: int
    disagreements: tuple[Disagreement, ...]

    @property
    def ok(self) -> bool | None:
        """Whether they agree; None if frames were not compared and nothing else contradicts."""
        if self.count:
            return False
        return True if self.compared else None

    def as_json(self) -> dict[str, Any]:
        return {
            "curator": self.curator,
            "peer": self.peer,
            "party": self.party,
            "ok": self.ok,
            "compared": self.compared,
            "why": "" if self.compared else "redacted",
            "frames": self.frames,
            "under_way": self.under_way,
            "count": self.count,
            "disagreements": [each.as_json() for each in self.disagreements],
        }


def compare(
    curator: Account, peer: Account, heads: Sequence[SignedHead], peers_heads: Sequence[SignedHead]
) -> Pair:
    """Compare the curator's account with a peer's.

    Args:
        heads: Signed heads in the curator's file.
        peers_heads: Signed heads in the peer's file.
    """
    compared = not curator.redacted and not peer.redacted
    of_curator, of_peer = (curator, heads), (peer, peers_heads)
    found = [*_other_heads(of_peer, of_curator), *_other_heads(of_curator, of_peer)]
    frames = under_way = 0
    if compared:
        for sender, receiver in ((curator, peer), (peer, curator)):
            way = _Way(sender, receiver)
            found += way.disagreements()
            frames += way.agreed
            under_way += way.under_way
    return Pair(
        str(curator.path),
        str(peer.path),
        peer.party,
        compared,
        frames,
        under_way,
        len(found),
        tuple(found[:_LISTED]),
    )


class _Way:
    """One direction between two parties: the sender's account of it, and the receiver's."""

    def __init__(self, sender: Account, receiver: Account) -> None:
        self._sender, self._receiver = sender, receiver
        self._sent = sender.sent.get(receiver.party, Traffic())
        self._received = receiver.received.get(sender.party, Traffic())
        self.agreed = 0
        self.under_way = 0

    def disagreements(self) -> Iterator[Disagreement]:
        """Yield the differences, and count the frames that agree."""
        for sequence in sorted({*self._sent.numbered, *self._received.numbered}):
            sent, received = self._sent.numbered.get(sequence), self._received.numbered.get(sequence)
            if sent is None:
                yield self._differing("never-sent", sequence, None, received)
            elif received is not None and not sent.same(received):
                yield self._differing("other-bytes", sequence, sent, received)
            elif received is not None:
                self.agreed += 1
            elif sequence < self._received.last:
                yield self._differing("never-received", sequence, sent, None)
            else:
                self.under_way += 1
        for digest, received in self._received.unnumbered.items():
            if digest not in self._sent.unnumbered:
                yield self._differing("never-sent", CONTROL_SEQUENCE, None, received)
        yield from self._lost_acknowledgements()

    def _lost_acknowledgements(self) -> Iterator[Disagreement]:
        """Frames whose receipt the sender recorded, but which the receiver's file lacks."""
        back = self._sender.received.get(self._receiver.party, Traffic())
        if back.acknowledged > self._received.last:
            sent = self._sent.numbered.get(back.acknowledged)
            yield self._differing("acknowledged", back.acknowledged, sent, None)

    def _differing(
        self, what: str, sequence: int, sent: Noted | None, received: Noted | None
    ) -> Disagreement:
        one = sent or received
        return Disagreement(
            what,
            self._sender.party,
            sequence,
            "" if one is None else one.message,
            _place(self._sender, sent),
            _place(self._receiver, received),
        )


def _place(account: Account, noted: Noted | None) -> Place | None:
    return None if noted is None else Place(str(account.path), noted.record, noted.digest.hex())


def _other_heads(
    of_signer: tuple[Account, Sequence[SignedHead]], of_holder: tuple[Account, Sequence[SignedHead]]
) -> Iterator[Disagreement]:
    """Heads that the signer told the holder of, and that are not what the signer's file has."""
    (signer, signers), (holder, held) = of_signer, of_holder
    own = {signed.head for signed in signers if signed.party == signer.party}
    for signed in held:
        if signed.party == signer.party and signed.head not in (own or signer.chain):
            place = Place(str(holder.path), signed.record, signed.head.hex())
            yield Disagreement("other-head", signer.party, CONTROL_SEQUENCE, "", None, place)
