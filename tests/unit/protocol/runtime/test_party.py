"""The sources of a process's noise and keys, and what must not be deployed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hushbid.consumer.role import ConsumerRole
from hushbid.owner.role import Owner
from hushbid.protocol.config.party import ConsumerFile, OwnerFile
from hushbid.protocol.crypto.identity import Identity, PublicIdentity, simulated_identity
from hushbid.protocol.crypto.sealing import head_statement, verify_signature
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.noise import Draw, SecureNoise, SimulatedNoise
from hushbid.protocol.runtime.party import (
    check_durability,
    claimed,
    head_signer,
    party_noise,
    sealing_identity,
)
from hushbid.protocol.session.session import Session, open_session
from tests.support.session_files import load

HERE, THERE = "tcp://127.0.0.1:5790", "tcp://curator.example.org:5790"
PARTIES = ("curator", "consumer", "alpha", "beta", "gamma")
KEYS = {party: simulated_identity(bytes(32), 3, party).public.text for party in PARTIES}
GAUSSIAN = {"mechanism": "gaussian", "epsilon": 1.0}
SECURE: dict[str, Any] = {
    "noise": None,
    "network.insecure": False,
    "roster.curator": KEYS["curator"],
    "roster.consumer": KEYS["consumer"],
    "roster.owners": {owner: KEYS[owner] for owner in ("alpha", "beta", "gamma")},
}


def session(*, noisy: bool = True, secure: bool = True) -> Session:
    changes: dict[str, Any] = dict(SECURE) if secure else {}
    if noisy:
        changes["target"] = GAUSSIAN | {"neighbours": "substitute-one"}
        changes["summary"] = GAUSSIAN | {"neighbours": "add-remove-one"}
    return open_session(load(changes))


@pytest.mark.parametrize("address", [HERE, THERE])
def test_secure_noise_is_not_recorded_where_a_power_cut_could_lose_it(address: str) -> None:
    """A crash could have the same release made twice, with other noise."""
    with pytest.raises(ConfigError, match='durability = "flush" is for simulated noise') as caught:
        check_durability(session(), "flush", listen=address)
    assert 'durability = "fsync"' in caught.value.advice
    check_durability(session(), "fsync", listen=address)


@pytest.mark.parametrize("durability", ["flush", "fsync"])
def test_simulated_noise_is_not_deployed(durability: Any) -> None:
    simulated = session(secure=False)
    with pytest.raises(ConfigError, match=r"deployed at .*example\.org.* its noise is simulated") as caught:
        check_durability(simulated, durability, listen=THERE)
    assert 'source = "secure"' in caught.value.advice
    check_durability(simulated, durability, listen=HERE)


@pytest.mark.parametrize("secure", [True, False])
def test_a_deployed_session_without_noise_is_recorded_durably_too(secure: bool) -> None:
    quiet = session(noisy=False, secure=secure)
    with pytest.raises(ConfigError, match="would lose records in a power cut") as caught:
        check_durability(quiet, "flush", listen=THERE)
    assert 'durability = "fsync"' in caught.value.advice
    check_durability(quiet, "fsync", listen=THERE)
    check_durability(quiet, "flush", listen=HERE)


@pytest.mark.parametrize("address", ["tcp://0.0.0.0:5790", "tcp://*:5790", "tcp://192.168.1.7:5790"])
def test_every_address_that_others_can_reach_is_a_deployment(address: str) -> None:
    with pytest.raises(ConfigError):
        check_durability(session(secure=False), "fsync", listen=address)


def test_a_rule_that_draws_coins_counts_as_noise() -> None:
    coins = open_session(load({"acquisition.rule": "published"}))
    with pytest.raises(ConfigError, match="its noise is simulated"):
        check_durability(coins, "fsync", listen=THERE)


def test_parties_draw_noise_of_their_own() -> None:
    simulated = session(secure=False)
    request = Draw("uniform", 1.0, 4)
    curator, consumer, again = (
        party_noise(simulated, party).draw(request).tolist() for party in ("curator", "consumer", "curator")
    )
    assert curator == again != consumer
    assert isinstance(party_noise(simulated, "curator"), SimulatedNoise)
    other = open_session(load({"noise.seed": 4}))
    assert party_noise(other, "curator").draw(request).tolist() != curator


def test_secure_noise_comes_from_no_session_file() -> None:
    request = Draw("uniform", 1.0, 4)
    one, other = (party_noise(session(), "curator") for _ in range(2))
    assert isinstance(one, SecureNoise)
    assert one.draw(request).tolist() != other.draw(request).tolist()


def test_keys_are_the_partys_own_where_noise_is_secure_and_the_files_where_it_is_simulated() -> None:
    own = Identity(bytes(range(32)))
    assert sealing_identity(session(), None, "alpha") is None
    simulated = session(secure=False)
    made = sealing_identity(simulated, None, "alpha")
    assert made is not None
    assert made.public == simulated.public_identity("alpha")
    assert made.public != own.public
    assert session().public_identity("alpha").text == KEYS["alpha"]
    assert simulated.public_identity("alpha").text != KEYS["alpha"]


@pytest.mark.parametrize("secure", [True, False])
def test_a_key_is_read_once_however_many_messages_are_checked_with_it(
    secure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A curator of thousands of owners checks a signature of each in every round."""
    of_many = session(secure=secure)
    first = [of_many.public_identity(party) for party in PARTIES]

    def never(*_: object) -> None:
        raise AssertionError("a key was read a second time")

    monkeypatch.setattr("hushbid.protocol.session.session.roster_identity", never)
    monkeypatch.setattr("hushbid.protocol.session.session.simulated_identity", never)
    assert all(of_many.public_identity(party) is each for party, each in zip(PARTIES, first, strict=True))
    with pytest.raises(AssertionError, match="a second time"):
        session(secure=secure).public_identity(PARTIES[0])


