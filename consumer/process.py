"""The consumer as a process of its own."""

from __future__ import annotations

import zipfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from hushbid.consumer.appraisal import Evaluation
from hushbid.consumer.buying.blind import BlindBuying
from hushbid.consumer.drawn_seed_set import DRAWN, STREAM, drawn_seed_set
from hushbid.consumer.learners import check_model
from hushbid.consumer.own_figures import own_view
from hushbid.consumer.party import check_disjoint, consumer_party
from hushbid.consumer.result import ConsumerResult, PurchaseResult
from hushbid.consumer.store import (
    DELIVERED_FILE,
    PurchaseFile,
    keep_result,
    keep_settings,
    keep_table,
    kept_verdict,
    write_arrays,
)
from hushbid.consumer.target import KeptTarget, check_kept
from hushbid.protocol import limits
from hushbid.protocol.config.party import ConsumerFile
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import DataColumns, Dataset, check_labels, dataset_digest, load_dataset
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.runtime.control import Control
from hushbid.protocol.runtime.drawn_ahead import DrawnAhead, expect_noise
from hushbid.protocol.runtime.files.private_files import read_private
from hushbid.protocol.runtime.ledger.dataset_budget import dataset_budget
from hushbid.protocol.runtime.party import (
    check_durability,
    own_keys,
    party_noise,
    sealing_identity,
    transcript_path,
)
from hushbid.protocol.runtime.taking_part import log_reading, take_part
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import log
from hushbid.protocol.runtime.telemetry.metrics import serving_metrics
from hushbid.protocol.runtime.telemetry.vitals import Vitals
from hushbid.protocol.session.guarantee import CONSUMERS_DATA, OWNERS_DATA
from hushbid.protocol.session.odometer import promised
from hushbid.protocol.session.session import Session, open_session

__all__ = ["consumer_seed_set", "drawn_path", "kept_target", "run_consumer"]


def run_consumer(
    session_file: SessionFile, file: ConsumerFile, control: Control | None = None
) -> ConsumerResult:
    """Take part in a session as its consumer until it is over, and appraise the delivery.

    Raises:
        HushbidError: As `hushbid.protocol.errors` says.
    """
    with (
        one_blas_thread(),
        Vitals(file.state, party=CONSUMER, role="consumer", session=session_file, control=control) as vitals,
        serving_metrics(file.metrics, vitals),
        ExitStack() as stack,
    ):
        session = open_session(session_file)
        result = _take_part(session, file, vitals, stack)
        # Once it is over: a start that is refused leaves what an earlier session has there as it is.
        keep_settings(file)
        keep_result(file.state, session, result.as_json())
        return result


def _take_part(session: Session, file: ConsumerFile, vitals: Vitals, stack: ExitStack) -> ConsumerResult:
    session_file = session.file
    check_durability(session, file.durability)
    pair = own_keys(session, file, expected=session_file.roster.consumer, party=CONSUMER)
    columns = session_file.reading(file.columns.columns())
    validation = load_dataset(file.validation, columns.with_gaps())
    log_reading(validation, file.validation)
    seed_set = consumer_seed_set(session, file, validation)
    if file.seed_points is not None:
        log(LogEvent.SEED_SET_DRAWN, path=str(drawn_path(file)), points=file.seed_points)
    verdict = kept_verdict(file.state, session)
    if verdict.word is not None:
        log(LogEvent.SESSION_REHEARSED, verdict=verdict.word)
    test = load_dataset(file.test, columns) if file.test is not None else None
    judging = test is not None and test.labels is not None
    check_model(file.model, trained=judging)
    if test is not None:
        session_file.check_points(test)
        if judging:
            check_labels(test, session.file.session.labels)
    target = (
        None if file.target_file is None else kept_target(session, file.target_file, validation, seed_set)
    )
    kept = PurchaseFile(file.state / DELIVERED_FILE, session_file.features)
    noise: NoiseSource = party_noise(session, CONSUMER)
    drawn_ahead: DrawnAhead | None = None
    if session.weigher == CONSUMER and noise.protects:
        drawn_ahead = noise = stack.enter_context(DrawnAhead(noise))  # so that no round waits for noise
    machine, numerics = consumer_party(
        session,
        identity=sealing_identity(session, pair, CONSUMER),
        noise=noise,
        validation=validation,
        seed_set=seed_set,
        store=kept.store,
        target=target,
    )
    statement = session.privacy()[1]
    paid_as = "" if target is None else target.charged_as
    budget = dataset_budget(
        session, file, file.validation, validation, machine.charge, statement, paid_as=paid_as
    )
    if (odometer := promised(session, CONSUMERS_DATA)) is not None:
        # The target is the consumer's first numbered frame.
        vitals.spent = lambda: odometer.spent(0 if machine.links[CURATOR].sent else -1)
    buying = machine.buying
    if isinstance(buying, BlindBuying) and (of_owners := promised(session, OWNERS_DATA)) is not None:
        vitals.spent_of_owners = lambda: of_owners.spent(machine.round, settled=buying.settled)
    data = dataset_digest(validation, seed_set)

    def resumed() -> None:
        if drawn_ahead is not None and isinstance(buying, BlindBuying):
            expect_noise(drawn_ahead, session, drawn=buying.weighing.noise_drawn)

    seconds = take_part(
        session,
        file,
        machine,
        numerics,
        pair=pair,
        budget=budget,
        data=data,
        vitals=vitals,
        ahead=numerics.ahead,
        resumed=resumed,
    )
    with vitals.computing("appraise"):
        view = own_view(
            session,
            machine.delivered,
            Evaluation(validation, test, file.model, file.seed, file.ridge, file.label_weight),
            seed_set,
        )
        if view.matching is not None:
            kept.weigh(view.matching, view.training)
    table = None
    if columns.schema is not None and kept.path.exists():
        table = keep_table(columns.schema, kept.path, label=columns.label or "label")
    purchase = PurchaseResult.of(
        session_file,
        machine,
        machine.delivered,
        view,
        verdict,
        validation=validation,
        test=test,
        drawn=file.seed_points is not None,
    )
    return ConsumerResult(
        **ConsumerResult.shared(purchase),
        outside=validation.changed,
        seed_rows_shared=check_disjoint(
            validation, seed_set, column_values=session_file.session.column_values
        ),
        wall_seconds=seconds,
        data=kept.path,
        table=table,
        privacy=session.privacy(),
        ledger=budget.path,
        transcript=transcript_path(file.state, CONSUMER),
    )


