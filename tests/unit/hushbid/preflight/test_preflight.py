"""Preflight: every check finds its problem, once, and says what to do."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import os
import re
import shutil
import socket
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import pytest
import zmq

from hushbid.cluster.file import Cluster, open_cluster
from hushbid.preflight.checks import CHECKS
from hushbid.preflight.state import ended_with, expected_bytes
from hushbid.protocol import __version__, platform
from hushbid.protocol.config.party import BudgetSection
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import DataColumns, Dataset, load_dataset
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.machine.machine import Finish
from hushbid.protocol.runtime.keys import KeyPair, new_keypair, write_secret
from hushbid.protocol.runtime.ledger.lifetime_ledger import LifetimeLedger
from hushbid.protocol.runtime.network.router import RouterEndpoint
from hushbid.protocol.session.session import open_session
from hushbid.running.simulate import simulate
from tests.conftest import ROOT
from tests.support.preflight_party import KEYS, Party, Report
from tests.unit.protocol.runtime.ledger.test_known_ledgers import opened, spending


@pytest.fixture
def curator_of() -> Iterator[Any]:
    """Binds a party's curator, with any key and roster."""
    bound: list[RouterEndpoint] = []

    def bind(
        party: Party, key: KeyPair | None = None, roster: tuple[str, ...] = ("north", "consumer")
    ) -> None:
        names = {KEYS[name].public.text: name for name in roster}
        bound.append(
            RouterEndpoint(f"tcp://127.0.0.1:{party.port}", pair=key or KEYS["curator"], roster=names)
        )

    yield bind
    for endpoint in bound:
        endpoint.close()


# -- all is well -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["curator", "owner", "consumer"])
def test_where_all_is_well_every_check_of_the_role_says_so(party: Any, curator_of: Any, role: str) -> None:
    one = party(role)
    if role != "curator":
        curator_of(one)
    report = one.preflight()
    assert (report.code, report.problems) == (0, [])
    assert list(report.checks) == ["session", *(check.name for check in CHECKS if role in check.roles)]
    unchecked = [name for name, check in report.checks.items() if check["status"] == "not checked"]
    assert unchecked == ["fingerprints"]
    for name in set(KEYS) - {one.name} - ({"north"} if role != "curator" else set()):
        assert KEYS[name].public.fingerprint in report.checks["fingerprints"]["said"]


def test_preflight_leaves_nothing_behind(party: Any) -> None:
    one = party()
    one.preflight("--offline")
    before = sorted(path.name for path in one.place.iterdir())
    one.preflight("--offline")
    assert sorted(path.name for path in one.place.iterdir()) == before
    assert not (one.place / "state").exists()
    assert not list(one.place.glob("*.ledger"))


def test_nothing_says_how_many_rows_there_are_or_what_is_in_them(party: Any) -> None:
    one = party()
    features = np.full((7919, 3), 0.625)
    np.savez(one.place / "data.npz", features=features)
    told = json.dumps(one.preflight("--offline").checks)
    features[101, 1] = 4.71828
    np.savez(one.place / "data.npz", features=features)
    told += json.dumps(one.preflight("--offline").checks)
    assert "row 101" in told
    told = re.sub(r"[0-9a-f]{64}", "", told)  # digests, which may have any four digits
    assert not [value for value in ("7919", "0.625", "4.71828", "71828") if value in told]


