"""Random walks through the machines: honest moves, slow and broken networks, and hostile peers.

Every step is held to the machine's contract: it returns effects, or raises `RemoteProtocolError` for a peer's
frame and leaves the state unchanged; repeated frames have no effect; replaced timers fire without effect. A
walk notes which edges of the transition table it took.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, ClassVar

import numpy as np

from hushbid.protocol import limits
from hushbid.protocol.errors import BudgetExceeded, Offence, RemoteProtocolError
from hushbid.protocol.machine.base import Machine, TransitionTable
from hushbid.protocol.machine.machine import (
    Effect,
    Event,
    Finish,
    Lost,
    Offended,
    Received,
    Restarted,
    Returned,
    SignHead,
    Started,
    TimerFired,
)
from hushbid.protocol.machine.weighing import ComputeWeights, DrawNoise
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.accounting import Budget, Cost, PrivacyFilter
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.acquisition.tender import Tender
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.wire.blind import SealedBroadcast
from hushbid.protocol.wire.messages import (
    Ask,
    Batch,
    Bid,
    Broadcast,
    Close,
    Delivery,
    Message,
    Offer,
    Ready,
    Receipt,
    SealedCandidate,
    SealedCandidates,
    SecretMap,
    fixed,
)
from tests.simulation.breaches import WRONG, Attempt, hellos, out_of_turn
from tests.simulation.committing import commitment_of
from tests.simulation.harness import (
    DIMENSION,
    FAREWELL,
    FORGED,
    HEAD_SIGNED,
    RULES_IN_THE_CLEAR,
    CuratorBench,
    Player,
    candidate_of,
    corners,
    farewell_of,
    names,
    sealed_candidate_of,
    session_file,
    weights_of,
)
from tests.simulation.snapshots import snapshot

__all__ = [
    "CORNERS",
    "EXACT",
    "LIKELY",
    "MAP_BOX",
    "CuratorWalk",
    "Edge",
    "Purse",
    "Walk",
    "curator_walk",
    "private",
    "rows_of",
]

Edge = tuple[str, str, str]
_THAT_ASK = ("published", "winner-only")
"""Rules that ask, for few owners."""
_THAT_DO_NOT = ("ask-all", "sealed")
CORNERS = corners()
_COMPUTED = ("noise-drawn", "weights-computed", "candidates-checked")
EXACT: dict[str, Any] = {"mechanism": "exact"}
LIKELY = 0.5
"""How often a life that looks for rows of the table tries to take one."""
MAP_BOX = bytes(limits.MAP_BOX_BYTES)


def private(neighbours: Neighbours) -> dict[str, Any]:
    """A release that is charged to a budget."""
    return {"mechanism": "gaussian", "sigma": 20.0, "neighbours": neighbours.value}


class Purse(PrivacyFilter):
    """A budget that suffices for so many charges."""

    def __init__(self, charges: int, neighbours: Neighbours) -> None:
        super().__init__(Budget(1.0, 1e-5), neighbours=neighbours.value)
        self.left = charges

    def charge(self, *costs: Cost) -> None:
        if self.left == 0:
            raise BudgetExceeded("The budget is spent.", advice="Raise it.")
        self.left -= 1


def rows_of(table: TransitionTable[Any]) -> set[Edge]:
    """Every edge that a machine's table allows."""
    return {(row.phase, row.trigger, to) for row in table.rows for to in row.to}


