"""The curator's state machine: the rules of a session in words, and its tables.

A session: owners and consumer enrol → owners commit to their rows, where the session says so → p rounds → the
chosen points are delivered → all is closed.

A round: the weight is computed and broadcast → owners bid → the rule may ask some for their points → points
are verified → the best b points in the pool of present owners are chosen. All rounds are run (DESIGN §3).

Presence: an owner takes part in a round only if the curator has its bid for that round and has received and
verified every point due from it. Otherwise its pooled points are withheld too. An owner has at most one
broadcast or ask outstanding. Until it answers it is sent nothing further; when it answers late, its point is
pooled and it resumes with the current broadcast. Where a point is bought once (`session.distinct`), it does
not resume: only an owner that bid in every round has handed over its copies of the points bought. An owner
without a turn in a round (`hushbid.protocol.session.turns`) gets no broadcast of it, and nobody waits for it.

Time: a round ends once nobody is waited for. At a fixed cadence the clock ends it: the first half of its time
is for bids, the second for asks, verification and decision. How long those take depends on data, so the next
broadcast waits for the clock.

The tables say which handler runs when: `OPEN` for sessions whose curator reads bids, tenders included, and
`BLIND` and `UNLINKED` for those whose curator does not. Handlers are functions of the state
(`hushbid.curator.state`), in the module of their phase; they ask the session's selection
(`hushbid.curator.selection`) what to check, whom to ask, and what to buy.
"""

from __future__ import annotations

from typing import Any, Final

from hushbid.curator import blind_rounds, ending, enrolment, open_rounds, peers, rounds
from hushbid.curator.events import BidsChecked, CandidatesChecked
from hushbid.curator.selection.blind import BlindSelection
from hushbid.curator.selection.open import OpenSelection
from hushbid.curator.selection.tender import TenderSelection
from hushbid.curator.selection.unlinked import UnlinkedSelection
from hushbid.curator.state import CuratorState
from hushbid.protocol.machine.base import TransitionTable, fired, happened, received
from hushbid.protocol.machine.machine import HeadSigned, Lost, Offended, Restarted, Returned, Started
from hushbid.protocol.machine.weighing import NoiseDrawn, WeightsComputed
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.blind import Account, BlindBid, Maps, SealedBroadcast
from hushbid.protocol.wire.messages import (
    Bid,
    Commitment,
    Farewell,
    Hello,
    Offer,
    Ready,
    Receipt,
    Target,
)
from hushbid.protocol.wire.unlinked import Picks, RoundOpening

__all__ = ["BLIND", "OPEN", "UNLINKED", "CuratorMachine"]

_QUIET: Final = ("weighing", "verifying", "pacing", "delivering", "closing")
"""Phases in which a late answer is taken in and changes nothing else."""
_BIDDING_TO: Final = ("bidding", "verifying", "asking", "weighing", "delivering")
"""Where bidding can go: "weighing" and "delivering" follow a decided round."""
_ASKING_TO: Final = ("asking", "verifying", "weighing", "delivering")
_BLIND_BIDDING_TO: Final = ("bidding", "verifying", "weighing", "delivering")
"""As `_BIDDING_TO`; "bidding" may be the next round's, whose weight arrived before its round."""