def drawn_path(file: ConsumerFile) -> Path:
    """Path of a drawn seed set."""
    return file.state / "seed-set.npz"


def consumer_seed_set(
    session: Session,
    file: ConsumerFile,
    validation: Dataset,
    *,
    when_missing: Literal["keep", "draw", "refuse"] = "keep",
) -> Dataset:
    """D_init: the file that is named, or points that are drawn once and kept for restarts.

    Args:
        validation: D_v; a drawn set takes its number type, and nothing else.
        when_missing: If none was drawn yet: draw and keep one, draw one without keeping it, or refuse.

    Raises:
        ConfigError: No set can be drawn, the kept set has another number of points, or it was drawn for
            another session and this one has begun.
        DataError: The file cannot be read or written, or none was drawn yet and `when_missing` refuses.
    """
    if file.seed_set is not None:
        # It is public, and none of the consumer's own rows: nothing of it is clipped or dropped.
        columns = replace(file.columns.columns(), outside="refuse")
        return load_dataset(file.seed_set, session.file.reading(columns))
    assert file.seed_points is not None, "the file has one or the other"
    path = drawn_path(file)
    # A set drawn for another session may be reproducible by anybody, or have other bounds. Before the session
    # has begun, nothing depends on it.
    begun = transcript_path(file.state, CONSUMER).exists() or when_missing == "refuse"
    if path.exists() and (begun or _drawn_for(path) == session.identifier):
        kept = replace(load_dataset(path, DataColumns()), name=DRAWN)
        if _drawn_for(path) != session.identifier:
            raise ConfigError(
                f"{path}: the seed set was drawn for another session.",
                advice="Name another state directory, one for each session.",
            )
        if len(kept) != file.seed_points:
            raise ConfigError(
                f"{path}: {len(kept)} points were drawn, and seed_points is {file.seed_points}.",
                advice="Set it back, or name another state directory, for another session.",
            )
        return kept
    if when_missing == "refuse":
        raise DataError(
            f"{path}: the seed set that was drawn is not there.",
            advice="It lies in the state directory that the session was run with: restore it there.",
        )
    drawn = drawn_seed_set(
        session.file.features,
        file.seed_points,
        validation.features.dtype,
        party_noise(session, STREAM).random_bytes,
        column_values=session.file.session.column_values,
        sealed=session.rule.sealed,
        schema=session.file.rows,
    )
    if when_missing == "keep":
        try:
            file.state.mkdir(mode=0o700, parents=True, exist_ok=True)
            drawn_for = np.frombuffer(session.identifier, dtype=np.uint8)
            write_arrays(path, {"features": drawn.features, "session": drawn_for})
        except OSError as error:
            raise DataError(
                f"{path}: the drawn seed set cannot be kept: {error.strerror}.",
                advice="Make room, or name another state directory.",
            ) from None
    return drawn


def _drawn_for(path: Path) -> bytes:
    """The identifier of the session that a seed set was drawn for; empty if the file has none."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return bytes(arrays["session"].tobytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return b""


def kept_target(session: Session, path: Path, validation: Dataset, seed_set: Dataset) -> KeptTarget:
    """The earlier release of D_v, in this file, that a session reuses.

    Raises:
        ConfigError, DataError: It cannot be read, or the session could not have made it.
    """
    where = str(path)
    kept = KeptTarget.from_bytes(read_private(path, limits.MAX_TARGET_FILE_BYTES), where=where)
    check_kept(kept, session, validation, seed_set, where=where)
    return kept
