"""A privacy filter: a cap on releases that are chosen one after another, each in view of those before.

Within a session its file fixes all costs before anything leaves, and `epsilon_of` composes them. Across
sessions they are not fixed: people who have seen the releases of one session decide whether to run another,
and at which ε. Composition theorems for fixed costs do not cover that; a privacy filter does (Rogers et al.
2016). Nor does a session end before the next begins: sessions of one dataset may run concurrently, each with
many rounds. So each choice is an interactive mechanism, and the guarantee must come from a filter for
concurrently run interactive mechanisms. A filter that is valid for mechanisms with one answer is also valid
for these, by (ε, δ) and by Rényi DP of a fixed order (Haney et al. 2023).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from hushbid.protocol.privacy.accounting.accountant import epsilon_of, pure_epsilon, total_rho
from hushbid.protocol.privacy.accounting.costs import (
    ApproximateCost,
    Cost,
    merge_costs,
)
from hushbid.protocol.privacy.accounting.validation import check_delta
from hushbid.protocol.privacy.accounting.zcdp import epsilon_of_rho, pure_rho

__all__ = ["APPROXIMATE_SHARE", "adaptive_epsilon"]

APPROXIMATE_SHARE: Final = 0.5
"""Share of a cap's δ reserved for costs with a δ of their own. It is fixed: a share that depended on the
choices would itself be chosen in view of releases.
"""


def adaptive_epsilon(choices: Sequence[Sequence[Cost]], delta: float) -> float:
    """The least ε of a cap at δ that admits these choices.

    Claim. Let each choice, such as a session, begin with its costs fixed, in view of all that was released by
    then, and only if this function's value for all choices so far, that one included, is at most ε. Once
    begun they may run side by side, with messages to each that follow from what any of them released. Then
    all that is ever released is (ε, δ)-differentially private, for the costs' neighbour relation.

    Proof. Fix two neighbours. A choice known as (e, d)-DP is, between these two, an interactive
    post-processing of one randomised response, drawn as it begins, that is e-DP but for an event of
    probability d (Kairouz, Oh, Viswanath 2017 for one answer; Lyu 2022 and Vadhan and Zhang 2023 for
    interactive mechanisms). Below, d of all choices together is at most δ/2; so the rest of the proof has δ/2
    left, and takes every such choice for e-DP, and so for e²/2-zCDP.

    1. Σρ is at most the constant ρ* whose ε at δ/2 is ε. Mechanisms of one answer whose ρ are chosen as they
       go, and that stop before Σρ exceeds ρ*, are (α, α·ρ*)-Rényi DP together, at every order α > 1: the
       filter of Feldman and Zrnic (2021). So are interactive ones, run concurrently: Haney et al. (2023), at
       each α by itself, as α·Σρ ≤ α·ρ* is the same decision at all of them. That is ρ*-zCDP. It needs that a
       choice is ρ-zCDP as a whole, whatever is sent to it: the ρ of its releases were fixed before, and add
       up however inputs are chosen. Gaussian noise, pure DP (ε²/2) and bounded range (η²/8) have a ρ each.
    2. Or Σe is at most ε, where every choice has a pure e. The basic filter of Rogers et al. (2016) is valid
       for (ε, 0), and so for interactive mechanisms run concurrently (Haney et al. 2023).
    3. Let the filter of 1 decide what begins, or that of 2; what has begun goes on in either case. An event E
       of the process in which either may admit a choice falls into the part where 1 admits all that began and
       the part where 1 does not and 2 does. The first is an event of the process that 1 decides, the second
       of the one that 2 does. So P(E) ≤ e^ε·P'(E) + δ/2 + 0.
    4. The first choice that costs anything is made before anything was released, so that it is no random
       variable, and all bounds of `epsilon_of` hold for it alone. If it does not fit 1 or 2 itself, neither
       do more choices with it: then it stays the only one, and nothing runs beside it. If it does, 1 to 3
       hold for all. ∎

    Assumption: choices, and messages to mechanisms that have begun, follow from releases and from public
    facts, not from the data itself. And the costs of a choice hold whatever the others that take part in it
    send, which is each mechanism's own to show.

    Args:
        choices: The costs of each choice, in the order of their beginning.

    Returns:
        ε ≥ 0; infinite if no cap at this δ admits them. It never falls when a choice is added.
    """
    check_delta(delta)
    costly = [merged for costs in choices if (merged := _costly(costs))]
    if not costly:
        return 0.0
    every = merge_costs(cost for costs in costly for cost in costs)
    filtered = _filtered(every, delta)
    return min(filtered, epsilon_of(costly[0], delta)) if len(costly) == 1 else filtered


def _filtered(costs: Sequence[Cost], delta: float) -> float:
    failing = math.fsum(cost.delta * cost.count for cost in costs if isinstance(cost, ApproximateCost))
    if failing > APPROXIMATE_SHARE * delta:
        return math.inf
    by_rho = epsilon_of_rho(_rho_but_for_failures(costs), (1.0 - APPROXIMATE_SHARE) * delta)
    return min(by_rho, math.fsum(cost.count * _epsilon_but_for_failures(cost) for cost in costs))


def _rho_but_for_failures(costs: Sequence[Cost]) -> float:
    known = [cost for cost in costs if isinstance(cost, ApproximateCost)]
    rest = [cost for cost in costs if not isinstance(cost, ApproximateCost)]
    return math.fsum([total_rho(rest), *(cost.count * pure_rho(cost.epsilon) for cost in known)])


def _epsilon_but_for_failures(cost: Cost) -> float:
    return cost.epsilon if isinstance(cost, ApproximateCost) else pure_epsilon(cost)


def _costly(costs: Sequence[Cost]) -> tuple[Cost, ...]:
    """The costs without free ones, such as a release that another party has paid for."""
    return tuple(
        cost
        for cost in merge_costs(costs)
        if not (isinstance(cost, ApproximateCost) and cost.epsilon == cost.delta == 0.0)
    )