def test_offline_asks_nothing_of_the_network(party: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = party()
    one.session["network"]["address"] = "tcp://curator.example.org:5790"

    def asked(*_: Any, **__: Any) -> None:
        raise AssertionError("a name was looked up, or a connection made")

    monkeypatch.setattr(socket, "getaddrinfo", asked)
    monkeypatch.setattr(socket, "create_connection", asked)
    report = one.preflight("--offline")
    assert report.code == 0
    for name in ("address", "connection", "handshake"):
        assert report.checks[name]["said"] == "left out by --offline"


# -- what is wrong ---------------------------------------------------------------------------------------


def wrong(report: Report, name: str, code: int, says: str) -> None:
    """One problem, with its fix; checks that depend on it are not made."""
    assert report.problems == [name], report.checks
    check = report.checks[name]
    assert says in check["problem"]
    assert check["fix"]
    assert report.code == code
    assert set(check) == {"check", "status", "said", "problem", "exit_code", "fix"}


def test_a_session_that_cannot_be_read_is_the_one_problem(party: Any) -> None:
    one = party()
    one.session["session"]["points"] = 0
    report = one.preflight("--offline")
    wrong(report, "session", 4, "session.points")
    assert list(report.checks) == ["session"]


def test_an_incomplete_roster(party: Any) -> None:
    one = party()
    one.session["roster"]["consumer"] = ""
    wrong(one.preflight("--offline"), "session", 4, "no public key for consumer")


def test_two_parties_with_one_key(party: Any) -> None:
    one = party()
    one.session["roster"]["consumer"] = KEYS["curator"].public.text
    wrong(one.preflight("--offline"), "session", 4, "same key")


def test_an_owner_that_is_not_on_the_roster(party: Any) -> None:
    one = party()
    one.own["name"] = "east"
    wrong(one.preflight("--offline"), "session", 4, "no owner named east")


def test_a_key_that_others_can_read(party: Any) -> None:
    one = party()
    (one.place / "secret.key").chmod(0o640)
    report = one.preflight("--offline")
    wrong(report, "key", 4, "can be used by others")
    assert "chmod 600" in report.checks["key"]["fix"]


def test_a_key_that_is_not_the_roster_s(party: Any) -> None:
    one = party()
    (one.place / "secret.key").unlink()
    write_secret(one.place / "secret.key", new_keypair())
    wrong(one.preflight("--offline"), "key", 4, "not the one that the roster gives to north")


def test_a_port_that_is_taken(party: Any, curator_of: Any) -> None:
    one = party("curator")
    curator_of(one)
    wrong(one.preflight(), "listen", 2, "Address already in use")


def test_an_address_that_is_not_this_machine_s(party: Any) -> None:
    one = party("curator")
    wrong(one.preflight("--listen", "tcp://192.0.2.1:5790"), "listen", 2, "assign requested address")


def test_a_host_name_that_is_unknown(party: Any) -> None:
    one = party()
    one.session["network"]["address"] = "tcp://curator.invalid:5790"
    report = one.preflight()
    wrong(report, "address", 2, "curator.invalid is unknown here")
    assert report.checks["connection"]["said"] == "only once the check of address succeeds"
    assert report.checks["handshake"]["status"] == "not checked"


def test_a_curator_that_is_not_there(party: Any) -> None:
    report = party().preflight()
    wrong(report, "connection", 2, "Connection refused")


def test_a_curator_without_our_key(party: Any, curator_of: Any) -> None:
    one = party()
    curator_of(one, roster=("consumer",))
    wrong(one.preflight(), "handshake", 2, "does not know our key")


def test_a_curator_with_another_key(party: Any, curator_of: Any) -> None:
    one = party()
    curator_of(one, key=new_keypair())
    wrong(one.preflight(), "handshake", 2, "not the curator of the roster")


def test_something_that_is_no_curator(party: Any) -> None:
    one = party()
    with socket.create_server(("127.0.0.1", one.port)) as server:
        server.settimeout(30.0)
        report = None

        def answer() -> None:
            with contextlib.suppress(OSError):  # also that nobody comes any more
                while report is None:
                    with server.accept()[0] as connection:
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        import threading

        threading.Thread(target=answer, daemon=True).start()
        report = one.preflight()
    wrong(report, "handshake", 2, "not hushbid")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda place: (place / "data.npz").unlink(), "does not exist"),
        (lambda place: (place / "data.npz").write_bytes(b"no archive"), "data.npz"),
        (lambda place: np.savez(place / "data.npz", features=np.ones((4, 2))), "2 feature columns"),
        (
            lambda place: np.savez(place / "data.npz", features=np.full((4, 3), 2.0)),
            "row 0, feature column 0",
        ),
    ],
)
def test_data_that_cannot_be_used(party: Any, change: Any, says: str) -> None:
    one = party()
    change(one.place)
    report = one.preflight("--offline")
    wrong(report, "data", 4, says)
    assert report.checks["boxes"]["status"] == "not checked"


def test_data_are_called_by_their_path_whether_they_are_there_or_not(party: Any) -> None:
    one = party()
    path = str(one.place / "data.npz")
    assert path in one.preflight("--offline").checks["data"]["said"]
    (one.place / "data.npz").unlink()
    assert path in one.preflight("--offline").checks["data"]["problem"]


