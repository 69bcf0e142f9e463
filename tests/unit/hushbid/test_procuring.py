"""`hushbid.procure`: from DataFrames to bought rows of the same library, by the code of `simulate`."""

from __future__ import annotations

import json
import warnings
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import tomli_w
from rich.console import Console

import hushbid
from hushbid import Procured, Schema
from hushbid.cluster.file import open_cluster
from hushbid.protocol import limits
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.results.run import RunResult
from hushbid.results.terminal import render
from hushbid.running.simulate import simulate
from hushbid.tables.frames import as_arrow

SCHEMA = Schema.of(
    [
        {"name": "age", "kind": "integer", "lower": 18, "upper": 90},
        {"name": "income", "kind": "number", "lower": 0, "upper": 200_000, "missing": 20_000},
        {"name": "job", "kind": "category", "categories": ["clerk", "farmer", "nurse"], "missing": "own"},
        {"name": "owner", "kind": "boolean", "weight": 0.5},
        {"name": "education", "kind": "ordinal", "categories": ["low", "mid", "high"]},
    ]
)


def people(count: int, nurses: float, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    income = np.round(np.exp(generator.normal(10.0 + nurses, 0.5, count)).clip(1e3, 2e5), 2)
    job = generator.choice(["clerk", "farmer", "nurse"], count, p=[0.9 - nurses, 0.1, nurses])
    return pd.DataFrame(
        {
            "free text": ["nobody's business"] * count,
            "age": generator.integers(18, 91, count),
            "income": np.where(generator.random(count) < 0.05, np.nan, income),
            "job": pd.Series(job).mask(generator.random(count) < 0.05).astype("category"),
            "owner": generator.random(count) < 0.3,
            "education": generator.choice(["low", "mid", "high"], count),
            "bought": (income > 25_000).astype(int),
        }
    )


OWNERS = {"north": people(150, 0.7, 1), "south": people(150, 0.1, 2), "east": people(150, 0.1, 3)}
WANTED = people(80, 0.7, 4)
TEST = people(200, 0.7, 5)
SOME: dict[str, list[Any]] = {str(name): TEST[name][:3].astype(object).tolist() for name in TEST}


def bought(**changes: Any) -> Procured:
    """Points of the owners. With `label=None` no model is trained, which takes most of the time."""
    given: dict[str, Any] = {
        "owners": OWNERS, "validation": WANTED, "test": TEST, "seed_set": people(30, 0.1, 6),
        "schema": SCHEMA, "points": 40, "epsilon": 3.0, "label": "bought", "rehearse": False,
    } | changes  # fmt: skip
    return hushbid.procure(**given)


@pytest.fixture(scope="module")
def procured() -> Procured:
    return bought(rehearse=True)


def test_no_report_is_drawn_that_nobody_could_read(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Path] = []

    def with_report(result: RunResult, _reference: object, directory: Path, _say: object) -> RunResult:
        drawn.append(directory)
        return result

    monkeypatch.setattr("hushbid.running.simulate.with_report", with_report)
    found = bought(points=5, label=None)
    assert (found.report, drawn) == (None, [])
    assert len(found.points) == 5


def test_what_is_bought_are_the_owners_rows(procured: Procured) -> None:
    points = procured.points
    assert isinstance(points, pd.DataFrame)
    assert list(points) == [
        "age", "income", "job", "owner", "education", "bought", "owner_", "round", "weight",
        "training_weight",
    ]  # fmt: skip
    assert len(points) == 40
    for row in points.itertuples():
        theirs = OWNERS[row.owner_]
        like = theirs[(theirs.age == row.age) & (theirs.education == row.education)]
        like = like[(like.income.fillna(20_000) == row.income) & (like.owner == row.owner)]
        jobs = ["?" if pd.isna(job) else job for job in like.job]
        assert ("?" if pd.isna(row.job) else row.job, row.bought) in list(zip(jobs, like.bought, strict=True))


def test_a_model_is_trained_on_own_rows_of_weight_one_and_on_bought_rows(procured: Procured) -> None:
    training, points = procured.training, procured.points
    assert isinstance(training, pd.DataFrame)
    assert list(training) == ["age", "income", "job", "owner", "education", "bought", "owner_", "weight"]
    own, theirs = training[training.owner_.isna()], training[training.owner_.notna()]
    assert (own.weight == 1.0).all()
    assert own.bought.tolist() == WANTED.bought.tolist()
    assert own.age.tolist() == WANTED.age.tolist()
    kept = points[points.training_weight > 0.0]
    assert theirs.weight.tolist() == kept.training_weight.tolist()
    assert theirs.age.tolist() == kept.age.tolist()
    assert procured.model.training_weights is not None
    assert theirs.weight.sum() == pytest.approx(procured.model.training_weights.total)


def test_the_model_is_judged_beside_own_rows_and_a_uniform_choice(procured: Procured) -> None:
    model = procured.model
    assert (model.metric, model.judged_on, model.judged, model.own_rows) == ("accuracy", "test", 200, 80)
    for figure in (model.own, model.bought, model.own_and_bought, model.uniform, model.own_and_uniform):
        assert figure is not None
    assert model.alone() in str(procured)


def test_own_rows_may_lack_a_label_and_those_that_have_one_count() -> None:
    some = WANTED.assign(bought=WANTED.bought.where(np.arange(80) < 30))
    found = bought(validation=some)
    assert found.model.own_rows == 30
    assert found.training.owner_.isna().sum() == 30
    assert found.training.bought.isna().sum() == 0
    none = bought(validation=WANTED.assign(bought=None))
    assert (none.model.own, none.model.own_rows) == (None, 0)
    assert none.model.bought is not None
    without = bought(validation=WANTED.drop(columns="bought"))
    assert np.array_equal(none.weights, without.weights)
    with pytest.raises(DataError, match="'bought' is missing"):
        bought(owners=OWNERS | {"north": some})


def test_labels_of_the_validation_set_are_of_the_owners_type_or_refused_and_none_is_quoted() -> None:
    texts = WANTED.assign(bought=[f"secret-{label}" for label in WANTED.bought])
    with pytest.raises(DataError, match="are text with the validation set, and numbers with north") as caught:
        bought(validation=texts)
    assert "secret" not in str(caught.value)


def test_a_model_that_cannot_be_asked_costs_no_result() -> None:
    kept = pd.concat([WANTED[WANTED.bought == label].head(2) for label in (0, 1)]).index
    few = WANTED.assign(bought=WANTED.bought.where(WANTED.index.isin(kept)))
    found = bought(validation=few, settings={"consumer.model": "KNeighborsClassifier"})
    assert "KNeighborsClassifier cannot be fitted" in found.model.why
    assert len(found.points) == 40


def test_amounts_are_bought_for_a_regression() -> None:
    def priced(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(bought=frame.age * 1.5 + frame.education.eq("high") * 20.0)

    found = bought(
        owners={name: priced(frame) for name, frame in OWNERS.items()},
        validation=priced(WANTED),
        test=priced(TEST),
    )
    assert found.model.metric == "r2"
    assert found.model.own_and_bought is not None
    assert found.model.own_and_bought.value > 0.8
    assert found.training.bought.dtype == float


def test_weights_and_figures_are_those_of_the_result(procured: Procured) -> None:
    weighted = procured.result.choices.run.weighted
    assert weighted is not None
    assert procured.weights.sum() == pytest.approx(1.0)
    assert np.array_equal(procured.points.weight, procured.weights)
    assert procured.effective_points == weighted.quality.effective_points
    assert procured.effective_points == pytest.approx(1.0 / (procured.weights**2).sum())
    assert procured.mmd2 == weighted.quality.mmd2
    assert weighted.quality.accuracy is not None
    owners, consumer, *_ = procured.privacy
    assert (owners.epsilon, owners.delta, owners.why) == (0.0, 0.0, "")
    assert "the noise is simulated" in consumer.why
    assert procured.result.standing is not None
    assert procured.result.standing.sentence() in str(procured)
    shown = procured._repr_html_()
    assert shown.startswith(procured.result._repr_html_())
    assert "<table" in shown
    assert (procured.report, dict(procured.transcripts), procured.result.data) == (None, {}, None)


def test_it_says_where_owners_had_fewer_points_than_were_to_be_bought(procured: Procured) -> None:
    assert "40 points." in str(procured)
    few = bought(
        owners={"north": OWNERS["north"][:20], "south": OWNERS["south"][:5]}, label=None, anyway=True
    )
    assert "25 of 40 points." in str(few)


def test_it_is_what_the_command_line_runs(procured: Procured, tmp_path: Path) -> None:
    """A cluster of hand-encoded files has the same result, except for places and times."""
    for name, frame in {**OWNERS, "wanted": WANTED, "test": TEST, "seeds": people(30, 0.1, 6)}.items():
        features = SCHEMA.encode(as_arrow(frame, name))
        np.savez(tmp_path / f"{name}.npz", features=features, labels=frame.bought.to_numpy())
    release = {"mechanism": "filtered-gaussian", "epsilon": 3.0}
    sections = {
        "session": {"name": "procured", "points": 40, "allow_nonprivate": True},
        "features": {
            "gamma": float(_gamma(tmp_path / "seeds.npz")), "columns": SCHEMA.width,
            "lower": list(SCHEMA.lower), "upper": list(SCHEMA.upper),
        },
        "target": release | {"neighbours": "substitute-one"},
        "summary": release | {"neighbours": "add-remove-one"},
        "acquisition": {"rule": "tender"},
        "owners": {name: {"data": f"{name}.npz"} for name in OWNERS},
        "consumer": {"validation": "wanted.npz", "seed_set": "seeds.npz", "test": "test.npz"},
    }  # fmt: skip
    path = tmp_path / "cluster.toml"
    path.write_text(tomli_w.dumps(sections))
    expected = simulate(open_cluster(path)).as_json()
    found = procured.result.as_json()
    differing = {name for name in expected if found[name] != expected[name]}
    assert differing <= {"wall_seconds", "rounds_per_second", "verdict", "verdict_why"}
    rehearsed = procured.result.verdict.rehearsal
    assert rehearsed is not None, "which `simulate` leaves to its caller"
    assert len(rehearsed.staged) == 4


def _gamma(seeds: Path) -> float:
    with np.load(seeds) as file:
        features = file["features"]
    scaled = (features - SCHEMA.lower) / (np.array(SCHEMA.upper) - SCHEMA.lower)
    apart = [((one - other) ** 2).sum() for place, one in enumerate(scaled) for other in scaled[:place]]
    return 1.0 / float(np.median(apart))


@pytest.fixture(scope="module")
def of_two_owners() -> pd.DataFrame:
    """The points that pandas' tables give."""
    owners = {name: OWNERS[name] for name in ("north", "south")}
    points = bought(owners=owners, gamma=1.0, points=10).points
    assert isinstance(points, pd.DataFrame)
    return points


@pytest.mark.parametrize("library", [pl.DataFrame, pa.Table], ids=["polars", "pyarrow"])
def test_points_are_of_the_validation_set_s_library_whatever_the_owners_is(
    library: Any, of_two_owners: pd.DataFrame
) -> None:
    def of(frame: pd.DataFrame) -> Any:
        return pl.from_pandas(frame) if library is pl.DataFrame else pa.Table.from_pandas(frame)

    owners = {"north": of(OWNERS["north"]), "south": as_arrow(OWNERS["south"], "south").to_pydict()}
    one = bought(owners=owners, validation=of(WANTED), gamma=1.0, points=10)
    assert isinstance(one.points, library)
    pd.testing.assert_frame_equal(one.points.to_pandas(), of_two_owners, check_dtype=False)


def test_a_directory_keeps_transcripts_points_and_a_report(tmp_path: Path) -> None:
    kept = bought(directory=tmp_path / "kept", points=5)
    assert set(kept.transcripts) == {"curator", "consumer", *OWNERS}
    assert all(path.is_file() for path in kept.transcripts.values())
    assert kept.report is not None
    assert kept.report.is_file()
    assert kept.result.data == tmp_path / "kept" / "delivered.npz"


def test_numbers_may_be_those_of_numpy_and_the_directory_text(tmp_path: Path) -> None:
    numbers = {"points": np.int64(5), "epsilon": np.float32(3.0), "seed": np.int64(1)}
    settings = {"session.batch": np.int64(5)}
    kept = bought(directory=str(tmp_path / "kept"), settings=settings, label=None, **numbers)
    assert kept.result.data == tmp_path / "kept" / "delivered.npz"
    assert kept.result.rounds == 1


def test_a_seed_set_may_be_drawn_from_all_that_the_schema_allows() -> None:
    one, other = (bought(seed_set=None, seed_points=25, seed=7, points=5, label=None) for _ in range(2))
    pd.testing.assert_frame_equal(one.points, other.points)


def test_a_drawn_seed_set_that_has_wanted_rows_is_refused_with_what_helps() -> None:
    kinds = hushbid.Schema.of(
        [{"name": "education", "kind": "category", "categories": ["low", "mid", "high"]}]
    )
    with pytest.raises(DataError, match="drawn seed set") as refusal:
        bought(seed_set=None, seed_points=25, schema=kinds, gamma=1.0, test=None)
    assert refusal.value.advice.startswith("Name a file of related data (`seed_set`)")


def test_settings_are_those_of_a_cluster_file() -> None:
    assert bought(label=None, settings={"session.batch": 20}).result.rounds == 2
    assert bought(label=None, settings={"acquisition.rule": "sealed"}).result.rounds == 40
    assert bought(label=None).result.rounds == 1
    prices = {"north": np.float64(2.5), "south": 1, "east": 1.0}
    bill = bought(label=None, settings={"wishes.prices": prices, "wishes.budget": 100}).result.bill
    assert bill is not None
    assert {name: line.price for name, line in bill.owners.items()} == prices
    with pytest.raises(ConfigError):
        bought(settings={"session.btch": 20})


def test_owners_have_the_names_that_people_have(tmp_path: Path) -> None:
    names = {"Hôpital Nord": "hopital-nord", "Site-1": "site-1", "east": "east"}
    tables = dict(zip(names, OWNERS.values(), strict=True))
    prices = dict.fromkeys(names, 1.0)
    found = bought(owners=tables, directory=tmp_path / "kept", settings={"wishes.prices": prices})
    plain = bought(
        owners={names[name]: frame for name, frame in tables.items()},
        label=None,
        settings={"wishes.prices": {names[name]: price for name, price in prices.items()}},
    )
    assert set(found.points.owner_) <= {*names}
    assert "Hôpital Nord" in set(found.points.owner_)
    assert [names[name] for name in found.points.owner_] == plain.points.owner_.tolist(), (
        "the same are chosen"
    )
    assert set(found.training.owner_.dropna()) <= {*names}
    assert found.result.as_json()["display"] == {"hopital-nord": "Hôpital Nord", "site-1": "Site-1"}
    assert {*found.transcripts} == {"curator", "consumer", *names.values()}, "files keep the roster's names"
    console = Console(file=StringIO(), width=100)
    render(found.result, console)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert "Hôpital Nord" in told
    assert "hopital-nord" not in told
    assert found.report is not None
    page = found.report.read_text(encoding="utf-8")
    assert "Hôpital Nord" in page
    assert page.count("hopital-nord") == 0


def test_a_hopeless_procurement_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    hopeless: dict[str, Any] = {
        "gamma": 1e-6, "directory": tmp_path / "kept", "rehearse": True, "label": None,
    }  # fmt: skip
    with pytest.raises(hushbid.Hopeless, match="are alike to the session") as refusal:
        bought(**hopeless)
    assert "`anyway=True` goes on all the same" in refusal.value.advice
    assert list(tmp_path.iterdir()) == []
    gone_on = bought(**hopeless, anyway=True)
    assert (gone_on.result.verdict.word, gone_on.result.verdict.anyway) == ("hopeless", True)
    on_record = json.loads((tmp_path / "kept" / "verdict.json").read_text())
    assert on_record["verdict"]["anyway"] is True
    assert gone_on.report is not None
    assert "It goes on anyway, as it was told to." in gone_on.report.read_text(encoding="utf-8")
    left_out = bought(gamma=1e-6, label=None).result.verdict
    assert (left_out.word, left_out.why) == (None, "it was to be left out")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"seed_points": 5}, "give `seed_set` or `seed_points`", id="two seed sets"),
        pytest.param({"seed_set": None}, "give `seed_set` or `seed_points`", id="no seed set"),
        pytest.param({"seed_set": people(1, 0.1, 6)}, "from which none follows", id="one seed"),
        pytest.param({"seed_set": pd.concat([people(1, 0.1, 6)] * 5)}, "are equal", id="equal seeds"),
        pytest.param({"owners": {" ": OWNERS["north"]}}, "owners: a name is empty", id="owner name"),
        pytest.param({"owners": {"consumer": WANTED}}, "an owner cannot be named consumer", id="role"),
        pytest.param({"owners": {"north": WANTED[:0]}}, "north holds no rows", id="no rows"),
        pytest.param({"gamma": -1.0}, "procure, [features]: gamma", id="gamma"),
        pytest.param({"seed_set": None, "seed_points": -1}, "`seed_points` is -1", id="negative"),
        pytest.param({"seed_set": None, "seed_points": 2.5}, "`seed_points` is 2.5", id="half a point"),
        pytest.param({"seed": None}, "The seed is None", id="no seed"),
        pytest.param({"points": None}, "neither a number nor text", id="no points"),
        pytest.param({"settings": {"session.batch": None}}, "neither a number nor text", id="no batch"),
        pytest.param({"schema": [{"name": "age"}]}, "is not a hushbid.Schema", id="no schema"),
        pytest.param({"owners": {1: OWNERS["north"]}}, "no mapping from names", id="a number for a name"),
        pytest.param({"owners": [5]}, "no mapping from names", id="owners without names"),
        pytest.param({"test": SOME | {"age": [2**70] * 3}}, "mixed or unknown types", id="large"),
        pytest.param(
            {"owners": {"north": SOME | {"job": ["nurse", "nurse"]}}},
            "north: column 'job' differs in length from column 'age'.",
            id="a shorter column",
        ),
        pytest.param(
            {"test": SOME | {"bought": [1], "job": ["nurse"] * 2, "at": [1] * 4}},
            "test: columns 'job', 'bought' differ in length from column 'age'.",
            id="columns of three lengths",
        ),
        pytest.param({"test": {"age": [1], "7": [2]}}, "its 2 columns are not listed", id="no header"),
        pytest.param({"seed": -1}, "The seed is -1", id="seed"),
        pytest.param({"seed": 2**32}, "The seed is 4294967296", id="large seed"),
        pytest.param({"test": pd.concat([TEST, TEST[["age"]]], axis=1)}, "two of one name", id="one name"),
        pytest.param({"owners": {}}, "There are no owners.", id="no owners"),
        pytest.param({"validation": WANTED[:0]}, "The validation set has no rows.", id="no validation rows"),
        pytest.param({"epsilon": 0.0}, "`epsilon` is 0.0.", id="epsilon"),
        pytest.param({"epsilon": -1}, "`epsilon` is -1.", id="negative epsilon"),
        pytest.param({"epsilon": float("nan")}, "`epsilon` is nan.", id="epsilon that is no number"),
        pytest.param({"epsilon": None}, "`epsilon` is None.", id="no epsilon"),
        pytest.param({"epsilon": True}, "`epsilon` is True.", id="a boolean for epsilon"),
        pytest.param({"label": "sold"}, "has no column 'sold'", id="label"),
        pytest.param(
            {"validation": WANTED.drop(columns="age")}, "validation has no column 'age'", id="column"
        ),
        pytest.param({"validation": WANTED.assign(age=17)}, "validation: column 'age': row 0", id="bounds"),
        pytest.param(
            {"owners": {"north": WANTED.assign(age=["33344"] * 80)}}, "north: column 'age'", id="text"
        ),
        pytest.param({"test": 5}, "test is an int, and no table", id="no table"),
        pytest.param(
            {"test": SOME | {"age": [1, 2, "33344"]}},
            "test: column 'age' has values of mixed or unknown types: row 2 (counted from 0) is text, where",
            id="mixed",
        ),
        pytest.param(
            {"owners": {"north": WANTED.assign(age=[*["33344"] * 9, 3, *["33344"] * 70])}},
            "north: column 'age' has values of mixed or unknown types: row 9 (counted from 0) is a number",
            id="a number among words",
        ),
        pytest.param(
            {"owners": OWNERS | {"east": OWNERS["east"].assign(bought="33344")}},
            "The labels in column 'bought' are numbers with the validation set, and text with east",
            id="labels of two kinds",
        ),
        pytest.param(
            {"validation": Path("no-such-file.csv")}, "no-such-file.csv cannot be read", id="no file"
        ),
        pytest.param({"validation": Path(__file__)}, "in no format of tables", id="ending"),
    ],
)
def test_what_does_not_fit_says_what_and_where(changes: dict[str, Any], says: str) -> None:
    with pytest.raises((ConfigError, DataError)) as caught:
        bought(**changes)
    assert says in caught.value.what
    assert "33344" not in str(caught.value) + caught.value.advice


