"""A rehearsal: what a session would buy of stand-in owners that are made of the consumer's own data.

No owner's data are known before a session, and no rule of thumb holds for all of them. So the session is
played in this process, with its own machines and settings and as much noise, against owners that have a part
of D_v too often, or little of it among points that are none. What comes out stands beside a uniform choice of
the same points, both with matching weights. Nothing leaves the consumer, and no ε is spent: the noise is
simulated, and thrown away with what it was added to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from consumer.appraisal import Judge
from hushbid.simulator import Simulation
from protocol.acquisition.ask_all import AskAll
from protocol.config.session import SessionFile
from protocol.data import Dataset
from protocol.errors import DataError
from protocol.mmd import kernel_means
from protocol.runtime.party import ensure_done
from protocol.session import Session, open_session

__all__ = [
    "ALIKE",
    "FEWEST",
    "GOOD",
    "HOPELESS",
    "MOST",
    "UNLIKE",
    "Rehearsal",
    "Staged",
    "mean_kernel",
    "rehearse",
]

FEWEST: Final = 8
"""Rows of D_v that can be parted into what is wanted and what owners have of it."""
MOST: Final = 5_000
"""Points that are bought, and rows of D_v, in a rehearsal: weights take the square of them."""
ALIKE: Final = 0.98
"""Mean kernel value of two rows of D_v above which an MMD² is small whatever is bought."""
UNLIKE: Final = 0.01
"""The same, below which every point is like itself alone."""
GOOD: Final = 0.5
"""MMD² over that of a uniform choice, both with weights, below which buying pays where little is wanted."""
HOPELESS: Final = 1.2
"""The same, above which, with all stand-ins, a uniform choice is better."""

_TIMES: Final = 5
"""Points that stand-in owners have for each that is bought."""
_REPEATS: Final = 2

_Rows: TypeAlias = npt.NDArray[np.float64]
Verdict: TypeAlias = Literal["good", "uncertain", "hopeless"]


@dataclass(frozen=True, slots=True)
class Staged:
    """What came of one kind of stand-in owners, on average.

    Attributes:
        owners: What they have, for people.
        bought: MMD² of what was bought against what was wanted, with matching weights.
        uniform: The same of a uniform choice.
        bought_plain: MMD² of what was bought without weights.
        uniform_plain: The same of a uniform choice.
    """

    owners: str
    bought: float
    uniform: float
    bought_plain: float
    uniform_plain: float

    @property
    def ratio(self) -> float:
        """MMD² of what was bought over that of the uniform choice, with weights."""
        return self.bought / self.uniform if self.uniform else float("inf")


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What came of all kinds of stand-in owners.

    Attributes:
        staged: The first have what is wanted in other shares, the others little of it.
        kernel: `mean_kernel` of D_v.
    """

    staged: tuple[Staged, ...]
    kernel: float

    @property
    def verdict(self) -> Verdict:
        """``good``: with little of what is wanted, `GOOD` of a uniform choice's MMD² or less, weighed.

        ``hopeless``: `HOPELESS` times it or more with all stand-ins, or the kernel cannot tell rows of D_v
        apart, or together (`ALIKE`, `UNLIKE`). ``uncertain``: it depends on what owners have.
        """
        if not UNLIKE <= self.kernel <= ALIKE:
            return "hopeless"
        ratios = [each.ratio for each in self.staged]
        if max(ratios[1:]) <= GOOD:
            return "good"
        return "hopeless" if min(ratios) >= HOPELESS else "uncertain"

    def sentence(self) -> str:
        """The figures for people."""
        told = "; ".join(
            f"{each.ratio:.2g} with owners that have {each.owners} (without weights "
            f"{each.bought_plain:.2g} beside {each.uniform_plain:.2g})"
            for each in self.staged
        )
        return f"MMD² of what was bought over that of a uniform choice, both with weights: {told}"

    def as_json(self) -> dict[str, Any]:
        """The verdict, and the figures of each kind of owners."""
        return {
            "verdict": self.verdict,
            "kernel": self.kernel,
            "staged": [
                {
                    "owners": each.owners,
                    "mmd2": each.bought_plain,
                    "mmd2_uniform": each.uniform_plain,
                    "mmd2_weighted": each.bought,
                    "mmd2_uniform_weighted": each.uniform,
                }
                for each in self.staged
            ],
        }


