"""A rehearsal's verdict comes first: a hopeless session goes on only on request."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import tomli_w
import typer
from typer.testing import CliRunner, Result

from hushbid.cli.app import app
from hushbid.cluster.file import open_cluster
from hushbid.consumer.cli import command
from hushbid.consumer.store import VERDICT_FILE, keep_verdict, kept_verdict, read_verdict
from hushbid.consumer.verdict import NO_VERDICT, Rehearsal, Staged, Verdict
from hushbid.plan import noise
from hushbid.plan.flags import PlanFlags
from hushbid.plan.noise import ReleaseError, release_errors
from hushbid.plan.prediction import predict
from hushbid.plan.setting import plan_setting
from hushbid.plan.verdict import Rehearsing, Sets, nothing_to_choose, what_is_wrong
from hushbid.protocol.config.party import ConsumerFile
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError, DataError, Hopeless
from hushbid.protocol.figures import Figures
from hushbid.protocol.runtime.interrupts import SignalEnd
from hushbid.protocol.runtime.keys import new_keypair, write_secret
from hushbid.protocol.session.session import open_session
from hushbid.report.figures import figures_of
from hushbid.report.sources import open_sources
from hushbid.running.launcher import run
from hushbid.running.simulate import simulate
from tests.unit.hushbid.cluster.test_cluster import files_cluster
from tests.unit.hushbid.plan.test_rehearsal import curve, session

EPSILON: Final = {"mechanism": "filtered-gaussian", "epsilon": 3.0}
PRIVATE: Final[dict[str, Any]] = {
    "target": EPSILON | {"neighbours": "substitute-one"},
    "summary": EPSILON | {"neighbours": "add-remove-one"},
}
TOO_WIDE: Final = ("features.upper=1000.0",)
"""Bounds in which all rows are alike: hopeless whatever noise there is, and found at once."""
STAGED: Final = (Staged("all", 0.3, 0.2, 0.5, 0.4), Staged("some", 0.5, 0.4, 0.5, 0.4))
GOOD: Final = Verdict(Rehearsal((STAGED[0], Staged("some", 0.1, 0.4, 0.3, 0.4)), 0.5))
HOPELESS: Final = Verdict(Rehearsal(STAGED, 0.5), anyway=True)


def dataset(name: str, rows: Any) -> Dataset:
    return Dataset.from_arrays(name, rows)


def verdict_on(
    epsilon: float | None, rows: int = 40, *, say: Callable[[str], object] = print, **how: Any
) -> Verdict:
    """The verdict on a session over points along a curve."""
    sets = Sets(dataset("validation", curve(rows, 1)), dataset("seed-set", curve(40, 2)))
    return Rehearsing(say=say, **how).verdict(session(epsilon, points=24), lambda: sets)


@pytest.fixture(autouse=True)
def no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a rehearsal takes so long that it reports progress."""
    monkeypatch.setattr("hushbid.plan.verdict._FIRST_SECONDS", math.inf)


consumer_alone = typer.Typer(add_completion=False)
consumer_alone.command()(command)


# -- what is said, and what is refused -------------------------------------------------------------------


def test_the_verdict_is_said_without_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    found = verdict_on(1.0, say=said.append)
    assert found.word in ("good", "uncertain")
    assert said == [found.sentence()]
    monkeypatch.setattr("hushbid.plan.verdict._FIRST_SECONDS", 0.0)
    monkeypatch.setattr("hushbid.plan.verdict._NEXT_SECONDS", 0.0)
    assert verdict_on(1.0, say=said.append) == found
    assert said[1].startswith("Rehearsing the session: ")
    assert said[-2] == "Rehearsing the session: 100% (--no-rehearsal leaves it out)."
    figures = [figure for each in found.as_json()["verdict"]["staged"] for figure in list(each.values())[1:]]
    assert len(figures) == 16
    assert not [figure for figure in figures if f"{figure:.2g}" in "\n".join(said)]


