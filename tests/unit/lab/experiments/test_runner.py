"""The runner of experiments: what it keeps, reruns, and leaves in a directory."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import matplotlib
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import tomli_w
from matplotlib.figure import Figure as Canvas
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.lab.experiment_fields import ExperimentOptions
from hushbid.lab.experiment_options import (
    OPTIONS,
    KmeOptions,
    RegressionOptions,
    ScreeningOptions,
    SelectionOptions,
    declaration,
    experiment,
    read_declaration,
)
from hushbid.lab.experiments.cells import Cell, CellFiles, Configuration, Measured, data_of
from hushbid.lab.experiments.cells import software as software_here
from hushbid.lab.experiments.results import PlottedFigure, _scale_by_magnitude
from hushbid.lab.experiments.runner import Experiment, Outcome, run
from hushbid.protocol import __version__
from hushbid.protocol.errors import ConfigError

RUNS: list[tuple[float, int]] = []
"""What was measured in this process."""


@dataclass(frozen=True, kw_only=True)
class ToyOptions(ExperimentOptions):
    NAME: ClassVar[str] = "toy"
    widths: Sequence[float] = (1.0, 2.0)
    data: Path | None = None
    stop_at: int | None = None


@dataclass(frozen=True)
class ToyRow:
    width: float
    total: float
    each: tuple[float, ...]


def pairs(options: ToyOptions) -> Iterator[tuple[Configuration, int]]:
    for seed in options.every_seed:
        for width in options.widths:
            yield {"width": width, "kind": None}, seed


def measure(options: ToyOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    if options.stop_at is not None and len(RUNS) >= options.stop_at:
        raise KeyboardInterrupt
    RUNS.append((configuration["width"], seed))
    return {"area": configuration["width"] * (seed + 0.1), "parts": {"left": seed, "right": None}}


def row(configuration: Configuration, measured: Sequence[Measured]) -> ToyRow:
    areas = tuple(each["area"] for each in measured)
    return ToyRow(configuration["width"], sum(areas), areas)


TOY = Experiment(
    options=ToyOptions,
    title="Toy",
    pairs=pairs,
    measure=measure,
    row=row,
    said=lambda configuration, seed: f"{configuration['width']:g}, {seed}",
    files=lambda options, _configuration: [] if options.data is None else [options.data],
    figure=PlottedFigure("width", "area"),
)


@pytest.fixture(autouse=True)
def _nothing_measured() -> None:
    RUNS.clear()


def ran(place: Path | None, *, draws: bool = False, **settings: Any) -> Outcome[ToyRow]:
    """Run it; drawing its figure takes longer than all else."""
    with pytest.MonkeyPatch.context() as patch:
        if not draws:
            patch.setattr("hushbid.lab.experiments.results.find_spec", lambda _name: None)
        return run(TOY, ToyOptions(**{"seeds": 2, **settings}, out=place))


def cells(place: Path) -> list[Path]:
    return sorted((place / "cells").iterdir())


def test_a_row_has_all_seeds_of_its_configuration() -> None:
    outcome = ran(None)
    assert outcome.rows == [
        ToyRow(1.0, 1.2000000000000002, (0.1, 1.1)),
        ToyRow(2.0, 2.4000000000000004, (0.2, 2.2)),
    ]
    assert (outcome.cells, outcome.kept) == (4, 0)


def test_what_is_done_is_not_run_again(tmp_path: Path) -> None:
    first = ran(tmp_path)
    assert len(cells(tmp_path)) == 4
    RUNS.clear()
    again = ran(tmp_path, seeds=3)
    assert RUNS == [(1.0, 2), (2.0, 2)]
    assert (again.cells, again.kept) == (6, 4)
    assert again.rows[0].each[:2] == first.rows[0].each


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt) as interrupt:
        ran(tmp_path, stop_at=3)
    assert interrupt.value.__notes__ == ["3 of 4 cells are done; the same command goes on."]
    assert len(cells(tmp_path)) == 3
    assert not list(tmp_path.rglob("*.partial"))
    RUNS.clear()
    assert ran(tmp_path).rows == ran(None).rows
    assert RUNS[0] == (2.0, 1)


@pytest.mark.parametrize("damage", ["", "{", '{"measured": {}}', "[]", "changed"])
def test_a_damaged_file_is_made_anew_and_said(tmp_path: Path, damage: str) -> None:
    rows = ran(tmp_path).rows
    path = cells(tmp_path)[0]
    good = path.read_text()
    # One digit of a figure is another, too: a file that can be read is not always a sound one.
    path.write_text(good.replace('"left": ', '"left": 1') if damage == "changed" else damage)
    RUNS.clear()
    again = ran(tmp_path)
    assert (again.rows, again.kept, list(again.damaged), len(RUNS)) == (rows, 3, [path], 1)
    assert path.read_text() == good


def test_other_data_or_other_software_are_other_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data.csv"
    for text, software in (("1", "a"), ("2", "a"), ("2", "b"), ("2", "b")):
        data.write_text(text)
        monkeypatch.setattr("hushbid.lab.experiments.cells.software", lambda s=software: {"hushbid": s})
        ran(tmp_path / "out", data=data)
    assert (len(RUNS), len(cells(tmp_path / "out"))) == (12, 12)


def test_a_worker_with_other_software_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its figures would be kept under this machine's name."""
    cell = Cell("toy", {"width": 1.0}, 0, ())
    sent = pickle.dumps((cell, cell.digest))
    here = software_here()
    monkeypatch.setattr(
        "hushbid.lab.experiments.cells.software", lambda: {**here, "numpy": "0.1", "scipy": "0.2"}
    )
    arrived, digest = pickle.loads(sent)
    assert arrived.digest == digest
    with pytest.raises(ConfigError, match="another version than this machine of: numpy, scipy"):
        arrived.check_software()
    monkeypatch.setattr("hushbid.lab.experiments.cells.software", lambda: here)
    arrived.check_software()


