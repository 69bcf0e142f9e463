"""A kept release of D_v: accepted by a session that could have made it, and by no other."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hushbid.catalogue.consumer_release import Asked, ConsumerData, make_target
from hushbid.consumer.events import ReleaseTarget, TargetReleased
from hushbid.consumer.party import consumer_party
from hushbid.consumer.process import run_consumer
from hushbid.consumer.target import KeptTarget, check_kept
from hushbid.preflight.data import budget
from hushbid.protocol.config.party import BudgetSection, ConsumerFile
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import BudgetExceeded, ConfigError, DataError, HushbidError
from hushbid.protocol.privacy.accounting import Budget
from hushbid.protocol.privacy.releases import Prior
from hushbid.protocol.runtime.files.durable import write_new
from hushbid.protocol.runtime.files.private_files import read_private
from hushbid.protocol.runtime.ledger.cap import Cap
from hushbid.protocol.runtime.ledger.lifetime_ledger import LifetimeLedger
from hushbid.protocol.runtime.ledger.spending import Spending
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.features import feature_map
from tests.support.catalogue_entries import ProtectingNoise
from tests.support.session_files import load

PRIVATE: dict[str, Any] = {
    "target": {"mechanism": "filtered-gaussian", "epsilon": 2.0, "neighbours": "substitute-one"},
    "summary": {"mechanism": "filtered-gaussian", "epsilon": 2.0, "neighbours": "add-remove-one"},
    "noise": None,
}
"""Changes to the smallest session file: secure noise, and a release that guarantees something."""
SEALED: dict[str, Any] = {"acquisition.rule": "sealed", "features.seed": None}


class NamedSecure(ProtectingNoise):
    """Repeatable noise under the name that a session with secure noise expects."""

    name = "secure"


def data(name: str, seed: int, rows: int = 60) -> Dataset:
    return Dataset.from_arrays(name, np.random.default_rng(seed).random((rows, 3)))


VALIDATION, SEEDS = data("validation", 1), data("seed-set", 2, rows=12)


def session(**changes: Any) -> Session:
    return open_session(load({**PRIVATE, **changes}))


def consumer_of(place: Path, seed_set: Dataset | None, ledger: Path) -> ConsumerData:
    target = place / "kept.target"
    return ConsumerData(validation=VALIDATION, seed_set=seed_set, target=target, ledger=ledger, budget=None)


def kept(place: Path, of: SessionFile | None = None) -> KeptTarget:
    file = session().file if of is None else of
    asked = Asked(file.target.mechanism, file.target.parameters, file.session.delta)
    consumer = consumer_of(place, SEEDS, place / "validation.ledger")
    space = file.features
    made = feature_map(
        space.map,
        seed=space.seed or 0,
        dimension=space.dimension,
        gamma=space.gamma,
        lower=0.0,
        upper=1.0,
        columns=3,
    )
    return make_target(asked, made, consumer, NamedSecure(5, "consumer"))


def test_a_kept_release_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = kept(tmp_path)
    read = KeptTarget.from_bytes((tmp_path / "kept.target").read_bytes(), where="there")
    assert read.to_bytes() == made.to_bytes()
    assert read.release.embedding.tobytes() == made.release.embedding.tobytes()
    check_kept(read, session(), VALIDATION, SEEDS, where="there")


@pytest.mark.parametrize("mechanism", ["gaussian", "filtered-gaussian"])
def test_the_deviation_that_is_kept_is_that_of_the_noise_in_the_embedding(
    tmp_path: Path, mechanism: str
) -> None:
    of = session(target={**PRIVATE["target"], "mechanism": mechanism})
    made = kept(tmp_path, of.file)
    assert of.public_map is not None
    seed_total = of.public_map.hash(SEEDS.features).sum(axis=0, dtype=np.int64)
    stream = of.target.stream(prior=Prior.of_total(seed_total, len(SEEDS)))
    (draw,) = of.target.draws(0)
    total = stream.statistic.of(of.public_map.hash(VALIDATION.features)).sum(axis=0)
    without = stream.release(0, total, len(VALIDATION), (np.zeros(draw.size, dtype=np.int64),))
    moved = made.release.embedding - without
    assert np.allclose(moved, made.release.noise[0] * (made.deviation / draw.scale), rtol=1e-6, atol=1e-12)
    assert np.abs(moved).max() > 0.0


@pytest.mark.parametrize("length", [0, 5, 30, 200, -1])
def test_a_damaged_release_is_refused(tmp_path: Path, length: int) -> None:
    content = kept(tmp_path).to_bytes()
    with pytest.raises(DataError, match="there"):
        KeptTarget.from_bytes(content[:length], where="there")


def test_a_changed_bit_of_a_release_is_noticed(tmp_path: Path) -> None:
    content = kept(tmp_path).to_bytes()
    for place in range(0, len(content), 61):
        changed = bytearray(content)
        changed[place] ^= 1
        with pytest.raises(DataError, match="there"):
            KeptTarget.from_bytes(bytes(changed), where="there")


def test_the_session_broadcasts_the_bytes_that_were_kept_and_draws_nothing(tmp_path: Path) -> None:
    made = kept(tmp_path)

    class Silent(NamedSecure):
        def draw(self, request: Any) -> Any:
            raise AssertionError("noise was drawn")

    _, numerics = consumer_party(
        session(),
        identity=None,
        noise=Silent(1, "consumer"),
        validation=VALIDATION,
        seed_set=SEEDS,
        store=lambda _purchases: None,
        target=made,
    )
    released = numerics.perform(ReleaseTarget())
    assert isinstance(released, TargetReleased)
    assert released.embedding.tobytes() == made.release.embedding.tobytes()
    assert released.noise[0].tobytes() == made.release.noise[0].tobytes()
    assert (released.size, released.seed_size, released.noise_name) == (60, 12, "secure")


def test_it_is_the_release_that_the_session_would_have_made_with_that_noise(tmp_path: Path) -> None:
    made = kept(tmp_path)
    _, numerics = consumer_party(
        session(),
        identity=None,
        noise=NamedSecure(5, "consumer"),
        validation=VALIDATION,
        seed_set=SEEDS,
        store=lambda _purchases: None,
    )
    released = numerics.perform(ReleaseTarget())
    assert isinstance(released, TargetReleased)
    assert released.embedding.tobytes() == made.release.embedding.tobytes()


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "another map": ({"features.seed": 8}, "feature map or bounds"),
    "other bounds": ({"features.upper": 2.0}, "feature map or bounds"),
    "another γ": ({"features.gamma": 0.6}, "feature map or bounds"),
    "another mechanism": ({"target": {**PRIVATE["target"], "mechanism": "gaussian"}}, "release mechanism"),
    "another ε": ({"target": {**PRIVATE["target"], "epsilon": 3.0}}, "release mechanism"),
    "another δ": ({"session.delta": 1e-6}, "δ"),
    "simulated noise": ({"noise": {"source": "simulated", "seed": 1}}, "source of noise"),
    "a secret map": (SEALED, "fresh secret feature map"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_session_that_could_not_have_made_it_refuses_it(tmp_path: Path, case: str) -> None:
    changes, why = OTHERS[case]
    with pytest.raises(ConfigError, match=why):
        check_kept(kept(tmp_path), session(**changes), VALIDATION, SEEDS, where="there")


def test_other_data_are_refused(tmp_path: Path) -> None:
    made = kept(tmp_path)
    with pytest.raises(ConfigError, match="another validation set"):
        check_kept(made, session(), data("validation", 3), SEEDS, where="there")
    with pytest.raises(ConfigError, match="another seed set"):
        check_kept(made, session(), VALIDATION, data("seed-set", 4, rows=12), where="there")
    with pytest.raises(ConfigError, match="another seed set"):
        check_kept(made, session(), VALIDATION, data("seed-set", 2, rows=13), where="there")
    with pytest.raises(ConfigError, match="never charged"):
        check_kept(replace(made, charged_as=""), session(), VALIDATION, SEEDS, where="there")


def consumer_file(place: Path, **changes: Any) -> ConsumerFile:
    np.save(place / "validation.npy", VALIDATION.features)
    np.save(place / "seed-set.npy", SEEDS.features)
    values: dict[str, Any] = {
        "state": place / "state",
        "validation": place / "validation.npy",
        "seed_set": place / "seed-set.npy",
        "ledger": place / "validation.ledger",
        "target_file": place / "kept.target",
        **changes,
    }
    return ConsumerFile(**values)


REFUSED: dict[str, str] = {
    "sealed": "fresh secret feature map|needs a key",
    "another δ": "another δ",
    "not charged here": "not charged to this ledger",
    "open to others": "used by others",
    "gone": "cannot be read",
    "run before": "run before",
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_consumer_is_refused_before_it_says_a_word(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path)
    file, own = session().file, consumer_file(tmp_path)
    if case == "sealed":
        file = load({**PRIVATE, **SEALED})
    elif case == "another δ":
        file = load({**PRIVATE, "session.delta": 1e-6})
    elif case == "not charged here":
        own = consumer_file(tmp_path, ledger=tmp_path / "other.ledger")
    elif case == "open to others":
        (tmp_path / "kept.target").chmod(0o640)
    elif case == "gone":
        (tmp_path / "kept.target").unlink()

    class Connected(Exception):
        pass

    def connect(*_arguments: object, **_options: object) -> None:
        raise Connected

    monkeypatch.setattr("hushbid.protocol.runtime.taking_part.Connection", connect)
    if case == "run before":
        with pytest.raises(Connected):
            run_consumer(file, own)  # nothing stands against it
        identifier = f"digits/{open_session(file).identifier.hex()}"
        _charge_session(tmp_path / "validation.ledger", identifier)
    with pytest.raises(HushbidError, match=REFUSED[case]) as refusal:
        run_consumer(file, own)
    assert refusal.value.exit_code == 4


def test_preflight_counts_a_release_that_was_paid_for_as_paid(tmp_path: Path) -> None:
    kept(tmp_path)

    def looked(**changes: Any) -> str:
        file: Any = consumer_file(tmp_path, **{"budget": BudgetSection(epsilon=2.5), **changes})
        subject: Any = SimpleNamespace(
            role="consumer",
            name="consumer",
            session=session(),
            file=file,
            data_files=[file.validation],
            datasets={file.validation: VALIDATION, file.seed_set: SEEDS},
            validation=VALIDATION,
            seed_set=SEEDS,
            transcript=tmp_path / "consumer.transcript",
        )
        return str(budget(subject))

    assert "fits" in looked()
    with pytest.raises(BudgetExceeded):
        looked(target_file=None)
    with pytest.raises(ConfigError, match="not charged to this ledger"):
        looked(ledger=tmp_path / "other.ledger", budget=BudgetSection(epsilon=2.5, lift=True))
    with pytest.raises(ConfigError, match=r"were charged to .*validation\.ledger, which is another file"):
        looked(ledger=tmp_path / "another.ledger")


def _charge_session(path: Path, identifier: str) -> None:
    """The record of a session that used the release: nothing more was spent."""
    with LifetimeLedger.open(path, budget=None, neighbours="substitute-one", rows=None) as ledger:
        before = ledger.spent(1e-5)
        today = datetime.date(2026, 1, 1)
        ledger.charge(
            Spending(
                kind="session",
                identifier=identifier,
                date=today,
                neighbours="substitute-one",
                epsilon=0.0,
                delta=0.0,
            )
        )
        assert ledger.spent(1e-5) == before


def test_private_files_are_new_and_read_by_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "private"
    write_new(path, b"1234")
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_private(path, 4) == b"1234"
    with pytest.raises(ConfigError, match="already"):
        write_new(path, b"5678")
    with pytest.raises(DataError, match="longer than 3"):
        read_private(path, 3)
    with pytest.raises(ConfigError, match="cannot be written"):
        write_new(tmp_path / "nowhere" / "private", b"")


def test_a_budget_on_record_holds_where_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    one = BudgetSection(epsilon=1.0)
    LifetimeLedger.open(path, budget=one, neighbours="substitute-one", rows=None).close()
    with LifetimeLedger.open(path, budget=None, neighbours="substitute-one", rows=None) as ledger:
        assert ledger.cap == Cap(Budget(1.0, 1e-5), "substitute-one")
    asked = Asked("gaussian", {"epsilon": 2.0, "neighbours": "substitute-one"}, 1e-5)
    made = feature_map("paired", seed=1, dimension=8, gamma=1.0, lower=0.0, upper=1.0, columns=3)
    with pytest.raises(BudgetExceeded):
        make_target(asked, made, consumer_of(tmp_path, None, path), NamedSecure(1, "consumer"))
    with LifetimeLedger.open(path, budget=None, neighbours="substitute-one", rows=None) as ledger:
        assert ledger.cap == Cap(Budget(1.0, 1e-5), "substitute-one")
