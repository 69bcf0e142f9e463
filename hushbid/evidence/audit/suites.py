"""The suites of `hushbid audit`: the attacks and their expected results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from hushbid.evidence.audit import (
    acquisition,
    asking,
    batches,
    blind,
    forging,
    near_ties,
    releases,
    sessions,
    switching,
)
from hushbid.evidence.audit.attack import Attack
from hushbid.evidence.audit.faults import FAULTS, Fault
from protocol.errors import ConfigError
from protocol.privacy.acquisition import RULES
from protocol.privacy.releases import RELEASES

__all__ = ["SUITES", "Expected", "Suite", "suite_of"]

Expected = Literal["pass", "reject"]

BROADCASTS: Final = 20_000
SESSIONS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Suite:
    """One attack.

    Attributes:
        name: As the command line has it.
        about: Target and method of the attack, for people.
        expected: "reject" for a control that is broken on purpose.
        attack: Makes the attack.
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


_OWN: Final[dict[str, Suite]] = {
    suite.name: suite
    for suite in (
        Suite(
            "null",
            "one broadcast that does not depend on the data, against ε = 0",
            "pass",
            releases.null,
            BROADCASTS,
        ),
        Suite(
            "gaussian",
            "one broadcast of the consumer's, one record replaced by its opposite",
            "pass",
            releases.gaussian,
            BROADCASTS,
        ),
        Suite(
            "filtered-gaussian",
            "one broadcast of the consumer's, one record replaced by its opposite",
            "pass",
            releases.filtered_gaussian,
            BROADCASTS,
        ),
        Suite(
            "filtered-gaussian-concentrated",
            "such a broadcast with a seed set in one place, far from the consumer's records",
            "pass",
            releases.concentrated,
            BROADCASTS,
        ),
        Suite(
            "subspace",
            "one broadcast of the consumer's, one record replaced by its opposite",
            "pass",
            releases.subspace,
            BROADCASTS,
        ),
        Suite(
            "subspace-one-direction",
            "such a broadcast in one direction of the seed set, along which the two records lie",
            "pass",
            releases.one_direction,
            BROADCASTS,
        ),
        Suite(
            "race",
            "one broadcast of the consumer's, one record replaced by one in no cell of it",
            "pass",
            releases.race,
            BROADCASTS,
        ),
        Suite(
            "race-printed",
            "a sketch with the printed noise Laplace(R/ε), one record replaced by one in no cell of it",
            "reject",
            releases.race_printed,
            BROADCASTS,
            "race-sketch",
        ),
        Suite(
            "race-sketch",
            "a sketch with the printed noise Laplace(R/ε), one record being there or not",
            "pass",
            releases.race_sketch,
            BROADCASTS,
        ),
        Suite(
            "race-added",
            "a calibrated sketch and its noisy number of records, one record being there or not",
            "pass",
            releases.race_added,
            BROADCASTS,
        ),
        Suite(
            "mwem-sound",
            "one broadcast of MWEM with sound noise, one record replaced by its opposite",
            "pass",
            releases.mwem_sound,
            BROADCASTS,
        ),
        Suite(
            "mwem-printed",
            "one broadcast of MWEM with the printed noise, against the ε that the paper counts",
            "reject",
            releases.mwem_printed,
            BROADCASTS,
            "mwem-sound",
        ),
        Suite(
            "gaussian-session",
            "all broadcasts of a session, an owner having the best record or not",
            "pass",
            sessions.gaussian,
            SESSIONS,
        ),
        Suite(
            "filtered-gaussian-session",
            "all broadcasts of a session, an owner having the best record or not",
            "pass",
            sessions.filtered_gaussian,
            SESSIONS,
        ),
        Suite(
            "session-concentrated",
            "such a session with a seed set in one place, far from all other points",
            "pass",
            sessions.concentrated,
            SESSIONS,
        ),
        Suite(
            "session-exhausted",
            "all broadcasts of a session in which the owners run out of points",
            "pass",
            sessions.exhausted,
            SESSIONS,
        ),
        Suite(
            "session-batches",
            "all broadcasts of a session of three points a round, an owner having the best record or not",
            "pass",
            batches.batches,
            SESSIONS,
        ),
        Suite(
            "session-switching",
            "all broadcasts of a session in which D and D' differ in another point after every round",
            "pass",
            switching.switching,
            SESSIONS,
        ),
        Suite(
            "session-restarted",
            "such a session with a curator that dies once, and goes on from its transcript",
            "pass",
            switching.restarted,
            SESSIONS,
        ),
        Suite(
            "session-near-ties",
            "a session with n records of an owner or n + 1, others of which tie nearly with the attacker's",
            "pass",
            near_ties.near_ties,
            SESSIONS,
        ),
        Suite(
            "session-forged",
            "a session with an attacker that hands over features which no point has",
            "pass",
            forging.forged,
            SESSIONS,
        ),
        Suite(
            "ask-all",
            "a session with an owner that comes and goes, and targets and points that the attacker chose",
            "pass",
            acquisition.ask_all,
            SESSIONS,
        ),
        Suite(
            "sealed",
            "such a session by default: sealed points, a map that the consumer draws, filtered releases",
            "pass",
            acquisition.sealed,
            SESSIONS,
        ),
        Suite(
            "blind",
            "the same with a blind curator: the consumer weighs, and the curator orders masked scores",
            "pass",
            acquisition.blind,
            SESSIONS,
        ),
        Suite(
            "blind-restarted",
            "a blind session with a consumer that dies once; what D and D' differ in comes and goes",
            "pass",
            blind.restarted,
            SESSIONS,
        ),
        Suite(
            "blind-void",
            "a blind session with an attacker that sells a void box, which is bought in D and not in D'",
            "pass",
            blind.void,
            SESSIONS,
        ),
        Suite(
            "blind-curator",
            "all that a blind curator is sent where D_v is another and the choice is not, against ε = 0",
            "pass",
            blind.curator,
            SESSIONS,
        ),
        Suite(
            "blind-sizes",
            "sizes of all frames of a blind session, an owner having one point too few or not, against ε = 0",
            "pass",
            blind.sizes,
            SESSIONS,
        ),
        Suite(
            "logistic",
            "whether the owner of probes is asked, where one record shifts its rank by one",
            "pass",
            asking.logistic,
            SESSIONS,
        ),
        Suite(
            "session-winner-only",
            "a session that asks the winner only, as if that told nothing, and a probe of the attacker's",
            "reject",
            asking.winner_only,
            SESSIONS,
        ),
        Suite(
            "published-auction",
            "whether the owner of a probe is asked by the printed auction, against its claimed ε_auc",
            "reject",
            asking.published_auction,
            SESSIONS,
        ),
    )
}


def _with(fault: Fault) -> Suite:
    """The suite of a planted fault."""

    def attack() -> Attack:
        return fault.plant(_OWN[fault.sound].attack())

    return Suite(fault.name, fault.about, "reject", attack, fault.trials, fault.sound)


SUITES: Final[dict[str, Suite]] = _OWN | {name: _with(fault) for name, fault in FAULTS.items()}
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
        about = "one broadcast of the consumer's, one record replaced by its opposite"
        return Suite(name, about, "pass", partial(releases.registered, name), BROADCASTS)
    if rule is not None and rule.private:
        about = "a session with an owner that comes and goes, and targets and points that the attacker chose"
        return Suite(name, about, "pass", partial(acquisition.registered, name), SESSIONS)
    raise ConfigError(f"There is no suite named {name!r}.", advice=f"Choose of: {', '.join(SUITES)}.")