def test_a_process_with_other_data_is_refused(tmp_path: Path) -> None:
    """A worker's file may have the same name and place, but other content."""
    path, other = tmp_path / "data.csv", tmp_path / "other.csv"
    path.write_text("1")
    other.write_text("1")
    cell = Cell("toy", {"width": 1.0}, 0, data_of([path, other]))
    arrived, digest = pickle.loads(pickle.dumps((cell, cell.digest)))
    assert arrived.digest == digest
    arrived.check_data([path, other])
    path.write_text("2")
    with pytest.raises(ConfigError, match=r"has other data than this run began with: data\.csv\."):
        arrived.check_data([path, other])
    path.unlink()
    with pytest.raises(ConfigError, match=r"other data than this run began with: data\.csv\."):
        arrived.check_data([path, other])
    path.write_text("1")
    with pytest.raises(ConfigError, match="the same files in another order"):
        arrived.check_data([other, path])


def test_data_that_change_in_a_run_leave_no_figure_under_the_name_of_the_old_ones(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("1")
    with pytest.raises(ConfigError, match="other data than this run began with"):
        ran(tmp_path / "out", data=data, say=lambda said: data.write_text("22") if said == "2, 0" else None)
    assert RUNS == [(1.0, 0)]
    assert len(cells(tmp_path / "out")) == 1


def test_data_that_cannot_be_read_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "data.csv").write_text("1")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ConfigError, match=r"data\.csv: cannot be read: Permission denied"):
        data_of([tmp_path])


def test_where_data_lie_makes_no_other_cell(tmp_path: Path) -> None:
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "data.csv").write_text("1")
        ran(tmp_path / "out", data=tmp_path / place / "data.csv")
    assert len(RUNS) == 4


def test_a_pair_that_is_asked_for_twice_is_one_cell() -> None:
    assert ran(None, widths=(1.0, 1.0)).rows == ran(None, widths=(1.0,)).rows


def test_a_file_keeps_figures_to_the_last_bit(tmp_path: Path) -> None:
    ran(tmp_path)
    assert ran(tmp_path).rows == ran(None).rows


def test_what_is_run_is_said() -> None:
    said: list[str] = []
    ran(None, say=said.append, seeds=1)
    assert said == ["1, 0", "2, 0"]


def test_a_directory_that_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is no directory"):
        ran(tmp_path / "file" / "out")
    assert RUNS == []


def test_tables_have_a_row_for_each_cell(tmp_path: Path) -> None:
    ran(tmp_path)
    table = pq.read_table(tmp_path / "results.parquet")
    assert table.column_names == ["experiment", "width", "kind", "seed", "area", "parts.left", "parts.right"]
    assert table["area"].to_pylist() == pytest.approx([0.1, 0.2, 1.1, 2.2])
    assert table["seed"].to_pylist() == [0, 0, 1, 1]
    text = pacsv.read_csv(tmp_path / "results.csv")
    assert text["area"].to_pylist() == table["area"].to_pylist()


def test_the_rows_are_kept_as_a_small_table_of_their_own(tmp_path: Path) -> None:
    ran(tmp_path)
    # What each seed came to is in the other table.
    assert (tmp_path / "rows.csv").read_text() == "width,total\n1,1.2\n2,2.4\n"


