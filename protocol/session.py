"""A session file made into what the parties compute with: feature map, releases, rule, and their privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from protocol.acquisition import AcquisitionRule, acquisition_rule
from protocol.config.session import FeatureSection, MechanismSection, SessionFile
from protocol.errors import ConfigError
from protocol.features import FeatureMap, feature_map
from protocol.noise import NoiseSource, SimulatedNoise
from protocol.releases import Neighbours, ReleaseMechanism, release_mechanism

__all__ = ["NO_NOISE", "PrivacyStatement", "Session", "open_session", "privacy_lines"]

NO_NOISE: Final = "none"
"""What a release without noise says of its noise."""
OWNERS_DATA: Final = "the records of every owner"
CONSUMERS_DATA: Final = "the consumer's validation set"


@dataclass(frozen=True, slots=True)
class PrivacyStatement:
    """What is guaranteed to one party's data, in a session's whole course.

    Attributes:
        protects: Whose records.
        against: Who may try to learn of them.
        neighbours: The datasets that are compared.
        epsilon: The sound ε; None: nothing is guaranteed.
        delta: The δ that goes with it.
        claimed_epsilon: What the source paper's arithmetic gives, where that is another figure.
        noise: The noise source's name; with "simulated" the ε holds for nobody.
        why: What stands against a guarantee; empty if nothing does.
    """

    protects: str
    against: str
    neighbours: str
    epsilon: float | None
    delta: float
    claimed_epsilon: float | None
    noise: str
    why: str

    def as_json(self) -> dict[str, Any]:
        """The statement under the names of the command line's JSON."""
        return {
            "protects": self.protects,
            "from": self.against,
            "neighbours": self.neighbours,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "claimed_epsilon": self.claimed_epsilon,
            "noise": self.noise,
            "why": self.why,
        }


@dataclass(frozen=True)
class Session:
    """What a session file means.

    A release mechanism keeps state from release to release, so each call of `target` and `summary` makes
    a fresh one.
    """

    file: SessionFile
    feature_map: FeatureMap
    rule: AcquisitionRule

    @property
    def identifier(self) -> bytes:
        """The 16 bytes that frames name the session by."""
        return self.file.digest()[:16]

    def target(self) -> ReleaseMechanism[Any]:
        """The mechanism of the consumer's one release of D_v."""
        return self._mechanism("target", self.file.target, 1)

    def summary(self) -> ReleaseMechanism[Any]:
        """The mechanism of the curator's p releases of S."""
        return self._mechanism("summary", self.file.summary, self.file.session.points)

    def noise(self, party: str) -> NoiseSource:
        """A party's own source of noise."""
        return SimulatedNoise(self.file.noise.seed, party)

    def noise_name(self, mechanism: ReleaseMechanism[Any]) -> str:
        """What a mechanism's releases say of their noise."""
        return self.file.noise.source if mechanism.draws(0) else NO_NOISE

    def privacy(self) -> tuple[PrivacyStatement, ...]:
        """What the session guarantees, per protected party (DESIGN §4)."""
        owners = self._statement(OWNERS_DATA, "every other owner", self.summary(), Neighbours.ADD_REMOVE_ONE)
        if not self.rule.private:
            owners = _without_guarantee(owners, self._rule_objection())
        consumer = self._statement(
            CONSUMERS_DATA, "the owners and the curator", self.target(), Neighbours.SUBSTITUTE_ONE
        )
        trust = PrivacyStatement(
            OWNERS_DATA,
            "the curator and the consumer",
            Neighbours.ADD_REMOVE_ONE.value,
            None,
            self.file.session.delta,
            None,
            NO_NOISE,
            f"with {self.rule.name} the curator is handed raw points, and the consumer the chosen ones: "
            "owners have to trust them with these",
        )
        return owners, consumer, trust

    def objections(self) -> tuple[tuple[str, str], ...]:
        """What stands against a guarantee, as (whose records, why): what `privacy` says, without its ε.

        Every party asks this when it starts, and ε takes far longer.
        """
        found = [
            (OWNERS_DATA, self._objection(self.summary())),
            (OWNERS_DATA, "" if self.rule.private else self._rule_objection()),
            (CONSUMERS_DATA, self._objection(self.target())),
        ]
        return tuple((whose, why) for whose, why in found if why)

    def _objection(self, mechanism: ReleaseMechanism[Any]) -> str:
        if not mechanism.private:
            return f"the release {mechanism.name} has no noise"
        if not self.noise("statement").protects:
            return "the noise is simulated: who knows the session file can subtract it"
        return ""

    def _rule_objection(self) -> str:
        return f"the rule {self.rule.name} tells an owner {self.rule.learns}"

    def _mechanism(self, table: str, section: MechanismSection, releases: int) -> ReleaseMechanism[Any]:
        try:
            return release_mechanism(
                section.mechanism,
                section.parameters,
                dimension=self.file.features.dimension,
                releases=releases,
                norm_bound=self.feature_map.norm_bound,
            )
        except ConfigError as error:  # both tables may name the same mechanism
            raise ConfigError(f"[{table}]: {error.what}", advice=error.advice) from None

    def _statement(
        self, protects: str, against: str, mechanism: ReleaseMechanism[Any], neighbours: Neighbours
    ) -> PrivacyStatement:
        guarantee = mechanism.guarantee(neighbours=neighbours, delta=self.file.session.delta)
        return PrivacyStatement(
            protects,
            against,
            neighbours.value,
            guarantee.epsilon,
            guarantee.delta,
            guarantee.claimed_epsilon,
            self.noise_name(mechanism),
            self._objection(mechanism),
        )


