"""The suites of `hushbid audit`: the attacks and their expected results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias

from hushbid.evidence.audit import (
    acquisition,
    asking,
    batches,
    blind,
    forging,
    near_ties,
    nested,
    releases,
    sessions,
    switching,
    tenders,
)
from hushbid.evidence.audit.attack import Attack
from hushbid.evidence.audit.faults import FAULTS, PlantedFault
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.releases import RELEASES

__all__ = ["SUITES", "Expected", "Suite", "suite_of"]

Expected = Literal["pass", "reject"]

BROADCASTS: Final = 20_000
SESSIONS: Final = 1_000
"""Runs of an attack of each kind, unless another number is requested."""
_Table: TypeAlias = Mapping[str, tuple[Callable[[], Attack], str]]
"""Attacks by name: what makes one, and its target and method."""


@dataclass(frozen=True, slots=True)
class Suite:
    """One attack.

    Attributes:
        about: Target and method of the attack, for people.
        expected: "reject" for a control that is broken on purpose.
        trials: Runs on each of D and D', unless another number is requested.
        sound: The passing suite from which a control differs only in what is broken or claimed; empty if
            there is none.
    """

    name: str
    about: str
    expected: Expected
    attack: Callable[[], Attack]
    trials: int
    sound: str = ""


_REPLACED: Final = "one broadcast of the consumer's, one record replaced by its opposite"
_BEST_OR_NOT: Final = "all broadcasts of a session, an owner having the best record or not"
_OF_OTHERS: Final = (
    "all that an owner is sent in a tender, another having the best record or not, against ε = 0"
)
_COMES_AND_GOES: Final = (
    "a session with an owner that comes and goes, and targets and points that the attacker chose"
)
_ON_BROADCASTS: Final[_Table] = {
    "null": (releases.null, "one broadcast that does not depend on the data, against ε = 0"),
    "gaussian": (releases.gaussian, _REPLACED),
    "filtered-gaussian": (releases.filtered_gaussian, _REPLACED),
    "filtered-gaussian-concentrated": (
        releases.concentrated,
        "such a broadcast with a seed set in one place, far from the consumer's records",
    ),
    "labels": (
        releases.labels,
        "such a broadcast with labels in the choice, one record getting another label and nothing else",
    ),
    "subspace": (releases.subspace, _REPLACED),
    "subspace-one-direction": (
        releases.one_direction,
        "such a broadcast in one direction of the seed set, along which the two records lie",
    ),
    "race": (releases.race, "one broadcast of the consumer's, one record replaced by one in no cell of it"),
    "race-printed": (
        releases.race_printed,
        "a sketch with the printed noise Laplace(R/ε), one record replaced by one in no cell of it",
    ),
    "race-sketch": (
        releases.race_sketch,
        "a sketch with the printed noise Laplace(R/ε), one record being there or not",
    ),
    "race-added": (
        releases.race_added,
        "a calibrated sketch and its noisy number of records, one record being there or not",
    ),
    "mwem-sound": (
        releases.mwem_sound,
        "one broadcast of MWEM with sound noise, one record replaced by its opposite",
    ),
    "mwem-printed": (
        releases.mwem_printed,
        "one broadcast of MWEM with the printed noise, against the ε that the paper counts",
    ),
    "nested": (
        nested.nested,
        "what owners see of two nested releases of the consumer's, one record replaced by its opposite",
    ),
    "nested-curator": (
        nested.curator,
        "both of two nested releases of the consumer's, against what the finer one states",
    ),
}
_ON_SESSIONS: Final[_Table] = {
    "gaussian-session": (sessions.gaussian, _BEST_OR_NOT),
    "filtered-gaussian-session": (sessions.filtered_gaussian, _BEST_OR_NOT),
    "session-concentrated": (
        sessions.concentrated,
        "such a session with a seed set in one place, far from all other points",
    ),
    "session-exhausted": (
        sessions.exhausted,
        "all broadcasts of a session in which the owners run out of points",
    ),
    "session-batches": (
        batches.batches,
        "all broadcasts of a session of three points a round, an owner having the best record or not",
    ),
    "session-switching": (
        switching.switching,
        "all broadcasts of a session in which D and D' differ in another point after every round",
    ),
    "session-restarted": (
        switching.restarted,
        "such a session with a curator that dies once, and goes on from its transcript",
    ),
    "session-near-ties": (
        near_ties.near_ties,
        "a session with n records of an owner or n + 1, others of which tie nearly with the attacker's",
    ),
    "session-forged": (
        forging.forged,
        "a session with an attacker that hands over features which no point has",
    ),
    "ask-all": (acquisition.ask_all, _COMES_AND_GOES),
    "sealed": (
        acquisition.sealed,
        "such a session by default: sealed points, a map that the consumer draws, filtered releases",
    ),
    "blind": (
        acquisition.blind,
        "the same with a blind curator: the consumer weighs, and the curator orders masked scores",
    ),
    "blind-restarted": (
        blind.restarted,
        "a blind session with a consumer that dies once; what D and D' differ in comes and goes",
    ),
    "blind-void": (
        blind.void,
        "a blind session with an attacker that sells a void box, which is bought in D and not in D'",
    ),
    "blind-curator": (
        blind.curator,
        "all that a blind curator is sent where D_v is another and the choice is not, against ε = 0",
    ),
    "blind-sizes": (
        blind.sizes,
        "sizes of all frames of a blind session, an owner having one point too few or not, against ε = 0",
    ),
    "tender": (tenders.tender, _OF_OTHERS),
    "tender-exhausted": (
        tenders.exhausted,
        "the same where owners have one point too few to sell, or as many as are bought",
    ),
    "tender-finer-release": (
        tenders.finer_release,
        "all that an owner is sent in a tender whose curator has a finer release, one record of D_v replaced",
    ),
    "logistic": (
        asking.logistic,
        "whether the owner of probes is asked, where one record shifts its rank by one",
    ),
    "session-winner-only": (
        asking.winner_only,
        "a session that asks the winner only, as if that told nothing, and a probe of the attacker's",
    ),
    "published-auction": (
        asking.published_auction,
        "whether the owner of a probe is asked by the printed auction, against its claimed ε_auc",
    ),
}
_CONTROLS: Final = {
    "race-printed": "race-sketch",
    "mwem-printed": "mwem-sound",
    "session-winner-only": "",
    "published-auction": "",
}
"""Suites to be rejected, and the passing one that differs only in what is broken or claimed, if any."""


def _suite(name: str, attack: Callable[[], Attack], about: str, trials: int) -> Suite:
    return Suite(
        name, about, "reject" if name in _CONTROLS else "pass", attack, trials, _CONTROLS.get(name, "")
    )


_OWN: Final = {
    name: _suite(name, *what, trials)
    for table, trials in ((_ON_BROADCASTS, BROADCASTS), (_ON_SESSIONS, SESSIONS))
    for name, what in table.items()
}


def _with(name: str, fault: PlantedFault) -> Suite:
    def attack() -> Attack:
        return fault.plant(_OWN[fault.sound].attack())

    return Suite(name, fault.about, "reject", attack, fault.trials, fault.sound)


SUITES: Final[dict[str, Suite]] = _OWN | {name: _with(name, fault) for name, fault in FAULTS.items()}
"""Every suite by name; planted faults come last."""


def suite_of(name: str) -> Suite:
    """The suite with that name, or a generic one for the private release or rule with that name.

    So whatever is registered can be audited before it has its own attacks in `SUITES`.

    Raises:
        ConfigError: There is neither, or the release does not work with the default feature map.
    """
    if name in SUITES:
        return SUITES[name]
    release, rule = RELEASES.get(name), RULES.get(name)
    if release is not None and release.private and not release.small_features:
        return _suite(name, partial(releases.registered, name), _REPLACED, BROADCASTS)
    if rule is not None and rule.private:
        attack, about = (
            (tenders.registered, _OF_OTHERS) if rule.herds else (acquisition.registered, _COMES_AND_GOES)
        )
        return _suite(name, partial(attack, name), about, SESSIONS)
    raise ConfigError(f"There is no suite named {name!r}.", advice=f"Choose of: {', '.join(SUITES)}.")
