"""`hushbid simulate`: a cluster file's session in one process, with the result that `hushbid run` gives."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from hushbid.cluster.data import ClusterData, spread
from hushbid.cluster.evaluation import Baselines, Told, evaluate, too_large
from hushbid.cluster.file import Cluster
from hushbid.consumer.appraisal import Evaluation
from hushbid.consumer.events import StorePurchases
from hushbid.consumer.learners import Training, check_model, train_here
from hushbid.consumer.own_figures import PurchaseView, own_view
from hushbid.consumer.result import PurchaseResult
from hushbid.consumer.store import (
    DELIVERED_FILE,
    PurchaseFile,
    keep_table,
    keep_verdict,
    purchase_arrays,
    weight_arrays,
)
from hushbid.curator.machine import CuratorMachine
from hushbid.curator.progress import ProgressFollower
from hushbid.curator.result import Sale
from hushbid.plan.verdict import NOT_REHEARSING, Rehearsing, Sets, warn
from hushbid.protocol import platform
from hushbid.protocol.config.session import NetworkSection, NoiseSection, RosterSection, SessionFile
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.machine.progress import COMPARING, Progress
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.runtime.party import ensure_done, open_journal
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.journal import Journal
from hushbid.results.run import RunResult
from hushbid.running.notebook import notebook_bar
from hushbid.running.report import with_report
from hushbid.simulation.simulator import Simulation
from hushbid.text_files import check_directory_place

__all__ = ["AfterRound", "Follow", "Simulated", "baselines", "both", "simulate", "simulated"]

AfterRound: TypeAlias = Callable[[int, int], None]
"""Called with the round and the points chosen so far."""
Follow: TypeAlias = Callable[[Progress], object]
"""Called with the session's progress."""

_OTHER_FILES: Final = 64
"""Open files of a process besides transcripts, generously estimated."""
_NO_NETWORK = NetworkSection(address="tcp://127.0.0.1:*", insecure=True)


@dataclass(frozen=True, eq=False)
class Simulated:
    """A session that was simulated.

    Attributes:
        result: As `simulate` returns it.
        purchases: The delivered points; None: there are none.
        view: What the consumer sees of them.
    """

    session: Session
    result: RunResult
    purchases: StorePurchases | None
    view: PurchaseView

    @property
    def arrays(self) -> dict[str, Any] | None:
        """The delivered points with their weights, as a ``delivered.npz`` has them; None: there are none."""
        if self.purchases is None:
            return None
        arrays, matching = purchase_arrays(self.purchases), self.view.matching
        if matching is None:
            return arrays
        gamma = self.session.file.features.gamma
        return arrays | weight_arrays(matching, gamma, self.view.training)


def simulate(
    cluster: Cluster,
    *,
    owners: int | None = None,
    owner_points: int | None = None,
    record: Path | None = None,
    report: bool = True,
    progress: AfterRound | None = None,
    follow: Follow | None = None,
    say: Callable[[str], object] | None = None,
    rehearsing: Rehearsing = NOT_REHEARSING,
    models: bool = True,
) -> RunResult:
    """Run a cluster's session in this process.

    Args:
        owners: Spread the owners' points over this many owners (`hushbid.cluster.data.spread`).
        owner_points: Points that each of those draws, with replacement; None: points are dealt out.
        record: Directory for the parties' transcripts, and a report; None: nothing is recorded.
        report: Whether to draw a report of the records, which takes as long as a small session.
        progress: Called after every round.
        follow: Called as often, while the result is compared with other choices, and at the end, with all
            that is known (`hushbid.protocol.machine.progress`).
        say: Receives the reason for a missing report, a warning if there is nothing to choose from, and a
            notice of a long comparison.
        rehearsing: How the session is rehearsed before it begins.
        models: Whether the consumer's model is judged with and without what was bought, which takes longer
            than a small session. Accuracies of points are there without it.

    Raises:
        Hopeless: A rehearsal is hopeless, and the session is not to go on anyway.
        HushbidError: A file or setting is invalid, or the session did not end well.
    """
    if owner_points is not None and owners is None:
        raise ConfigError(
            "The points of an owner are given, but not the number of owners.", advice="Give --owners too."
        )
    data = cluster.load()
    if owners is not None:
        data = spread(data, owners, owner_points, seed=cluster.file.consumer.seed)
    return simulated(
        cluster,
        data,
        record=record,
        report=report,
        progress=progress,
        follow=follow,
        say=say,
        rehearsing=rehearsing,
        models=models,
    ).result


