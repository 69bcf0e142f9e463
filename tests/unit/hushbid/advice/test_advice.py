"""`hushbid advise`: its proposals, their sources, and the file that it writes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from typer.testing import CliRunner, Result

from hushbid.advice.files import bounds_of, owners_of, write_session
from hushbid.advice.proposal import GRID, Advice, advise
from hushbid.advice.trials import Bounds, Request
from hushbid.cli.app import app
from hushbid.consumer.verdict import Rehearsal, Staged
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.session import DraftSession, SessionFile
from hushbid.protocol.data import Dataset
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError

UNIT = Bounds(0.0, 1.0)


def curve(count: int, seed: int) -> npt.NDArray[np.float64]:
    """Points along a curve in the cube, which no single column shows."""
    rng = np.random.default_rng(seed)
    place = rng.random(count)
    rows = np.stack([place, place**2, 1.0 - place], axis=1) + rng.normal(0, 0.02, (count, 3))
    return np.clip(rows, 0.0, 1.0)


def dataset(rows: Any, name: str = "validation", labels: Any = None) -> Dataset:
    return Dataset.from_arrays(name, np.asarray(rows), labels)


def made(said: list[str] | None = None, **changes: Any) -> tuple[Advice, SessionFile]:
    known: dict[str, Any] = {
        "validation": dataset(curve(60, 1)),
        "bounds": UNIT,
        "owners": {"north": 400, "south": 200},
        "rehearse": False,
    }
    return advise(Request(**known | changes), say=(said if said is not None else []).append)


def advised(said: list[str] | None = None, **changes: Any) -> Advice:
    return made(said, **changes)[0]


def settings(advice: Advice) -> dict[str, Any]:
    return {each.setting: each.value for each in advice.proposals}


def sources(advice: Advice) -> dict[str, str]:
    return {each.setting: each.source for each in advice.proposals}


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Rehearsals whose outcome `ratio` computes from a session, and the rows of each."""
    made: dict[str, Any] = {"ratio": lambda session: 0.4, "rows": []}

    def rehearse(session: Any, rows: Any, seeds: Any, **_: Any) -> Rehearsal:
        made["rows"].append(rows)
        ratio = made["ratio"](session)
        return Rehearsal(tuple(Staged("some", each, 1.0, each, 1.0) for each in (9.0, ratio, ratio / 2)), 0.5)

    monkeypatch.setattr("hushbid.advice.trials.rehearse", rehearse)
    monkeypatch.setattr("hushbid.advice.proposal.rehearse", rehearse)
    return made


