"""Others' labels, identifiers, categories, column names and reasons on every way out to a person.

Their authors may try to steer the reader's terminal. Nothing active may reach a stream or a page, and readers
must see that something was there.
"""

from __future__ import annotations

import ast
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

import hushbid.consumer.cli
from hushbid.cli.app import app
from hushbid.cli.terminal import Terminal
from hushbid.consumer.result import ConsumerResult, PurchaseResult
from hushbid.curator.ledger import PointFault
from hushbid.protocol.data.dataset import Changes
from hushbid.protocol.errors import HushbidError
from hushbid.protocol.runtime.command import run_verb
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import LogFormat, log, set_up_logging
from hushbid.report.html import data_script, element
from hushbid.results.run import RunResult
from hushbid.results.terminal import render
from tests.conftest import ROOT
from tests.support.run_results import run_results

EVIL = "\x1b]0;owned\x07\u202eevil\n=1+1\x9b2J[red]"
SHOWN = r"\x1b]0;owned\x07\u202eevil\n=1+1\x9b2J[red]"
JOBS = ["clerk", "farmer", f"nurse{EVIL}"]
COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "kind": "integer", "lower": 18, "upper": 90},
    {"name": "income", "kind": "number", "lower": 0, "upper": 1},
    {"name": f"job{EVIL}", "kind": "category", "categories": JOBS},
]


FAULT = PointFault(1, "north", EVIL)


def clean(text: str) -> str:
    """The text without active characters; a line break of our own ends a line."""
    bad = sorted({character for character in text if not (character.isprintable() or character == "\n")})
    assert not bad, (bad, text)
    assert "\n=1+1" not in text
    return text


def invoked(*arguments: object, ends: int = 0) -> str:
    said = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "400"})
    assert said.exit_code == ends, (said.stdout, said.stderr, said.exception)
    clean(said.stderr)
    return clean(said.stdout)