@one_blas_thread()  # as in the parties' processes: the same sums in the same order
def simulated(
    cluster: Cluster,
    data: ClusterData,
    *,
    record: Path | None = None,
    report: bool = True,
    progress: AfterRound | None = None,
    follow: Follow | None = None,
    say: Callable[[str], object] | None = None,
    rehearsing: Rehearsing = NOT_REHEARSING,
    models: bool = True,
) -> Simulated:
    """Run a cluster's session with these data in this process. Arguments and errors are those of `simulate`.

    Args:
        data: Every party's, read as the cluster says. Nothing is written if there is no `record`.
    """
    roster = RosterSection(owners=dict.fromkeys(data.owners, ""))
    session = open_session(_simulated(cluster.session_file(roster, _NO_NETWORK), cluster.file.consumer.seed))
    check_model(cluster.model, trained=data.test is not None and data.test.labels is not None)
    if record is not None:
        _check_unused(record)
    owners_sets = {name: [each] for name, each in data.owners.items()}
    warn(session, owners_sets, data.consumers, say)
    drawn = cluster.file.consumer.seed_points is not None
    verdict = rehearsing.verdict(session, lambda: Sets(data.validation, data.seed_set, drawn, cluster.model))
    if record is not None:
        _allow_open_files(len(data.owners) + 2)
        keep_verdict(record, session, verdict)

    transcripts: dict[str, Path] = {}
    with ExitStack() as journals:

        def journal(role: str, party: str) -> Journal:
            opened = open_journal(session, role=role, party=party, state=record or Path(), durability="flush")
            journals.callback(opened.close)
            transcripts[party] = opened.path.resolve()
            return opened

        simulation = Simulation(
            session,
            owners=data.owners,
            validation=data.validation,
            seed_set=data.seed_set,
            journal=journal if record is not None else None,
        )
        started = time.monotonic()
        follower, told = ProgressFollower(session.file, simulation.curator), both(progress, follow)

        def after_round(_curator: CuratorMachine) -> None:
            follower.note(time.monotonic())
            if told is not None:
                told(follower.progress())

        outcome = simulation.run(after_round)
        last = follower.progress()
        if told is not None:
            told(last)  # including the last decided round
        seconds = time.monotonic() - started
    for party in (CURATOR, CONSUMER, *data.owners):
        ensure_done(outcome.finishes[party])

    delivered = outcome.delivered.delivered if outcome.delivered is not None else ()
    purchases = StorePurchases(tuple(delivered)) if delivered else None
    view = own_view(
        session,
        delivered,
        Evaluation(
            data.validation,
            data.test,
            cluster.model,
            cluster.file.consumer.seed,
            cluster.file.consumer.ridge,
            cluster.file.consumer.label_weight,
            models,
        ),
        data.seed_set,
    )
    kept = None if record is None else PurchaseFile(record / DELIVERED_FILE, session.file.features)
    if kept is not None and purchases is not None:
        kept.store(purchases)
        if view.matching is not None:
            kept.weigh(view.matching, view.training)
        if (schema := session.file.rows) is not None:
            columns = cluster.file.consumer.columns.columns()
            keep_table(schema, kept.path, label=columns.label or "label")
    reference = baselines(cluster, session, data, last, told, say, models=models)
    result = RunResult.told(
        session,
        reference,
        curator=Sale.of(session.file, outcome.curator, cluster.file.run.price, seconds=seconds),
        consumer=PurchaseResult.of(
            session.file,
            outcome.consumer,
            delivered,
            view,
            verdict,
            validation=data.validation,
            test=data.test,
            drawn=drawn,
        ),
        display=cluster.display,
        transcripts=transcripts,
        data=None if kept is None or kept.purchases is None else kept.path.resolve(),
        directory=record.resolve() if record is not None else None,
    )
    if record is not None and report:
        result = with_report(result, reference, record, say)
    return Simulated(session, result, purchases, view)


