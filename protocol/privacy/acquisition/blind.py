"""`blind`: like `sealed`, but the curator sees neither features nor weights, and orders masked bids."""

from __future__ import annotations

from hushbid.protocol.privacy.acquisition.sealed import Sealed

__all__ = ["Blind"]


class Blind(Sealed):
    """The consumer computes weights, owners score, and the curator orders masked scores and forwards boxes.

    The consumer makes every release with its own noise, and sends the weight encrypted to all owners. An
    owner answers with b new boxes and a masked score of each box that it ever sent. The curator chooses the b
    highest boxes of the owners that answered and passes them to the consumer, which opens them in the round,
    computes φ itself, and compares scores. Nobody is asked, and no owner is told what was bought.

    It protects against an honest-but-curious curator, without differential privacy: the curator learns the
    order of points under fifty weights that it does not know. Owners trust the consumer with the noise that
    protects them from each other; under other rules they trust the curator.

    **A box with a false content is void, and has no consequences in the session.** It is discovered only if
    it is bought, which depends on other owners' data. Excluding its owner would make every later choice
    depend on that: one record of another owner would change more than a point of S. A void box counts as a
    point of S whose statistic is 0, and as no sale. A wrongly scored point is disputed and not paid, but
    counts in S with its own statistic: whether its score is wrong depends on the round in which it was
    chosen, which that record changes too.
    """

    name = "blind"
    blind = True
    unpriced = "the curator orders scores that it cannot read, and so cannot divide by prices"
    curator_sees = (
        "the curator sees boxes that it cannot open and the order of bids, and no point, feature or weight; "
        "the consumer opens the chosen points, and draws the noise that protects owners from each other; and "
        "both together could open all"
    )
