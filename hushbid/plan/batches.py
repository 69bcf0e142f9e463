"""The costs and savings of buying more points, or fewer, per round."""

from __future__ import annotations

from typing import Final

from pydantic.dataclasses import dataclass as figures

from hushbid.plan.noise import noise_values, release_errors
from hushbid.plan.prediction import predict
from hushbid.plan.setting import PlanSetting
from hushbid.plan.speed import Speed, times
from hushbid.plan.traffic import traffic
from hushbid.protocol.figures import Figures

__all__ = ["BatchOption", "batches"]

SHARES: Final = (1000, 200, 100, 50, 25, 10)
"""Numbers of rounds to compare, besides those of b = 1 and of the plan."""


@figures(frozen=True, slots=True, kw_only=True)
class BatchOption(Figures):
    """A session that buys `batch` points per round.

    Attributes:
        mmd2: The expected MMD².
        noise_values: Noise values that all parties together draw.
        owner_sent, owner_received: Bytes of one owner, on average.
        seconds: Duration of all rounds, each owner on a machine of its own like this one.
        seconds_with_network: The same including the frames' transit time.
    """

    batch: int
    rounds: int
    mmd2: float
    noise_values: int
    owner_sent: int
    owner_received: int
    seconds: float
    seconds_with_network: float


def batches(setting: PlanSetting, speed: Speed, *, cores: int, round_trip: float) -> tuple[BatchOption, ...]:
    """A row for each b, smallest first; one row if the rule asks for one point at a time, or is `tender`.

    `round_trip` is in seconds, for a frame and its answer between the curator and another party.
    """
    file = setting.file
    sizes = {file.batch} if file.herds else {1, file.batch}
    if not file.herds and setting.session().rule.candidate_with_bid:
        sizes |= {-(-setting.p // share) for share in SHARES}
    # A blind curator also waits for the consumer in every round, twice if it has to ask for boxes.
    session = setting.session()
    trips = 3 if session.unlinked else 1 if session.curator_reads else 2
    rows = []
    for size in sorted(size for size in sizes if size <= min(setting.p, file.most_in_a_bid)):
        other = setting.with_session(batch=size)
        taken, wire = times(other, speed, cores=cores), traffic(other, None)
        rows.append(
            BatchOption(
                batch=size,
                rounds=other.rounds,
                mmd2=predict(other, *release_errors(other)).expected,
                noise_values=sum(noise_values(other).values()),
                owner_sent=wire.owner_sent,
                owner_received=wire.owner_received,
                seconds=taken.rounds,
                seconds_with_network=taken.rounds + other.rounds * trips * round_trip,
            )
        )
    return tuple(rows)