def test_a_value_out_of_bounds_may_be_of_another_column(party: Any) -> None:
    one = party()
    np.savez(one.place / "data.npz", features=np.full((4, 3), 2.0))
    assert "`--features`" in one.preflight("--offline").checks["data"]["fix"]


def test_a_seed_set_of_the_validation_set_s_own(party: Any) -> None:
    one = party("consumer")
    shutil.copy(one.place / "validation.npz", one.place / "seed.npz")
    wrong(one.preflight("--offline"), "data", 4, "are in seed.npz too")


@pytest.mark.parametrize("judged", [False, True])
def test_a_seed_set_that_is_the_validation_set_s_own_file(party: Any, judged: bool) -> None:
    # With test points, which are a third file: they were taken for the seed set.
    one = party("consumer")
    one.own["seed_set"] = one.own["validation"]
    if judged:
        one.own["test"] = "data.npz"
    wrong(one.preflight("--offline"), "data", 4, says="validation.npz are in validation.npz too")


def test_labels_of_another_kind_than_the_session_declares(party: Any) -> None:
    one = party()
    one.session["session"]["labels"] = "text"
    wrong(one.preflight("--offline"), "data", 4, says="has no labels where the session requires text")
    np.savez(one.place / "data.npz", features=np.full((4, 3), 0.5), labels=np.arange(4))
    wrong(one.preflight("--offline"), "data", 4, says="its labels are whole numbers")


def test_the_consumer_s_test_points_have_labels_of_that_kind_if_they_have_any(party: Any) -> None:
    one = party("consumer")
    one.session["session"]["labels"] = "text"
    one.own["test"] = "data.npz"
    assert one.preflight("--offline").code == 0
    np.savez(one.place / "data.npz", features=np.full((4, 3), 0.5), labels=np.arange(4))
    wrong(one.preflight("--offline"), "data", 4, says="its labels are whole numbers")


@pytest.mark.parametrize("role", ["owner", "consumer"])
def test_a_delta_that_lets_a_row_be_published_is_no_guarantee(party: Any, role: str) -> None:
    one = party(role)
    one.session["session"]["delta"] = 0.25
    report = one.preflight("--offline")
    assert report.code == 4
    assert "not below 1 over the number of rows" in report.checks["data"]["problem"]


def test_boxes_that_are_too_small(party: Any) -> None:
    one = party()
    one.session["acquisition"]["box_bytes"] = 64
    labels = np.array(["x" * 100] * 20)
    np.savez(one.place / "data.npz", features=np.full((20, 3), 0.5), labels=labels)
    wrong(one.preflight("--offline"), "boxes", 4, "boxes hold 64")


def test_a_budget_that_is_too_small(party: Any) -> None:
    one = party()
    one.own["budget"] = {"epsilon": 0.5}
    report = one.preflight("--offline")
    wrong(report, "budget", 1, "over its budget of ε = 0.5")
    assert str(one.place / "data.npz.ledger") in report.checks["budget"]["problem"], "the data's, not a copy"


def test_a_check_changes_no_budget_and_writes_no_ledger(party: Any) -> None:
    one = party()
    ledger = one.place / "data.npz.ledger"
    assert one.preflight("--offline", "--budget-epsilon", "9").checks["budget"]["status"] == "ok"
    assert not ledger.exists()
    LifetimeLedger.open(
        ledger, budget=BudgetSection(epsilon=2.0), neighbours="add-remove-one", rows=None
    ).close()
    kept = ledger.read_bytes()
    for said in (("--budget-epsilon", "0.5"), ("--budget-epsilon", "9", "--lift-budget"), ()):
        one.preflight("--offline", *said)
        assert ledger.read_bytes() == kept


def test_a_budget_of_rows_that_another_ledger_has_is_for_a_person_to_settle(party: Any) -> None:
    one = party()
    other = one.place / "older.ledger"
    with opened(other, load_dataset(one.place / "data.npz", DataColumns())) as ledger:
        ledger.charge(spending())
    wrong(one.preflight("--offline"), "budget", 4, f"were charged to {other}")


