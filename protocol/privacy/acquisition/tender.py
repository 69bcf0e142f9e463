"""`tender`: one call, one submission of each owner, and a choice of all that no owner is told of."""

from __future__ import annotations

from hushbid.protocol.privacy.acquisition.sealed import Sealed

__all__ = ["Tender"]


class Tender(Sealed):
    """Each owner chooses points by itself, towards the consumer's release, and submits them sealed, once.

    Under `sealed` the curator holds features of K·p points in any case, so rounds are not needed. The call to
    an owner follows from the session and the consumer's release: no other owner's data are in it, and what is
    chosen is sent to nobody but the consumer. So owners are perfectly private from each other (ε = 0),
    whatever p and K are, and there is no noise on a summary. The consumer's set has the ε of its one release.

    Against the curator it protects as `sealed` does. Source: kernel herding (Chen, Welling, Smola 2010).
    """

    name = "tender"
    herds = True
    learns = (
        "nothing: what an owner is sent follows from the session and the consumer's release, and nobody "
        "tells it what was chosen"
    )