def test_where_noise_chooses_the_session_is_refused_and_what_to_change_is_said() -> None:
    said: list[str] = []
    with pytest.raises(Hopeless, match="the noise chooses, and buying at random was better") as refusal:
        verdict_on(0.05, say=said.append)
    assert refusal.value.exit_code == 4
    assert "more rows of validation data, a larger epsilon (of the target first)" in refusal.value.advice
    assert "`--anyway`" in refusal.value.advice
    found = verdict_on(0.05, say=said.append, anyway=True)
    assert (found.word, found.anyway) == ("hopeless", True)
    assert said[-1].endswith("It goes on anyway, as it was told to.")
    assert not verdict_on(1.0, say=said.append, anyway=True).anyway, "there was no need for it"


@pytest.mark.parametrize("epsilon", [1e-5, 1e-9, 5e-324])
def test_noise_beyond_all_differences_is_refused_unplayed(epsilon: float) -> None:
    """Played, some of them pass: a choice by noise may be no worse than one at random."""
    with pytest.raises(Hopeless, match="exceeds whatever points can differ by"):
        verdict_on(epsilon)
    found = verdict_on(epsilon, anyway=True)
    assert (found.word, found.anyway) == ("hopeless", True)
    assert found.rehearsal is not None
    assert found.rehearsal.staged == ()
    assert (found.rehearsal.expected or 0.0) > 1.0


def test_each_error_of_an_unplayed_session_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[ReleaseError] = []

    def counting(*given: Any) -> ReleaseError:
        computed.append(error(*given))
        return computed[-1]

    error = noise._error
    monkeypatch.setattr(noise, "_error", counting)
    found = verdict_on(1e-5, anyway=True)
    assert len(computed) == 2, "the target's, and the summary's"
    assert found.rehearsal is not None
    assert found.rehearsal.staged == ()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"epsilon": None}, "its releases are exact, and have no noise"),
        ({"epsilon": 0.05, "wanted": False}, "it was to be left out"),
    ],
    ids=["exact", "left out"],
)  # fmt: skip
def test_what_is_not_rehearsed_goes_on_and_the_record_says_why(given: dict[str, Any], why: str) -> None:
    lines: list[str] = []
    found = verdict_on(**given, say=lines.append)
    assert found == Verdict(why=why)
    assert lines == []
    assert found.as_json() == {"verdict": None, "verdict_why": why}


def test_below_eight_rows_the_rule_of_thumb_stands_in() -> None:
    with pytest.raises(Hopeless, match="noise drowns the choice") as refusal:
        verdict_on(1.0, rows=3)
    assert "it takes 8 rows of validation data" in refusal.value.what
    assert "more rows of validation data" in refusal.value.advice
    found = verdict_on(1.0, rows=3, anyway=True)
    assert found.anyway
    planned = plan_setting(
        None, PlanFlags(owners=3, points=60, validation=3, epsilon_owners=1.0, epsilon_consumer=1.0)
    )
    assert found.rehearsal is not None
    assert found.rehearsal.expected == pytest.approx(
        predict(planned, *release_errors(planned)).times_random.expected, rel=0.1
    ), "but for d"
    lines: list[str] = []
    assert verdict_on(1000.0, rows=7, say=lines.append).word == "uncertain"
    assert lines == [
        "The session was not rehearsed: it takes 8 rows of validation data. By the rule of thumb of `hushbid "
        "plan` it is uncertain: noise does not drown the choice, and the rest depends on what owners have."
    ]
    assert Verdict.from_json(found.as_json()) == found


@pytest.mark.parametrize("rows", [1, 7, 40])
def test_the_kernel_is_looked_at_whatever_the_sizes_are(rows: int) -> None:
    sets = Sets(dataset("validation", curve(rows, 1)), dataset("seed-set", curve(40, 2)))
    with pytest.raises(Hopeless, match="one row" if rows == 1 else "alike to the session"):
        Rehearsing().verdict(session(1000.0, points=60_000, upper=1000.0), lambda: sets)


