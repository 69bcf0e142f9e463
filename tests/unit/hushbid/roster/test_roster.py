"""Keys are requested, approved and revoked: requests, and the session file that a person keeps."""

from __future__ import annotations

import contextlib
import errno
import json
import stat
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import typer
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.protocol import __version__
from hushbid.protocol.config.key_request import Role, key_request
from hushbid.protocol.config.party import CuratorFile
from hushbid.protocol.crypto.identity import PublicIdentity
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.files.signed_files import read_key_request
from hushbid.protocol.runtime.keys import KeyPair, new_keypair
from hushbid.roster.changes import approve, parties, revoke
from hushbid.roster.file import RosterFile
from hushbid.roster.shapes import Approved
from tests.conftest import ROOT

NORTH, SOUTH, CURATOR, CONSUMER = (new_keypair() for _ in range(4))
KEYS: dict[str, KeyPair] = {"north": NORTH, "south": SOUTH, "curator": CURATOR, "consumer": CONSUMER}


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """The shipped example, whose roster is empty."""
    text = (ROOT / "configs" / "separate" / "session.toml").read_text(encoding="utf-8")
    (tmp_path / "session.toml").write_text(text, encoding="utf-8")
    return tmp_path / "session.toml"


def request(
    place: Path, name: str, key: KeyPair | None = None, changes: dict[str, Any] | None = None
) -> Path:
    """A party's request, with values changed after signing."""
    role: Role = "owner" if name not in ("curator", "consumer") else name  # type: ignore[assignment]
    values = key_request(name, role, key or KEYS[name]) | (changes or {})
    path = place / f"{name}.request"
    path.write_text(tomli_w.dumps(values), encoding="utf-8")
    return path


def approved(session: Path, *requests: Path, replace: bool = False) -> Approved:
    return approve(session, requests, fingerprints=None, compare=False, replace=replace)


def all_approved(session: Path) -> Approved:
    return approved(session, *(request(session.parent, name) for name in KEYS))


# -- requests --------------------------------------------------------------------------------------------