@pytest.fixture
def no_alternatives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proposal alone is rehearsed; settings beside it would take three times as long."""
    monkeypatch.setattr("hushbid.advice.proposal._alternatives", lambda *_: [])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.savez("validation.npz", features=curve(60, 1))
    np.savez("seeds.npz", features=curve(40, 2))
    np.savez("north.npz", features=np.random.default_rng(0).random((400, 3)))
    np.savez("south.npz", features=curve(200, 4))
    return tmp_path


# -- each setting ----------------------------------------------------------------------------------------


def test_every_setting_has_a_value_and_one_sentence() -> None:
    advice = advised()
    assert list(settings(advice)) == ["bounds", "γ", "d", "p", "b", "submission", "ε", "δ", "seed set"]
    for each in advice.proposals:
        assert each.why.endswith(".")
        assert len(each.why) < 160


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0])
def test_the_median_pair_is_about_a_width_apart(scale: float) -> None:
    rows = scale * np.random.default_rng(3).random((200, 3))
    gamma = settings(advised(validation=dataset(rows)))["γ"]
    distances = [((one - other) ** 2).sum() for one in rows[:50] for other in rows[50:]]
    assert 0.69 < 2.0 * gamma * float(np.median(distances)) < 1.45
    assert math.log2(gamma).is_integer()


def test_pairs_of_one_label_count_where_there_are_labels() -> None:
    near = np.random.default_rng(4).normal(0, 0.01, (80, 3))
    rows = np.clip(0.5 + near + np.repeat([[-0.4], [0.4]], 40, axis=0), 0, 1)
    labels = np.repeat([1, 2], 40)
    together = settings(advised(validation=dataset(rows)))["γ"]
    apart = advised(validation=dataset(rows, labels=labels))
    assert settings(apart)["γ"] > 16 * together
    assert "of one label" in next(each.why for each in apart.proposals if each.setting == "γ")
    # Labels of which no two are equal say nothing of who is alike.
    assert settings(advised(validation=dataset(rows, labels=np.arange(80))))["γ"] == together


def test_copies_do_not_make_the_median_0() -> None:
    rows = np.repeat(curve(6, 1), [50, 1, 1, 1, 1, 1], axis=0)
    assert math.isfinite(settings(advised(validation=dataset(rows)))["γ"])


@pytest.mark.parametrize(("owners", "wanted", "points"), [
    ([400, 200], None, 60),
    ([5000, 3000], None, 800),
    ([50_000], None, 1000),
    ([5000, 3000], 0.02, 160),
    ([5000, 3000], 0.5, 800),
    ([10], None, 1),
])  # fmt: skip
def test_a_tenth_is_bought_or_what_is_wanted(owners: list[int], wanted: float | None, points: int) -> None:
    sizes = {f"owner-{number}": size for number, size in enumerate(owners)}
    advice, file = made(owners=sizes, wanted=wanted)
    assert settings(advice)["p"] == points
    assert settings(advice)["submission"] == file.submission == points
    assert settings(advice)["b"] == file.batch


@pytest.mark.parametrize(
    ("largest", "delta"), [(400, 1e-5), (10_000, 1e-5), (10_001, 1e-6), (3_000_000, 1e-8)]
)
def test_delta_is_far_below_one_over_the_largest_set(largest: int, delta: float) -> None:
    assert settings(advised(owners={"north": largest}))["δ"] == delta
    assert delta <= 0.1 / largest


def test_the_dimension_is_the_default_or_what_is_given() -> None:
    in_rounds = advised(points=16_385, owners={"north": 200_000})
    assert settings(in_rounds)["d"] == 140
    assert any("a tender chooses 16,384 at most: the rule is sealed" in note for note in in_rounds.notes)
    assert not any("tender" in note for note in advised().notes)
    assert settings(advised(dimension=200))["d"] == 200


@pytest.mark.parametrize(("owners", "dimension"), [(2, 1_024), (52, 1_024), (53, 512), (210, 140)])
def test_the_dimension_of_a_tender_keeps_the_pool_within_a_gigabyte(owners: int, dimension: int) -> None:
    names = {f"owner-{number:03}": 10_000 for number in range(owners)}
    assert settings(advised(owners=names, points=10_000))["d"] == dimension


# -- ε ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("enough", GRID)
def test_epsilon_is_the_smallest_that_has_the_effect(staged: dict[str, Any], enough: float) -> None:
    said: list[str] = []
    staged["ratio"] = lambda session: 0.4 if session.file.target.parameters["epsilon"] >= enough else 0.7
    advice = advised(said, rehearse=True)
    assert settings(advice)["ε"] == enough
    assert advice.reached
    assert len(said) == len(staged["rows"]) <= 6
    assert sources(advice)["ε"] == "validation"


def test_the_best_is_said_where_none_is_enough(staged: dict[str, Any]) -> None:
    staged["ratio"] = lambda session: 1.0 / (1.0 + session.file.target.parameters["epsilon"])
    advice = advised(rehearse=True, effect=0.1)
    assert (settings(advice)["ε"], advice.effect, advice.reached) == (3.0, 0.1, False)
    assert advice.trials[0].ratio == 0.25


def test_width_and_dimension_have_alternatives(staged: dict[str, Any]) -> None:
    advice = advised(rehearse=True, gamma=2.0, epsilon=1.0)
    tried = {(each.gamma, each.dimension, each.epsilon) for each in advice.trials}
    assert tried == {(2.0, 1_024, 1.0), (0.5, 140, 1.0), (8.0, 140, 1.0), (2.0, 140, 1.0)}
    first = advice.trials[0]
    assert (first.gamma, first.dimension) == (2.0, 1_024)
    assert first.reach == pytest.approx(math.sqrt(math.log(2) / 2))
    wide, narrow = (next(each for each in advice.trials if each.gamma == width) for width in (0.5, 8.0))
    assert wide.kernel > first.kernel > narrow.kernel


def test_without_a_rehearsal_the_rule_of_thumb_says_what_epsilon_does() -> None:
    ratios = [advised(epsilon=epsilon, dimension=140).trials[0].ratio for epsilon in GRID]
    assert ratios == sorted(ratios, reverse=True)
    advice = advised()
    assert advice.trials[0].rehearsal is None
    assert sources(advice)["ε"] == "public"  # of m and p alone
    assert "Nothing was rehearsed: it was to be left out." in advice.notes[-1]


def test_a_rehearsal_is_played(staged: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    advice = advised(rehearse=True, epsilon=3.0, points=20, dimension=40)
    assert all(each.rehearsal is not None and len(each.rehearsal.staged) == 4 for each in advice.trials)


# -- what of it tells of the validation set --------------------------------------------------------------


def test_what_is_read_off_the_validation_set_is_said(staged: dict[str, Any]) -> None:
    advice = advised(rehearse=True)
    assert advice.disclosed == ["γ", "ε"]
    assert "no ε covers" in advice.disclosure
    assert advised(rehearse=True, gamma=1.0).disclosed == ["ε"]
    fixed = advised(rehearse=True, gamma=1.0, epsilon=1.0)
    assert (fixed.disclosed, fixed.disclosure) == ([], "")
    seeds = advised(rehearse=True, epsilon=1.0, seed_set=dataset(curve(30, 5), "seeds"))
    assert (seeds.disclosed, sources(seeds)["γ"]) == ([], "seed set")


def test_with_public_rows_nothing_but_m_follows_from_the_validation_set() -> None:
    """Two very different validation sets of one size get the same proposals, rehearsals included."""
    public = dataset(curve(80, 2), "public")
    (like, file), (unlike, other) = (
        made(validation=dataset(rows), public=public, rehearse=True, points=15, effect=0.9)
        for rows in (curve(60, 1), 0.01 * curve(60, 7))
    )
    assert like.proposals == unlike.proposals
    assert like.trials == unlike.trials
    assert file == other
    assert (like.disclosed, like.disclosure) == ([], "")
    assert Advice.from_json(like.as_json()) == like
    assert like.own is not None
    assert like.own != unlike.own


def test_as_many_public_rows_stand_for_the_validation_set_as_it_has(staged: dict[str, Any]) -> None:
    advised(rehearse=True, public=dataset(curve(20, 2), "public"), epsilon=1.0)
    *before, own = staged["rows"]
    assert {len(rows) for rows in before} == {60}
    assert np.array_equal(own, curve(60, 1))


def test_public_rows_give_bounds_a_tenth_beyond_them_rounded_outwards() -> None:
    public = dataset([[3, -0.1234, 1e6], [251, 0.5, 3e6], [40, 0.2, 2e6]], "public")
    rows = np.array([[10.0, 0.1, 1.5e6], [20.0, 0.2, 2.5e6]])
    found = settings(advised(validation=dataset(rows), public=public, bounds=None))["bounds"]
    assert found == {"lower": [-30.0, -0.19, 8e5], "upper": [280.0, 0.57, 3.2e6]}


# -- what cannot be --------------------------------------------------------------------------------------

BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "one row": ({"validation": dataset(curve(1, 1))}, DataError, "fewer than two rows"),
    "equal rows": ({"validation": dataset(np.full((20, 3), 0.5))}, DataError, "are equal"),
    "out of bounds": ({"validation": dataset(2 * curve(20, 1))}, DataError, "out of the session's public"),
    "no bounds": ({"bounds": None}, ConfigError, "not read off the validation set"),
    "bounds of other columns": ({"bounds": Bounds([0.0, 0.0], 1.0)}, ConfigError, "2 values for 3"),
    "bounds upside down": ({"bounds": Bounds(1.0, 0.0)}, ConfigError, "not above"),
    "a public column of one value": (
        {"bounds": None, "public": dataset([[0.1, 0.2, 0.3], [0.2, 0.2, 0.4]], "public")},
        DataError, "column 1 .* has one value",
    ),
    "beyond public bounds": (
        {"bounds": None, "public": dataset(0.1 + 0.1 * curve(20, 3), "public")}, DataError, "out of",
    ),
    "seeds of the set": ({"seed_set": dataset(curve(60, 1), "seeds")}, DataError, "in seeds too"),
    "no sizes": ({"owners": {}}, ConfigError, "number of points to buy"),
    "few points": ({"owners": {"north": 9}}, ConfigError, "nothing to choose"),
    "all points": ({"points": 600}, ConfigError, "all of them would be bought"),
    "no points": ({"points": 0}, ConfigError, "--points is 0"),
    "no share": ({"wanted": 0.0}, ConfigError, "--wanted is 0"),
    "no width": ({"gamma": math.inf}, ConfigError, "--gamma is inf"),
    "no effect": ({"effect": -1.0}, ConfigError, "--effect is -1"),
    "both": ({"effect": 0.5, "epsilon": 1.0}, ConfigError, "--effect asks"),
    "no values": ({"column_values": 1}, ConfigError, "--column-values is 1"),
    "odd dimension": ({"dimension": 7}, ConfigError, "even"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_no_session_can_be_made_of_is_refused(case: str) -> None:
    changes, error, what = BAD[case]
    with pytest.raises(error, match=what) as caught:
        advised(**changes)
    assert caught.value.advice  # type: ignore[attr-defined]


def test_columns_of_one_value_and_few_rows_are_said() -> None:
    rows = curve(7, 1)
    rows[:, 1] = 0.5
    advice = advised(validation=dataset(rows), rehearse=True)
    assert any("1 of 3 feature columns has one value" in note and "(1, c" in note for note in advice.notes)
    assert any("it is for 8 to 5,000 rows" in note for note in advice.notes)


def test_columns_of_one_value_have_the_names_of_a_table_s_columns() -> None:
    numbers = {"kind": "number", "lower": 0.0, "upper": 1.0}
    schema = Schema.of([{"name": name} | numbers for name in ("length [mm]", "depth", "mass")])
    rows = curve(60, 1)
    rows[:, 0] = 0.5
    advice = advised(validation=dataset(rows), schema=schema)
    assert any("has one value in the validation set ('length [mm]'):" in note for note in advice.notes)


def test_a_kernel_that_tells_nothing_apart_is_said() -> None:
    assert any("mean kernel value" in note for note in advised(gamma=1e-6).notes)


def test_what_is_wanted_is_judged_as_plan_does() -> None:
    assert any("buying by this protocol pays" in note.lower() for note in advised(wanted=0.02).notes)


def test_columns_of_few_values_may_share_rows_with_the_seed_set(place: Path) -> None:
    """Bytes coincide by chance; the session then declares it, or none would begin."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (60, 3), dtype=np.uint8)
    seeds = np.concatenate([rows[:2], rng.integers(0, 256, (30, 3), dtype=np.uint8)])
    known: dict[str, Any] = {
        "validation": dataset(rows),
        "seed_set": dataset(seeds, "seeds"),
        "bounds": Bounds(0.0, 255.0),
    }
    with pytest.raises(DataError, match="in seeds too"):
        advised(**known)
    advice, file = made(**known, column_values=256)
    assert file.session.column_values == 256
    write_session(place / "session.toml", advice, file, name="bytes")
    assert load_toml(DraftSession, place / "session.toml").session.column_values == 256