def test_a_refusal_for_weights_alone_says_so() -> None:
    staged = (Staged("all", 2.0, 1.0, 0.5, 1.0), Staged("some", 3.0, 1.0, 0.5, 1.0))
    found = Verdict(Rehearsal(staged, 0.5, 0.5))
    assert found.word == "hopeless"
    assert found.sentence().startswith("A rehearsal of the session is hopeless for weights: ")
    assert found.sentence().endswith("without weights it depends on that.")
    what, _ = what_is_wrong(session(1.0), curve(40, 1), found)
    assert what.endswith("without weights it was not")
    both = Verdict(Rehearsal((Staged("all", 2.0, 1.0, 2.0, 1.0),) * 2, 0.5, 0.5))
    assert "weights" not in what_is_wrong(session(1.0), curve(40, 1), both)[0]


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), SignalEnd(15)])
def test_interrupted_it_says_that_nothing_was_charged(
    ending: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_given: object, **_named: object) -> None:
        raise ending

    monkeypatch.setattr("hushbid.plan.verdict.rehearse", interrupted)
    with pytest.raises(type(ending)) as ended:
        verdict_on(1.0)
    assert ended.value.__notes__ == [
        "Nothing was charged, and nobody was connected to: the session was being rehearsed."
    ]


def test_a_session_that_cannot_be_played_is_not_stopped_by_that(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_given: object, **_named: object) -> None:
        raise ConfigError("It is too large.")

    monkeypatch.setattr("hushbid.plan.verdict.rehearse", fail)
    found = verdict_on(1000.0)
    assert (found.why, found.word) == ("it cannot be played: It is too large", "uncertain")


# -- on record -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", [GOOD, HOPELESS, NO_VERDICT], ids=["good", "hopeless", "none"])
def test_a_verdict_is_kept_for_its_session_and_for_its_owner_alone(tmp_path: Path, verdict: Verdict) -> None:
    state, one = tmp_path / "state", session(1.0)
    assert kept_verdict(state, one) is NO_VERDICT
    keep_verdict(state, one, HOPELESS)
    keep_verdict(state, one, verdict)
    assert kept_verdict(state, one) == verdict
    assert kept_verdict(state, session(2.0)) is NO_VERDICT
    assert [path.name for path in state.iterdir()] == [VERDICT_FILE]
    assert stat.S_IMODE((state / VERDICT_FILE).stat().st_mode) == 0o600
    shapes: tuple[object, ...] = ({}, [1], "good")
    ours = ({"session": one.identifier.hex(), "verdict": found} for found in shapes)
    for damaged in ("", "[]", "{}", "[" * 100_000, *map(json.dumps, ours)):
        (state / VERDICT_FILE).write_text(damaged)
        assert read_verdict(state, one.identifier.hex()) is None
    (state / VERDICT_FILE).unlink()
    os.mkfifo(state / VERDICT_FILE)  # which nobody writes to
    assert kept_verdict(state, one) is NO_VERDICT