def test_a_ledger_that_was_removed_is_missed_before_the_session_too(party: Any) -> None:
    one = party()
    ledger = one.place / "data.npz.ledger"
    with opened(ledger, Dataset.from_arrays("other rows", np.zeros((2, 3)))) as there:
        there.charge(spending())
    ledger.unlink()
    wrong(one.preflight("--offline"), "budget", 4, "does not begin with the 2 lines that it had")
    assert not ledger.exists()


@pytest.mark.parametrize("begun", [False, True])
def test_rows_that_another_ledger_has_are_a_warning_that_names_the_datas_own(
    party: Any, caplog: pytest.LogCaptureFixture, begun: bool
) -> None:
    one = party()
    one.own.pop("budget")  # with one the rows are refused
    own, other = one.place / "data.npz.ledger", one.place / "older.ledger"
    with opened(other, load_dataset(one.place / "data.npz", DataColumns())) as ledger:
        ledger.charge(spending())
    if begun:
        LifetimeLedger.open(own, budget=None, neighbours="add-remove-one", rows=None).close()
    report = one.preflight("--offline")
    found = report.checks["budget"]
    assert (report.code, found["status"]) == (0, "warning")
    assert f"were charged to {other} before, which does not count in {own}" in found["said"]
    assert "--ledger" in found["fix"]
    assert f"{own}: the same rows were charged to {other}" in caplog.text, "the log names no copy"


def test_a_state_directory_that_cannot_be_made(party: Any) -> None:
    one = party()
    (one.place / "state").write_text("in the way")
    report = one.preflight("--offline")
    wrong(report, "state", 4, "cannot make or write the state directory")
    assert report.checks["disk"]["status"] == "not checked"


def test_a_disk_that_is_too_small(party: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 1000))
    wrong(party().preflight("--offline"), "disk", 4, "0.0 MB are free")


@pytest.mark.parametrize(
    ("name", "version", "said"),
    [
        ("numpy", "1.26.4", "numpy 1.26.4 in place of"),
        ("numpy", "3.0.0", "numpy 3.0.0 in place of"),
        ("opendp", None, "opendp missing in place of"),
        ("bokeh", "3.8.2", "bokeh 3.8.2 in place of"),
    ],
)
def test_versions_that_it_does_not_run_with(
    installed: Any, party: Any, name: str, version: str | None, said: str
) -> None:
    installed[name] = version
    wrong(party().preflight("--offline"), "versions", 4, said)


def test_versions_that_it_is_not_tested_with(installed: Any, party: Any) -> None:
    one = party()
    assert one.preflight("--offline").checks["versions"]["status"] == "ok"
    installed |= {"numpy": "2.2.0", "bokeh": None}  # what comes with the extra may be missing
    report = one.preflight("--offline")
    check = report.checks["versions"]
    assert (report.code, check["status"]) == (0, "warning")
    assert re.search(
        r"runs with numpy 2\.2\.0 \(tested: [\d.]+\): the same seed may give other", check["said"]
    )
    assert re.search(r"--constraint \S+/requirements\.lock hushbid", check["fix"])


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str | None]:
    """Installed versions that differ from these, with the project's present requirements."""
    versions: dict[str, str | None] = {}
    version = importlib.metadata.version

    def there(name: str) -> str:
        found = versions[name] if name in versions else version(name)
        if found is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return found

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = [f'{text}; extra == "operator"' for text in project["optional-dependencies"]["operator"]]
    monkeypatch.setattr(importlib.metadata, "version", there)
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: [*project["dependencies"], *extra])
    return versions


def test_a_system_whose_files_do_not_say_who_may_read_them(
    party: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "has_modes", lambda: False)
    report = party().preflight("--offline")
    assert (report.code, report.checks["key"]["status"]) == (0, "warning")
    assert "does not say who else can read the file" in report.checks["key"]["said"]


def test_a_libzmq_that_cannot_encrypt(party: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zmq, "has", lambda capability: capability != "curve")
    wrong(party().preflight("--offline"), "versions", 4, "without CURVE")


def test_a_clock_that_is_behind(party: Any) -> None:
    one = party()
    later = (one.place / "secret.key").stat().st_mtime + 7200
    os.utime(one.place / "secret.key", (later, later))
    wrong(one.preflight("--offline"), "clock", 4, "clock is behind")