def both(progress: AfterRound | None, follow: Follow | None) -> Follow | None:
    """A function that calls both; without either, a notebook's bar, or None outside of notebooks."""
    if progress is None:
        return follow or notebook_bar()

    told = 0

    def call(found: Progress) -> None:
        nonlocal told
        if found.rounds_done > told:
            told = found.rounds_done
            progress(told, found.points or 0)
        if follow is not None:
            follow(found)

    return call


def _simulated(file: SessionFile, seed: int) -> SessionFile:
    """The session with repeatable noise; its privacy statements say so."""
    if file.noise.source == SimulatedNoise.name:
        return file
    changes: dict[str, Any] = {
        "noise": NoiseSection(source="simulated", seed=seed),
        "session": file.session.model_copy(update={"allow_nonprivate": True}),
    }
    return file.model_copy(update=changes)


def baselines(
    cluster: Cluster,
    session: Session,
    data: ClusterData,
    last: Progress,
    told: Follow | None,
    say: Callable[[str], object] | None,
    training: Training = train_here,
    *,
    models: bool = True,
) -> Baselines:
    """The greedy and the uniform choice on the same data (DESIGN §7): a step that only the operator can take.

    Args:
        last: The session's outcome; `told` gets it with each computation, and again at the end.
        training: Trains the models that judge the choices.
        models: As `simulate` has it.
    """
    p, wanted = session.file.session.points, cluster.file.run.greedy
    rows = sum(map(len, data.owners.values()))
    if wanted and say is not None and (large := too_large(rows, session.space.dimension, p, session)):
        say(f"The greedy choice is made: {large}.")
    reference = evaluate(
        data.owners,
        data.validation,
        data.seed_set.features,
        # If the map is secret, the operator's own map will do: the baselines belong to no session.
        session.public_map or session.space.map(cluster.file.consumer.seed),
        p=p,
        seed=cluster.file.consumer.seed,
        test=data.test,
        model=cluster.model,
        ridge=cluster.file.consumer.ridge,
        label_weight=cluster.file.consumer.label_weight,
        session=session,
        with_greedy=wanted,
        told=None if told is None else _comparing(told, last),
        training=training,
        models=models,
    )
    if told is not None:
        told(last)
    return reference


def _comparing(told: Follow, last: Progress) -> Told:
    """Tell a session's followers about the computations after it, at most a hundred times for each."""
    before: tuple[str, int] | None = None

    def tell(what: str, share: float | None) -> None:
        nonlocal before
        now = what, int(100 * (share or 0.0))
        if now != before:
            before = now
            told(replace(last, phase=COMPARING, busy=what, busy_share=share))

    return tell


def _check_unused(directory: Path) -> None:
    """Refuse before hours are spent: transcripts never replace others."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ConfigError(f"{directory} already exists and is not empty.", advice="Name another directory.")
    check_directory_place(directory)


def _allow_open_files(transcripts: int) -> None:
    """Raise this process's own limit, or refuse what would not fit in it."""
    needed = transcripts + _OTHER_FILES
    allowed = platform.allow_open_files(needed)
    if allowed is not None and allowed < needed:
        raise ConfigError(
            f"Recording takes {needed} open files, and this system allows a process {allowed}.",
            advice="Raise the limit (ulimit -n), simulate fewer owners, or leave --output out.",
        )