@pytest.mark.parametrize("labelled", [False, True])
def test_a_session_requires_labels_where_the_validation_set_has_them(place: Path, labelled: bool) -> None:
    write_session(place / "session.toml", *made(), name="ours", labelled=labelled)
    assert load_toml(DraftSession, place / "session.toml").session.labels == ("any" if labelled else None)


# -- options ---------------------------------------------------------------------------------------------


def test_sizes_and_bounds_are_read() -> None:
    assert owners_of("5000,3_000") == {"owner-1": 5000, "owner-2": 3000}
    assert owners_of("north=5, south.2=7") == {"north": 5, "south.2": 7}
    assert bounds_of("0", "1,2.5") == Bounds(0.0, [1.0, 2.5])
    assert bounds_of(None, None) is None
    for text in ("", "x", "0", "5,,3", "a=5,a=6", "Nord=5", "5.5", "north=5000,3000"):
        with pytest.raises(ConfigError):
            owners_of(text)
    for pair in (("0", None), (None, "1"), ("a", "1"), ("0", "nan")):
        with pytest.raises(ConfigError):
            bounds_of(*pair)


# -- the verb --------------------------------------------------------------------------------------------


def verb(*options: str, bounds: tuple[str, ...] = ("--lower", "0", "--upper", "1")) -> Result:
    given = ["advise", "validation.npz", *bounds, "--owners", "north=400,south=200", *options]
    return CliRunner().invoke(app, given)


