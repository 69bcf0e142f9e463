"""That whoever weighs has the right total."""

from __future__ import annotations

import numpy as np

from hushbid.consumer.blind import BlindConsumer
from hushbid.simulation.simulator import SimulationOutcome

__all__ = ["check_total"]


def check_total(outcome: SimulationOutcome) -> None:
    """That whoever weighs has the sum of what was bought, points that are void left out."""
    consumer = outcome.consumer
    if not isinstance(consumer, BlindConsumer):
        outcome.curator.check_total()
        return
    held, weighing = consumer.delivered, consumer.weighing
    good = [entry.candidate.features for entry in held if entry.candidate is not None and not entry.dispute]
    expected = np.zeros_like(weighing.total)
    for features in good:
        expected += weighing.statistic.of(features[None])[0]
    assert np.array_equal(expected, weighing.total)