def rows(count: int, seed: int, who: str) -> Any:
    generator = np.random.default_rng(seed)
    jobs = generator.choice(JOBS, count)
    return pa.table(
        {
            "age": generator.integers(18, 91, count),
            "income": generator.random(count),
            f"job{EVIL}": jobs.tolist(),
            "wage": [f"{'high' if job == JOBS[2] else 'low'}{EVIL}" for job in jobs],
            "id": [f"{who}{number}{EVIL}" for number in range(count)],
        }
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a session in which every text of others is hostile."""
    place = tmp_path_factory.mktemp("hostile")
    for seed, (name, count) in enumerate({"north": 60, "south": 60, "validation": 40, "seed": 15}.items()):
        pq.write_table(rows(count, seed, name), place / f"{name}.parquet")
    named = {"columns": {"label": "wage", "identifier": "id"}}
    sections = {
        "session": {"name": "hostile", "points": 30, "allow_nonprivate": True},
        "target": {"mechanism": "exact"},
        "summary": {"mechanism": "exact"},
        "acquisition": {"rule": "ask-all"},
        "columns": COLUMNS,
        "features": {"seed": 7, "gamma": 1.0},
        "owners": {name: {"data": f"{name}.parquet", **named} for name in ("north", "south")},
        "consumer": {"validation": "validation.parquet", "seed_set": "seed.parquet", **named},
    }
    path = place / "cluster.toml"
    path.write_text(tomli_w.dumps(sections), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def bought(cluster: Path) -> tuple[Path, str, RunResult, PurchaseResult]:
    """The files and output of `hushbid simulate`, its result, and its consumer's."""
    with run_results() as seen:
        record = cluster.parent / "record"
        shown = invoked("simulate", cluster, "--record", record, "--details")
    return record, shown, *seen[0]


def test_a_run_is_shown(bought: tuple[Path, str, RunResult, PurchaseResult]) -> None:
    _, shown, result, _ = bought
    assert f"high{SHOWN}" in shown
    assert any(EVIL in str(each.label) for each in result.own.label_shares.classes), (
        "else nothing hostile was bought"
    )
    failed = replace(result, failed_parties={"north": EVIL}, faults=(FAULT,))
    console = Terminal(width=400)
    with console.capture() as captured:
        render(failed, console, details=True)
    assert clean(captured.get()).count(SHOWN) >= 3


def test_a_consumer_s_result_is_shown(
    bought: tuple[Path, str, RunResult, PurchaseResult], capsys: pytest.CaptureFixture[str]
) -> None:
    *_, result, consumer = bought
    told = ConsumerResult(
        **ConsumerResult.shared(consumer),
        privacy=result.privacy,
        wall_seconds=1.0,
        ledger=Path("l"),
        transcript=Path("t"),
        data=Path(EVIL),
        table=None,
        outside=Changes({}, 0),
        seed_rows_shared=0,
    )
    for as_json in (False, True):
        with pytest.raises(SystemExit) as ended:
            run_verb(lambda: told, as_json=as_json, show=hushbid.consumer.cli.show)
        assert ended.value.code == 0
        out = clean(capsys.readouterr().out)
        if as_json:
            assert json.loads(out)["label_shares"] == consumer.own.label_shares.as_json(), "JSON is exact"
        else:
            assert f"high{SHOWN}" in out


def test_a_report_has_nothing_that_acts(bought: tuple[Path, str, RunResult, PurchaseResult]) -> None:
    record, *_ = bought
    page = (record / "report.html").read_text(encoding="utf-8")
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(page)
    transcripts = sorted(record.glob("*.transcript"))
    validation = record.parent / "validation.parquet"
    output = record.parent / "drawn.html"
    consumers = [path for path in transcripts if path.name.startswith("consumer")]
    invoked("report", *consumers, "--output", output, "--validation", validation, "--label", "wage")
    page = output.read_text(encoding="utf-8")
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(page)
    assert "nurse\\\\x1b" in page or r"nurse\x1b" in page


def test_markup_and_data_of_a_page_have_nothing_that_acts() -> None:
    made = element("td", EVIL, title=EVIL)
    assert clean(made.replace("\n=1+1", "")).count(r"\x1b") == 2
    clean(data_script("x", {EVIL: f"{EVIL}\x7f"}))


def test_transcripts_are_shown(bought: tuple[Path, str, RunResult, PurchaseResult]) -> None:
    record, *_ = bought
    files = sorted(record.glob("*.transcript"))
    for file in files:
        invoked("transcript", "show", file, "--private")
        invoked("transcript", "show", file, "--private", "--json")
    invoked("transcript", "show", files[0], "--kind", EVIL)
    invoked("transcript", "verify", *files)
    invoked("transcript", "diff", files[0], files[0], "--private")


def test_what_is_made_of_a_delivery_is_shown(
    cluster: Path, bought: tuple[Path, str, RunResult, PurchaseResult], tmp_path: Path
) -> None:
    record, *_ = bought
    session = ("--session", cluster)
    validation = ("--validation", cluster.parent / "validation.parquet")
    labelled = (*validation, *session, "--label", "wage")
    delivered = record / "delivered.npz"
    invoked("train", delivered, *labelled)
    invoked("weigh", delivered, *labelled, "--output", tmp_path / "weighed.npz")
    invoked("value", delivered, *validation, *session)
    invoked("weigh", delivered, *validation, *session, "--features", EVIL, ends=4)


def test_a_schema_is_drafted_and_means_what_it_should(cluster: Path) -> None:
    shown = invoked("schema", "draft", cluster.parent / "north.parquet", "--public", "--label", "wage")
    import tomllib

    names = [each["name"] for each in tomllib.loads(shown)["columns"]]
    assert f"job{EVIL}" in names


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("age", [17], "row 0"),
        (f"job{EVIL}", [f"thief{EVIL}"], SHOWN),
        ("id", [None], "is missing"),
    ],
)
def test_errors_about_a_row_are_shown(
    cluster: Path, tmp_path: Path, column: str, values: list[Any], says: str
) -> None:
    table = rows(1, 0, "x")
    place = table.column_names.index(column)
    kind = table.schema.field(place).type
    pq.write_table(table.set_column(place, column, pa.array(values, kind)), tmp_path / "bad.parquet")
    schema = tmp_path / "schema.toml"
    schema.write_text(tomli_w.dumps({"columns": COLUMNS}), encoding="utf-8")
    done = CliRunner().invoke(
        app,
        ["schema", "encode", str(schema), str(tmp_path / "bad.parquet"), "--output", str(tmp_path / "o.npz"),
         "--label", "wage", "--identifier", "id"],
    )  # fmt: skip
    assert done.exit_code == 4
    assert says in clean(done.stderr)


