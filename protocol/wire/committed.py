"""The messages by which owners commit to their rows before anything is shown to them (DESIGN §3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field

from hushbid.protocol import limits
from hushbid.protocol.wire import fields
from hushbid.protocol.wire.fields import Message

__all__ = ["Commitment", "Roots"]


class Commitment(Message):
    """An owner's first message: the root of its rows. It can sell no other."""

    kind: Literal["commitment"] = "commitment"
    root: fields.Digest
    """Of the tree over its rows (`hushbid.protocol.crypto.commitment`)."""
    signature: fields.Signature
    """The owner's, of `hushbid.protocol.crypto.sealing.rows_statement`."""


class Roots(Message):
    """What owners committed to, from the curator to the consumer, which draws the feature map only then.

    Both fields have a part for each owner, in the order of their names; zeros for one that did not come in
    time, which gets no map.
    """

    kind: Literal["roots"] = "roots"
    roots: Annotated[bytes, Field(min_length=32, max_length=32 * limits.MAX_OWNERS)]
    """K roots, of 32 bytes each."""
    signatures: Annotated[bytes, Field(min_length=64, max_length=64 * limits.MAX_OWNERS)]
    """K signatures of the owners, of 64 bytes each."""

    def of(self, owners: Sequence[str]) -> dict[str, Commitment]:
        """What each owner that came in time committed to.

        Args:
            owners: Their names, sorted; K of them.
        """
        parts = zip(owners, _parts(self.roots, 32), _parts(self.signatures, 64), strict=True)
        return {
            owner: Commitment.model_construct(root=root, signature=signature)
            for owner, root, signature in parts
            if any(signature)
        }

    @classmethod
    def told(cls, commitments: Iterable[Commitment | None]) -> Self:
        """The message about the owners' commitments, in the order of their names; None: one came too late."""
        none = Commitment.model_construct(root=bytes(32), signature=bytes(64))
        held = [each or none for each in commitments]
        roots, signatures = (each.root for each in held), (each.signature for each in held)
        return cls(roots=b"".join(roots), signatures=b"".join(signatures))


def _parts(whole: bytes, length: int) -> list[bytes]:
    return [whole[at : at + length] for at in range(0, len(whole), length)]
