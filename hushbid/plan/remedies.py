"""Changes that would make a planned session good by the rule of thumb, which is all they promise."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Final, Literal

from pydantic import model_serializer
from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.verdict import GOOD
from hushbid.plan.noise import release_errors
from hushbid.plan.prediction import predict
from hushbid.plan.setting import PlanSetting
from hushbid.plan.tables import DEFAULT_RELEASE
from hushbid.protocol import limits
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.figures import Figures
from hushbid.protocol.privacy.acquisition import acquisition_rule
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.session.guarantee import WEAK

__all__ = ["Remedy", "other_rules", "remedies_of"]

LARGEST_VALIDATION: Final = 10_000_000
PRECISION: Final = 1.02
"""Precision of a remedy's figure, as a ratio."""


@figures(frozen=True, slots=True, kw_only=True)
class Remedy(Figures):
    """A change that alone would make a session good, by its new values; None: a value that stays.

    Attributes:
        mmd2: The then expected MMD², if there is a figure.
    """

    change: Literal["release", "validation", "points", "epsilon", "points and epsilon", "rule", "owners"]
    rule: str | None = None
    owners: int | None = None
    validation: int | None = None
    points: int | None = None
    epsilon_owners: float | None = None
    epsilon_consumer: float | None = None
    release: str | None = None
    mmd2: float | None = None

    @property
    def values(self) -> dict[str, str | int | float]:
        found = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: value for name, value in found if value is not None and name not in ("change", "mmd2")}

    @model_serializer(mode="plain")
    def _written(self) -> dict[str, str | int | float]:
        return {"change": self.change, **self.values, **({} if self.mmd2 is None else {"mmd2": self.mmd2})}


def remedies_of(setting: PlanSetting) -> tuple[Remedy, ...]:
    """Changes that would make the session good: another release; or with it more points, D_v or ε."""
    epsilons = _epsilons(setting)
    if epsilons is None:  # without noise no ε can help
        return tuple(_more(setting))
    others = [table.mechanism for table in (setting.file.target, setting.file.summary)]
    filtered = setting.with_releases(DEFAULT_RELEASE, *epsilons)
    named = None if others == [DEFAULT_RELEASE] * 2 else DEFAULT_RELEASE
    if named is not None and _is_good(filtered):
        return (_raised("release", filtered, epsilons, release=named),)
    found = _more(filtered)
    if level := _least_epsilon(setting, epsilons):
        found.append(_raised("epsilon", *level))
    if not found:  # no single change is enough: as many points as possible, and then ε
        most = _most_points(filtered)
        level = _least_epsilon(filtered.with_session(points=most), epsilons) if most > setting.p else None
        found += [_raised("points and epsilon", *level, points=most)] if level else []
    return tuple(replace(remedy, release=named) for remedy in found)


def _more(setting: PlanSetting) -> list[Remedy]:
    """The smallest D_v, and the fewest points, that make it good."""

    def with_validation(m: int) -> PlanSetting:
        return replace(setting, m=m)

    def with_points(p: int) -> PlanSetting:
        return setting.with_session(points=p)

    found = []
    if (m := _least(with_validation, setting.m, LARGEST_VALIDATION)) is not None:
        found.append(Remedy(change="validation", validation=m, mmd2=_expected(with_validation(m))))
    if (p := _least(with_points, setting.p, _most_points(setting))) is not None:
        found.append(Remedy(change="points", points=p, mmd2=_expected(with_points(p))))
    return found


def _most_points(setting: PlanSetting) -> int:
    """A quarter of all points, which leaves a choice; under `tender`, at most what owners can submit."""
    file, quarter = setting.file, sum(setting.owner_points) // 4
    if file.herds:
        submitted = len(file.owners) * (file.session.batch or file.most_in_a_bid)
        return min(quarter, submitted, limits.MAX_HERDED)
    return min(quarter, limits.MAX_POINTS)


def _least_epsilon(
    setting: PlanSetting, epsilons: tuple[float, float]
) -> tuple[PlanSetting, tuple[float, float]] | None:
    """The setting with the smallest sufficient ε if either side has less, with the default release."""

    def raised(level: float) -> tuple[float, float]:
        owners, consumer = epsilons
        return max(owners, level), max(consumer, level)

    def changed(level: float) -> PlanSetting:
        return setting.with_releases(DEFAULT_RELEASE, *raised(level))

    low, high = min(epsilons), WEAK
    if high <= low or not _is_good(changed(high)):
        return None
    while high > low * PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _is_good(changed(middle)) else (middle, high)
    return changed(high), raised(high)


def _least(changed: Callable[[int], PlanSetting], low: int, high: int) -> int | None:
    """The smallest value above `low`, to `PRECISION`, that makes a session good; None if `high` does not."""
    if high <= low or not _is_good(changed(high)):
        return None
    while high > low + 1 and high > low * PRECISION:
        middle = round(math.sqrt(low * high))
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if _is_good(changed(middle)) else (middle, high)
    return high


def _expected(setting: PlanSetting) -> float:
    return predict(setting, *release_errors(setting)).expected


def _is_good(setting: PlanSetting) -> bool:
    return _expected(setting) < GOOD * setting.mmd2_uniform


def _epsilons(setting: PlanSetting) -> tuple[float, float] | None:
    """The present sound ε of the owners and of the consumer; None where one is not protected."""
    session = setting.session()
    delta = setting.file.session.delta
    owners = session.summary.guarantee(neighbours=Neighbours.ADD_REMOVE_ONE, delta=delta).epsilon
    consumer = session.target.guarantee(neighbours=Neighbours.SUBSTITUTE_ONE, delta=delta).epsilon
    if setting.file.herds:  # the owners' own is 0, whatever the noise
        owners = consumer
    return (owners, consumer) if owners and consumer else None


def _raised(
    change: Literal["release", "epsilon", "points and epsilon"],
    setting: PlanSetting,
    epsilons: tuple[float, float],
    *,
    points: int | None = None,
    release: str | None = None,
) -> Remedy:
    """A remedy that changes ε: the consumer's alone, if nothing is released of owners."""
    owners, consumer = epsilons
    return Remedy(
        change=change,
        points=points,
        epsilon_owners=None if setting.file.herds else owners,
        epsilon_consumer=consumer,
        release=release,
        mmd2=_expected(setting),
    )


def other_rules(setting: PlanSetting) -> tuple[Remedy, ...]:
    """Another rule, and the fewest owners that it needs, if a session may have so many."""
    section, session = setting.file.acquisition, setting.file.session
    remedies = [Remedy(change="rule", rule="sealed")]

    def admits(owners: int) -> bool:
        try:
            acquisition_rule(
                section.rule, section.parameters, owners=owners, rounds=setting.rounds, delta=session.delta
            )
        except ConfigError:
            return False
        return True

    now, most = len(setting.owner_points), limits.MAX_OWNERS
    if admits(most):
        fewest = bisect_left(range(most), True, lo=now + 1, key=admits)
        remedies.append(Remedy(change="owners", owners=fewest))
    return tuple(remedies)
