"""Invitations: their content, their checks, and an owner's use of one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from hushbid.owner.role import Owner
from hushbid.protocol.config.invitation import Invitation, invitation
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.config.signed import signed
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.files.expiry import check_in_force, expiry
from hushbid.protocol.runtime.files.signed_files import (
    GivenSession,
    check_begun_or_in_force,
    read_invitation,
    read_session,
)
from hushbid.protocol.runtime.keys import new_keypair
from tests.support.session_files import changed

CURATOR, CONSUMER, NORTH, STRANGER = (new_keypair() for _ in range(4))


def session(changes: dict[str, Any] | None = None) -> SessionFile:
    """A private session of one owner."""
    values = changed(
        {
            "session.allow_nonprivate": False,
            "features.seed": None,
            "features.lower": [0, -1.5, 0.1],
            "target": {"mechanism": "filtered-gaussian", "epsilon": 3},
            "summary": {"mechanism": "filtered-gaussian", "epsilon": 3.0},
            "acquisition": {"rule": "sealed"},
            "noise": {"source": "secure"},
            "network": {"address": "tcp://curator.example.org:5790"},
            "roster": {
                "curator": CURATOR.public.text,
                "consumer": CONSUMER.public.text,
                "owners": {"north": NORTH.public.text},
            },
            **(changes or {}),
        }
    )
    return SessionFile.model_validate(values)


def written(place: Path, values: dict[str, Any], name: str = "north") -> Path:
    path = place / f"{name}.invitation"
    path.write_text(tomli_w.dumps(values), encoding="utf-8")
    return path


def test_an_invitation_is_the_session_to_the_last_digit_of_its_digest(tmp_path: Path) -> None:
    path = written(tmp_path, invitation(session(), "north", CURATOR))
    read = read_invitation(path)
    assert read.configuration == session()
    assert read.configuration.digest() == session().digest()
    assert read.curator_fingerprint == CURATOR.public.fingerprint
    assert read_session(None, path) == GivenSession(session(), "north", None)
    for pair in (CURATOR, CONSUMER, NORTH):
        assert pair.secret not in path.read_text(encoding="utf-8")


def test_the_address_is_the_party_s_own_and_the_session_the_same(tmp_path: Path) -> None:
    elsewhere = session({"network": {"address": "tcp://10.0.0.7:5790"}})
    read = read_invitation(written(tmp_path, invitation(elsewhere, "north", CURATOR)))
    assert read.configuration.network.address == "tcp://10.0.0.7:5790"
    assert read.digest == session().digest().hex()


def test_a_key_that_a_later_version_gives_a_default_to_does_not_spoil_the_signature(tmp_path: Path) -> None:
    values = invitation(session(), "north", CURATOR)
    del values["configuration"]["timeouts"]  # an earlier version did not know it
    values = signed(Invitation, {key: value for key, value in values.items() if key != "signature"}, CURATOR)
    assert read_invitation(written(tmp_path, values)).configuration == session()


def forged(values: dict[str, Any]) -> None:
    """A stranger's own invitation, with the curator's key still in it."""
    values["configuration"]["roster"]["consumer"] = STRANGER.public.text
    values["signature"] = signed(Invitation, values, STRANGER)["signature"]


FORGERIES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "points": (lambda v: v["configuration"]["session"].update(points=7), "signature"),
    "address": (lambda v: v["configuration"]["network"].update(address="tcp://10.0.0.9:1"), "signature"),
    "consumer": (lambda v: v["configuration"]["roster"].update(consumer=STRANGER.public.text), "signature"),
    "a stranger's signature": (forged, "signature"),
    "a stranger's key": (lambda v: v["configuration"]["roster"].update(curator=STRANGER.public.text), "sign"),
    "digest": (lambda v: v.update(digest="0" * 64), "signature"),
    "fingerprint": (lambda v: v.update(curator_fingerprint="AAAA-AAAA-AAAA-AAAA"), "signature"),
    "no signature": (lambda v: v.update(signature=""), "signature"),
    "party": (lambda v: v.update(party="south"), "no owner named south"),
    "no key at all": (lambda v: v["configuration"]["roster"].update(curator="x" * 40), "roster gives to cur"),
    "version": (lambda v: v.update(version=2), "not of version 1"),
    "format": (lambda v: v.update(format="hushbid-key-request"), "not a file of the format"),
    "unknown key": (lambda v: v.update(comment="x"), "comment: unknown key"),
    "a wrong session": (lambda v: v["configuration"].pop("target"), "configuration.target: is missing"),
}


@pytest.mark.parametrize(("change", "says"), FORGERIES.values(), ids=list(FORGERIES))
def test_whatever_was_changed_is_found(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], says: str
) -> None:
    values = copy.deepcopy(invitation(session(), "north", CURATOR))
    change(values)
    path = written(tmp_path, values)
    with pytest.raises(ConfigError, match=says) as caught:
        read_invitation(path)
    assert str(path) in caught.value.what or says == "roster gives to cur"
    assert caught.value.advice


@pytest.mark.parametrize(
    ("change", "says"),
    [({"digest": "0" * 64}, "its digest"), ({"curator_fingerprint": "AAAA-AAAA-AAAA-AAAA"}, "fingerprint")],
)
def test_what_the_curator_itself_signed_must_not_contradict_itself(
    tmp_path: Path, change: dict[str, str], says: str
) -> None:
    values = invitation(session(), "north", CURATOR) | change
    values = signed(Invitation, {key: value for key, value in values.items() if key != "signature"}, CURATOR)
    with pytest.raises(ConfigError, match=says):
        read_invitation(written(tmp_path, values))


def test_only_the_curator_invites_and_only_whom_the_roster_has() -> None:
    with pytest.raises(ConfigError, match="not the one that the roster gives to the curator"):
        invitation(session(), "north", NORTH)
    with pytest.raises(ConfigError, match="no owner named south"):
        invitation(session(), "south", CURATOR)
    insecure = session(
        {
            "network": {"address": "tcp://127.0.0.1:5790", "insecure": True},
            "roster": {"owners": {"north": ""}},
        }
    )
    with pytest.raises(ConfigError, match="insecure"):
        invitation(insecure, "north", CURATOR)


# -- expiry ----------------------------------------------------------------------------------------------

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def test_an_expiry_is_in_utc_and_counts_days_from_now() -> None:
    assert expiry(30, now=NOW) == "2026-03-31T12:00:00Z"
    assert expiry(1, now=NOW.astimezone(timezone(timedelta(hours=9)))) == "2026-03-02T12:00:00Z"


def test_a_file_is_in_force_up_to_its_expiry_and_for_ever_without_one() -> None:
    check_in_force("2026-03-01T12:00:00Z", where="f", now=NOW)
    check_in_force(None, where="f", now=NOW)
    with pytest.raises(ConfigError, match="f: it expired at 2026-03-01T11:59:59Z") as caught:
        check_in_force("2026-03-01T11:59:59Z", where="f", now=NOW)
    assert "2026-03-01T12:00:00Z on this machine" in caught.value.what
    assert "new invitation" in caught.value.advice


def test_the_signature_covers_the_expiry(tmp_path: Path) -> None:
    values = invitation(session(), "north", CURATOR, expires=expiry(30, now=NOW))
    assert read_invitation(written(tmp_path, values)).expires == "2026-03-31T12:00:00Z"
    longer = values | {"expires": "2027-03-31T12:00:00Z"}
    without = {key: value for key, value in values.items() if key != "expires"}
    for changed_values in (longer, without):
        with pytest.raises(ConfigError, match="signature"):
            read_invitation(written(tmp_path, changed_values))


@pytest.mark.parametrize(
    "text", ["tomorrow", "2026-03-31", "2026-03-31T12:00:00+01:00", "2026-03-31T12:00:00Z\n"]
)
def test_an_expiry_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    values = invitation(session(), "north", CURATOR, expires=text)
    with pytest.raises(ConfigError, match="expires"):
        read_invitation(written(tmp_path, values))


def test_an_expired_invitation_is_still_read_and_begins_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, invitation(session(), "north", CURATOR, expires=expiry(-1)))
    given = read_session(None, path)
    assert given.file == session()
    owner = Owner(invitation=path, data=tmp_path / "data.csv")
    with pytest.raises(ConfigError, match=r"north.invitation: it expired at"):
        owner.files()
    state = tmp_path / "north-digits"
    state.mkdir()
    transcript = state / "north.transcript"
    transcript.touch()
    with pytest.raises(ConfigError, match="expired"):
        owner.files()
    transcript.write_bytes(b"begun")
    assert owner.files()[0] == session()


def test_who_has_begun_goes_on_after_the_expiry(tmp_path: Path) -> None:
    given = GivenSession(session(), "north", "2026-02-01T00:00:00Z")
    with pytest.raises(ConfigError, match="expired"):
        check_begun_or_in_force(given, tmp_path / "i", tmp_path / "t", now=NOW)
    (tmp_path / "t").write_bytes(b"begun")
    check_begun_or_in_force(given, tmp_path / "i", tmp_path / "t", now=NOW)


# -- an owner that is invited ----------------------------------------------------------------------------


@pytest.fixture
def invited(tmp_path: Path) -> Path:
    return written(tmp_path, invitation(session(), "north", CURATOR))


def test_an_owner_needs_the_invitation_and_its_data(invited: Path) -> None:
    place = invited.parent
    found, file = Owner(invitation=invited, data=place / "data.csv").files()
    assert found == session()
    assert (file.name, file.data) == ("north", place / "data.csv")
    assert (file.key, file.state) == (place / "north.key", place / "north-digits")
    assert (file.ledger, file.budget, file.columns.features) == (None, None, None)


def test_options_say_what_else_is_the_owner_s_own(invited: Path, tmp_path: Path) -> None:
    options = Owner(
        invitation=invited,
        data=tmp_path / "data.csv",
        key=tmp_path / "k",
        state=tmp_path / "s",
        ledger=tmp_path / "l",
        features="a, b,c",
        label="y",
        identifier="id",
        outside="drop",
        budget_epsilon=2.0,
    )
    file = options.files()[1]
    assert (file.key, file.state, file.ledger) == (tmp_path / "k", tmp_path / "s", tmp_path / "l")
    named = {"features": ["a", "b", "c"], "label": "y", "identifier": "id", "outside": "drop"}
    assert file.columns.model_dump(exclude_defaults=True) == named
    assert file.budget is not None
    assert file.budget.epsilon == 2.0


def test_an_option_goes_before_the_owner_s_file(invited: Path, tmp_path: Path) -> None:
    config = tmp_path / "owner.toml"
    config.write_text('name = "north"\nstate = "s"\ndata = "d.csv"\ncolumns = {label = "y"}\n')
    file = Owner(invitation=invited, config=config, state=tmp_path / "t", identifier="id").files()[1]
    assert (file.data, file.state) == (tmp_path / "d.csv", tmp_path / "t")
    assert (file.columns.label, file.columns.identifier) == ("y", "id")


def test_what_does_not_go_together_is_refused(invited: Path, tmp_path: Path) -> None:
    config = tmp_path / "owner.toml"
    config.write_text('name = "south"\nstate = "s"\ndata = "d.csv"\n')
    consumers = written(tmp_path, invitation(session(), "consumer", CURATOR), "consumer")
    data = tmp_path / "d.csv"
    cases = [
        (Owner(), "--session or --invitation"),
        (Owner(session=invited, invitation=invited), "--session or --invitation"),
        (Owner(invitation=invited), "--data"),
        (Owner(invitation=invited, config=config), "is for north"),
        (Owner(invitation=consumers, data=data), "is for the consumer"),
        (Owner(invitation=invited, data=data, budget_epsilon=-1.0), "--budget-epsilon: epsilon"),
    ]
    for options, says in cases:
        with pytest.raises(ConfigError, match=says) as caught:
            options.files()
        assert caught.value.advice


def test_a_session_file_alone_needs_the_owner_s_own(tmp_path: Path) -> None:
    path = tmp_path / "session.toml"
    path.write_text(tomli_w.dumps(session().model_dump(mode="json", exclude_none=True)), encoding="utf-8")
    assert read_session(path, None) == GivenSession(session())
    with pytest.raises(ConfigError, match="--config"):
        Owner(session=path, data=tmp_path / "d.csv").files()
