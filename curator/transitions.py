"""The curator's legal transitions, as data. docs/protocol.md draws its diagram from this table."""

from __future__ import annotations

from typing import Final

from protocol.machine import Transition, expand

__all__ = ["PHASES", "TRANSITIONS"]

PHASES: Final = (
    "enrolling",
    "weighing",
    "bidding",
    "verifying",
    "asking",
    "pacing",
    "delivering",
    "closing",
    "done",
)

_QUIET: Final = ("weighing", "verifying", "pacing", "delivering", "closing")
"""Phases in which a late answer is only taken in."""
_OPEN: Final = PHASES[:-1]
_DECIDED: Final = ("weighing", "delivering")
"""Where a decided round leads: to the next one, or to the delivery."""
_BIDDING_TO: Final = ("bidding", "verifying", "asking", *_DECIDED)
_ASKING_TO: Final = ("asking", "verifying", *_DECIDED)
_RESTING: Final = ("enrolling", "bidding", "asking", "pacing", "delivering", "closing")
"""Where a step can end, and a restarted curator goes on."""

TRANSITIONS: Final[tuple[Transition, ...]] = (
    # Enrolment: ends when all owners and the target are there, or with the enrolment time.
    Transition("enrolling", "started", "_on_started", ("enrolling",)),
    Transition("enrolling", "received:hello", "_on_hello", ("enrolling", "weighing")),
    Transition("enrolling", "received:target", "_on_target", ("enrolling", "weighing")),
    Transition("enrolling", "received:ready", "_on_ready", ("enrolling", "weighing")),
    Transition("enrolling", "timer:enrolment", "_on_enrolment_over", ("weighing", "closing")),
    # A round.
    Transition("weighing", "noise-drawn", "_on_noise", ("weighing",)),
    Transition("weighing", "weights-computed", "_on_weights", ("bidding", "closing")),
    Transition("bidding", "received:bid", "_on_bid", (*_BIDDING_TO, "pacing")),
    Transition("bidding", "timer:round", "_on_round_over", (*_BIDDING_TO, "pacing")),
    Transition("bidding", "timer:pause", "_on_pause_over", ("closing",)),
    Transition(
        "verifying", "candidates-checked", "_on_checked", ("verifying", "asking", "pacing", *_DECIDED)
    ),
    Transition("asking", "received:offer", "_on_offer", ("asking", "verifying")),
    Transition("asking", "timer:round", "_on_asking_over", _ASKING_TO),
    # The end of a round's time, where rounds have a fixed cadence.
    Transition("asking", "timer:cadence", "_on_cadence_over", ("verifying", *_DECIDED)),
    Transition("verifying", "timer:cadence", "_on_cadence_over", ("verifying",)),
    Transition("pacing", "timer:cadence", "_on_cadence_over", _DECIDED),
    # Late answers.
    *expand((*_QUIET, "asking"), "received:bid", "_on_late_bid"),
    *expand((*_QUIET, "bidding"), "received:offer", "_on_late_offer"),
    # Delivery and closing.
    Transition("delivering", "received:receipt", "_on_receipt", ("delivering", "closing")),
    Transition("delivering", "timer:delivery", "_on_delivery_over", ("delivering",)),
    Transition("closing", "head-signed", "_on_head_signed", ("closing", "done")),
    Transition("closing", "received:farewell", "_on_farewell", ("closing", "done")),
    Transition("closing", "timer:closing", "_on_closing_over", ("done",)),
    # What was under way when the session was given up.
    *(
        Transition("closing", trigger, "_on_moot", ("closing",))
        for trigger in (
            "received:target",
            "received:receipt",
            "noise-drawn",
            "weights-computed",
            "candidates-checked",
        )
    ),
    # Peers that come, go, come back, or break the protocol.
    *expand((*_QUIET, "bidding", "asking"), "received:hello", "_on_hello"),
    *expand((*_QUIET, "bidding"), "received:ready", "_on_ready"),  # where points are sealed, nobody is asked
    Transition("bidding", "lost", "_on_lost", _BIDDING_TO),
    Transition("asking", "lost", "_on_lost", (*_ASKING_TO, "pacing")),
    *expand(("enrolling", *_QUIET), "lost", "_on_lost"),
    *expand(_OPEN, "returned", "_on_returned"),
    Transition("bidding", "timer:comeback", "_on_comeback_over", _BIDDING_TO),
    Transition("asking", "timer:comeback", "_on_comeback_over", (*_ASKING_TO, "pacing")),
    Transition("closing", "timer:comeback", "_on_comeback_over", ("closing", "done")),
    *expand(
        ("enrolling", "weighing", "verifying", "pacing", "delivering"),
        "timer:comeback",
        "_on_comeback_over",
    ),
    *expand(_RESTING, "restarted", "_on_restarted"),
    Transition("enrolling", "offended", "_on_offended", ("enrolling", "closing")),
    Transition("bidding", "offended", "_on_offended", (*_BIDDING_TO, "closing")),
    Transition("asking", "offended", "_on_offended", (*_ASKING_TO, "pacing", "closing")),
    *(
        Transition(phase, "offended", "_on_offended", (phase, "closing"))
        for phase in ("weighing", "verifying", "pacing", "delivering")
    ),
    *expand(("closing",), "offended", "_on_offended"),
)
