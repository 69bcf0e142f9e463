"""The rounds of a session: what its points, its batch, its rule and its settlement allow together."""

from __future__ import annotations

from hushbid.protocol import limits
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.acquisition import RULES

__all__ = ["check_purchase"]


def check_purchase(file: SessionFile) -> None:
    """Refuse rounds that a session cannot have.

    They buy more points than the session, the rule or a message allows; or they have jitter, or buy a point
    once, although the rule asks for points or the settlement is private.

    Raises:
        ConfigError: Says which of these it is.
    """
    batch, points, most = file.batch, file.session.points, file.most_in_a_bid
    rule = RULES.get(file.acquisition.rule)
    if not file.herds and file.session.submission is not None:
        raise ConfigError(
            f"session.submission is {file.session.submission}, and under the rule {file.acquisition.rule} an "
            "owner bids in rounds, and submits no choice of its own.",
            advice="Leave submission out, or choose the rule tender.",
        )
    if file.herds and batch > file.submission:
        raise ConfigError(
            f"session.batch is {batch}, and an owner submits {file.submission} points in all.",
            advice=f"Set batch to {file.submission} or less, or leave it out.",
        )
    if file.session.numbered and (rule is None or not rule.sealed):
        raise ConfigError(
            f"session.numbered is true, and under the rule {file.acquisition.rule} points have no box.",
            advice="Leave numbered out, or choose the rule sealed, tender or blind.",
        )
    if batch > points and not file.herds:
        raise ConfigError(
            f"session.batch is {batch}, and {points} points are to be bought in all.",
            advice=f"Set batch to {points} or less, or leave it out.",
        )
    if batch > 1 and rule is not None and not rule.candidate_with_bid:
        raise ConfigError(
            f"session.batch is {batch}, and the rule {rule.name} asks for one point at a time: "
            f"{rule.one_at_a_time}.",
            advice="Set batch = 1, or choose a rule whose bids bring their points: sealed or ask-all.",
        )
    if file.jitter and rule is not None and not rule.candidate_with_bid:
        raise ConfigError(
            f"session.jitter is {file.jitter:g}, and the rule {rule.name} asks for points: "
            "what an ask tells is worked out for scores without jitter.",
            advice="Set jitter = 0, or choose a rule whose bids bring their points: sealed or ask-all.",
        )
    if rule is not None and rule.herds:
        _check_tender(file)
    if file.distinct and rule is not None and not rule.candidate_with_bid:
        raise ConfigError(
            f"session.distinct is true, and the rule {rule.name} asks for points: the pool lacks most copies "
            "of what was bought, and a round would be spent on each.",
            advice="Set distinct = false, or choose a rule whose bids bring their points: sealed or ask-all.",
        )
    if file.distinct and rule is not None and rule.blind:
        raise ConfigError(
            f"session.distinct is true, and under the rule {rule.name} the curator cannot tell which points "
            "are copies of each other.",
            advice="Set distinct = false, or choose the rule sealed or ask-all.",
        )
    if rule is not None and rule.blind and file.longest_bid > limits.MAX_MESSAGE_BYTES:
        raise ConfigError(
            f"session.points is {points}: under the rule {rule.name} a bid has a score of every point that "
            f"its owner ever sent, and would be longer than a message can be.",
            advice="Buy fewer points in a session, or choose the rule sealed or ask-all.",
        )
    if file.distinct and file.settlement.private:
        raise ConfigError(
            "session.distinct is true and the settlement private: who sells a point that several owners hold "
            "depends on who is there, so that one record can move more shares than the noise is for.",
            advice="Set distinct = false, or leave the settlement exact; it is then the curator's alone.",
        )
    if batch > most:
        raise ConfigError(
            f"session.batch is {batch}, and a bid has room for {most} points of "
            f"{file.features.columns} columns.",
            advice=f"Set batch to {most} or less, or leave it out.",
        )


def _check_tender(file: SessionFile) -> None:
    """Refuse what one submission of each owner cannot be."""
    rule, points = file.acquisition.rule, file.session.points
    if file.jitter:
        raise ConfigError(
            f"session.jitter is {file.jitter:g}, and the rule {rule} adds none: it chooses by running sums.",
            advice="Leave jitter out.",
        )
    if file.settlement.private:
        raise ConfigError(
            f"The settlement is private, and under the rule {rule} one record can change the whole choice: "
            "no noise that leaves anything to read hides what it moves.",
            advice="Leave settlement.private out: the settlement is exact then, and the curator's alone. Or "
            "choose the rule sealed.",
        )
    if points > limits.MAX_HERDED:
        raise ConfigError(
            f"session.points is {points}, and the rule {rule} chooses {limits.MAX_HERDED:,} at most.",
            advice="Buy fewer points, in several sessions, or choose the rule sealed.",
        )
    submitted = file.batch * file.messages
    if submitted * len(file.owners) < points:
        raise ConfigError(
            f"{len(file.owners)} owners submit {submitted} points each under the rule {rule}, and "
            f"{points} are to be bought.",
            advice=f"Set session.submission to {-(-points // len(file.owners))} or more, or leave it out.",
        )