@pytest.mark.parametrize("rule", ["sealed", "blind"])
def test_a_rule_that_keeps_the_map_from_the_curator_needs_no_other_argument(rule: str) -> None:
    sold = bought(settings={"acquisition.rule": rule}, points=10, label=None)
    assert len(sold.points) == 10
    again = bought(settings={"acquisition.rule": rule}, points=10, label=None)
    pd.testing.assert_frame_equal(sold.points, again.points)


def test_more_points_than_a_tender_chooses_are_bought_in_rounds_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MAX_HERDED", 9)
    with pytest.warns(
        UserWarning, match="^10 points are to be bought, and a tender chooses 9 at most"
    ) as told:
        assert bought(points=10, label=None).result.rule == "sealed"
    assert [Path(each.filename).name for each in told] == [Path(__file__).name], "it names the caller's line"
    with warnings.catch_warnings(action="error"):
        assert bought(points=9, label=None).result.rule == "tender"
        assert bought(points=10, label=None, settings={"acquisition.rule": "sealed"}).result.rule == "sealed"


@pytest.mark.parametrize(("label", "unlabelled"), [("bought", 0), (None, 20)])
def test_the_result_counts_points_without_a_label(label: str | None, unlabelled: int) -> None:
    result = bought(label=label, test=None, points=20).result
    assert result.unlabelled == result.as_json()["unlabelled"] == unlabelled
