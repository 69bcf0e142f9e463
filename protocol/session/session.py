"""A session file turned into what parties compute with: feature map, releases, rule, and their privacy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np

from hushbid.protocol.config.labels import LabelsSection
from hushbid.protocol.config.purchase import check_purchase
from hushbid.protocol.config.session import FeatureSection, MechanismSection, SessionFile
from hushbid.protocol.crypto.commitment import opening_bytes
from hushbid.protocol.crypto.identity import Identity, PublicIdentity, roster_identity, simulated_identity
from hushbid.protocol.crypto.sealing import SEAL_BYTES
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.accounting import Budget, Cost, PrivacyFilter, epsilon_of
from hushbid.protocol.privacy.acquisition import AcquisitionRule, acquisition_rule
from hushbid.protocol.privacy.noise import Draw, SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours, ReleaseMechanism, Setting, release_mechanism
from hushbid.protocol.privacy.releases.nested import Nested
from hushbid.protocol.privacy.settlement import PrivateSettlement, SettlementTerms
from hushbid.protocol.session.guarantee import (
    CONSUMERS_DATA,
    NO_NOISE,
    OWNERS_DATA,
    TRUSTED,
    PrivacyStatement,
)
from hushbid.protocol.session.turns import Turns
from hushbid.protocol.session.wishes import check_wishes, prices_of, terms_of, turns_of
from hushbid.protocol.space.copies import Copies
from hushbid.protocol.space.features import FeatureMap, FeatureSpace, feature_space
from hushbid.protocol.space.jitter import Jitter
from hushbid.protocol.space.prices import Prices
from hushbid.protocol.space.terms import NO_TERMS, Terms
from hushbid.protocol.wire.messages import (
    BLIND_VERSION,
    COMMITTED_VERSION,
    NUMBERED_VERSION,
    PROTOCOL_VERSION,
)

__all__ = ["MOST_SHARED", "Session", "feature_space_of", "objections", "open_session"]

MOST_SHARED: Final = 0.1
"""Largest share of D_v's distinct rows that may also be seed rows, where columns take few values."""
_SIMULATED: Final = "the noise is simulated: who knows the session file can subtract it"

_WHY: Final = {
    Neighbours.SUBSTITUTE_ONE: "the size of the validation set is public, so a record can only be another",
    Neighbours.ADD_REMOVE_ONE: "an owner has one record more or less, and one point of the summary differs",
}