def test_a_party_signs_the_head_of_its_transcript_with_the_key_that_the_session_knows_it_by() -> None:
    simulated = session(secure=False)
    signer = head_signer(simulated, "alpha", sealing_identity(simulated, None, "alpha"))
    assert signer is not None
    head = bytes(range(32))
    statement = head_statement(simulated.identifier, "alpha", head)
    assert verify_signature(statement, signer(head), simulated.public_identity("alpha").verify)
    assert not verify_signature(statement, signer(bytes(32)), simulated.public_identity("alpha").verify)


def test_a_party_without_a_key_signs_nothing() -> None:
    """Such a party is in an insecure session with secure noise."""
    assert head_signer(session(), "alpha", sealing_identity(session(), None, "alpha")) is None


def test_a_roster_key_that_is_none_is_refused_by_the_party_whose_it_is() -> None:
    with pytest.raises(ConfigError, match="consumer") as caught:
        open_session(load(SECURE | {"roster.consumer": "a" * 40}))
    assert caught.value.advice


def test_two_roster_keys_that_are_one_but_for_a_sign_are_refused() -> None:
    """They would be one key for CURVE, and for sealing."""
    twin = bytearray(PublicIdentity(KEYS["alpha"]).raw)
    twin[31] ^= 0x80
    owners = {
        "alpha": KEYS["alpha"],
        "beta": PublicIdentity.from_bytes(bytes(twin)).text,
        "gamma": KEYS["gamma"],
    }
    with pytest.raises(ConfigError, match="keys of alpha and beta differ only in the sign"):
        open_session(load(SECURE | {"roster.owners": owners}))


# -- one process for a state directory -----------------------------------------------------------------


def test_a_state_directory_is_one_process_s_at_a_time(tmp_path: Path) -> None:
    state = tmp_path / "deep" / "state"
    for _ in range(2):
        with claimed(state, "alpha"), claimed(state, "beta"):  # of another party it is not
            another = pytest.raises(ConfigError, match=r"alpha\.transcript: another process")
            with another as caught, claimed(state, "alpha"):
                pass
            assert "This party runs already" in caught.value.advice
        assert list(tmp_path.iterdir()) == [], "nothing was made there but for the claim"
    (state / "kept").mkdir(parents=True)
    (state / ".alpha.lock").touch()  # of a process that was killed
    with claimed(state, "alpha"):
        pass
    assert [path.name for path in state.iterdir()] == ["kept"]


def test_a_claim_leaves_a_directory_that_cannot_be_made_to_others(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no directory")
    with claimed(tmp_path / "state", "alpha"):
        pass
    assert (tmp_path / "state").read_text() == "no directory"


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    state, file, table = tmp_path / "state", session().file, pa.table({"a": [2.0]})
    own: dict[str, Any] = {"key": None, "state": state, "ledger": tmp_path / "ledger"}

    class Buyer(ConsumerRole):
        def files(self) -> Any:
            validation, seed_set = state / "validation.parquet", state / "seed_set.parquet"
            return file, ConsumerFile.model_construct(None, validation=validation, seed_set=seed_set, **own)

        def _before(self, *_: object) -> None:
            raise AssertionError("it was rehearsed")

    sold = OwnerFile(name="alpha", data=state / "data.parquet", **own)
    owner, consumer = Owner(data=table), Buyer("", validation=table)
    for name, start in (("alpha", lambda: owner.run_as(file, sold)), ("consumer", consumer.run)):
        with claimed(state, name):
            (state / "data.parquet").write_bytes(b"kept")
            (state / "validation.parquet").write_bytes(b"kept")
            before = {path: path.read_bytes() for path in state.iterdir()}
            with pytest.raises(ConfigError, match="another process records"):
                start()
            assert {path: path.read_bytes() for path in state.iterdir()} == before