OPEN: Final[TransitionTable[CuratorState[OpenSelection]]] = TransitionTable(
    phases=(
        "enrolling",
        "weighing",
        "bidding",
        "verifying",
        "asking",
        "pacing",
        "delivering",
        "closing",
        "done",
    ),
    outcomes=(NoiseDrawn, WeightsComputed, CandidatesChecked),
    rows=(
        # Enrolment ends when all owners and the target have arrived, or when its time is over.
        *happened("enrolling", Started, enrolment.on_started),
        *received("enrolling", Hello, enrolment.on_hello, "enrolling", "weighing"),
        *received("enrolling", Commitment, enrolment.on_commitment),
        *received("enrolling", Target, enrolment.on_target, "enrolling", "weighing"),
        *received("enrolling", Ready, enrolment.on_ready, "enrolling", "weighing"),
        *fired("enrolling", "enrolment", enrolment.on_enrolment_over, "enrolling", "weighing", "closing"),
        # Under `tender` the only round begins with the target, and owners may enrol until the time is over.
        *fired("weighing", "enrolment", enrolment.on_entering_over, "weighing", "closing"),
        *fired(
            "bidding",
            "enrolment",
            enrolment.on_entering_over,
            "bidding",
            "verifying",
            "delivering",
            "closing",
        ),
        # A round.
        *happened("weighing", NoiseDrawn, open_rounds.on_noise),
        *happened("weighing", WeightsComputed, open_rounds.on_weights, "bidding", "closing"),
        *received("bidding", Bid, open_rounds.on_bid, *_BIDDING_TO, "pacing"),
        *fired("bidding", "round", rounds.on_round_over, *_BIDDING_TO, "pacing"),
        *fired("bidding", "pause", rounds.on_pause_over, "closing"),
        *happened(
            "verifying",
            CandidatesChecked,
            open_rounds.on_candidates_checked,
            *("verifying", "asking", "pacing", "weighing", "delivering"),
        ),
        *received("asking", Offer, open_rounds.on_offer, "asking", "verifying"),
        *fired("asking", "round", rounds.on_asking_over, *_ASKING_TO),
        # The end of a round's time, where rounds have a fixed cadence.
        *fired("asking", "cadence", rounds.on_time_over_while_asking, "verifying", "weighing", "delivering"),
        *fired("verifying", "cadence", rounds.on_time_over),
        *fired("pacing", "cadence", rounds.on_pace_over, "weighing", "delivering"),
        # Late answers.
        *received((*_QUIET, "asking"), Bid, open_rounds.on_late_bid),
        *received((*_QUIET, "bidding"), Offer, open_rounds.on_late_offer),
        # Delivery and closing.
        *received("delivering", Receipt, ending.on_receipt, "delivering", "closing"),
        *fired("delivering", "delivery", ending.on_delivery_over),
        *happened("closing", HeadSigned, ending.on_head_signed, "closing", "done"),
        *received("closing", Farewell, ending.on_farewell, "closing", "done"),
        *fired("closing", "closing", ending.on_closing_over, "done"),
        # Results of work that was in progress when the session was given up, and messages on their way.
        *happened("closing", NoiseDrawn, open_rounds.on_moot),
        *happened("closing", WeightsComputed, open_rounds.on_moot),
        *happened("closing", CandidatesChecked, open_rounds.on_moot),
        *received("closing", Target, open_rounds.on_moot_message),
        *received("closing", Receipt, open_rounds.on_moot_message),
        # Peers that come, go, come back, or break the protocol.
        *received((*_QUIET, "bidding", "asking"), Hello, enrolment.on_hello_again),
        *received((*_QUIET, "bidding"), Ready, enrolment.on_late_ready),  # sealed points: no owner is asked
        *received((*_QUIET, "bidding"), Commitment, enrolment.on_late_commitment),
        *happened("bidding", Lost, peers.on_lost, *_BIDDING_TO),
        *happened("asking", Lost, peers.on_lost, *_ASKING_TO, "pacing"),
        *happened(("enrolling", *_QUIET), Lost, peers.on_lost),
        *happened(("enrolling", *_QUIET, "bidding", "asking"), Returned, peers.on_returned),
        *fired("bidding", "comeback", peers.on_comeback_over, *_BIDDING_TO),
        *fired("asking", "comeback", peers.on_comeback_over, *_ASKING_TO, "pacing"),
        *fired("closing", "comeback", peers.on_comeback_over_at_the_end, "closing", "done"),
        *fired(
            ("enrolling", "weighing", "verifying", "pacing", "delivering"),
            "comeback",
            peers.on_comeback_over,
        ),
        # Phases in which a step can end without work in progress.
        *happened(
            ("enrolling", "bidding", "asking", "pacing", "delivering", "closing"),
            Restarted,
            peers.on_restarted,
        ),
        *happened("enrolling", Offended, peers.on_offended, "enrolling", "closing"),
        *happened("bidding", Offended, peers.on_offended, *_BIDDING_TO, "closing"),
        *happened("asking", Offended, peers.on_offended, *_ASKING_TO, "pacing", "closing"),
        *happened("weighing", Offended, peers.on_offended, "weighing", "closing"),
        *happened("verifying", Offended, peers.on_offended, "verifying", "closing"),
        *happened("pacing", Offended, peers.on_offended, "pacing", "closing"),
        *happened("delivering", Offended, peers.on_offended, "delivering", "closing"),
        *happened("closing", Offended, peers.on_offended),
    ),
)
"""The table of a curator that reads bids."""

