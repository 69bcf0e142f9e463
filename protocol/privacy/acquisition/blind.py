"""`blind`: as `sealed`, but the curator sees no features and no weights, and orders bids that are masked."""

from __future__ import annotations

from protocol.privacy.acquisition.sealed import Sealed

__all__ = ["Blind"]


class Blind(Sealed):
    """The consumer weighs, owners score, and the curator orders masked scores and passes boxes on.

    The consumer makes every release, with noise of its own, and sends the weight encrypted to all owners. An
    owner answers with b new boxes and a masked score of each box that it ever sent. The curator takes the b
    highest of the owners that answered and hands these boxes to the consumer, which opens them in the round,
    computes φ itself, and compares scores. Nobody is asked, and nobody is told what was bought.

    Against an honest-but-curious curator, and no differential privacy towards it: it has the order of points
    under fifty weights that it does not know. Owners trust the consumer with the noise that protects them
    from each other, where under other rules they trust the curator.

    **A box that is not what it says is void, and nothing follows from it in the session.** Whether it is
    found depends on whether it is bought, and so on other owners' data. An owner that were left out for it
    would make every later choice depend on that: one record of another owner would change more than a point
    of S. A void box counts as a point of S whose statistic is 0, and as no sale. A point that was scored
    wrongly is disputed and not paid, but counts in S with its own statistic: whether its score is wrong
    depends on the round in which it was taken, which that record changes too.
    """

    name = "blind"
    blind = True
    unpriced = "the curator orders scores that it cannot read, and so cannot divide by prices"
    curator_sees = (
        "the curator sees boxes that it cannot open and the order of bids, and no point, feature or weight; "
        "the consumer opens the chosen points, and draws the noise that protects owners from each other; and "
        "both together could open all"
    )
