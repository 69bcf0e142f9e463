"""`sealed`: points travel encrypted to the consumer, and nobody is ever asked. The default rule."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field

from hushbid.protocol import limits
from hushbid.protocol.crypto.sealing import default_content_size
from hushbid.protocol.privacy.acquisition.ask_all import AskAll
from hushbid.protocol.privacy.registry import Parameters

__all__ = ["Sealed", "SealedParameters"]


class SealedParameters(Parameters):
    """Keys of `sealed`."""

    box_bytes: Annotated[int, Field(ge=64, le=limits.MAX_CONTENT_BYTES)] | None = None
    """The size to which every point with its label is padded before sealing, so that a box reveals nothing by
    its size; None: `hushbid.protocol.crypto.sealing.default_content_size` of the session's columns.
    """

    commitment_depth: Annotated[int, Field(ge=1, le=limits.MAX_COMMITMENT_DEPTH)] | None = None
    """Owners commit to their rows before the feature map exists for them: the depth of the tree of rows
    (`hushbid.protocol.crypto.commitment`), which has room for 2^depth rows and hides how many there are;
    None: they do not commit.
    """

    def in_force(self, *, columns: int, owners: int) -> Self:
        """The keys with the box size filled in; see `Parameters.in_force`."""
        return self.model_copy(update={"box_bytes": self.box_bytes or default_content_size(columns)})


class Sealed(AskAll):
    """Each bid brings φ, and the point in a box that only the consumer can open.

    This is the hash-only curator of DPDS §F. Every owner sends its best unsent point once a round. The
    curator pools the points, scores the pool again under every broadcast, and chooses the best. Nobody is
    asked, so owners learn nothing but the broadcasts. The curator holds φ under a map that it does not know,
    and no raw point, label or D_v.

    It protects against an honest-but-curious curator, without differential privacy: φ reveals the pairwise
    distances of points, and a curator that gets the map from any party can invert φ.
    """

    name = "sealed"
    Parameters = SealedParameters
    sealed = True
    curator_sees = (
        "the curator is handed no raw point but features under a map that it does not know, from which "
        "distances between points can be read; the consumer opens the chosen points; and both together could "
        "open them all"
    )