def test_a_request_has_the_public_key_alone(tmp_path: Path) -> None:
    path = request(tmp_path, "north")
    assert NORTH.secret not in path.read_text()
    read = read_key_request(path)
    assert (read.name, read.role, read.identity) == ("north", "owner", NORTH.public)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "northern"}, "signature is not one of the key"),
        ({"public_key": SOUTH.public.text}, "signature is not one of the key"),
        ({"software": "9"}, "signature is not one of the key"),
        ({"role": "consumer"}, "signature is not one of the key"),
        ({"signature": "no signature"}, "signature is not one of the key"),
        ({"signature": ""}, "signature is not one of the key"),
        ({"public_key": "x" * 40}, "no public key"),
        ({"name": "North"}, "not a name"),
        ({"name": "consumer"}, "belongs to another role"),
        ({"version": 2}, "not of version 1"),
        ({"format": "hushbid-invitation"}, 'not a file of the format "hushbid-key-request"'),
        ({"comment": "hello"}, "unknown key"),
    ],
)
def test_a_request_that_was_changed_or_is_none_is_refused(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    path = request(tmp_path, "north", changes=changes)
    with pytest.raises(ConfigError, match=says) as caught:
        read_key_request(path)
    assert caught.value.advice


def test_a_date_where_a_text_belongs_is_a_refusal_and_no_bug(tmp_path: Path) -> None:
    path = request(tmp_path, "north")
    path.write_text(path.read_text().replace(f'software = "{__version__}"', "software = 2026-01-01"))
    with pytest.raises(ConfigError, match="software"):
        read_key_request(path)


@pytest.mark.parametrize(("name", "role"), [("consumer", "owner"), ("curator", "consumer")])
def test_the_names_of_roles_are_theirs(name: str, role: Role) -> None:
    with pytest.raises(ConfigError, match="another role"):
        key_request(name, role, NORTH)


NOW = datetime(2026, 3, 1, tzinfo=UTC)


def request_of(place: Path, **said: str) -> Path:
    path = place / "north.request"
    path.write_text(tomli_w.dumps(key_request("north", "owner", NORTH, **said)), encoding="utf-8")
    return path


def test_a_request_that_has_expired_puts_nothing_on_the_roster(session: Path) -> None:
    before = session.read_text(encoding="utf-8")
    path = request_of(session.parent, expires="2026-02-28T23:59:59Z")
    with pytest.raises(ConfigError, match=r"north.request: it expired at 2026-02-28T23:59:59Z") as caught:
        approve(session, [path], fingerprints=None, compare=False, replace=False, now=NOW)
    assert "keys request" in caught.value.advice
    assert session.read_text(encoding="utf-8") == before


def test_a_request_is_approved_for_the_session_that_it_names_alone(session: Path) -> None:
    path = request_of(session.parent, session="another")
    with pytest.raises(ConfigError, match="the session another, and this is") as caught:
        approved(session, path)
    name = RosterFile(session).draft.session.name
    assert f"--session-name {name}" in caught.value.advice
    path = request_of(session.parent, session=name, expires="2026-03-01T00:00:00Z")
    done = approve(session, [path], fingerprints=None, compare=False, replace=False, now=NOW)
    assert done["approved"][0]["name"] == "north"


def test_the_signature_of_a_request_covers_its_session_and_its_expiry(session: Path) -> None:
    values = key_request("north", "owner", NORTH, session="one", expires="2026-03-01T00:00:00Z")
    path = session.parent / "north.request"
    for change in ({"session": "two"}, {"expires": "2027-03-01T00:00:00Z"}):
        path.write_text(tomli_w.dumps(values | change), encoding="utf-8")
        with pytest.raises(ConfigError, match="signature"):
            read_key_request(path)


def test_keys_request_says_for_which_session_and_until_when(tmp_path: Path) -> None:
    runner = CliRunner()
    with contextlib.chdir(tmp_path):
        runner.invoke(app, ["keys", "new", "north"])
        for options in ([], ["--session-name", "s1", "--days", "3"]):
            out = tmp_path / f"{len(options)}.request"
            done = runner.invoke(
                app, ["keys", "request", "north", "--role", "owner", "--out", str(out), "--json", *options]
            )
            said, read = json.loads(done.stdout), read_key_request(out)
            assert (said["session"], said["expires"]) == (read.session, read.expires)
            assert read.session == ("s1" if options else None)
            until = datetime.fromisoformat(said["expires"]) - datetime.now(UTC)
            assert round(until.total_seconds() / 86400, 2) == (3 if options else 30)


# -- approval --------------------------------------------------------------------------------------------


def test_approval_fills_the_roster_in_and_touches_nothing_else(session: Path) -> None:
    before = session.read_text(encoding="utf-8")
    session.chmod(0o640)
    done = all_approved(session)
    after = session.read_text(encoding="utf-8")
    for name, pair in KEYS.items():
        after = after.replace(f'{name} = "{pair.public.text}"', f'{name} = ""')
    assert after == before
    assert stat.S_IMODE(session.stat().st_mode) == 0o640
    assert done["problem"] is None
    assert done["digest"] == parties(session)["digest"]
    assert [path.name for path in session.parent.iterdir() if "session" in path.name] == ["session.toml"]


def test_keys_come_one_by_one_and_the_list_says_what_is_missing(session: Path) -> None:
    for count, name in enumerate(KEYS):
        found = {party["name"]: party for party in parties(session)["parties"]}
        assert [each for each in KEYS if found[each]["missing"] is None] == list(KEYS)[:count]
        assert (parties(session)["digest"], parties(session)["problem"] is None) == (None, False)
        approved(session, request(session.parent, name))
    assert parties(session)["problem"] is None
    assert {party["fingerprint"] for party in parties(session)["parties"]} == {
        pair.public.fingerprint for pair in KEYS.values()
    }


def test_an_owner_that_the_file_does_not_name_gets_a_place(session: Path) -> None:
    all_approved(session)
    approved(session, request(session.parent, "east", new_keypair()))
    assert [place.party for place in RosterFile(session).places()][2:] == ["east", "north", "south"]


def test_a_file_without_a_roster_gets_one(session: Path) -> None:
    session.write_text(session.read_text(encoding="utf-8").partition("[roster]")[0], encoding="utf-8")
    assert all_approved(session)["problem"] is None


def test_fewer_owners_than_the_session_needs_are_a_problem_and_no_refusal(session: Path) -> None:
    session.write_text(session.read_text(encoding="utf-8").partition("[roster]")[0], encoding="utf-8")
    done = approved(session, *(request(session.parent, name) for name in ("curator", "consumer", "north")))
    assert "min_owners" in (done["problem"] or "")
    assert approved(session, request(session.parent, "south"))["problem"] is None


def test_another_key_takes_the_place_of_one_only_if_that_is_said(session: Path) -> None:
    first = all_approved(session)
    other = request(session.parent, "north", new_keypair())
    before = session.read_bytes()
    with pytest.raises(ConfigError, match="another key already") as caught:
        approved(session, other)
    assert NORTH.public.fingerprint in caught.value.what
    assert session.read_bytes() == before
    done = approved(session, other, replace=True)
    assert done["digest_before"] == first["digest"] != done["digest"]


def negated(pair: KeyPair) -> PublicIdentity:
    """The key that maps to the same key on Curve25519."""
    raw = pair.public.raw
    return PublicIdentity.from_bytes(raw[:31] + bytes([raw[31] ^ 0x80]))


def test_two_parties_never_have_one_key_nor_one_but_for_its_sign(session: Path) -> None:
    all_approved(session)
    with pytest.raises(ConfigError, match="north has this key already, and east asks for it too"):
        approved(session, request(session.parent, "east", NORTH), replace=True)
    with pytest.raises(ConfigError, match="north has this key already"):
        RosterFile(session).put("east", negated(NORTH), replace=True)


def test_none_of_several_requests_is_approved_if_one_is_refused(session: Path) -> None:
    before = session.read_bytes()
    with pytest.raises(ConfigError, match="this key already"):
        approved(session, request(session.parent, "north"), request(session.parent, "east", NORTH))
    assert session.read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("points = 500", "points = 0", "points"),
        ("points = 500", "pionts = 500", "did you mean 'points'"),
        ('curator = ""', "curator = 7", "roster.curator"),
        ("[roster]", "[roster", "not TOML"),
    ],
)
def test_what_else_is_wrong_in_the_file_is_found_before_a_key_is_written(
    session: Path, old: str, new: str, says: str
) -> None:
    session.write_text(session.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigError, match=says):
        approved(session, request(session.parent, "north"))