class Walk:
    """Feeds one machine, and checks every step."""

    def __init__(self, machine: Machine, step: Callable[[Event], tuple[Effect, ...]]) -> None:
        self.machine = machine
        self.raw_step = step
        self.edges: set[Edge] = set()
        self.reached = machine.phase
        """Where the last event led, before what it asked for."""
        self.offences: set[Offence] = set()
        self.accepted: list[Received] = []
        self._state: Any = None
        """The machine's state after the last step, if it was looked at and nothing came since."""

    def forget(self) -> None:
        """Let the machine take a step that is not this walk's."""
        self._state = None

    def step(self, event: Event) -> bool:
        """Feed an event; returns whether it was accepted."""
        before, phase = self._before(), self.machine.phase
        self._state = None
        try:
            effects = self.raw_step(event)
        except RemoteProtocolError as error:
            assert isinstance(event, Received), "only a peer's frame can be a peer's breach"
            assert snapshot(self.machine) == before, f"{event.message.kind} was refused and left traces"
            self._state = before
            self.offences.add(error.offence)
            self.step(
                Offended(
                    event.peer,
                    event.sequence,
                    event.acknowledged,
                    error.offence,
                    error.what,
                    error.advice,
                )
            )
            return False
        if isinstance(event, Received):
            self.accepted.append(event)
        reached = self.machine.phase
        if not effects:
            self._state = snapshot(self.machine)
        if effects or self._state != before:
            self.edges.add((phase, event.trigger, reached))
        if SignHead() in effects:
            self.step(HEAD_SIGNED)  # a driver lets nothing come between
        elif any(type(effect) is Finish and not effect.final for effect in effects):
            self.step(Restarted())  # the process had ended: nothing else can come
        self.reached = reached
        return True

    def repeat(self, event: Received) -> None:
        """Repeat a frame: nothing happens, or a hello is answered again."""
        if event.sequence == 0 or self.machine.phase == "done":
            return
        before = self._before()
        assert self.raw_step(event) == ()
        assert snapshot(self.machine) == before
        self._state = before

    def _before(self) -> Any:
        return snapshot(self.machine) if self._state is None else self._state

    def note(self, phase: str, event: Event) -> None:
        """Count an edge whose step need not change anything."""
        self.edges.add((phase, event.trigger, self.reached))


