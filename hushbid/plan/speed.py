"""A session's duration: a cost model with figures measured on this machine when a plan is made."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from pydantic.dataclasses import dataclass as figures

from hushbid.plan.setting import PlanSetting, plain_prior
from hushbid.plan.traffic import ATTRIBUTES, round_messages
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.crypto.sealing import candidate_statement, pack_content, seal, sign, verify_signature
from hushbid.protocol.figures import Figures
from hushbid.protocol.privacy.noise import Draw, NoiseSource, SecureNoise, SimulatedNoise
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.scoring import Points
from hushbid.protocol.wire.bids import bids_of
from hushbid.protocol.wire.blind import BlindBid
from hushbid.protocol.wire.codec import Direction, Frame, decode_message, encode_frame, encode_message
from hushbid.protocol.wire.messages import SealedCandidate

__all__ = ["Speed", "Times", "measure_speed", "times"]

SMALL, LARGE = 1_000, 20_000
"""Rows of the two passes that determine the time of any number of rows."""

HASHED: Final = 256
REPEATS: Final = 5


@figures(frozen=True, slots=True, kw_only=True)
class Speed(Figures):
    """Seconds of the parts of a session, on one core of this machine.

    Attributes:
        draw: The noise of one of the curator's releases.
        release: A release without its noise.
        pass_start, pass_row: A scoring pass over features: its start, and each point.
        hash_point: φ of a point.
        seal: Sealing and signing a candidate; 0 if nothing is sealed.
        owner_messages: An owner's reading of a broadcast and writing of a bid.
        curator_messages: The curator's reading and checking of one bid, and writing of one broadcast.
        sync: Making a record durable.
    """

    draw: float
    release: float
    pass_start: float
    pass_row: float
    hash_point: float
    seal: float
    owner_messages: float
    curator_messages: float
    sync: float


@figures(frozen=True, slots=True, kw_only=True)
class Times(Figures):
    """Seconds of a session, not counting networks.

    Attributes:
        rounds: All rounds, each owner on a machine of its own like this one.
        rounds_here: All rounds, with all parties on this machine's cores.
        hashing: The largest owner's points, once before the first round.
        noise: All noise, drawn on a core of its own during the rounds.
    """

    rounds: float
    rounds_here: float
    hashing: float
    noise: float


def times(setting: PlanSetting, speed: Speed, *, cores: int) -> Times:
    """The cost model: the sum of a round's steps, times the number of rounds.

    An owner reads a broadcast, scores its points, seals the best ones, writes a bid and makes it durable. The
    curator then reads K bids, scores the pool (half full on average), releases, and makes that durable. A
    blind curator scores nothing: the consumer opens the best boxes, which takes about as long as sealing
    them, hashes the points and releases; both make their steps durable. Noise is drawn ahead, so that a round
    takes at least as long as its noise. A fixed cadence alone determines a round's duration.
    """
    owners, rounds, batch = len(setting.owner_points), setting.rounds, setting.file.batch
    largest = max(setting.owner_points)
    pooled = sum(min(rounds * batch, points) for points in setting.owner_points) / 2
    scoring = speed.pass_start + speed.pass_row * largest
    owner = speed.owner_messages + scoring + batch * speed.seal + speed.sync
    scoring = speed.pass_start + speed.pass_row * pooled
    if not setting.session().curator_reads:
        scoring = batch * (speed.seal + speed.hash_point) + speed.owner_messages + speed.sync
    curator = owners * speed.curator_messages + scoring + speed.release + speed.sync
    together = owner * max(1.0, owners / cores) + curator
    here = together + speed.draw if cores == 1 else max(together, speed.draw)
    cadence = setting.file.session.fixed_cadence
    return Times(
        rounds=rounds * (cadence or max(owner + curator, speed.draw)),
        rounds_here=rounds * (cadence or here),
        hashing=largest * speed.hash_point,
        noise=rounds * speed.draw,
    )


def measure_speed(setting: PlanSetting) -> Speed:
    """Measure this machine, in about a second and without the parties' data."""
    session = setting.session()
    dimension = session.space.dimension
    generator = np.random.default_rng(0)
    summary = session.summary
    stream = summary.stream(np.zeros(dimension, dtype=np.int64), plain_prior(session, size=1, spread=2**14))
    draws = summary.draws(setting.rounds - 1)
    totals = np.zeros(summary.width, dtype=np.int64)
    simulated = SimulatedNoise(0, "plan")
    stream.release(0, totals, 1, tuple(simulated.draw(draw) for draw in summary.draws(0)))
    release = 0.0
    if setting.rounds > 1:
        noise = tuple(simulated.draw(draw) for draw in summary.draws(1))
        release = _fastest(lambda: stream.release(1, totals, 1, noise), repeats=1)
    small, large = (_pass(session, rows, generator) for rows in (SMALL, LARGE))
    row = max(0.0, large - small) / (LARGE - SMALL)
    feature_map = session.public_map or session.space.map(0)
    points = (
        generator.uniform(size=(HASHED, session.space.columns)) * session.space.range + session.space.lower
    )
    seal_time, verify_time = _sealing(session)
    owner, curator = _messages(setting, session)
    return Speed(
        draw=_drawing(session, draws),
        release=release,
        pass_start=max(0.0, small - row * SMALL),
        pass_row=row,
        hash_point=_fastest(lambda: feature_map.hash(points, [None] * HASHED)) / HASHED,
        seal=seal_time,
        owner_messages=owner,
        curator_messages=curator + verify_time,
        sync=_sync(),
    )


