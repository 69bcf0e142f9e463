"""The same session has the same two sentences, figures, and order of owners in every place."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bokeh.document import Document
from typer.testing import CliRunner

import hushbid.consumer.cli
from hushbid.cli.app import app
from hushbid.cluster.file import open_cluster
from hushbid.consumer.judgement import judged
from hushbid.consumer.model_figures import NO_MODEL, ModelFigures
from hushbid.consumer.result import ConsumerResult, PurchaseResult
from hushbid.consumer.store import write_arrays
from hushbid.procuring import Procured
from hushbid.protocol.data.dataset import Changes
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.runtime.command import run_verb
from hushbid.protocol.session.guarantee import CONSUMERS_DATA, OWNERS_DATA, PrivacyStatement
from hushbid.results.run import RunResult
from tests.conftest import ROOT
from tests.support.run_results import run_results

CLUSTER = str(ROOT / "configs" / "digits" / "cluster.toml")


def words(text: str) -> str:
    """The text without its line breaks."""
    return " ".join(text.split())


def invoked(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@dataclass(frozen=True)
class Session:
    """A simulated session: its output, its result, its consumer's knowledge, and its files."""

    printed: str
    result: RunResult
    purchase: PurchaseResult
    place: Path

    @property
    def delivered(self) -> Path:
        return self.place / "record" / "delivered.npz"

    @property
    def tables(self) -> tuple[str | Path, ...]:
        return "--validation", self.place / "validation.npz", "--test", self.place / "test.npz"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    place = tmp_path_factory.mktemp("judged")
    data = open_cluster(Path(CLUSTER)).load()
    for name, table in (("validation", data.validation), ("seed", data.seed_set), ("test", data.test)):
        assert table is not None
        labels = {} if table.labels is None else {"labels": table.labels}
        write_arrays(place / f"{name}.npz", {"features": table.features, **labels})
    with run_results() as seen:
        printed = invoked("simulate", CLUSTER, "--set", "session.points=60", "--record", place / "record")
    return Session(printed, *seen[0], place)


def test_a_run_begins_with_the_judgement(session: Session) -> None:
    model, privacy = session.result.sentences
    printed = words(session.printed).partition("─ ")[2]
    assert printed.startswith(model)
    beside = printed.removeprefix(model).partition(privacy)[0].strip()
    assert beside.startswith("Beside as many random rows: ")
    assert "MMD² times " in beside
    assert session.result.as_json()["judgement"] == list(session.result.sentences)


def test_so_does_procure(session: Session) -> None:
    columns: Any = None
    schema = Schema.__new__(Schema)
    procured = Procured(columns, session.result.settlement, columns, session.result, schema)  # type: ignore[arg-type]
    assert str(procured).startswith(" ".join(session.result.sentences))


def test_so_does_the_report(session: Session) -> None:
    page = (session.place / "record" / "report.html").read_text(encoding="utf-8")
    first = page[page.index("<h1>") : page.index('<dl class="tiles">')]
    text = words(html.unescape(re.sub(r"<[^>]+>", " ", first)))
    assert text.startswith(" ".join(["digits", *session.result.sentences]))
    assert page.index("accuracy, own and bought rows") < page.index("MMD² of all points, with weights")


def test_so_does_the_consumer(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    result = ConsumerResult(
        **ConsumerResult.shared(session.purchase),
        privacy=session.result.privacy,
        wall_seconds=1.0,
        ledger=Path("l"),
        transcript=Path("t"),
        data=Path("d"),
        table=None,
        outside=Changes({}, 0),
        seed_rows_shared=0,
    )
    with pytest.raises(SystemExit):
        run_verb(lambda: result, as_json=False, show=hushbid.consumer.cli.show)
    assert words(capsys.readouterr().out).startswith(" ".join(["digits", *session.result.sentences]))


@pytest.mark.parametrize("verb", ["train", "weigh"])
def test_so_do_the_verbs_that_follow(session: Session, verb: str) -> None:
    """They know the session by the consumer's transcript, which lies beside the points."""
    output = ("--output", session.place / "weighed.npz") if verb == "weigh" else ()
    given = (verb, session.delivered, *session.tables, *output)
    assert words(invoked(*given)).startswith(" ".join(session.result.sentences))
    assert json.loads(invoked(*given, "--json"))["judgement"] == list(session.result.sentences)


def test_owners_are_valued_in_the_order_that_the_consumer_has_them_in(session: Session) -> None:
    by_owner = session.result.own.by_owner
    order = sorted(by_owner, key=lambda owner: -by_owner[owner].gain)
    given = ("value", session.delivered, "--validation", session.place / "validation.npz")
    found = json.loads(invoked(*given, "--seed-set", session.place / "seed.npz", "--json"))["owners"]
    assert list(found) == order
    assert {owner: each["gain"] for owner, each in found.items()} == pytest.approx(
        {owner: part.gain for owner, part in by_owner.items()}
    )
    assert "gain over the seed set" in invoked(*given, "--seed-set", session.place / "seed.npz")
    assert "gain over nothing" in invoked(*given), "another gain has another word"


def test_protection_is_one_sentence_or_a_loud_one() -> None:
    def stated(protects: str, epsilon: float | None, why: str = "") -> PrivacyStatement:
        return PrivacyStatement(protects, "others", "n", epsilon, 1e-5, None, "secure", why)

    good = (stated(OWNERS_DATA, 0.0), stated(CONSUMERS_DATA, 3.0))
    assert judged(NO_MODEL, good)[1] == (
        f"Protected: {OWNERS_DATA} from others (ε = 0), "
        f"and {CONSUMERS_DATA} from others (ε = 3 at δ = 1e-05)."
    )
    bad = (stated(OWNERS_DATA, None, "nobody draws noise"), stated(CONSUMERS_DATA, 3.0, "nobody draws noise"))
    assert judged(NO_MODEL, bad)[1] == (
        f"NO PRIVACY for {OWNERS_DATA} from others nor for {CONSUMERS_DATA} from others: nobody draws noise."
    )
    assert "not known" in judged(ModelFigures(), ())[1]


def test_the_report_counts_owners_where_it_says_owners(session: Session) -> None:
    record = session.place / "record"
    given = ("report", record / "curator.transcript", "--output", session.place / "page.html", "--json")
    curator = json.loads(invoked(*given))["figures"]["rounds"]["curator"]
    assert curator["sealed_owners"] == [session.result.owners]
    assert curator["sealed"][0] > session.result.owners, "many points each"
    page = (session.place / "page.html").read_text(encoding="utf-8")
    plots = json.loads(page.partition('id="plots">')[2].partition("</script>")[0])
    line: Any = Document.from_json(plots["counts"]).select_one({"name": "handed a sealed point over"})
    assert line.data_source.data[line.glyph.y.field].tolist() == [session.result.owners]


def test_a_report_of_another_session_is_kept(session: Session) -> None:
    output = session.place / "kept.html"
    given = ("report", session.place / "record" / "curator.transcript", "--output", output)
    invoked(*given)
    invoked(*given)  # of the same session it is replaced
    other = re.sub(rb'(name="hushbid-session" content=")[0-9a-f]+', rb"\g<1>00", output.read_bytes())
    output.write_bytes(other)
    refused = CliRunner().invoke(app, [str(each) for each in given])
    assert refused.exit_code == 4
    assert "the report of another session, which is kept" in refused.stderr
    assert output.read_bytes() == other
