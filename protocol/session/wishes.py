"""The meaning of a session file's ``[wishes]``, and the wishes that are refused (docs/privacy.md §3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hushbid.protocol import limits
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.config.wishes import WishesSection
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import listed
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.session.turns import Turns
from hushbid.protocol.space.prices import UNITS, Bill, Prices, in_units
from hushbid.protocol.space.terms import NO_TERMS, Terms

__all__ = ["bill_of", "check_wishes", "over_budget", "prices_of", "terms_of", "turns_of"]

_LISTED: Final = 8
"""Most names that an error lists."""


def prices_of(file: SessionFile) -> Prices | None:
    """Prices of points; None if there are none."""
    return Prices.of(file.wishes.prices) if file.wishes is not None and file.wishes.prices else None


def turns_of(file: SessionFile) -> Turns:
    """The rounds of each owner. Under `tender` caps count points (`terms_of`), and all take part."""
    caps = {} if file.wishes is None or file.herds else file.wishes.caps
    return Turns.of(caps, rounds=file.rounds, batch=file.batch)


def terms_of(file: SessionFile) -> Terms:
    """The terms of a choice that counts what it bought."""
    wishes = file.wishes
    if wishes is None:
        return NO_TERMS
    every = limits.MAX_POINTS
    return Terms(
        prices_of(file),
        None if wishes.budget is None else in_units(wishes.budget),
        tuple(wishes.caps.get(owner, every) for owner in file.owners) if wishes.caps else None,
    )


def bill_of(file: SessionFile, sold: Mapping[str, int]) -> Bill | None:
    """The bill of a session; None if it has no prices.

    Args:
        sold: Number of points bought from each owner, without disputed points.
    """
    return None if file.wishes is None else Bill.of(file.wishes.prices, sold, file.wishes.budget)


def over_budget(file: SessionFile, sold: Mapping[str, int]) -> bool:
    """Whether points cost more than the budget; there may be none.

    Args:
        sold: As `bill_of` takes it.
    """
    made = bill_of(file, sold)
    return made is not None and made.budget is not None and made.total > made.budget


def check_wishes(file: SessionFile) -> None:
    """Raise `ConfigError` for wishes that a session cannot have.

    They name owners that are not on the roster; the rule, or buying each point once, does not permit them; a
    cap is below a round's points; a round would have too few owners; or the points can cost more than the
    budget. Under `tender`: the caps are for too few points, or the cheapest points cost more than the budget.
    """
    wishes = file.wishes
    if wishes is None:
        return
    _check_names(file, wishes)
    if wishes.uneven:
        _check_treatment(file, wishes)
    if file.herds:
        _check_terms(file, wishes)
        return
    if wishes.caps:
        _check_caps(file, wishes)
    if wishes.budget is not None:
        _check_budget(file, wishes, wishes.budget)


def _check_names(file: SessionFile, wishes: WishesSection) -> None:
    owners = set(file.owners)
    for key, named in (("prices", wishes.prices), ("caps", wishes.caps)):
        if unknown := set(named) - owners:
            raise ConfigError(
                f"wishes.{key} names owners that are not on the roster: {listed(sorted(unknown), _LISTED)}.",
                advice="Take them out, or correct their names.",
            )
    if wishes.prices and (missing := owners - set(wishes.prices)):
        raise ConfigError(
            f"wishes.prices has no price of {listed(sorted(missing), _LISTED)}.",
            advice="Give every owner's price, or none.",
        )


def _check_treatment(file: SessionFile, wishes: WishesSection) -> None:
    rule = RULES.get(file.acquisition.rule)
    what = "caps" if wishes.caps else "prices"
    if rule is not None and rule.unpriced and wishes.prices:
        raise ConfigError(
            f"wishes.prices differ, and the rule {rule.name} cannot have that: {rule.unpriced}.",
            advice="Give all owners one price, leave prices out, or choose the rule sealed or ask-all.",
        )
    if rule is not None and rule.even_owners:
        raise ConfigError(
            f"wishes.{what} treats owners differently, and the rule {rule.name} cannot: {rule.even_owners}.",
            advice=f"Leave {what} out, or choose the rule sealed, ask-all or winner-only.",
        )
    if file.distinct and not file.herds:
        why = (
            "who has no turn in a round has not handed over its copies of what was bought in it"
            if wishes.caps
            else "an owner that asks more does not bid its copy of what a cheaper one sold, and bids it "
            "later in the place of another point"
        )
        raise ConfigError(
            f"session.distinct is true and wishes.{what} treats owners differently: {why}, so that one "
            "record can change several points.",
            advice=f"Leave session.distinct out, or set it to false, or leave wishes.{what} out.",
        )


def _check_terms(file: SessionFile, wishes: WishesSection) -> None:
    """Refuse caps and a budget within which the points cannot be bought, whatever owners have."""
    points, submitted, left = file.session.points, file.batch * file.messages, file.session.points
    least = 0
    for owner in sorted(file.owners, key=lambda name: wishes.prices.get(name, 0.0)):
        sold = min(left, submitted, wishes.caps.get(owner, submitted))
        least += sold * in_units(wishes.prices.get(owner, 0.0))
        left -= sold
    if left:
        raise ConfigError(
            f"wishes.caps allow {points - left} points in all, and {points} are to be bought.",
            advice="Raise caps, leave some owners without one, or buy fewer points.",
        )
    if wishes.budget is not None and least > in_units(wishes.budget):
        raise ConfigError(
            f"wishes.budget is {wishes.budget:g}, and {points} points cost {least / UNITS:g} at least.",
            advice=f"Set budget to {least / UNITS:g} or more, or buy fewer points.",
        )


def _check_caps(file: SessionFile, wishes: WishesSection) -> None:
    batch, turns = file.batch, turns_of(file)
    if low := {owner for owner, cap in wishes.caps.items() if cap < batch}:
        raise ConfigError(
            f"wishes.caps: a round buys {batch} points, and {listed(sorted(low), _LISTED)} would have no "
            "turn at all: a cap is kept by whole rounds.",
            advice=f"Set caps of {batch} or more, or a smaller session.batch.",
        )
    fewest, needed = turns.fewest(file.owners), file.session.min_owners
    if fewest < needed:
        raise ConfigError(
            f"wishes.caps: of {turns.rounds} rounds some would have {fewest} owners, and session.min_owners "
            f"is {needed}.",
            advice="Raise caps, leave some owners without one, or lower session.min_owners.",
        )


def _check_budget(file: SessionFile, wishes: WishesSection, budget: float) -> None:
    """Compare the budget with the most that the points can cost: the dearest ones, up to their caps."""
    turns, left, most = turns_of(file), file.session.points, 0
    for owner in sorted(wishes.prices, key=lambda name: -wishes.prices[name]):
        points = min(left, turns.count(owner) * file.batch)
        most += points * in_units(wishes.prices[owner])
        left -= points
    if most > in_units(budget):
        raise ConfigError(
            f"wishes.budget is {budget:g}, and {file.session.points} points can cost {most / UNITS:g}. A "
            "purchase that ended early would tell by its length what was bought.",
            advice=f"Set budget to {most / UNITS:g} or more, buy fewer points, lower the highest prices, or "
            "cap the owners that have them.",
        )