def rehearse(
    session: Session,
    validation: _Rows,
    seed_set: _Rows,
    *,
    say: Callable[[str], object] | None = None,
) -> Rehearsal:
    """Rehearse a session. The rule is `ask-all`, which buys what `sealed` does, of one owner that has it all.

    Half of D_v is what is wanted, each row twice, so that the target has as many rows and as much noise as it
    will have. The other half is what owners have of it.

    Args:
        session: The session.
        validation: D_v, raw, shape (m, columns).
        seed_set: D_init, raw, shape (n, columns).
        say: Told which owners are next.

    Raises:
        DataError: Fewer rows than `FEWEST`, or more rows or points than `MOST`.
        HushbidError: The session cannot be played.
    """
    points, m = session.file.session.points, len(validation)
    if m < FEWEST:
        raise DataError(f"{m} rows are too few to rehearse with.", advice=f"Take {FEWEST} or more.")
    if max(points, m) > MOST:
        raise DataError(
            f"A rehearsal with {max(points, m):,} points would take long.",
            advice=f"It takes {MOST:,} at most.",
        )
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for repeat in range(_REPEATS):
        generator = np.random.default_rng(repeat)
        order = generator.permutation(m)
        wanted, theirs = validation[order[: m // 2]], validation[order[m // 2 :]]
        target = np.concatenate([wanted, wanted, theirs[: m % 2]])
        for owners, rows in _stand_ins(session, theirs, _TIMES * points, generator):
            if say is not None:
                say(f"rehearsing with owners that have {owners}, {repeat + 1} of {_REPEATS}")
            played = _played(session, rows, target, seed_set, repeat)
            found.setdefault(owners, []).append(_compared(session, played, rows, target, generator))
    return Rehearsal(
        tuple(Staged(owners, *map(fmean, zip(*each, strict=True))) for owners, each in found.items()),
        mean_kernel(session, validation),
    )


def mean_kernel(session: Session, rows: _Rows) -> float:
    """Mean kernel value of two different rows: 1 if all are alike to the session, 0 if none is.

    Args:
        session: The session, with its bounds and γ.
        rows: Raw, shape (n, columns), at least two.
    """
    scaled, n = session.space.scale(rows), len(rows)
    return (float(kernel_means(scaled, scaled, session.space.gamma).mean()) * n - 1.0) / (n - 1)


def _stand_ins(
    session: Session, wanted: _Rows, count: int, generator: np.random.Generator
) -> Iterator[tuple[str, _Rows]]:
    """Kinds of owners, and `count` points of each: what they have of D_v are rows of it, again and again."""
    bounds, columns = session.file.features, wanted.shape[1]
    lower, upper = (np.broadcast_to(np.asarray(bound), columns) for bound in (bounds.lower, bounds.upper))

    def drawn(rows: _Rows, size: int) -> _Rows:
        return rows[generator.integers(len(rows), size=size)]

    def none_of_it(size: int) -> _Rows:
        # Half are D_v's own values without what holds between columns, and half could be anything.
        mixed = [generator.choice(wanted[:, column], size=size // 2) for column in range(columns)]
        anything = generator.uniform(lower, upper, size=(size - size // 2, columns))
        return np.concatenate([np.stack(mixed, axis=1), anything])

    direction = generator.standard_normal(columns) / (wanted.std(axis=0) + 1e-9 * (upper - lower))
    along = wanted @ direction
    common, rest = wanted[along <= np.median(along)], wanted[along > np.median(along)]
    most = count * 9 // 10
    parts = [drawn(common, most), drawn(rest if len(rest) else common, count - most)]
    yield "all of what is wanted, nine tenths of it of one half", np.concatenate(parts)
    for share, words in ((10, "a tenth"), (50, "a fiftieth")):
        few = max(1, count // share)
        parts = [drawn(wanted, few), none_of_it(count - few)]
        yield f"{words} of what is wanted among other points", np.concatenate(parts)


def _played(session: Session, rows: _Rows, target: _Rows, seed_set: _Rows, repeat: int) -> _Rows:
    """The points that a session buys."""
    played = open_session(_of_one_owner(session.file, repeat))
    simulation = Simulation(
        played,
        owners={"stand-ins": Dataset.from_arrays("stand-ins", rows)},
        validation=Dataset.from_arrays("wanted", target),
        seed_set=Dataset.from_arrays("seed-set", seed_set),
    )
    outcome = simulation.run()
    for finish in outcome.finishes.values():
        ensure_done(finish)
    delivered = outcome.delivered.delivered if outcome.delivered is not None else ()
    return np.stack([entry.candidate.point for entry in delivered if entry.candidate is not None])


def _of_one_owner(file: SessionFile, seed: int) -> SessionFile:
    """The session with an owner, a map and noise that are all made up."""
    values = file.in_force()
    values["session"] |= {
        "name": "rehearsal",
        "nonce": str(seed),
        "min_owners": 1,
        "allow_nonprivate": True,
        "distinct": False,
    }
    for key in ("fixed_cadence", "column_values", "labels"):
        values["session"].pop(key, None)
    values["features"] |= {"seed": seed}
    values["acquisition"] = {"rule": AskAll.name}
    values["noise"] = {"source": "simulated", "seed": seed}
    values["network"] = {"address": "tcp://127.0.0.1:*", "insecure": True}
    values["roster"] = {"owners": {"stand-ins": ""}}
    values.pop("settlement", None)
    return SessionFile.model_validate(values, strict=False)


def _compared(
    session: Session, bought: _Rows, rows: _Rows, target: _Rows, generator: np.random.Generator
) -> tuple[float, float, float, float]:
    """MMD² with weights, of what was bought and of a uniform choice; and the same without."""
    space = session.space
    judge = Judge(space.scale(target), space.gamma)
    uniform = rows[generator.choice(len(rows), size=len(bought), replace=False)]
    figures = [judge.judge(space.scale(each), [None] * len(each)) for each in (bought, uniform)]
    weighted = [each.plain.mmd2 if each.weighted is None else each.weighted.quality.mmd2 for each in figures]
    both = [*weighted, *(each.plain.mmd2 for each in figures)]
    first, second, third, fourth = (float("nan") if value is None else value for value in both)
    return first, second, third, fourth