def test_a_verdict_that_cannot_be_kept_is_an_error_that_says_where(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no directory")
    with pytest.raises(DataError, match=r"verdict\.json: what the rehearsal said cannot be kept"):
        keep_verdict(tmp_path / "state", session(1.0), GOOD)


# -- simulate and run ------------------------------------------------------------------------------------


def test_a_hopeless_session_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    cluster = open_cluster(files_cluster(tmp_path, **PRIVATE), settings=TOO_WIDE)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(Hopeless, match="are alike to the session") as refusal:
        run(cluster, directory=tmp_path / "runs", rehearsing=Rehearsing())
    assert "`features.upper`" in refusal.value.advice
    with pytest.raises(Hopeless):
        simulate(cluster, record=tmp_path / "record", rehearsing=Rehearsing())
    assert sorted(tmp_path.iterdir()) == before, "neither a directory, nor a key, nor a ledger"


@pytest.mark.parametrize("verb", ["run", "simulate"])
def test_that_everything_is_bought_is_said_before_anything_is_made(tmp_path: Path, verb: str) -> None:
    cluster = open_cluster(files_cluster(tmp_path, **PRIVATE), settings=[*TOO_WIDE, "session.points=100000"])
    said: list[str] = []
    begin = (
        partial(run, directory=tmp_path / "runs")
        if verb == "run"
        else partial(simulate, record=tmp_path / "record")
    )
    with pytest.raises(Hopeless):
        begin(cluster, say=said.append, rehearsing=Rehearsing())
    [line] = said
    assert re.fullmatch(
        r"WARNING: The owners have \d+ points together, and 100,000 are to be bought: all are, and nothing "
        r"is chosen.",
        line,
    )
    assert nothing_to_choose(session(1.0, points=60), {"north": 31, "south": 30}) == ""


def test_a_hopeless_session_that_goes_on_anyway_is_on_record(tmp_path: Path) -> None:
    cluster = open_cluster(files_cluster(tmp_path, **PRIVATE), settings=TOO_WIDE)
    said: list[str] = []
    rehearsing = Rehearsing(anyway=True, say=said.append)
    result = simulate(cluster, record=tmp_path / "record", say=said.append, rehearsing=rehearsing)
    assert "hopeless" in said[0]
    assert result.as_json()["verdict"]["anyway"] is True
    assert result.points_delivered == 5
    figures = figures_of(open_sources([result.transcripts["consumer"]]))
    assert figures.verdict == result.verdict
    assert figures.as_json()["verdict"]["verdict"] == "hopeless"
    assert result.report is not None
    page = result.report.read_text(encoding="utf-8")
    assert "It goes on anyway, as it was told to. Source: verdict.json beside the consumer" in page
    others = figures_of(open_sources([result.transcripts["curator"], result.transcripts["north"]]))
    assert others.verdict is None, "it lies beside theirs, and yet it is the consumer's"


def test_a_simulation_has_the_verdict_with_its_figures(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    path = files_cluster(tmp_path, **PRIVATE)
    np.savez(tmp_path / "validation.npz", features=generator.random((8, 2)))
    arguments = ["simulate", str(path), "--anyway", "--json"]
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["verdict"].keys() == {
        "verdict",
        "why",
        "kernel",
        "beside",
        "drawn",
        "expected",
        "staged",
        "anyway",
        "prospect",
    }
    assert found["verdict_why"] == ""
    assert len(found["verdict"]["staged"]) == 4
    assert ended.stderr.startswith("A rehearsal of the session is ")
    left_out = json.loads(CliRunner().invoke(app, [*arguments, "--no-rehearsal"]).stdout)
    assert (left_out["verdict"], left_out["verdict_why"]) == (None, "it was to be left out")
    assert left_out["mmd2"] == found["mmd2"], "it changes nothing"


# -- a consumer of its own -------------------------------------------------------------------------------


class Consumer:
    """A consumer's files, and its process, replaced by the test."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place = place
        self.began: list[Verdict] = []
        """What was on record when its process would have begun."""
        pairs = {name: new_keypair() for name in ("curator", "consumer", *session(1.0).file.owners)}
        write_secret(place / "secret.key", pairs["consumer"])
        self.roster: dict[str, Any] = {name: pairs.pop(name).public.text for name in ("curator", "consumer")}
        self.roster["owners"] = {name: pair.public.text for name, pair in pairs.items()}
        np.savez(place / "validation.npz", features=curve(40, 1))
        np.savez(place / "seed.npz", features=curve(40, 2))
        own = {"key": "secret.key", "state": "state", "validation": "validation.npz", "seed_set": "seed.npz"}
        (place / "party.toml").write_text(tomli_w.dumps(own), encoding="utf-8")
        monkeypatch.setattr("hushbid.consumer.process.run_consumer", self._begin)
        monkeypatch.setattr("hushbid.cli.consumer._report", lambda result: result)

    def _begin(self, session_file: SessionFile, file: ConsumerFile, _control: object) -> Figures:
        self.began.append(kept_verdict(file.state, open_session(session_file)))
        return Figures()

    def start(self, *options: str, **features: float) -> Result:
        file = session(1.0).file
        values = file.model_dump(mode="json", exclude_none=True)
        values["features"] |= {"gamma": 5.0, **features}
        values["roster"] = self.roster
        values["network"] = {"address": "tcp://127.0.0.1:5790"}
        (self.place / "session.toml").write_text(tomli_w.dumps(values), encoding="utf-8")
        files = ["--session", str(self.place / "session.toml"), "--config", str(self.place / "party.toml")]
        return CliRunner().invoke(app, ["consumer", *files, *options, "--json"])


@pytest.fixture
def buyer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Consumer:
    return Consumer(tmp_path, monkeypatch)


def test_a_consumer_rehearses_before_its_process_begins(buyer: Consumer) -> None:
    ended = buyer.start()
    assert ended.exit_code == 0, ended.output
    [verdict] = buyer.began
    assert verdict.word in ("good", "uncertain")
    assert ended.stderr.startswith(f"A rehearsal of the session is {verdict.word}: ")


def test_a_hopeless_session_is_refused_before_its_consumer_leaves_a_trace(
    buyer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(path.name for path in buyer.place.iterdir())
    ended = buyer.start(upper=1000.0)
    assert (ended.exit_code, buyer.began) == (4, [])
    error = json.loads(ended.stdout)["error"]
    assert error["kind"] == "Hopeless"
    assert error["what"].startswith("A rehearsal of the session is hopeless: all rows of the validation set")
    assert sorted(path.name for path in buyer.place.iterdir()) == sorted([*before, "session.toml"])
    ended = buyer.start("--anyway", upper=1000.0)
    assert (ended.exit_code, buyer.began[0].anyway) == (0, True), ended.output
    monkeypatch.setenv("HUSHBID_ANYWAY", "1")
    assert buyer.start(upper=1000.0).exit_code == 0
    monkeypatch.setenv("HUSHBID_ANYWAY", "")
    assert buyer.start(upper=1000.0).exit_code == 4
    monkeypatch.setenv("HUSHBID_REHEARSAL", "0")
    assert buyer.start(upper=1000.0).exit_code == 0
    assert buyer.began[1:] == [buyer.began[0], Verdict(why="it was to be left out")]


def test_a_consumer_by_itself_says_that_it_does_not_rehearse() -> None:
    help_text = " ".join(CliRunner().invoke(consumer_alone, ["--help"]).stdout.split())
    assert "Only `hushbid consumer` rehearses it first." in help_text
    assert "--anyway" not in help_text


def test_a_log_of_json_lines_has_no_other_line(buyer: Consumer) -> None:
    ended = buyer.start("--log-format", "json", "--anyway", upper=1000.0)
    assert (ended.exit_code, ended.stderr) == (0, "")


def test_what_the_process_would_refuse_is_refused_before_a_rehearsal(buyer: Consumer) -> None:
    np.savez(buyer.place / "validation.npz", features=curve(40, 1) + 1.0)
    ended = buyer.start(gamma=1e9)
    assert ended.exit_code == 4
    assert json.loads(ended.stdout)["error"]["kind"] == "DataError"


def test_a_session_that_has_begun_keeps_the_verdict_that_it_began_with(
    buyer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert buyer.start("--anyway", upper=1000.0).exit_code == 0
    monkeypatch.setattr("hushbid.protocol.runtime.party.beginning", lambda _path: "ab" * 32)
    ended = buyer.start(upper=1000.0)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert buyer.began[0] == buyer.began[1]
    assert buyer.began[1].anyway


def test_every_verb_says_the_same_of_the_same_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By own rows, which one function asks: `hushbid.plan.verdict.Rehearsing`."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(5)
    path = files_cluster(tmp_path, **PRIVATE)
    points = generator.random((120, 2))
    np.savez("validation.npz", features=points, labels=(points[:, 0] > 0.5).astype(int))
    found = {}

    def asked(name: str, *words: str) -> Any:
        ended = CliRunner().invoke(app, [*words, "--json"])
        assert ended.exit_code == 0, f"{name}: {ended.output}"
        return json.loads(ended.stdout)

    for name in ("plan", "simulate"):
        found[name] = asked(name, name, str(path))["verdict"]
    found["run"] = asked("run", "run", str(path), "--directory", "runs")["verdict"]
    assert found["run"] == found["simulate"]
    words = ["advise", "validation.npz", "--seed-set", "seed.npz", "--lower", "0", "--upper", "1"]
    words += ["--points", "5", "--owners", "20,12", "--gamma", "1", "--dimension", "8", "--epsilon", "3"]
    found["advise"] = asked("advise", *words)["verdict"]
    [parties] = Path("runs").glob("*/parties/consumer")
    files = ["--session", str(parties / "session.toml"), "--config", str(parties / "party.toml")]
    checks = asked("preflight", "preflight", *files, "--offline")["checks"]
    [rehearsed] = [each for each in checks if each["check"] == "rehearsal"]
    found["preflight"] = (rehearsed["said"] or rehearsed["problem"]).split(":")[0]
    words_said = {name: each if isinstance(each, str) else each["verdict"] for name, each in found.items()}
    assert set(words_said.values()) == {"hopeless"}
    assert found["run"]["why"].startswith("own rows are enough")
    assert found["run"]["prospect"]["rows"] == 120
