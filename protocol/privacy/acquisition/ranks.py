"""Ranks of bids that one record of another owner shifts by at most one (DESIGN §3, "`logistic`, soundly").

An owner's rank is one plus the number of *other* present owners whose best unselected point scores higher
than its bid under the round's weight. An owner's best unselected point is its bid or its best verified point
in the pool, whichever is better. Owners are counted, not points, and equal scores have equal ranks.

**Which points were asked for does not matter.** A present owner's points are in the pool, selected, or still
its own, and its bid is the best of the last kind. So its best unselected point is the best point of its data
without S. Which points other owners' coins brought into the pool never affects a rank.

**One record shifts a rank by at most one.** Fix what owner i saw: the releases and its own asks. Then its bid
is fixed, as it knows what it has handed over. Let D' be D with one record more of an owner other than i. If
the best available point is taken in every round, then by the lemma of DESIGN §1 S' is S, or S with one point
x instead of another, y. Either way D' has the same unselected points and one more, e (the record itself, or
y). So all owners' best unselected points are the same, except for e's owner, whoever that is, and this is one
owner in the count:

- e of any other owner than i: the count grows by one or stays, and so does i's rank;
- e of i itself (y was i's): i's own points are not counted, and its bid is what it was. No shift.

Whether x and y are from different owners makes no difference: x is unselected in neither, and y is e. An
exhausted owner without a bid still counts with its points in the pool.

**The best available point has rank 1** if it is a bid, and so has every bid of the same score: only φ shows
which of these comes first in the total order, and the curator does not have their φ. If ties were broken by
owner, the best point would get rank 2 or lower, and would be missed more often than is charged.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hushbid.protocol.space.grid import Scores
from hushbid.protocol.space.scoring import NO_SCORE

__all__ = ["bid_ranks"]


def bid_ranks(bids: Scores, pooled: Scores) -> npt.NDArray[np.intp]:
    """The rank of every owner's bid.

    Args:
        bids: Score of each owner's bid, int64 of shape (K,); `NO_SCORE` for absent owners and those without a
            bid.
        pooled: Score of each owner's best point in the pool, in the same form (`Pool.best_scores`).

    Returns:
        From 1, shape (K,); 0 for owners without bid.
    """
    best = np.maximum(bids, pooled)
    counted = np.sort(best[best > NO_SCORE])
    higher = len(counted) - np.searchsorted(counted, bids, side="right")
    # An owner does not count against itself.
    higher -= pooled > bids
    return np.where(bids > NO_SCORE, higher + 1, 0)