def test_the_page_has_the_rows_and_what_they_rest_on(tmp_path: Path) -> None:
    ran(tmp_path)
    page = (tmp_path / "results.md").read_text()
    assert "| width | total |" in page
    assert "| 2 | 2.4 |" in page
    assert f"| hushbid | {__version__} |" in page


def test_the_figure_is_drawn_twice_and_the_same_each_time(tmp_path: Path) -> None:
    ran(tmp_path, draws=True)
    images = {kind: (tmp_path / f"figure.{kind}").read_bytes() for kind in ("png", "svg")}
    assert images["png"].startswith(b"\x89PNG")
    assert b"<svg" in images["svg"]
    assert "![area by width](figure.svg)" in (tmp_path / "results.md").read_text()
    ran(tmp_path, draws=True)
    assert images == {kind: (tmp_path / f"figure.{kind}").read_bytes() for kind in images}


def drawn(figure: PlottedFigure, place: Path, **settings: Any) -> tuple[str, str]:
    """The figure's SVG, with its text as text, and the page."""
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        run(replace(TOY, figure=figure), ToyOptions(**{"seeds": 2, **settings}, out=place))
    return (place / "figure.svg").read_text(), (place / "results.md").read_text()


def test_each_value_of_a_panel_has_axes_of_its_own_and_a_line_the_same_name_in_all(tmp_path: Path) -> None:
    svg, _ = drawn(PlottedFigure("seed", "area", ("kind",), panel="width"), tmp_path)
    assert svg.count(">width 1.0<") == svg.count(">width 2.0<") == 1
    assert "width 1.0" not in drawn(PlottedFigure("seed", "area", ("kind",)), tmp_path / "one")[0]


def test_the_page_names_the_lines_that_are_not_drawn(tmp_path: Path) -> None:
    widths = tuple(float(number) for number in range(1, 23))
    svg, page = drawn(PlottedFigure("seed", "area", ("width",)), tmp_path, widths=widths)
    assert "Not drawn, as there are too many: width 21.0; width 22.0." in page
    assert ">width 20.0<" in svg
    assert ">width 21.0<" not in svg
    assert "Not drawn" not in drawn(PlottedFigure("seed", "area", ("width",)), tmp_path / "few")[1]


@pytest.mark.parametrize(
    ("values", "scale", "lowest"),
    [
        ([1.0, 100.0], "log", None),
        ([0.0, 1.0, 100.0], "symlog", -0.3),
        ([-5.0, 1.0], "symlog", None),
        ([0.0], "linear", None),
    ],
)
def test_a_line_at_zero_is_seen_on_an_axis_of_magnitudes(
    values: Sequence[float], scale: str, lowest: float | None
) -> None:
    axes = Canvas().add_subplot()
    axes.plot(values)
    _scale_by_magnitude(axes, values)
    assert axes.get_yscale() == scale
    if lowest is not None:
        assert axes.get_ylim()[0] == lowest


def test_without_matplotlib_the_page_says_that_there_is_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushbid.lab.experiments.results.find_spec", lambda _name: None)
    ran(tmp_path, draws=True)
    assert not list(tmp_path.glob("figure.*"))
    assert "matplotlib is not installed" in (tmp_path / "results.md").read_text()