class CuratorWalk:
    """One curator, and peers that do anything.

    Args:
        seed: Seed of everything drawn.
        toward: Rows of the table. The life may lead to one of them, and where that row begins, its trigger is
            likely to come next.
    """

    answered: ClassVar[dict[str, type[Message]]] = {"ready": SecretMap, "bid": Broadcast, "offer": Ask}
    """What an owner answers with a message of each kind."""

    def __init__(self, seed: int, toward: Collection[Edge] = ()) -> None:
        self.rng = np.random.default_rng(seed)
        rng = self.rng
        rows = sorted(toward)
        self.aim: Edge = rows[int(rng.integers(len(rows)))] if rows else ("", "", "")
        # An owner that never comes keeps a tender open that has all the others' points.
        away = self.aim in {("bidding", "timer:enrolment", to) for to in ("verifying", "delivering")}
        late = self.aim[1] == "received:commitment" and self.aim[0] != "enrolling"
        owners = names(int(rng.integers(1 + (away or late), 4)))
        self.late = owners[0] if late else ""
        """Commits to its rows when others have a map."""
        self.paced = bool({"pacing", "timer:cadence"} & {*self.aim} if rows else rng.random() < 0.35)
        self.bench = self.make(seed, owners, few=away or late)
        self.walk = Walk(self.bench.machine, self.bench.take)
        # Where owners run out, a round is decided as soon as the last of them has answered, or is gone.
        most = 1 if away and self.aim[2] == "delivering" else int(rng.choice([1, 4, 4]))
        least = 1 if "asking" in self.aim or late else 0  # or nobody is asked
        # Owners whose best points are alike are asked together.
        different = int(rng.choice([2, 16]))
        self.players = {
            owner: Player(
                self.bench,
                owner,
                CORNERS[rng.integers(0, different, size=int(rng.integers(least, most + least)))],
            )
            for owner in owners
        }
        self.peers = (*owners[away:], CONSUMER)
        self.lost: set[str] = set()
        self.diligence = float(rng.choice([0.1, 0.7]))
        """How soon computations come back."""
        self.slow = {owner for owner in owners if rng.random() < 0.5 and not late}
        self.hostility = float(rng.choice([0.0, 0.05, 0.3]))
        self.trouble = float(rng.choice([0.0, 0.1, 0.4]))
        if rows:  # nothing else is to come first
            self.hostility, self.trouble = self.hostility / 4.0, self.trouble / 4.0

    def make(self, seed: int, owners: tuple[str, ...], *, few: bool) -> CuratorBench:
        """A curator; `few`: that needs one owner alone."""
        rng = self.rng
        # Rules that ask lead to more of the table than those that have the points with the bids.
        rules = (*RULES_IN_THE_CLEAR, "published", "winner-only")
        # Of what goes on while the clock is waited for, most is about maps that are late.
        rule = "sealed" if self.paced and rng.random() < 0.3 else rules[int(rng.integers(len(rules)))]
        if self.aim[1] == "timer:enrolment" and self.aim[0] != "enrolling":
            rule = Tender.name
        elif "asking" in self.aim or "received:offer" in self.aim:
            rule = _THAT_ASK[int(rng.integers(len(_THAT_ASK)))]
        elif self.aim[0] == "bidding" and self.aim[2] == "verifying":
            rule = _THAT_DO_NOT[int(rng.integers(len(_THAT_DO_NOT)))]
        elif self.aim[1] == "received:commitment":
            rule = "sealed"
        rounds = int(rng.integers(1, 4))
        batch = 2 if RULES[rule].candidate_with_bid and seed % 3 == 0 else 1
        needed = self.needed(len(owners), few=few)
        commits = RULES[rule].sealed and (rng.random() < 0.3 or "received:commitment" in self.aim)
        commitments: dict[str, Any] = {"commitment_depth": 4} if commits else {}
        session = session_file(
            owners=owners,
            points=rounds * batch,
            batch=batch,
            rule=rule,
            min_owners=needed,
            summary=private(Neighbours.ADD_REMOVE_ONE) if rng.random() < 0.15 else EXACT,
            fixed_cadence=2.0 if self.paced else None,
            **commitments,
        )
        bench = CuratorBench(session)
        if bench.machine.selection.weighing.filter is not None:
            charges = int(rng.integers(0, rounds))
            bench.machine.selection.weighing.filter = Purse(charges, Neighbours.ADD_REMOVE_ONE)
        return bench

    def needed(self, owners: int, *, few: bool) -> int:
        """Fewest owners of a session."""
        needed = int(self.rng.integers(1, owners + 1))
        if few or self.aim[2] == "closing":
            needed = 1 if few else owners
        return needed

    def run(self, steps: int = 120) -> Walk:
        self.walk.step(Started())
        for _ in range(steps):
            if self.bench.machine.phase == "done":
                break
            dice = self.rng.random()
            if self.bench.machine.phase == "closing" and self.rng.random() < 0.05:
                self._fire("closing")
            elif self.bench.machine.phase == self.aim[0] and self.rng.random() < LIKELY and self._aim():
                continue
            elif dice < self.hostility:
                self._hostile()
            elif dice < self.hostility + self.trouble:
                self._trouble()
            else:
                self._honest()
        return self.walk

    def _aim(self) -> bool:
        """Cause the trigger of the row that this life heads for; returns whether that was possible."""
        bench = self.bench
        due = tuple(owner for owner in self._due() if owner not in self.lost)
        head, _, name = self.aim[1].partition(":")
        if len(due) > 1 and self.rng.random() < 0.7:
            return False  # a phase ends with the last that it waits for
        if head in _COMPUTED:
            return self._compute()
        if head == "timer" and name in bench.timers:
            self._fire(name)
        elif (head == "lost" or name == "comeback") and due:
            self._lose_or_return(self.pick(due))
        elif head == "returned" and self.lost:
            self._lose_or_return(self.pick(tuple(sorted(self.lost))))
        elif head == "offended" or name == "receipt":
            return self._offend(due)
        elif head == "restarted" and not bench.jobs:
            self.restart()
        elif name == "commitment":
            late = tuple(owner for owner in self.players if not bench.machine.seats[owner].committed)
            if not late:
                return False
            owner = self.pick(late)
            known = owner in bench.machine.links
            self.say(owner, commitment_of(bench, owner) if known else bench.hello(owner))
        elif name in self.answered:
            told = {
                owner: [each for each in self.bench.inbox.get(owner, ()) if type(each) is self.answered[name]]
                for owner in self.players
            }
            owners = tuple(owner for owner, several in told.items() if several)
            if not owners:
                return False
            owner = self.pick(owners)
            self._owner(owner, told[owner][-1])
        else:
            return False
        return True

    def _offend(self, due: tuple[str, ...]) -> bool:
        """Have a peer break the protocol: the consumer, where that is to end the session."""
        if self.aim[2] == "closing" and CONSUMER in self.bench.machine.links:
            self.say(CONSUMER, Receipt(part=WRONG, disputed=b""))  # which nobody reads any more when closing
        elif due:
            self.say(self.pick(due), self.bench.bid(WRONG, CORNERS[0], 1, weights_of(1, 1, 1, 1)))
        else:
            return False
        return True

    def pick(self, peers: Iterator[str] | tuple[str, ...]) -> str:
        several = tuple(peers)
        return several[int(self.rng.integers(len(several)))]

    def _due(self) -> tuple[str, ...]:
        """Owners whose answer a round waits for."""
        machine = self.bench.machine
        return tuple(
            name for name, seat in machine.seats.items() if name in machine.current.awaited or seat.asked
        )

    def say(self, peer: str, message: Message, **changes: int) -> bool:
        event = self.bench.received(peer, message, **changes)
        phase = self.bench.machine.phase
        taken = self.walk.step(event)
        if taken:
            self.walk.note(phase, event)
            self.bench.sent[peer] = max(self.bench.sent.get(peer, 0), event.sequence)
        return taken

    def _compute(self) -> bool:
        bench = self.bench
        if not bench.jobs or bench.machine.phase == "done":
            return False
        self.compute()
        return True

    def compute(self) -> None:
        """Let the oldest computation come back."""
        bench = self.bench
        phase = bench.machine.phase
        self.walk.forget()
        if type(bench.jobs[0]) in (DrawNoise, ComputeWeights):
            values = [int(value) for value in self.rng.integers(-2, 3, size=DIMENSION)]
            if type(bench.jobs[0]) is DrawNoise:
                bench.draw()
                self.walk.edges.add((phase, "noise-drawn", bench.machine.phase))
            else:
                bench.broadcast(weights_of(*values))
                self.walk.edges.add((phase, "weights-computed", bench.machine.phase))
        else:
            bench.verify()
            self.walk.edges.add((phase, "candidates-checked", bench.machine.phase))

    def _honest(self) -> None:
        # Few peers have anything to say while points are verified: that takes longer here than it does.
        phase = self.bench.machine.phase
        pace = 0.3 if phase == "verifying" else 1.0
        if self.rng.random() < self.diligence * pace and self._compute():
            return
        late = tuple(
            name
            for name, seat in self.bench.machine.seats.items()
            if (seat.mapped and not seat.enrolled) or (seat.asked and phase != "asking")
        )
        clock = "round" if phase == "bidding" else "cadence"
        tires = phase == "bidding" or not late
        if self.paced and tires and clock in self.bench.timers and self.rng.random() < 0.15:
            self._fire(clock)
            return
        peer = self.pick(late if late and phase in ("verifying", "pacing", "delivering") else self.peers)
        if peer not in self.bench.machine.links or (peer in self.lost and self.rng.random() < 0.5):
            self.lost.discard(peer)
            self.say(peer, self.bench.hello(peer))
        elif peer == CONSUMER:
            self.consumer()
        elif peer not in self.slow or self.rng.random() < 0.2:
            self._owner(peer)

    def consumer(self) -> None:
        """Let the consumer say what is due from it."""
        machine = self.bench.machine
        if machine.target is None:
            if machine.gathered:
                self.say(CONSUMER, self.bench.target())
            return
        last = self.bench.last(CONSUMER)
        if isinstance(last, Delivery) and machine.phase == "delivering":
            self.say(CONSUMER, self.bench.receipt(last.part))
        elif isinstance(last, Close):
            self.say(CONSUMER, farewell_of(self.bench.opened, CONSUMER))

    def _lie(self, bid: Bid | Batch) -> Bid | Batch:
        """A bid with another score, or another's signature; one without points stays as it is."""
        if isinstance(bid, Batch):
            if isinstance(bid.candidates, SealedCandidates) and self.rng.random() < 0.5:
                forged = bid.candidates.model_copy(update={"signature": FORGED})
                return bid.model_copy(update={"candidates": forged})
            return bid.model_copy(update={"scores": np.full_like(bid.scores, WRONG)})
        if bid.candidate is None or bid.exhausted:
            return bid
        if isinstance(bid.candidate, SealedCandidate) and self.rng.random() < 0.5:
            return bid.model_copy(
                update={"candidate": bid.candidate.model_copy(update={"signature": FORGED})}
            )
        return bid.model_copy(update={"score": fixed(WRONG)})

    def bid(self, owner: str, told: Broadcast | SealedBroadcast) -> None:
        assert isinstance(told, Broadcast)
        bid = self.players[owner].answer(told)
        lies = self.rng.random() < 0.1  # such that it only shows when the point is verified
        self.say(owner, self._lie(bid) if lies else bid)

    def _owner(self, owner: str, told: Message | None = None) -> None:
        """Answer a broadcast: this one, or the last one."""
        seat, last = self.bench.machine.seats[owner], told or self.bench.last(owner)
        if self.bench.opened.commitment_depth and not seat.committed:
            if owner != self.late:
                self.say(owner, commitment_of(self.bench, owner))
            elif (
                not self.bench.machine.gathered
                and "enrolment" in self.bench.timers
                and all(seat.committed or name == owner for name, seat in self.bench.machine.seats.items())
            ):
                self._fire("enrolment")
            return
        if isinstance(last, Close) and seat.asked and self.rng.random() < 0.5:
            last = next(each for each in reversed(self.bench.inbox[owner]) if isinstance(each, Ask))
        if isinstance(last, SecretMap) and not seat.enrolled:
            if owner not in self.slow or self.bench.machine.phase != "enrolling" or self.rng.random() < 0.1:
                self.say(owner, Ready())
            elif self.rng.random() < 0.5:
                self.walk.step(TimerFired("enrolment", self.bench.timers["enrolment"].attempt))
        elif isinstance(last, Broadcast | SealedBroadcast) and seat.broadcast == last.round:
            self.bid(owner, last)
        elif isinstance(last, Ask) and seat.asked:
            self.say(owner, self.players[owner].offer(last))
        elif isinstance(last, Close):
            self.say(owner, farewell_of(self.bench.opened, owner))

    def _trouble(self) -> None:
        known = tuple(peer for peer in self.peers if peer in self.bench.machine.links)
        dice = self.rng.random()
        if dice < 0.02 and not self.bench.jobs:
            self.restart()
        elif dice < 0.4 and known:
            due = tuple(owner for owner in self._due() if owner not in self.lost)
            self._lose_or_return(self.pick(due if due and self.rng.random() < 0.7 else known))
        elif dice < 0.75 and self.bench.timers:
            name = self.pick(tuple(sorted(self.bench.timers)))
            early = name == "enrolment" and self.bench.machine.maps is None
            if self.rng.random() < (0.95 if early else 0.8 if name == "pause" else 0.0):
                return  # most lives are longer
            self._fire(name)
        elif self.walk.accepted:
            self.walk.repeat(self.walk.accepted[int(self.rng.integers(len(self.walk.accepted)))])

    def restart(self) -> None:
        self.walk.step(Restarted())
        self.lost = {peer for peer in self.peers if peer in self.bench.machine.links}

    def _lose_or_return(self, peer: str) -> None:
        event: Event = Returned(peer) if peer in self.lost else Lost(peer)
        phase = self.bench.machine.phase
        if type(event) is Lost and self.rng.random() < (0.6 if phase == "asking" else 0.35):
            # A refused hello leaves its connection be; when that is lost, the peer is not waited for.
            self.say(peer, self.bench.hello(peer, session=bytes(32)))
        phase = self.bench.machine.phase
        self.lost ^= {peer}
        self.walk.step(event)
        self.walk.note(phase, event)
        if type(event) is Lost and "comeback" in self.bench.timers and self.rng.random() < 0.4:
            self._fire("comeback")

    def _fire(self, name: str) -> None:
        timer = self.bench.timers.pop(name)
        self.bench.now = max(self.bench.now, timer.due)
        self.walk.step(TimerFired(name, timer.attempt))
        if self.bench.machine.phase != "done" and timer.attempt > 1:
            assert self.bench.step(TimerFired(name, timer.attempt - 1)) == ()

    def _hostile(self) -> None:
        attempts, wrong = self.breaches(self.pick(tuple(self.players)))
        due = self._due()
        if due and self.rng.random() < 0.4:
            # Whom all wait for: the round goes on without it.
            attempts = [(self.pick(due), wrong, {})]
        elif self.rng.random() < 0.7:
            # The consumer's breaches end the session.
            attempts = [attempt for attempt in attempts if attempt[0] != CONSUMER]
        peer, make, changes = attempts[int(self.rng.integers(len(attempts)))]
        self.say(peer, make(), **changes)

    def breaches(self, owner: str) -> tuple[list[Attempt], Callable[[], Message]]:
        """What is to be refused, and a bid of an owner's for a round that there is not."""
        bench = self.bench
        point = CORNERS[int(self.rng.integers(16))]
        weights = weights_of(1, 1, 1, 1)
        round_number = max(1, bench.machine.round)
        honest = bench.bid(round_number, point, 1, weights)
        wide = np.zeros(DIMENSION + 2, dtype=np.int16)
        other_way = None if honest.candidate is not None else candidate_of(point)
        other_form = candidate_of(point) if bench.rule.sealed else sealed_candidate_of(point, bench.opened)
        large = sealed_candidate_of(point, bench.opened).model_copy(update={"box": bytes(WRONG)})
        offered = candidate_of(point)
        unasked = Offer.model_construct(round=round_number, handle=fixed(WRONG), candidate=offered)
        attempts: list[Attempt] = [
            *hellos(bench, owner),
            (CONSUMER, bench.target, {}),
            (CONSUMER, bench.target, {"sequence": 0}),
            (CONSUMER, lambda: bench.target(embedding=np.zeros(DIMENSION + 2)), {}),
            (CONSUMER, lambda: bench.target(seed_total=np.full(DIMENSION, -(2**63), dtype=np.int64)), {}),
            (CONSUMER, lambda: bench.target(maps=bytes(WRONG)), {}),
            (CONSUMER, lambda: Receipt(part=WRONG, disputed=b""), {}),
            (CONSUMER, lambda: FAREWELL, {}),
            (CONSUMER, Ready, {}),
            *out_of_turn(bench, owner, honest),
            (owner, lambda: honest.model_copy(update={"round": WRONG}), {}),
            (owner, lambda: honest.model_copy(update={"handle": fixed(-1)}), {}),
            (owner, lambda: honest.model_copy(update={"candidate": other_way}), {}),
            (owner, lambda: honest.model_copy(update={"candidate": other_form}), {}),
            (owner, lambda: honest.model_copy(update={"candidate": large}), {}),
            (owner, lambda: honest.model_copy(update={"candidate": bench.candidate(wide)}), {}),
            (owner, lambda: unasked, {}),
        ]
        return attempts, lambda: honest.model_copy(update={"round": WRONG})


def curator_walk(seed: int, toward: Collection[Edge] = ()) -> Walk:
    """One curator's life, which heads `toward` rows of the table."""
    return CuratorWalk(seed, toward).run()