BLIND: Final[TransitionTable[CuratorState[BlindSelection]]] = TransitionTable(
    phases=("enrolling", "weighing", "bidding", "verifying", "pacing", "delivering", "closing", "done"),
    outcomes=(BidsChecked,),
    rows=(
        # Enrolment ends when all owners and the maps have arrived, or when its time is over.
        *happened("enrolling", Started, enrolment.on_started),
        *received("enrolling", Hello, enrolment.on_hello, "enrolling", "weighing", "bidding"),
        *received("enrolling", Commitment, enrolment.on_commitment),
        *received("enrolling", Maps, enrolment.on_maps, "enrolling", "weighing", "bidding"),
        *received("enrolling", Ready, enrolment.on_ready, "enrolling", "weighing", "bidding"),
        *fired(
            "enrolling",
            "enrolment",
            enrolment.on_enrolment_over,
            *("enrolling", "weighing", "bidding", "closing"),
        ),
        # A round, whose weight the consumer may send before its round.
        *received(("enrolling", "verifying", "pacing"), SealedBroadcast, blind_rounds.on_early_weight),
        *received("weighing", SealedBroadcast, blind_rounds.on_awaited_weight, "bidding"),
        *fired("weighing", "pause", blind_rounds.on_weight_overdue, "closing"),
        *received("bidding", BlindBid, blind_rounds.on_bid, *_BLIND_BIDDING_TO, "pacing"),
        *fired("bidding", "round", rounds.on_round_over, *_BLIND_BIDDING_TO, "pacing"),
        *fired("bidding", "pause", rounds.on_pause_over, "closing"),
        *happened(
            "verifying",
            BidsChecked,
            blind_rounds.on_bids_checked,
            *("verifying", "pacing", "weighing", "bidding", "delivering"),
        ),
        # The end of a round's time, where rounds have a fixed cadence.
        *fired("verifying", "cadence", rounds.on_time_over),
        *fired("pacing", "cadence", rounds.on_pace_over, "weighing", "bidding", "delivering", "closing"),
        # Late answers.
        *received(_QUIET, BlindBid, blind_rounds.on_late_bid),
        # The consumer's account, and closing.
        *received("pacing", Account, ending.on_early_account),
        *received("delivering", Account, ending.on_account, "closing"),
        *fired("delivering", "delivery", ending.on_account_over),
        *happened("closing", HeadSigned, ending.on_head_signed, "closing", "done"),
        *received("closing", Farewell, ending.on_farewell, "closing", "done"),
        *fired("closing", "closing", ending.on_closing_over, "done"),
        # Results of work that was in progress when the session was given up, and messages on their way.
        *happened("closing", BidsChecked, blind_rounds.on_moot_check),
        *received("closing", Maps, blind_rounds.on_moot_message),
        *received("closing", SealedBroadcast, blind_rounds.on_moot_message),
        *received("closing", Account, blind_rounds.on_moot_message),
        # Peers that come, go, come back, or break the protocol.
        *received((*_QUIET, "bidding"), Hello, enrolment.on_hello_again),
        *received((*_QUIET, "bidding"), Ready, enrolment.on_late_ready),
        *received((*_QUIET, "bidding"), Commitment, enrolment.on_late_commitment),
        *happened("bidding", Lost, peers.on_lost, *_BLIND_BIDDING_TO),
        *happened(("enrolling", *_QUIET), Lost, peers.on_lost),
        *happened(("enrolling", *_QUIET, "bidding"), Returned, peers.on_returned),
        *fired("bidding", "comeback", peers.on_comeback_over, *_BLIND_BIDDING_TO),
        *fired("closing", "comeback", peers.on_comeback_over_at_the_end, "closing", "done"),
        *fired(
            ("enrolling", "weighing", "verifying", "pacing", "delivering"),
            "comeback",
            peers.on_comeback_over,
        ),
        # Phases in which a step can end without work in progress.
        *happened(
            ("enrolling", "weighing", "bidding", "pacing", "delivering", "closing"),
            Restarted,
            peers.on_restarted,
        ),
        *happened("enrolling", Offended, peers.on_offended, "enrolling", "closing"),
        *happened("bidding", Offended, peers.on_offended, *_BLIND_BIDDING_TO, "closing"),
        *happened("weighing", Offended, peers.on_offended, "weighing", "closing"),
        *happened("verifying", Offended, peers.on_offended, "verifying", "closing"),
        *happened("pacing", Offended, peers.on_offended, "pacing", "closing"),
        *happened("delivering", Offended, peers.on_offended, "delivering", "closing"),
        *happened("closing", Offended, peers.on_offended),
    ),
)
"""The table of a blind curator."""