def test_an_error_is_shown_and_logged(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> dict[str, Any]:
        raise HushbidError(f"The peer says {EVIL}.", advice=EVIL.replace("\n", ""))

    with pytest.raises(SystemExit):
        run_verb(fails, as_json=True)
    said = capsys.readouterr()
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(said.err + said.out)
    for form in LogFormat:
        set_up_logging("north", form)
        log(LogEvent.PARTY_FAILED, reason=f"{EVIL}\x7f", advice=EVIL)
        clean(capsys.readouterr().err)


def test_the_console_takes_text_as_text_on_a_terminal_too() -> None:
    file = io.StringIO()
    console = Terminal(width=200)
    console.file, console._force_terminal = file, True  # as on a terminal: rich's own sequences are there
    table = Table("head")
    table.add_row(f"{EVIL}[link=https://evil.example]x[/link] :smile:")
    console.print(table, Text(EVIL), EVIL)
    out = file.getvalue()
    assert "\x1b]" not in out
    assert not {"\x07", "\u202e", "\x9b"} & set(out)
    assert "[link=https://evil.example]x[/link] :smile:" in out, "not cut: it was measured as it is shown"


WRITERS = {
    "curator/cli.py": {"stdout"},
    "hushbid/cli/terminal.py": {"Console"},
    "hushbid/cli/ledger.py": {"stdout"},
    "hushbid/cli/preflight.py": {"stdout", "stderr"},
    "hushbid/cli/schema.py": {"stdout"},
    "hushbid/cli/transcript.py": {"stdout"},
    "hushbid/cli/watch.py": {"stdout"},
    "hushbid/cli/web.py": {"stdout"},
    "hushbid/cli/app.py": {"stdout"},
    "lab/bench/peer_rounds/dask_run.py": {"print"},
    "lab/bench/peer_rounds/flower_simulation.py": {"print"},
    "lab/bench/peer_rounds/grpc_echo.py": {"print"},
    "lab/bench/relay.py": {"stdout"},
    "hushbid/results/terminal.py": {"Console"},
    "lab/bench/scale_cell.py": {"stdout"},
    "protocol/runtime/ending.py": {"stdout", "stderr"},
    "protocol/runtime/interrupts.py": {"stdout", "stderr"},
    "protocol/runtime/standard_streams.py": {"stdout"},
    "protocol/runtime/telemetry/logs.py": {"stderr"},
}
"""The modules that write to a stream themselves, or make a console: by `printable`, or JSON."""


def test_no_other_module_writes_to_a_stream() -> None:
    found: dict[str, set[str]] = {}
    for folder in ("hushbid", "protocol", "owner", "consumer", "curator", "lab"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if any(part.is_symlink() for part in path.relative_to(ROOT).parents if part != Path()):
                continue
            text = path.read_text(encoding="utf-8")
            # Parsing takes long, and whoever writes to a stream has one of these names.
            named = any(word in text for word in ("Console", "print", "sys"))
            if named and (used := _written_to(ast.parse(text))):
                found[str(path.relative_to(ROOT))] = used
    assert found == WRITERS


def _written_to(tree: ast.AST) -> set[str]:
    used = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Console")) | ast.ClassDef(bases=[ast.Name(id="Console")]):
                used.add("Console")
            case ast.Call(func=ast.Name(id="print")):
                used.add("print")
            case ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr" as stream):
                used.add(stream)
    return used