def _pass(session: Session, rows: int, generator: np.random.Generator) -> float:
    features = session.space.random_features(rows, generator)
    table = Points(features, norm_bound=session.space.norm_bound, jitter=session.jitter)
    weights = generator.integers(-(2**20), 2**20, session.weight_coordinates).astype(np.int32)
    return _fastest(lambda: table.first(weights, session.batch))


def _drawing(session: Session, draws: tuple[Draw, ...]) -> float:
    """Seconds for a release's noise; a planned setting has a source that takes its draws (`plan_setting`)."""
    source: NoiseSource = SecureNoise() if session.noise_protects else SimulatedNoise(0, "plan")
    return _fastest(lambda: [source.draw(draw) for draw in draws], repeats=2 * REPEATS) if draws else 0.0


def _sealing(session: Session) -> tuple[float, float]:
    """Seconds to seal and sign a candidate, and to verify its signature."""
    if not session.rule.sealed:
        return 0.0, 0.0
    consumer, owner = Identity(bytes(range(32))), Identity(bytes(range(1, 33)))
    # One byte per column always fits the box, and the box's length determines the sealing time.
    point = np.zeros(min(session.space.columns, max(1, session.box_bytes // 2)), dtype=np.uint8)
    features = np.zeros(session.space.dimension, dtype=np.int16)

    def prepare() -> tuple[bytes, bytes]:
        content = pack_content(point, ATTRIBUTES, session.box_bytes)
        box = seal(content, consumer.public.sealing, bytes(range(2, 34)))
        statement = candidate_statement(session.identifier, "owner", 1, 1, box, features)
        return statement, sign(statement, owner.signing)

    statement, signature = prepare()
    return _fastest(prepare), _fastest(lambda: verify_signature(statement, signature, owner.public.verify))


def _messages(setting: PlanSetting, session: Session) -> tuple[float, float]:
    bid, broadcast = round_messages(setting, session)
    bid_body, broadcast_body = encode_message(bid), encode_message(broadcast)
    bids = () if isinstance(bid, BlindBid) else bids_of(bid)
    sealed = [each.candidate.features for each in bids if isinstance(each.candidate, SealedCandidate)]
    features = np.stack(sealed) if sealed else None

    def owner() -> None:
        decode_message(Direction.CURATOR_TO_OWNER, broadcast_body)
        encode_frame(Frame(bytes(16), 1, 1, encode_message(bid)))

    def curator() -> None:
        decode_message(Direction.OWNER_TO_CURATOR, bid_body)
        if features is not None:
            session.space.admits(features)
        encode_frame(Frame(bytes(16), 1, 1, encode_message(broadcast)))

    return _fastest(owner), _fastest(curator)


def _sync() -> float:
    with tempfile.TemporaryFile() as file:

        def write() -> None:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())

        return _fastest(write)


def _fastest(action: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Seconds of the fastest of several runs."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