def test_what_was_read_out_is_compared_however_it_was_typed(session: Path) -> None:
    typed = NORTH.public.fingerprint.lower().replace("-", " ")
    confirmed(session, [request(session.parent, "north")], f"north={typed}")
    with pytest.raises(ConfigError, match="not the fingerprint that was given for south"):
        confirmed(session, [request(session.parent, "south")], f"south={typed}")


def confirmed(session: Path, requests: list[Path], *fingerprints: str) -> Approved:
    return approve(session, requests, fingerprints=fingerprints, compare=True, replace=False)


def posing(session: Path) -> Path:
    """South's request for the consumer's place, by south's own key."""
    path = session.with_name("posing.request")
    path.write_text(tomli_w.dumps(key_request("south", "consumer", SOUTH)), encoding="utf-8")
    return path


def test_an_owner_that_asks_for_the_consumers_place_does_not_get_it_by_its_fingerprint(session: Path) -> None:
    before, mine = session.read_bytes(), SOUTH.public.fingerprint
    with pytest.raises(ConfigError, match="Role consumer: south asks to be the consumer") as caught:
        confirmed(session, [posing(session)], f"south={mine}")
    assert f"--fingerprint consumer={mine}" in caught.value.advice
    with pytest.raises(ConfigError, match="not the fingerprint that was given for consumer"):
        confirmed(session, [posing(session)], f"consumer={CONSUMER.public.fingerprint}", f"south={mine}")
    assert session.read_bytes() == before
    done = confirmed(session, [posing(session)], f"consumer={mine}")
    assert [(party["name"], party["asked_by"]) for party in done["approved"]] == [("consumer", "south")]


def test_a_fingerprint_confirms_one_place_alone(session: Path) -> None:
    requests = [request(session.parent, name) for name in ("north", "south")]
    crossed = [f"north={SOUTH.public.fingerprint}", f"south={NORTH.public.fingerprint}"]
    with pytest.raises(ConfigError, match="not the fingerprint that was given for north"):
        confirmed(session, requests, *crossed)


