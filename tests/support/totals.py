"""A check that the party that weighs has the right total."""

from __future__ import annotations

import numpy as np

from hushbid.consumer.buying.blind import BlindBuying
from hushbid.simulation.simulator import SimulationOutcome

__all__ = ["check_total"]


def check_total(outcome: SimulationOutcome) -> None:
    """Check that the party that weighs has the sum of the bought points, without void ones."""
    consumer, buying = outcome.consumer, outcome.consumer.buying
    if not isinstance(buying, BlindBuying):
        outcome.curator.selection.check_total()
        return
    held, weighing = consumer.delivered, buying.weighing
    good = [entry.candidate.features for entry in held if entry.candidate is not None and not entry.dispute]
    expected = np.zeros_like(weighing.total)
    for features in good:
        expected += weighing.statistic.of(features[None])[0]
    assert np.array_equal(expected, weighing.total)