@dataclass(frozen=True)
class Session:
    """A session: the meaning of a session file.

    `target` and `summary` are made once, and answer questions that need no data. A party that releases makes
    its own stream (`ReleaseMechanism.stream`).

    Attributes:
        space: The public part of the feature map.
        public_map: The feature map; None if it is secret (`AcquisitionRule.sealed`).
        recorded_digest: The session's digest, if another version of the protocol recorded it.
    """

    file: SessionFile
    space: FeatureSpace
    rule: AcquisitionRule
    public_map: FeatureMap | None
    recorded_digest: bytes | None = None

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the session file's meaning, 32 bytes."""
        return self.recorded_digest or self.file.digest()

    @cached_property
    def rounds(self) -> int:
        """T, the number of rounds."""
        return self.file.rounds

    @cached_property
    def batch(self) -> int:
        """b, the number of points in a bid, and in the purchase of every round but the last."""
        return self.file.batch

    @cached_property
    def messages(self) -> int:
        """The number of messages in which an owner answers a broadcast: 1, but for a large submission."""
        return self.file.messages

    @cached_property
    def jitter(self) -> Jitter | None:
        """The part of scores besides wᵀφ; None if there is none."""
        return Jitter(self.identifier) if self.file.jitter else None

    def copies(self) -> Copies | None:
        """For a pool in which a point held by several owners counts once; None if it counts for each."""
        return Copies(self.identifier) if self.file.distinct else None

    @cached_property
    def prices(self) -> Prices | None:
        """Prices of owners' points; None if there are none and scores alone decide."""
        return prices_of(self.file)

    @cached_property
    def terms(self) -> Terms:
        """What bounds the choice under `tender`; other rules bound it by prices and turns."""
        return terms_of(self.file) if self.rule.herds else NO_TERMS

    @cached_property
    def turns(self) -> Turns:
        return turns_of(self.file)

    @property
    def weight_coordinates(self) -> int:
        """Coordinates of a broadcast's weights: d, and one more for jitter."""
        return self.space.dimension + (self.jitter is not None)

    def bought_in(self, number: int) -> int:
        """Number of points that round 1, 2, … buys; the last round buys the rest of p."""
        if self.rule.herds:
            return self.file.session.points
        return min(self.batch, self.file.session.points - self.batch * (number - 1))

    @property
    def identifier(self) -> bytes:
        """The 16 bytes that identify the session in frames."""
        return self.digest[:16]

    @cached_property
    def target(self) -> ReleaseMechanism:
        """The mechanism of the consumer's single release of D_v."""
        return self._mechanism("target", self.file.target, Neighbours.SUBSTITUTE_ONE, releases=1)

    @cached_property
    def nested(self) -> Nested | None:
        """The curator's finer release of D_v, from which the owners' follows; None if all see one."""
        return Nested.of(self.target, delta=self.file.session.delta)

    @property
    def target_draws(self) -> tuple[Draw, ...]:
        """The noise of the consumer's release, or of both where the curator has one of its own."""
        return self.target.draws(0) if self.nested is None else self.nested.draws

    @property
    def charged_target(self) -> ReleaseMechanism:
        """The mechanism whose cost the consumer is charged: the curator's, if it sees more than owners do."""
        return self.target if self.nested is None else self.nested.finer

    @cached_property
    def summary(self) -> ReleaseMechanism:
        """The mechanism of the curator's releases of S, one a round; the first has only public points."""
        return self._mechanism(
            "summary",
            self.file.summary,
            Neighbours.ADD_REMOVE_ONE,
            releases=self.file.rounds,
            seed_weight=self.file.seed_weight,
            batch=self.file.batch,
            starts_public=True,
        )

    def _mechanism(
        self, table: str, section: MechanismSection, neighbours: Neighbours, **setting: Any
    ) -> ReleaseMechanism:
        space, delta = self.space, self.file.session.delta
        what = Setting(
            dimension=space.dimension, norm_bound=space.norm_bound, rows=space.rows, delta=delta, **setting
        )
        try:
            mechanism = release_mechanism(section.mechanism, section.parameters, what)
        except ConfigError as error:  # both tables may name the same mechanism
            raise ConfigError(f"[{table}]: {error.what}", advice=error.advice) from None
        stated = getattr(mechanism.parameters, "neighbours", neighbours)
        if stated is not neighbours:
            raise ConfigError(
                f"[{table}]: a guarantee for the neighbours {stated.value!r} is not one that it can have.",
                advice=f'Set neighbours = "{neighbours.value}": {_WHY[neighbours]}.',
            )
        return mechanism

    @cached_property
    def settlement(self) -> PrivateSettlement | None:
        """The release that determines owners' payments; None: the settlement is exact, and the curator's.

        It raises `ConfigError` if the owners have no guarantee to include it in, or no noise meets its ε.
        """
        section, session = self.file.settlement, self.file.session
        if section.epsilon is None:
            return None
        summary = self.summary
        of_release = "" if summary.private else f"the release {summary.name} has no noise"
        if without := of_release or _rule_objection(self.rule):
            raise ConfigError(
                f"[settlement]: a private settlement is part of what the owners are guaranteed, and here "
                f"nothing is: {without}.",
                advice="Leave settlement.private out, or choose another rule or release.",
            )
        owners = len(self.file.roster.owners)
        return PrivateSettlement.of(epsilon=section.epsilon, delta=session.delta, owners=owners)

    @property
    def settlement_terms(self) -> SettlementTerms:
        """Whether owners may be told the settlement, and what that costs in privacy."""
        return SettlementTerms.of(self.settlement, "" if self.noise_protects else _SIMULATED)

    @cached_property
    def directions(self) -> int:
        """Number of the seed set's directions that the releases need (`Prior.basis`)."""
        return max(self.target.directions, self.summary.directions)

    @cached_property
    def box_bytes(self) -> int:
        """Bytes to which a point with its label is padded before sealing; 0 if nothing is sealed."""
        if not self.rule.sealed:
            return 0
        parameters = self.rule.parameters.in_force(columns=self.space.columns, owners=self.rule.owners)
        size: int = parameters.box_bytes
        return size

    @cached_property
    def box_length(self) -> int:
        """Bytes of a box: what shows that its row was committed to, the padded content, and the seal."""
        return opening_bytes(self.commitment_depth) + self.box_bytes + SEAL_BYTES

    def check_rows(self, rows: int, name: str) -> None:
        """Raise `DataError` for more rows than the tree has room for by which owners commit to them."""
        if self.commitment_depth and rows > 2**self.commitment_depth:
            raise DataError(
                f"{name}: there are more rows than the session's tree has room for, which is "
                f"{2**self.commitment_depth:,}.",
                advice="Sell a part of them, or have acquisition.commitment_depth raised, for all parties.",
            )

    def public_identity(self, party: str) -> PublicIdentity:
        """The public identity of a party ("curator", "consumer" or an owner's name), from the roster.

        If noise is simulated, so are identities: they follow from the session file, and protect nobody. It is
        made once: every message is checked with one, and a key takes longer to read than to use.

        It raises `ConfigError` if the roster has no usable key for it.
        """
        found = self._identities.get(party)
        if found is None:
            found = self._identities[party] = self._new_identity(party)
        return found

    @cached_property
    def _identities(self) -> dict[str, PublicIdentity]:
        """The public identities that were asked for so far."""
        return {}

    def _new_identity(self, party: str) -> PublicIdentity:
        if not self.noise_protects:
            return self.simulated_identity(party).public
        roster = self.file.roster
        keys = roster.owners
        if party not in keys:
            keys = {CURATOR: roster.curator, CONSUMER: roster.consumer}
        return roster_identity(keys[party], party)

    def simulated_identity(self, party: str) -> Identity:
        """A party's keys if noise is simulated."""
        return simulated_identity(self.digest, self.file.noise.seed or 0, party)

    @property
    def protocol_version(self) -> int:
        """The version of the protocol that every party of the session must speak."""
        if self.commitment_depth:
            return COMMITTED_VERSION
        if self.file.numbered:
            return NUMBERED_VERSION
        return PROTOCOL_VERSION if self.curator_reads else BLIND_VERSION

    @property
    def commitment_depth(self) -> int:
        """Depth of the trees by which owners commit to their rows first; 0: they do not."""
        return getattr(self.rule.parameters, "commitment_depth", None) or 0

    @cached_property
    def numbered_boxes(self) -> bool:
        """Whether the boxes of one message have one ephemeral key together (`seal_numbered`)."""
        return self.rule.herds or self.commitment_depth > 0 or self.file.numbered

    @property
    def weigher(self) -> Literal["consumer", "curator"]:
        """The party that computes each round's weights: it draws their noise, and is charged for them."""
        return CONSUMER if self.rule.blind else CURATOR

    @property
    def curator_reads(self) -> bool:
        """Whether the curator sees scores and weights; if not, the consumer's record tells more."""
        return not self.rule.blind

    @property
    def unlinked(self) -> bool:
        """Whether a curator that does not read cannot tell which score is which box's either."""
        return not self.curator_reads and self.commitment_depth > 0

    @property
    def noise_protects(self) -> bool:
        """Whether the session's source of noise keeps the mechanisms' guarantees."""
        return self.file.noise.source != SimulatedNoise.name

    @property
    def keyless(self) -> bool:
        """Whether no party has a key: the noise is secure and the connections are not.

        The roster decides this, as the digest covers it, and not `network.insecure`, which it does not cover.
        """
        roster = self.file.roster
        return self.noise_protects and not any((roster.curator, roster.consumer, *roster.owners.values()))

    def target_filter(self) -> PrivacyFilter | None:
        """The filter that charges the consumer's release; None if nothing is guaranteed."""
        return self._filter(self.charged_target, Neighbours.SUBSTITUTE_ONE)

    def summary_filter(self) -> PrivacyFilter | None:
        """The filter that charges the curator's releases and asks; None if nothing is guaranteed."""
        neighbours, rule = Neighbours.ADD_REMOVE_ONE, self.rule
        if not rule.private or not self.costs_beside_releases():
            return self._filter(self.summary, neighbours)
        stated = _owners_statement(self)
        if stated.epsilon is None:
            return None
        more_epsilon, more_delta = rule.slack
        budget = Budget(stated.epsilon - more_epsilon, stated.delta - more_delta)
        accountant = PrivacyFilter(budget, neighbours=neighbours.value)
        accountant.expect(*self.owners_costs())
        return accountant

    @property
    def owners_releases(self) -> int:
        """Number of releases of the owners' records: one a round, and a private settlement."""
        return self.rounds + (self.settlement is not None)

    def owners_costs(self) -> tuple[Cost, ...]:
        """The owners' cost of all these together, without the rule's slack, which belongs to no mechanism."""
        summary = self.summary.costs(neighbours=Neighbours.ADD_REMOVE_ONE)
        return (*summary, *self.costs_beside_releases())

    def costs_beside_releases(self) -> tuple[Cost, ...]:
        """The owners' costs apart from releases of the summary: the rule's asks, and a settlement."""
        return (*self.rule.costs(), *(self.settlement.costs if self.settlement is not None else ()))

    def release_costs(self) -> Callable[[int], tuple[Cost, ...]]:
        """Costs of release number 1, 2, … to the owners: a round's release and the asks in that round.

        The release after the last round's is the settlement's (`owners_releases`).
        """
        summary, settlement = self.summary, self.settlement
        # A rule costs the same in every round.
        asks = tuple(replace(cost, count=cost.count // summary.releases) for cost in self.rule.costs())

        def costs(number: int) -> tuple[Cost, ...]:
            if settlement is not None and number == self.owners_releases:
                return settlement.costs
            return (*summary.cost(number - 1, neighbours=Neighbours.ADD_REMOVE_ONE), *asks)

        return costs

    def release_draws(self) -> Callable[[int], tuple[tuple[Draw, ...], tuple[Draw, ...]]]:
        """Draws of release number 1, 2, …, and of the rule; the numbers are those of `release_costs`."""
        summary, settlement = self.summary, self.settlement

        def draws(number: int) -> tuple[tuple[Draw, ...], tuple[Draw, ...]]:
            if settlement is not None and number == self.owners_releases:
                return (settlement.draw,), ()
            return summary.draws(number - 1), self.rule.draws()

        return draws

    def _filter(self, mechanism: ReleaseMechanism, neighbours: Neighbours) -> PrivacyFilter | None:
        delta = self.file.session.delta
        if not mechanism.private:
            return None
        epsilon = getattr(mechanism.parameters, "epsilon", None)
        epsilon = epsilon or mechanism.guarantee(neighbours=neighbours, delta=delta).epsilon
        if not epsilon:
            return None  # all points of this release are public
        accountant = PrivacyFilter(Budget(epsilon, delta), neighbours=neighbours.value)
        accountant.expect(*mechanism.costs(neighbours=neighbours))
        return accountant

    def noise_name(self, mechanism: ReleaseMechanism) -> str:
        """The name of the noise in a mechanism's releases."""
        return self.file.noise.source if _is_noisy(mechanism) else NO_NOISE

    def draws_noise(self) -> bool:
        """Whether any party draws noise in the session."""
        return _is_noisy(self.target) or self.draws_curators_noise()

    def draws_curators_noise(self) -> bool:
        """Whether the curator draws noise: for its releases, the rule, or a private settlement."""
        return self.settlement is not None or _is_noisy(self.summary) or bool(self.rule.draws())

    def privacy(self) -> tuple[PrivacyStatement, ...]:
        """The session's guarantees, per protected party (DESIGN §4)."""
        return _statements(self)


def open_session(file: SessionFile) -> Session:
    """Make a session from its file.

    Raises:
        ConfigError: A map, mechanism or rule is unknown, or does not accept its parameters; a budget is too
            small for the rounds; a private settlement has no guarantee to join; or something protects nobody
            without ``allow_nonprivate``.
    """
    check_purchase(file)
    check_wishes(file)
    space = feature_space_of(file.features, file.labels)
    rule = acquisition_rule(
        file.acquisition.rule,
        file.acquisition.parameters,
        owners=len(file.roster.owners),
        rounds=file.rounds,
        delta=file.session.delta,
    )
    session = Session(file=file, space=space, rule=rule, public_map=_public_map(file.features, space, rule))
    if rule.herds and session.target.directions:
        raise ConfigError(
            f"[target]: the rule {rule.name} does not go with {session.target.name}: owners choose by what "
            "it takes of each point, and are not sent the seed set's directions.",
            advice='Set mechanism to another, as "filtered-gaussian", or choose the rule sealed.',
        )
    for table, mechanism in (("target", session.target), ("summary", session.summary)):
        given = getattr(mechanism.parameters, "epsilon_curator", None) is not None
        if given and (table == "summary" or not rule.herds):
            raise ConfigError(
                f"[{table}]: epsilon_curator is for the target of a tender: the curator alone chooses by it, "
                f"and under the rule {rule.name} what it broadcasts follows from it.",
                advice="Leave epsilon_curator out, or set it in [target] and choose the rule tender.",
            )
    _ = session.nested  # raises if the curator would have no finer release
    if session.noise_protects and not file.network.insecure:
        _check_keys(session)
    _ = session.settlement  # raises if the session cannot have it
    reasons_against = objections(session)
    if reasons_against and not file.session.allow_nonprivate:
        reasons = "; ".join(f"{whose}: {why}" for whose, why in reasons_against)
        raise ConfigError(
            f"This session does not protect everybody's data: {reasons}.",
            advice="Choose other mechanisms, or set session.allow_nonprivate = true if that is meant.",
        )
    return session


def _check_keys(session: Session) -> None:
    """Refuse a roster with two keys that map to the same Curve25519 key, which identifies parties."""
    parties: dict[bytes, str] = {}
    for party in (CURATOR, CONSUMER, *session.file.owners):
        mapped = session.public_identity(party).curve
        if mapped in parties:
            raise ConfigError(
                f"The roster's keys of {parties[mapped]} and {party} differ only in the sign.",
                advice="Have one of them make a new key (`hushbid keys new`), and the roster corrected.",
            )
        parties[mapped] = party


def _public_map(section: FeatureSection, space: FeatureSpace, rule: AcquisitionRule) -> FeatureMap | None:
    if rule.sealed:
        if section.seed is not None:
            raise ConfigError(
                f"features.seed: the rule {rule.name} keeps the feature map from the curator, who reads this "
                "file.",
                advice="Leave the seed out: the consumer draws it and seals it to the owners.",
            )
        return None
    if section.seed is None:
        raise ConfigError(
            f"features.seed is missing: with the rule {rule.name} all parties make the feature map from it.",
            advice="Set any whole number from 0.",
        )
    return space.map(section.seed)


def feature_space_of(section: FeatureSection, labels: LabelsSection | None = None) -> FeatureSpace:
    """The space of a session file's [features], in which labels may have a part.

    It raises `ConfigError` for a parameter that its map lacks, or for labels that it has no place for.
    """
    bounds: Mapping[str, Any] = {
        name: np.array(value, dtype=np.float64) if isinstance(value, list) else float(value)
        for name, value in (("lower", section.lower), ("upper", section.upper))
    }
    space = feature_space(
        section.map,
        dimension=section.dimension,
        gamma=section.gamma,
        columns=section.columns,
        options=section.options,
        **bounds,
    )
    return space if labels is None else space.with_labels(labels.code)


def _is_noisy(mechanism: ReleaseMechanism) -> bool:
    return any(mechanism.draws(index) for index in {0, mechanism.releases - 1})


def _statements(session: Session) -> tuple[PrivacyStatement, ...]:
    """The guarantees for the owners and for the consumer, and whom the owners have to trust.

    Where the curator has a finer release, the consumer's guarantee against it comes before that against
    owners.
    """
    rule, values = session.rule, session.file.session.column_values
    against = {"the owners and the curator": session.charged_target}
    if session.nested is not None:
        against = {"the curator": session.charged_target, "the owners": session.target}
    consumers = [
        _statement(session, CONSUMERS_DATA, whom, mechanism, Neighbours.SUBSTITUTE_ONE)
        for whom, mechanism in against.items()
    ]
    if values is not None:  # the seed set's sum is sent without noise
        shared = (
            f"rows that the public seed set has too, at most {MOST_SHARED:.0%} of its different ones: a "
            f"column takes {values} values or fewer"
        )
        consumers = [replace(each, not_covered=shared) for each in consumers]
    trust = PrivacyStatement(
        OWNERS_DATA,
        TRUSTED,
        Neighbours.ADD_REMOVE_ONE.value,
        None,
        session.file.session.delta,
        None,
        NO_NOISE,
        f"with {rule.name} {rule.curator_sees}",
    )
    return _owners_statement(session), *consumers, trust


def _owners_statement(session: Session) -> PrivacyStatement:
    """The owners' guarantee: of the releases, the rule's asks and a private settlement together."""
    rule = session.rule
    stated = _statement(session, OWNERS_DATA, rule.against, session.summary, Neighbours.ADD_REMOVE_ONE)
    if rule.herds:  # no summary is released, whatever its mechanism
        delta = session.file.owners_delta
        stated = replace(stated, epsilon=0.0, delta=delta, claimed_epsilon=None, noise=NO_NOISE)
    if not rule.private:
        return stated.without_guarantee(_rule_objection(rule))
    if not session.costs_beside_releases() or stated.epsilon is None:
        return stated
    # The slack belongs to no mechanism: it is added and not composed (`Logistic`).
    more_epsilon, more_delta = rule.slack
    epsilon = more_epsilon + epsilon_of(session.owners_costs(), stated.delta - more_delta)
    return replace(stated, epsilon=epsilon)


def objections(session: Session) -> tuple[tuple[str, str], ...]:
    """Reasons against a guarantee, as (whose records, why): those of `Session.privacy`, without its ε.

    Every party needs them when it starts, and ε takes far longer to compute.
    """
    found = [
        (OWNERS_DATA, _objection(session, session.summary)),
        (OWNERS_DATA, _rule_objection(session.rule)),
        (CONSUMERS_DATA, _objection(session, session.target)),
    ]
    return tuple((whose, why) for whose, why in found if why)


def _rule_objection(rule: AcquisitionRule) -> str:
    """Why a rule guarantees owners nothing; empty if it is private."""
    return "" if rule.private else f"the rule {rule.name} tells an owner {rule.learns}"


def _objection(session: Session, mechanism: ReleaseMechanism) -> str:
    if mechanism is session.summary and session.rule.herds:
        return ""
    if not mechanism.private:
        return f"the release {mechanism.name} has no noise"
    return "" if session.noise_protects else _SIMULATED


def _statement(
    session: Session, protects: str, against: str, mechanism: ReleaseMechanism, neighbours: Neighbours
) -> PrivacyStatement:
    guarantee = mechanism.guarantee(neighbours=neighbours, delta=session.file.session.delta)
    return PrivacyStatement(
        protects,
        against,
        neighbours.value,
        guarantee.epsilon,
        guarantee.delta,
        guarantee.claimed_epsilon,
        session.noise_name(mechanism),
        _objection(session, mechanism),
    )
