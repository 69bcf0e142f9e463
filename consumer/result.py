"""The consumer's result of a session: what its command line prints, and a part of a run's result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from pydantic.dataclasses import dataclass

from hushbid.consumer.appraisal import Judgement
from hushbid.consumer.columns import column
from hushbid.consumer.course import ClosenessCourse
from hushbid.consumer.disputes import SellerFault
from hushbid.consumer.events import Delivered
from hushbid.consumer.judgement import judged
from hushbid.consumer.machine import ConsumerMachine
from hushbid.consumer.model_figures import ModelFigures
from hushbid.consumer.own_figures import OwnFigures, PurchaseView
from hushbid.consumer.seed_distance import SeedDistance
from hushbid.consumer.verdict import Verdict
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset, read_attributes, shared_rows
from hushbid.protocol.data.dataset import Changes
from hushbid.protocol.figures import Figures
from hushbid.protocol.session.results import PartyResult
from hushbid.protocol.session.session import MOST_SHARED
from hushbid.protocol.session.wishes import bill_of
from hushbid.protocol.space.prices import Bill

__all__ = ["ConsumerResult", "Disputed", "PurchaseResult", "missing_said", "test_shared", "test_shared_said"]


@dataclass(frozen=True, slots=True)
class Disputed(Figures):
    """A delivered point that does not match its owner's bid, and in what."""

    owner: str
    round: int
    what: str


@dataclass(frozen=True, kw_only=True)
class PurchaseResult(Figures):
    """What a consumer knows of a session that is over (docs/results.md).

    Attributes:
        p: Points that were asked for.
        m: |D_v|.
        seed_set_drawn: Whether the seed set was drawn.
        seed_distance: How far the seed set lies from D_v; None if nothing was delivered.
        verdict: What was said before the session.
        course: How close the points came, from round to round; None if that cannot be told.
        points_delivered: Points that came.
        roots: Owner → what it committed to its rows by.
        unlabelled: How many of the points have no label, or one of another type than most owners have.
        unidentified: How many have no such identifier.
        unweighted: How many have no weight: all where nothing could be weighed.
        test_shared: The share of the different test rows that D_v has too; None: there is no test set.
        disputed: How many do not match their owners' bids.
        disputes, faults: These, and what their owners did wrong.
        bill: What was bought of whom, and what it costs; None without prices.
        judgement: MMD², effective points and accuracy, with weights and without.
        own: What only the consumer computes.
        model: Whether its model gets better.
    """

    FLAT: ClassVar[frozenset[str]] = frozenset({"verdict", "judgement", "own"})

    session: str
    p: int
    m: int
    seed_set_drawn: bool
    seed_distance: SeedDistance | None
    verdict: Verdict
    course: ClosenessCourse | None
    points_delivered: int
    roots: Mapping[str, str]
    unlabelled: int
    unidentified: int = 0
    unweighted: int = 0
    test_shared: float | None = None
    disputed: int
    disputes: tuple[Disputed, ...]
    faults: tuple[SellerFault, ...]
    bill: Bill | None
    judgement: Judgement
    own: OwnFigures
    model: ModelFigures

    @classmethod
    def of(
        cls,
        session: SessionFile,
        machine: ConsumerMachine,
        delivered: Sequence[Delivered],
        view: PurchaseView,
        verdict: Verdict,
        *,
        validation: Dataset,
        test: Dataset | None,
        drawn: bool,
    ) -> PurchaseResult:
        """What the machine of a session that is over knows, and what the consumer sees of it."""
        without = _without(delivered)
        disputes = tuple(
            Disputed(entry.owner, entry.chosen_round, entry.dispute) for entry in delivered if entry.dispute
        )
        return PurchaseResult(
            session=session.session.name,
            p=session.session.points,
            m=len(validation),
            seed_set_drawn=drawn,
            seed_distance=machine.seed_distance,
            verdict=verdict,
            course=machine.course,
            points_delivered=len(delivered),
            roots=machine.roots,
            unlabelled=without["label"],
            unidentified=without["identifier"],
            unweighted=0 if view.matching is not None else without["stored"],
            test_shared=test_shared(validation, test),
            disputed=len(disputes),
            disputes=disputes,
            faults=tuple(machine.faults),
            bill=bill_of(session, Counter(entry.owner for entry in delivered if not entry.dispute)),
            judgement=view.judgement,
            own=view.own,
            model=view.model,
        )

    @property
    def mmd2(self) -> float | None:
        """MMD² of the points against the validation set, with weights if there are any."""
        return self.judgement.best.mmd2


@dataclass(frozen=True, kw_only=True)
class ConsumerResult(PartyResult, PurchaseResult):
    """A consumer's result of a session: its purchase, and where it lies.

    Attributes:
        outside: What was changed of D_v's rows.
        seed_rows_shared: Rows of D_v that are in the seed set too.
        data: The delivered points, an ``.npz``.
        table: The same as Parquet in the session's columns; None without columns or points.
        ledger: The validation set's lifetime ledger.
        report: A page on the session; None: none was asked for, or none could be written.
    """

    TOLD: ClassVar[Mapping[str, str]] = {"judgement": "sentences"}

    role: Literal["consumer"] = "consumer"
    outside: Changes
    seed_rows_shared: int
    data: Path
    table: Path | None
    ledger: Path
    report: Path | None = None

    @property
    def sentences(self) -> tuple[str, str]:
        """Whether the model got better, and what protects whom."""
        return judged(self.model, self.privacy)


class CountsMissing(Protocol):
    """A result that counts what its points lack: a consumer's, or a run's."""

    @property
    def points_delivered(self) -> int: ...

    @property
    def unlabelled(self) -> int: ...

    @property
    def unidentified(self) -> int: ...


def test_shared(validation: Dataset, test: Dataset | None) -> float | None:
    """The share of the different test rows that D_v has too; None: there is no test set."""
    if test is None:
        return None
    shared, different = shared_rows(test.features, validation.features)
    return shared / max(1, different)


def test_shared_said(share: float | None) -> str:
    """What is wrong with test rows of which so many are in D_v too; empty if nothing is."""
    if share is None or share <= MOST_SHARED:
        return ""
    some = "All" if share == 1.0 else "Many"
    return (
        f"{some} test rows are rows of the validation set, too: what they judge looks better than it is, as "
        "points were chosen to be like them."
    )


def missing_said(result: CountsMissing) -> str:
    """Which of the delivered points lack something, as the end of a list; empty if none, or all alike.

    Nobody's points need a label or an identifier: that all lack it is how the session is.

    Args:
        result: A consumer's, or a run's.
    """
    some = {"a label": result.unlabelled, "an identifier": result.unidentified}
    count = result.points_delivered
    return "".join(f", {n} without {name}" for name, n in some.items() if 0 < n < count)


def _without(delivered: Sequence[Delivered]) -> dict[str, int]:
    """Number of stored points without a label, without an identifier, and of all that are stored.

    A label or an identifier of another type than most owners have counts as none.
    """
    held, owners = [], []
    for entry in delivered:
        if entry.candidate is not None and not entry.dispute:
            held.append(read_attributes(entry.candidate.attributes))
            owners.append(entry.owner)
    found = {
        name: int((~column([getattr(each, name) for each in held], owners)[1]).sum())
        for name in ("label", "identifier")
    }
    return found | {"stored": len(held)}