def test_several_problems_are_all_found_and_the_worst_is_what_it_ends_with(party: Any) -> None:
    one = party()
    one.own["budget"] = {"epsilon": 0.5}
    report = one.preflight()
    assert (report.problems, report.code) == (["connection", "budget"], 1)
    (one.place / "secret.key").chmod(0o644)
    report = one.preflight()
    assert (report.problems, report.code) == (["key", "connection", "budget"], 4)


Recorded: TypeAlias = Callable[[str, tuple[str, ...]], tuple[Cluster, Path]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A cluster of the example's with these settings, and all transcripts of its session, which is over."""

    @functools.cache
    def played(name: str, settings: tuple[str, ...]) -> tuple[Cluster, Path]:
        few = ["session.points=40", *settings]
        cluster = open_cluster(ROOT / "configs" / "digits" / f"{name}.toml", settings=few)
        place = tmp_path_factory.mktemp("recorded")
        simulate(cluster, record=place, report=False, models=False)
        return cluster, place

    return played


def test_a_session_that_is_over_is_not_gone_on_with(recorded: Recorded) -> None:
    _, place = recorded("cluster", ())
    paths = sorted(place.rglob("*.transcript"))
    assert len(paths) == 7
    for path in paths:
        assert ended_with(path) is ExitCode.DONE, path.name


@pytest.mark.parametrize(
    ("code", "is_over"),
    [(ExitCode.DONE, True), (ExitCode.FAILED, True), (ExitCode.TIMEOUT, False), (None, False)],
)
def test_preflight_says_whether_a_session_is_over(
    party: Any, monkeypatch: pytest.MonkeyPatch, code: ExitCode | None, is_over: bool
) -> None:
    one = party("owner")
    (one.place / "state").mkdir()
    (one.place / "state" / f"{one.name}.transcript").write_bytes(b"of a party")
    monkeypatch.setattr("hushbid.preflight.state.beginning", lambda _path: "ab" * 32)
    monkeypatch.setattr("hushbid.preflight.data.beginning", lambda _path: "ab" * 32)
    monkeypatch.setattr("hushbid.preflight.state.check_transcript", lambda _path, _header: None)
    effects = () if code is None else (Finish(code, "why").item(),)
    record = SimpleNamespace(effects=effects)
    monkeypatch.setattr(
        "hushbid.preflight.state.TranscriptReader", lambda _path: contextlib.nullcontext([record])
    )
    check = one.preflight("--offline").checks["state"]
    assert check["status"] == ("warning" if is_over else "ok")
    assert ("which is over for this party" in check["said"]) is is_over
    assert ("the party will go on with it" in check["said"]) is not is_over
    if is_over:
        assert "`session.nonce`" in check["fix"]


# -- estimates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("cluster", ()),
        ("exact", ()),
        ("cluster", ("acquisition.rule=blind",)),
        ("cluster", ("acquisition.rule=blind", "session.batch=8")),
    ],
)
def test_the_room_that_a_session_may_take_is_enough_and_not_far_off(
    recorded: Recorded, name: str, settings: tuple[str, ...]
) -> None:
    cluster, place = recorded(name, settings)
    sizes = {path.stem: path.stat().st_size for path in place.rglob("*.transcript")}
    roster = {"curator": "", "consumer": "", "owners": dict.fromkeys(cluster.load().owners, "")}
    file = SessionFile.model_validate(
        {
            "session": cluster.file.session.model_dump(),
            "features": cluster.features.model_dump(),
            "target": cluster.file.target.model_dump(),
            "summary": cluster.file.summary.model_dump(),
            "acquisition": cluster.file.acquisition.model_dump(),
            "network": {"address": "tcp://127.0.0.1:5790", "insecure": True},
            "roster": roster,
        }
    )
    session = open_session(file)
    for party, size in sizes.items():
        role: Any = party if party in roster else "owner"
        expected = expected_bytes(session, role) - 2**20
        assert size <= expected <= 3 * size + 40 * session.box_length * len(roster["owners"]), (party, size)
    assert len(sizes) == 7


def test_the_version_that_is_checked_is_the_one_that_runs(party: Any) -> None:
    assert f"hushbid {__version__}, " in party().preflight("--offline").checks["versions"]["said"]
