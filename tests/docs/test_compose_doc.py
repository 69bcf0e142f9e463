"""docs/deploy.md says of docker-compose.yml, the Dockerfile and .env what is in them."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

import pytest

from hushbid.cluster import containers as setup
from hushbid.protocol.errors import ExitCode, Restart
from tests.conftest import ROOT
from tests.docs.pages import Page

COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
SECRETS = (ROOT / "docker-compose.secrets.yml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PAGE = Page("docs/deploy.md")
OWNERS = [f"owner-{number}" for number in range(1, 11)]
PARTIES = ["curator", "consumer", *OWNERS]


def block(text: str, name: str) -> str:
    """A service of a compose file, or another key of its second level."""
    found = re.search(rf"^  {re.escape(name)}:(.*?)(?=^\S|^  \S|\Z)", text, re.M | re.S)
    assert found, f"no {name}"
    return found[1]


def mounts(service: str) -> dict[str, str]:
    """Volume, or directory of the host → where and how a service has it."""
    listed = re.findall(r'^      - "?(\$\{.*?\}|[\w./-]+):([\w/:-]+)', block(COMPOSE, service), re.M)
    return dict(listed)


@pytest.mark.parametrize("party", PARTIES)
def test_a_party_mounts_its_own_volumes_and_the_public_file(party: str) -> None:
    assert mounts(party) == {
        "session": "/party/session:ro",
        f"{party}-key": "/party/key:ro",
        f"{party}-data": "/party/data",
        f"{party}-state": "/party/state",
    }
    table = {
        row[0].strip("`"): row[-1]
        for row in PAGE.rows("Services and volumes")
        if row[0].startswith("`/party/")
    }
    assert {
        path.removesuffix(":ro"): "no" if path.endswith(":ro") else "yes" for path in mounts(party).values()
    } == table


def test_the_setup_mounts_all_of_them_where_the_image_has_a_place_for_each() -> None:
    own = {
        f"{party}-{kind}": f"/parties/{party}/{kind}"
        for party in PARTIES
        for kind in ("key", "data", "state")
    }
    assert mounts("setup") == own | {"session": "/party/session", "${HUSHBID_DATA:-./configs}": "/data:ro"}
    declared = re.findall(r"^  ([\w-]+):$", COMPOSE[COMPOSE.index("\nvolumes:") :], re.M)
    assert set(declared) == own.keys() | {"session"}
    assert set(re.findall(r"parties/([\w-]+)", DOCKERFILE)) - {"NAME"} == set(PARTIES)


def test_as_many_owners_start_as_are_asked_for() -> None:
    for number, owner in enumerate(OWNERS, start=1):
        profiles = re.findall(r"owners-(\d+)", block(COMPOSE, owner))
        # The first has no profile, and so starts always.
        assert profiles == ([str(more) for more in range(number, 11)] if number > 1 else [])


def test_every_party_can_be_given_a_secret_of_its_own() -> None:
    for party in PARTIES:
        assert f"secrets: [{{source: {party}, target: hushbid.key}}]" in SECRETS
        assert f"  {party}: {{file: ./keys/{party}.key}}" in SECRETS
    assert "HUSHBID_SECRET_KEY: /run/secrets/hushbid.key" in SECRETS
    assert "`/run/secrets/hushbid.key`" in PAGE.section("Bring your own keys")


def test_the_user_that_files_must_belong_to_is_the_image_s() -> None:
    user = re.findall(r"^USER (\d+):(\d+)$", DOCKERFILE, re.M)
    assert user == [("10001", "10001")]
    assert set(re.findall(r"user (\d{3,})", PAGE.text)) == {"10001"}
    [script] = re.findall(r"--entrypoint python \S+ -c '(.+)'", PAGE.section("Bring your own keys"))
    assert "10001, 10001" in script


def test_the_command_that_gives_keys_to_that_user_reaches_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no chown in the image."""
    (tmp_path / "public").mkdir()
    files = [tmp_path / "north.key", tmp_path / "public" / "north.pub"]
    for file in files:
        file.touch()
    given: dict[str, tuple[int, int]] = {}
    monkeypatch.setattr(os, "chown", lambda path, *owner: given.update({os.path.normpath(path): owner}))
    [script] = re.findall(r"--entrypoint python \S+ -c '(.+)'", PAGE.section("Bring your own keys"))
    exec(script.replace('"/keys"', repr(str(tmp_path))), {})
    assert set(map(str, [tmp_path, tmp_path / "public", *files])) <= set(given)
    assert set(given.values()) == {(10001, 10001)}


def test_a_party_that_is_refused_is_not_started_again_and_nothing_else_restarts_it() -> None:
    assert COMPOSE.count("restart: ") == 2
    assert COMPOSE.count('restart: "no"') == 2
    assert "entrypoint: [python, /opt/hushbid/restarting.py, hushbid]" in COMPOSE
    assert "five times at most" in PAGE.section("Services and volumes")
    restarting = runpy.run_path(str(ROOT / "containers" / "restarting.py"))
    assert restarting["STARTS"] == 1 + 5
    assert restarting["FINAL"] == {code for code in ExitCode if code.restart is not Restart.AGAIN}


def test_the_time_limits_that_the_setup_writes_are_stated() -> None:
    assert setup._PATIENCE == {"enrolment": 300.0, "round": 60.0, "comeback": 60.0}
    said = " ".join(PAGE.section("Services and volumes").split())
    assert "`timeouts.round` and `timeouts.comeback` of 60 s" in said
    assert "`timeouts.enrolment` of 300 s in place of 60" in said


def test_what_is_removed_to_keep_the_ledgers_is_the_session_and_the_states() -> None:
    pattern = re.search(r"grep -E '(.*?)'", PAGE.section("Use your own data"))
    assert pattern
    declared = re.findall(r"^  ([\w-]+):$", COMPOSE[COMPOSE.index("\nvolumes:") :], re.M)
    removed = {volume for volume in declared if re.search(pattern[1], f"hushbid_{volume}")}
    assert removed == {"session", *(f"{party}-state" for party in PARTIES)}


@pytest.mark.parametrize("service", ["owner", "consumer"])
def test_no_party_needs_a_curator_that_stays(service: str) -> None:
    """A curator whose session is over ends successfully at once: waiting for its health would fail."""
    text = block(COMPOSE, service) if service == "consumer" else COMPOSE[COMPOSE.index("x-owner:") :]
    (condition,) = re.findall(r"^ +curator: \{condition: (\w+)\}", text.partition("volumes:")[0], re.M)
    assert condition == "service_started"