@pytest.mark.parametrize(
    ("fingerprints", "says", "advice"),
    [
        ([NORTH.public.fingerprint], "does not say whose", f"NAME={NORTH.public.fingerprint}"),
        ([f"north={NORTH.public.fingerprint}", "north=AAAA"], "another one", "read out"),
        ([f"north={NORTH.public.fingerprint}", "nroth=AAAA"], "given for nroth, and no request", "name"),
        ([], "no fingerprint was given for north", f"--fingerprint north={NORTH.public.fingerprint}"),
    ],
    ids=["bare", "two", "no request", "none"],
)
def test_what_does_not_say_which_place_is_filled_is_refused(
    session: Path, fingerprints: list[str], says: str, advice: str
) -> None:
    before = session.read_bytes()
    with pytest.raises(ConfigError, match=says) as caught:
        confirmed(session, [request(session.parent, "north")], *fingerprints)
    assert advice in caught.value.advice
    assert session.read_bytes() == before


class Terminal:
    """A person at stdin."""

    def __init__(self, there: bool) -> None:
        self.there = there

    def isatty(self) -> bool:
        return self.there


@pytest.mark.parametrize("confirms", [True, False])
def test_without_a_fingerprint_a_person_is_asked(
    session: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], confirms: bool
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(there=True))
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: confirms)
    path = request(session.parent, "north")
    if confirms:
        approve(session, [path], fingerprints=None, compare=True, replace=False)
    else:
        with pytest.raises(ConfigError, match="was not approved"):
            approve(session, [path], fingerprints=None, compare=True, replace=False)
    said = capsys.readouterr().err
    assert said.startswith(
        f"Role owner: north asks to be the owner north, by the key {NORTH.public.fingerprint}"
    )
    assert (NORTH.public.text in session.read_text(encoding="utf-8")) is confirms