UNLINKED: Final[TransitionTable[CuratorState[UnlinkedSelection]]] = TransitionTable(
    phases=("enrolling", "weighing", "bidding", "verifying", "pacing", "delivering", "closing", "done"),
    outcomes=(BidsChecked,),
    rows=(
        # Enrolment ends when all owners and the maps have arrived, or when its time is over.
        *happened("enrolling", Started, enrolment.on_started),
        *received("enrolling", Hello, enrolment.on_hello, "enrolling", "weighing", "bidding"),
        *received("enrolling", Commitment, enrolment.on_commitment),
        *received("enrolling", Maps, enrolment.on_maps, "enrolling", "weighing", "bidding"),
        *received("enrolling", Ready, enrolment.on_ready, "enrolling", "weighing", "bidding"),
        *fired(
            "enrolling",
            "enrolment",
            enrolment.on_enrolment_over,
            *("enrolling", "weighing", "bidding", "closing"),
        ),
        # A round.
        *received(("enrolling", "pacing"), RoundOpening, blind_rounds.on_early_opening),
        *received("weighing", RoundOpening, blind_rounds.on_awaited_opening, "bidding"),
        *fired("weighing", "pause", blind_rounds.on_weight_overdue, "closing"),
        *received("bidding", BlindBid, blind_rounds.on_bid, *_BLIND_BIDDING_TO, "pacing"),
        *fired("bidding", "round", rounds.on_round_over, *_BLIND_BIDDING_TO, "pacing"),
        *fired("bidding", "pause", rounds.on_pause_over, "closing"),
        *happened(
            "verifying",
            BidsChecked,
            blind_rounds.on_bids_checked,
            *("verifying", "pacing", "weighing", "bidding", "delivering"),
        ),
        # The boxes behind the places that a round chose.
        *received(("weighing", "pacing", "delivering"), Picks, blind_rounds.on_picks),
        # The end of a round's time, where rounds have a fixed cadence.
        *fired("verifying", "cadence", rounds.on_time_over),
        *fired("pacing", "cadence", rounds.on_pace_over, "weighing", "bidding", "delivering", "closing"),
        # Late answers.
        *received(_QUIET, BlindBid, blind_rounds.on_late_bid),
        # The consumer's account, and closing.
        *received("pacing", Account, ending.on_early_account),
        *received("delivering", Account, ending.on_account, "closing"),
        *fired("delivering", "delivery", ending.on_account_over),
        *happened("closing", HeadSigned, ending.on_head_signed, "closing", "done"),
        *received("closing", Farewell, ending.on_farewell, "closing", "done"),
        *fired("closing", "closing", ending.on_closing_over, "done"),
        # Results of work that was in progress when the session was given up, and messages on their way.
        *happened("closing", BidsChecked, blind_rounds.on_moot_check),
        *received("closing", Maps, blind_rounds.on_moot_unlinked_message),
        *received("closing", RoundOpening, blind_rounds.on_moot_unlinked_message),
        *received("closing", Picks, blind_rounds.on_moot_unlinked_message),
        *received("closing", Account, blind_rounds.on_moot_unlinked_message),
        # Peers that come, go, come back, or break the protocol.
        *received((*_QUIET, "bidding"), Hello, enrolment.on_hello_again),
        *received((*_QUIET, "bidding"), Ready, enrolment.on_late_ready),
        *received((*_QUIET, "bidding"), Commitment, enrolment.on_late_commitment),
        *happened("bidding", Lost, peers.on_lost, *_BLIND_BIDDING_TO),
        *happened(("enrolling", *_QUIET), Lost, peers.on_lost),
        *happened(("enrolling", *_QUIET, "bidding"), Returned, peers.on_returned),
        *fired("bidding", "comeback", peers.on_comeback_over, *_BLIND_BIDDING_TO),
        *fired("closing", "comeback", peers.on_comeback_over_at_the_end, "closing", "done"),
        *fired(
            ("enrolling", "weighing", "verifying", "pacing", "delivering"),
            "comeback",
            peers.on_comeback_over,
        ),
        # Phases in which a step can end without work in progress.
        *happened(
            ("enrolling", "weighing", "bidding", "pacing", "delivering", "closing"),
            Restarted,
            peers.on_restarted,
        ),
        *happened("enrolling", Offended, peers.on_offended, "enrolling", "closing"),
        *happened("bidding", Offended, peers.on_offended, *_BLIND_BIDDING_TO, "closing"),
        *happened("weighing", Offended, peers.on_offended, "weighing", "closing"),
        *happened("verifying", Offended, peers.on_offended, "verifying", "closing"),
        *happened("pacing", Offended, peers.on_offended, "pacing", "closing"),
        *happened("delivering", Offended, peers.on_offended, "delivering", "closing"),
        *happened("closing", Offended, peers.on_offended),
    ),
)
"""The table of a blind curator that cannot link (version 4)."""


class CuratorMachine(CuratorState[Any]):
    """The curator of one session: the state, with the session's table and selection."""

    def __init__(self, session: Session) -> None:
        if session.unlinked:
            super().__init__(session, UNLINKED, UnlinkedSelection)
        elif not session.curator_reads:
            super().__init__(session, BLIND, BlindSelection)
        else:
            super().__init__(session, OPEN, TenderSelection if session.rule.herds else OpenSelection)