def privacy_lines(statements: Sequence[Mapping[str, Any]]) -> list[str]:
    """Privacy statements (`PrivacyStatement.as_json`) for people, a line each."""
    lines = []
    for statement in statements:
        epsilon = statement["epsilon"]
        promised = "no guarantee" if epsilon is None else f"ε = {epsilon:.3g} at δ = {statement['delta']:.1g}"
        why = f"; but {statement['why']}" if statement["why"] else ""
        lines.append(f"{statement['protects']}, from {statement['from']}: {promised}{why}.")
    return lines


def open_session(file: SessionFile) -> Session:
    """Make a session of its file.

    Raises:
        ConfigError: An unknown map, mechanism or rule, parameters that they do not take, or something
            that protects nobody without ``allow_nonprivate``.
    """
    session = Session(
        file=file,
        feature_map=_feature_map(file.features),
        rule=acquisition_rule(
            file.acquisition.rule, file.acquisition.parameters, owners=len(file.roster.owners)
        ),
    )
    objections = session.objections()
    if objections and not file.session.allow_nonprivate:
        reasons = "; ".join(f"{whose}: {why}" for whose, why in objections)
        raise ConfigError(
            f"This session does not protect everybody's data: {reasons}.",
            advice="Choose other mechanisms, or set session.allow_nonprivate = true if that is meant.",
        )
    return session


def _feature_map(section: FeatureSection) -> FeatureMap:
    bounds: Mapping[str, Any] = {
        name: np.array(value, dtype=np.float64) if isinstance(value, list) else float(value)
        for name, value in (("lower", section.lower), ("upper", section.upper))
    }
    return feature_map(
        section.map,
        seed=section.seed,
        dimension=section.dimension,
        gamma=section.gamma,
        columns=section.columns,
        **bounds,
    )


def _without_guarantee(statement: PrivacyStatement, why: str) -> PrivacyStatement:
    reasons = f"{statement.why}; {why}" if statement.why else why
    return PrivacyStatement(
        statement.protects,
        statement.against,
        statement.neighbours,
        None,
        statement.delta,
        statement.claimed_epsilon,
        statement.noise,
        reasons,
    )