# -- what declares one ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        SelectionOptions(points=[5], epsilons=[1.0, 2.0], batch=2),
        KmeOptions(Path("/data"), settings=["1-2d-leak-977"], simulated=True, seeds=[3, 4]),
        RegressionOptions("airfoil", Path("/data"), first_seed=7),
    ],
    ids=lambda options: options.NAME,
)
def test_a_declaration_is_read_as_it_was_written(options: ExperimentOptions, tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(declaration(options))
    assert read_declaration(path) == options
    assert read_declaration(path, jobs=3) == replace(options, jobs=3)


def test_relative_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text('experiment = "kme"\ndata = "points"\n')
    options = read_declaration(path)
    assert isinstance(options, KmeOptions)
    assert options.data == tmp_path / "points"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seeds = 1", "`experiment` is missing"),
        ('experiment = "tea"', "'tea', which there is not"),
        ('experiment = ["kme"]', "which there is not"),
        ('experiment = "kme"', "data"),
        ('experiment = "selection"\nepsilon = 3', "epsilon: "),
        ('experiment = "selection"\nepsilons = "much"', "epsilons"),
        ("experiment", "TOML"),
    ],
)
def test_a_declaration_that_cannot_hold_is_refused(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        read_declaration(path)


OUT_OF_BOUNDS: list[tuple[str, str, Any, str]] = [
    ("rare", "points", [0], "points: 0 is below 1"),
    ("rivals", "points", [10, 0], "points: 0 is below 1"),
    ("rare", "shares", [2.0], r"shares: 2\.0 is above 1"),
    ("rare", "shares", [-0.1], r"shares: -0\.1 is below 0"),
    ("rare", "pool", 9, "pool: 9 is below 10"),
    ("mnist", "gammas", [0.1, 0.0], r"gammas: 0\.0 is not above 0"),
    ("race", "epsilons", [0], "epsilons: 0 is not above 0"),
    ("mnist", "gammas", [float("nan")], "gammas: nan is not a finite number"),
    ("insurance", "epsilons", [1.0, float("nan")], "epsilons: nan is not a finite number"),
    ("privacy-utility", "epsilons", [float("inf")], "epsilons: inf is not a finite number"),
    ("selection", "epsilons", [-1.0], r"epsilons: -1\.0 is below 0"),
    ("selection", "jitter", float("nan"), "jitter: nan is not a finite number"),
    ("selection", "seed_weight", True, "seed_weight: True is no number"),
    ("selection", "batch", 1.5, r"batch: 1\.5 is not a whole number"),
    ("selection", "seeds", True, "seeds: True is no number"),
    ("regression", "seeds", 0, "seeds: 0 is below 1"),
    ("regression", "seeds", [0, -1], "seeds: -1 is below 0"),
    ("regression", "seeds", [0, False], "seeds: False is no number"),
    ("regression", "first_seed", -1, "first_seed: -1 is below 0"),
    ("scaling", "owners", [4, 0], "owners: 0 is below 1"),
    ("scaling", "jobs", 0, "jobs: 0 is below 1"),
]
"""An experiment, a field, what it cannot be, and what is said."""


@pytest.mark.parametrize(("name", "key", "value", "says"), OUT_OF_BOUNDS)
def test_a_file_and_python_have_the_bounds_of_the_command_line(
    name: str, key: str, value: Any, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(tomli_w.dumps({"experiment": name, key: value}))
    with pytest.raises(ConfigError, match=says):
        read_declaration(path)
    with pytest.raises(ConfigError, match=says):
        run(experiment(name), OPTIONS[name](**{key: value}))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("selection", "--epsilon", "nan"), "epsilons: nan is not a finite number"),
        (("selection", "--seed-weight", "nan"), "seed_weight: nan is not a finite number"),
        (("rare", "--share", "2.0"), "shares: 2.0 is above 1"),
        (("rivals", "--points", "0"), "--points"),
    ],
)
def test_the_command_line_refuses_what_is_out_of_bounds(arguments: Sequence[str], says: str) -> None:
    done = CliRunner().invoke(app, ["experiment", *arguments])
    assert done.exit_code != 0
    assert says in done.output


def test_bounds_refuse_nothing_that_was_not_said_and_every_experiment_s_defaults() -> None:
    for kind in OPTIONS.values():
        given: Any = {"data": Path()} if kind in (KmeOptions, ScreeningOptions) else {}
        kind(**given).check()
        kind(**given, quick=True).settled().check()
    SelectionOptions(seeds=[0, 5], epsilons=(1, 2.5), points=None).check()


@pytest.mark.parametrize(("records", "says"), [(0, "is below 1"), (True, "is no number")])
def test_bounds_hold_for_what_no_verb_takes(records: int, says: str) -> None:
    with pytest.raises(ConfigError, match=f"records: {records} {says}"):
        KmeOptions(Path(), records=records).check()


@pytest.mark.parametrize("name", OPTIONS)
def test_every_experiment_is_found_by_its_name(name: str) -> None:
    assert isinstance(experiment(name), Experiment)


# -- a real one -------------------------------------------------------------------------------------------


def invoked(*arguments: str | Path) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["experiment", *map(str, arguments), "--json"])
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_processes_and_kept_files_change_no_figure(tmp_path: Path) -> None:
    settings = ("selection", "digits", "--epsilon", "1", "--points", "5", "--seeds", "2")
    alone = invoked(*settings)
    shared = invoked(*settings, "--jobs", "2", "--out", tmp_path)
    again = invoked("run", tmp_path / "experiment.toml", "--out", tmp_path)
    assert (alone["kept"], shared["kept"], again["kept"], again["cells"]) == (0, 0, 2, 2)
    assert (alone["directory"], shared["directory"]) == (None, str(tmp_path.resolve()))
    for result in (alone, shared, again):
        for found in result["rows"]:
            del found["wall_seconds"]
    assert alone["rows"] == shared["rows"] == again["rows"]


def test_files_of_cells_are_looked_for_nowhere_without_a_directory() -> None:
    assert CellFiles(None).damaged == []
