"""Compare two parties' transcripts: one party's sent frames with the other's received ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hushbid.protocol.transcript.verify import SignedHead
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE
from hushbid.transcripts.verification.account import FrameAccount, Noted, RecordAccount
from hushbid.transcripts.verification.shapes import Disagreement, Pair, RecordPlace

__all__ = ["compare"]

_LISTED: Final = 10
"""Maximum number of disagreements listed for two files."""


def compare(
    curator: RecordAccount,
    peer: RecordAccount,
    heads: Sequence[SignedHead],
    peers_heads: Sequence[SignedHead],
) -> Pair:
    """Compare the curator's account, and the signed heads in its file, with a peer's."""
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
    return {
        "curator": str(curator.path),
        "peer": str(peer.path),
        "party": peer.party,
        "ok": not found if found or compared else None,
        "compared": compared,
        "why": "" if compared else "redacted",
        "frames": frames,
        "under_way": under_way,
        "count": len(found),
        "disagreements": found[:_LISTED],
    }


class _Way:
    """One direction between two parties: the sender's account of it, and the receiver's."""

    def __init__(self, sender: RecordAccount, receiver: RecordAccount) -> None:
        self._sender, self._receiver = sender, receiver
        self._sent = sender.sent.get(receiver.party, FrameAccount())
        self._received = receiver.received.get(sender.party, FrameAccount())
        self.agreed = 0
        self.under_way = 0

    def disagreements(self) -> Iterator[Disagreement]:
        """The differences; the frames that agree are counted."""
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
        back = self._sender.received.get(self._receiver.party, FrameAccount())
        if back.acknowledged > self._received.last:
            sent = self._sent.numbered.get(back.acknowledged)
            yield self._differing("acknowledged", back.acknowledged, sent, None)

    def _differing(
        self, what: str, sequence: int, sent: Noted | None, received: Noted | None
    ) -> Disagreement:
        one = sent or received
        return _disagreement(
            what,
            self._sender.party,
            sequence,
            message="" if one is None else one.message,
            sent=None if sent is None else _place(self._sender, sent.record, sent.digest),
            received=None if received is None else _place(self._receiver, received.record, received.digest),
        )


def _disagreement(
    what: str,
    sender: str,
    sequence: int,
    *,
    message: str = "",
    sent: RecordPlace | None = None,
    received: RecordPlace | None = None,
) -> Disagreement:
    return {
        "what": what,
        "sender": sender,
        "sequence": sequence,
        "message": message,
        "sent": sent,
        "received": received,
    }


def _place(account: RecordAccount, record: int, digest: bytes) -> RecordPlace:
    return {"path": str(account.path), "record": record, "digest": digest.hex()}


def _other_heads(
    of_signer: tuple[RecordAccount, Sequence[SignedHead]],
    of_holder: tuple[RecordAccount, Sequence[SignedHead]],
) -> Iterator[Disagreement]:
    """Heads that the signer sent to the holder, and that differ from the signer's file."""
    (signer, signers), (holder, held) = of_signer, of_holder
    own = {signed.head for signed in signers if signed.party == signer.party}
    for signed in held:
        if signed.party == signer.party and signed.head not in (own or signer.chain):
            place = _place(holder, signed.record, signed.head)
            yield _disagreement("other-head", signer.party, CONTROL_SEQUENCE, received=place)