def test_it_shows_a_table_of_eighty_columns_at_most(place: Path) -> None:
    done = verb("--points", "15", "--epsilon", "1")
    assert done.exit_code == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    for word in ("γ*", "seed set", "proposed", "half width", "keep them to yourself", "no ε covers"):
        assert word in " ".join(done.stdout.split())
    assert done.stderr.count("Rehearsing") == 4


def test_the_json_has_the_same_and_the_alternatives(place: Path) -> None:
    done = verb("--no-rehearsal", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert [each["setting"] for each in found["settings"]][:3] == ["bounds", "γ", "d"]
    assert found["disclosed"] == ["γ"]
    assert len(found["trials"]) >= 4
    assert found["written"] is None


def test_an_effect_that_nothing_reaches_is_no_error(place: Path) -> None:
    done = verb("--no-rehearsal", "--effect", "0.001")
    assert done.exit_code == 0, done.stderr
    assert "No ε of those tried comes to 0.001" in done.stdout


def test_what_is_said_of_trials_names_the_columns_that_are_judged(
    place: Path, staged: dict[str, Any]
) -> None:
    few = {0.1: 0.99, 0.3: 0.98, 1.0: 0.97, 3.0: 0.8}  # at the d of the search; the proposal's d does worse
    staged["ratio"] = lambda session: (
        few[session.file.target.parameters["epsilon"]] if session.space.dimension == 140 else 1.164
    )
    done = verb()
    assert done.exit_code == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "0.5 of a random choice's MMD² both where 1/10 and where 1/50 is wanted" in said
    assert "the proposal comes to 1.16 at ε = 3, in the worse of the two" in said
    whys = {each["setting"]: each["why"] for each in json.loads(verb("--json").stdout)["settings"]}
    assert "1.16 of a random choice's MMD² in the worse of two cases (1/10 and 1/50" in whys["ε"]
    assert whys["d"].endswith("140 comes less close on average, whatever a single trial shows by chance.")


def test_the_session_file_can_be_planned_and_lacks_only_keys(place: Path) -> None:
    done = verb("--no-rehearsal", "--write", "session.toml", "--name", "bought")
    assert done.exit_code == 0, done.stderr
    assert "WARNING: γ follows from the validation set." in done.stderr
    draft = load_toml(DraftSession, place / "session.toml")
    assert (draft.session.name, draft.session.points, list(draft.roster.owners)) == (
        "bought",
        60,
        ["north", "south"],
    )
    assert "does not cover it" in (place / "session.toml").read_text()
    planned = CliRunner().invoke(app, ["plan", "session.toml", "--validation", "60", "--json"])
    assert planned.exit_code == 0, planned.stderr
    listed = CliRunner().invoke(app, ["keys", "list", "--session", "session.toml"])
    assert "no key yet" in listed.stdout + listed.stderr
    again = verb("--no-rehearsal", "--write", "session.toml")
    assert (again.exit_code, "is there already" in again.stderr) == (4, True)


def test_a_name_with_a_point_is_one_owner(place: Path) -> None:
    assert verb("--no-rehearsal", "--owners", "north.1=900", "--write", "session.toml").exit_code == 0
    assert list(load_toml(DraftSession, place / "session.toml").roster.owners) == ["north.1"]