def test_who_asks_to_be_the_consumer_is_shown_as_that(
    session: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = []
    monkeypatch.setattr("sys.stdin", Terminal(there=True))
    monkeypatch.setattr(typer, "confirm", lambda question, **_: questions.append(question))
    with pytest.raises(ConfigError, match="was not approved"):
        approve(session, [posing(session)], fingerprints=None, compare=True, replace=False)
    assert questions == ["Is south to be the consumer, and did it read this fingerprint to you?"]
    said = capsys.readouterr().err
    assert said.startswith("Role consumer: south asks to be the consumer, by the key ")
    assert "seals its points" in said


def test_where_nobody_can_be_asked_the_fingerprint_must_be_given(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(there=False))
    requests = [request(session.parent, "north"), posing(session)]
    with pytest.raises(ConfigError, match="Nobody is here") as caught:
        approve(session, requests, fingerprints=None, compare=True, replace=False)
    assert "--fingerprint north=FINGERPRINT --fingerprint consumer=FINGERPRINT" in caught.value.advice
    assert NORTH.public.fingerprint in caught.value.what
    assert "in a terminal" in caught.value.advice


def test_who_approves_or_revokes_at_the_same_time_loses_nothing(session: Path) -> None:
    all_approved(session)
    owners = [f"east-{number}" for number in range(6)]
    made = {name: str(request(session.parent, name, new_keypair())) for name in owners}
    # Processes are forked from one that has imported what they take, and begin when the pipe is closed.
    changes = """if 1:
        import json, os, sys
        from pathlib import Path
        from hushbid.roster.changes import approve, revoke
        session, shares = Path(sys.argv[1]), json.loads(sys.argv[2])
        begun, begin = os.pipe()
        children = []
        for share in shares:
            if child := os.fork():
                children.append(child)
                continue
            os.close(begin)
            os.read(begun, 1)
            for change in share:
                if change.endswith(".request"):
                    approve(session, [Path(change)], fingerprints=None, compare=False, replace=False)
                else:
                    revoke(change, session, None)
            sys.exit(0)
        os.close(begin)
        sys.exit(json.dumps([os.waitpid(child, 0)[1] for child in children]))
    """
    shares = [*([made[name] for name in owners[first::2]] for first in range(2)), ["south"]]
    command = [sys.executable, "-c", changes, str(session), json.dumps(shares)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert ended.stderr == "[0, 0, 0]\n"
    assert [place.party for place in RosterFile(session).places()][2:] == sorted([*owners, "north"])


def test_a_file_whose_directory_cannot_be_locked_is_left_alone(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    before = session.read_bytes()
    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(ConfigError, match="at the same time: No locks available"):
        approved(session, request(session.parent, "north"))
    assert session.read_bytes() == before


def test_a_link_is_followed_and_stays_one(session: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(session)
    all_approved(session)
    approved(link, request(tmp_path, "east", new_keypair()))
    assert link.is_symlink()
    assert "east" in tomllib.loads(session.read_text(encoding="utf-8"))["roster"]["owners"]


# -- revocation ------------------------------------------------------------------------------------------


def test_before_a_session_an_owner_is_taken_off_and_the_digest_is_another(session: Path) -> None:
    approved(session, *(request(session.parent, name) for name in KEYS))
    approved(session, request(session.parent, "east", new_keypair()))
    before = parties(session)["digest"]
    assert "new invitation" in revoke("south", session, None)["next"]
    assert "south" not in tomllib.loads(session.read_text(encoding="utf-8"))["roster"]["owners"]
    assert parties(session)["digest"] not in (None, before)


def test_the_consumer_keeps_its_place_and_loses_its_key(session: Path) -> None:
    all_approved(session)
    revoke("consumer", session, None)
    assert parties(session)["problem"] == "Still without a key: consumer."


def test_in_a_session_that_runs_the_curators_file_names_who_is_shut_out(session: Path) -> None:
    all_approved(session)
    config = session.with_name("curator.toml")
    config.write_text('# ours\nkey = "curator.key"   # 0600\nstate = "state"\n', encoding="utf-8")
    before = session.read_bytes()
    for name in ("north", "south", "north"):
        assert "start it again" in revoke(name, session, config)["next"]
    assert session.read_bytes() == before
    text = config.read_text(encoding="utf-8")
    assert text.startswith('# ours\nkey = "curator.key"   # 0600\nstate = "state"\n')
    assert CuratorFile.model_validate(tomllib.loads(text)).revoked == ["north", "south"]


@pytest.mark.parametrize("name", ["curator", "consumer"])
def test_no_session_goes_on_without_its_curator_or_consumer(session: Path, name: str) -> None:
    all_approved(session)
    config = session.with_name("curator.toml")
    config.write_text('state = "state"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=f"without its {name}"):
        revoke(name, session, config)


def test_nobody_is_revoked_who_is_not_there(session: Path) -> None:
    with pytest.raises(ConfigError, match="east is not on the roster"):
        revoke("east", session, None)


# -- what is wrong with a file, whichever keys come --------------------------------------------------------


WRONG = {
    "a release that there is none of": ('mechanism = "filtered-gaussian"', 'mechanism = "magic"', "magic"),
    "no room for any point": ("box_bytes = 320", "box_bytes = 1", "box_bytes"),
}


@pytest.mark.parametrize(("old", "new", "says"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("keys", [False, True], ids=["without keys", "with keys"])
def test_a_list_of_a_file_that_no_party_would_take_ends_with_4_and_says_why(
    session: Path, old: str, new: str, says: str, keys: bool
) -> None:
    if keys:
        all_approved(session)
    assert old in session.read_text()
    session.write_text(session.read_text().replace(old, new, 1))
    ended = CliRunner().invoke(app, ["keys", "list", "--session", str(session)])
    assert ended.exit_code == 4
    assert says in ended.stdout
    assert "north" in ended.stdout, "the list is there nevertheless"


def test_a_place_with_something_else_than_a_key_is_wrong(session: Path) -> None:
    tables = tomllib.loads(session.read_text())
    tables["roster"]["owners"]["north"] = "!" * 40
    session.write_text(tomli_w.dumps(tables))
    assert parties(session)["wrong"] == "The value for north is no key."


def test_keys_that_are_still_missing_are_nothing_wrong(session: Path) -> None:
    ended = CliRunner().invoke(app, ["keys", "list", "--session", str(session)])
    assert (ended.exit_code, parties(session)["wrong"]) == (0, None)
    all_approved(session)
    assert parties(session)["wrong"] is None
