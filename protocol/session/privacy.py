"""What a session guarantees to whom, and the reasons against a guarantee (DESIGN §4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from protocol.privacy.accounting import epsilon_of
from protocol.privacy.acquisition import AcquisitionRule
from protocol.privacy.releases import Neighbours, ReleaseMechanism
from protocol.session.guarantee import CONSUMERS_DATA, NO_NOISE, OWNERS_DATA, TRUSTED, PrivacyStatement

if TYPE_CHECKING:
    from protocol.session.session import Session

__all__ = ["MOST_SHARED", "SIMULATED", "objections", "owners_statement", "rule_objection", "statements"]

MOST_SHARED: Final = 0.1
"""Largest share of D_v's distinct rows that may also be seed rows, where columns take few values."""
SIMULATED: Final = "the noise is simulated: who knows the session file can subtract it"


def statements(session: Session) -> tuple[PrivacyStatement, ...]:
    """The guarantees for the owners and for the consumer, and whom the owners have to trust."""
    rule, values = session.rule, session.file.session.column_values
    consumer = _statement(
        session, CONSUMERS_DATA, "the owners and the curator", session.target, Neighbours.SUBSTITUTE_ONE
    )
    if values is not None:  # the seed set's sum is sent without noise
        shared = (
            f"rows that the public seed set has too, at most {MOST_SHARED:.0%} of its different ones: a "
            f"column takes {values} values or fewer"
        )
        consumer = replace(consumer, not_covered=shared)
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
    return owners_statement(session), consumer, trust


def owners_statement(session: Session) -> PrivacyStatement:
    """The owners' guarantee: of the releases, the rule's asks and a private settlement together."""
    rule = session.rule
    stated = _statement(session, OWNERS_DATA, rule.against, session.summary, Neighbours.ADD_REMOVE_ONE)
    if not rule.private:
        return stated.without_guarantee(rule_objection(rule))
    if not session.costs_beside_releases() or stated.epsilon is None:
        return stated
    # The slack belongs to no mechanism: it is added and not composed (`Logistic`).
    more_epsilon, more_delta = rule.slack
    epsilon = more_epsilon + epsilon_of(session.owners_costs(), stated.delta - more_delta)
    return replace(stated, epsilon=epsilon)


def objections(session: Session) -> tuple[tuple[str, str], ...]:
    """Reasons against a guarantee, as (whose records, why): those of `statements`, without its ε.

    Every party needs them when it starts, and ε takes far longer to compute.
    """
    found = [
        (OWNERS_DATA, _objection(session, session.summary)),
        (OWNERS_DATA, rule_objection(session.rule)),
        (CONSUMERS_DATA, _objection(session, session.target)),
    ]
    return tuple((whose, why) for whose, why in found if why)


def rule_objection(rule: AcquisitionRule) -> str:
    """Why a rule guarantees owners nothing; empty if it is private."""
    return "" if rule.private else f"the rule {rule.name} tells an owner {rule.learns}"


def _objection(session: Session, mechanism: ReleaseMechanism) -> str:
    if not mechanism.private:
        return f"the release {mechanism.name} has no noise"
    return "" if session.noise_protects else SIMULATED


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
