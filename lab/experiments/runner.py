"""The runner of experiments: measures each pair of configuration and seed once, and keeps it in a file.

An experiment defines its pairs, how to measure one, and how measurements make a table row; the rest is
common.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

from hushbid.evidence.pool import results_of
from hushbid.lab.experiment_fields import ExperimentOptions
from hushbid.lab.experiment_options import declaration
from hushbid.lab.experiments.cells import (
    Cell,
    CellFiles,
    Configuration,
    Measured,
    data_of,
    write_whole,
)
from hushbid.lab.experiments.results import PlottedFigure, write_results
from hushbid.protocol.errors import ConfigError
from hushbid.text_files import check_directory_place

__all__ = ["DECLARATION", "Experiment", "Outcome", "refuse_none", "refuse_unknown", "run"]

DECLARATION = "experiment.toml"
"""The file in a directory of results that declares what was run."""

_Arguments = ParamSpec("_Arguments")
_Options = TypeVar("_Options", bound=ExperimentOptions)
_Row = TypeVar("_Row")
Pairs: TypeAlias = Iterable[tuple[Configuration, int]]


def data_files(options: Any, _configuration: Configuration) -> list[Path]:
    """The option `data`, if the experiment has it and it is set."""
    data = getattr(options, "data", None)
    return [] if data is None else [data]


@dataclass(frozen=True, kw_only=True)
class Experiment(Generic[_Arguments, _Options, _Row]):
    """One experiment. Call it with its options' fields to get its rows; it raises what `run` raises.

    Its functions must be module-level, as other processes import them.

    Attributes:
        options: The class of its options.
        pairs: The configurations and seeds that options request, in the best order to run: a process reuses
            what consecutive pairs share. Raises `ConfigError` if options contradict each other.
        measure: Measures a configuration with a seed; returns JSON values, possibly nested.
        row: Makes a table row from a configuration and its measurements, in the order of its seeds.
        said: Describes a pair in words.
        files: The data files or directories that a configuration uses, which may be missing; by default
            `data` of the options.
    """

    options: Callable[_Arguments, _Options]
    title: str
    pairs: Callable[[_Options], Pairs]
    measure: Callable[[_Options, Configuration, int], Measured]
    row: Callable[[Configuration, Sequence[Measured]], _Row]
    said: Callable[[Configuration, int], str]
    figure: PlottedFigure
    files: Callable[[_Options, Configuration], Sequence[Path]] = data_files

    def __call__(self, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> list[_Row]:
        return run(self, self.options(*arguments, **named)).rows


@dataclass(frozen=True)
class Outcome(Generic[_Row]):
    """The outcome of a run.

    Attributes:
        rows: One per configuration, in the order of first request.
        cells: Number of pairs.
        kept: Number of pairs found finished in the directory.
        damaged: Unreadable files there, whose cells were run again.
    """

    rows: list[_Row]
    cells: int
    kept: int
    damaged: Sequence[Path]


def run(experiment: Experiment[Any, _Options, _Row], options: _Options) -> Outcome[_Row]:
    """Measure what is not measured yet, and make all rows.

    Args:
        options: The request; with `out`, files are kept and written there.

    Raises:
        ConfigError: Options contradict each other, or the directory cannot be written.
        DataError: Data cannot be used.
    """
    options = options.settled()
    options.check()
    cells = list({cell.digest: cell for cell in _cells(experiment, options)}.values())
    if options.out is not None:
        check_directory_place(options.out)
    files = CellFiles(options.out)
    if options.out is not None:
        write_whole(options.out / DECLARATION, declaration(options).encode())
    measured = {cell: found for cell in cells if (found := files.read(cell)) is not None}
    kept = len(measured)
    missing = [cell for cell in cells if cell not in measured]
    # Drop `say`: workers cannot unpickle it.
    work = partial(_measure, experiment.measure, experiment.files, replace(options, say=None))
    try:
        for place, found in results_of(
            work,
            _told(missing, experiment, options.say),
            jobs=options.jobs,
            scheduler=options.scheduler,
        ):
            measured[missing[place]] = found
            files.write(missing[place], found)
    except KeyboardInterrupt as interrupt:
        if options.out is not None:
            interrupt.add_note(f"{len(measured)} of {len(cells)} cells are done; the same command goes on.")
        raise
    in_order = {cell: measured[cell] for cell in cells}
    rows = list(_rows(experiment, in_order))
    if options.out is not None:
        write_results(options.out, experiment.title, experiment.figure, rows, in_order)
    return Outcome(rows, len(cells), kept, files.damaged)


def refuse_none(**wanted: Sequence[Any]) -> None:
    """Refuse an experiment with nothing to run: it needs at least one of each of these, given by name.

    Raises:
        ConfigError: One of them is empty.
    """
    if not all(wanted.values()):
        names = [name.replace("_", " ") for name in wanted]
        raise ConfigError(
            f"An experiment needs {', '.join(names[:-1])} and {names[-1]} at least.",
            advice="Give one of each.",
        )


def refuse_unknown(names: Iterable[str], known: Iterable[str], what: str, several: str) -> None:
    """Refuse unknown names; `several` is their plural, capitalized, for the message.

    Raises:
        ConfigError: A name is unknown.
    """
    if unknown := sorted(set(names) - set(known)):
        raise ConfigError(
            f"There is no {what} {', '.join(unknown)}.", advice=f"{several} are: {', '.join(known)}."
        )


def _cells(experiment: Experiment[Any, _Options, _Row], options: _Options) -> Iterator[Cell]:
    for configuration, seed in experiment.pairs(options):
        data = data_of(experiment.files(options, configuration))
        yield Cell(options.NAME, configuration, seed, data)


def _rows(experiment: Experiment[Any, Any, _Row], measured: Mapping[Cell, Measured]) -> Iterator[_Row]:
    found: dict[str, tuple[Configuration, list[Measured]]] = {}
    for cell, values in measured.items():
        found.setdefault(json.dumps(cell.configuration), (cell.configuration, []))[1].append(values)
    return starmap(experiment.row, found.values())


def _told(
    cells: Sequence[Cell], experiment: Experiment[Any, _Options, _Row], say: Callable[[str], None] | None
) -> Iterator[Cell]:
    """Yield the cells, and announce each as it is handed out."""
    for cell in cells:
        if say is not None:
            say(experiment.said(cell.configuration, cell.seed))
        yield cell


def _measure(
    measure: Callable[[_Options, Configuration, int], Measured],
    files: Callable[[_Options, Configuration], Sequence[Path]],
    options: _Options,
    cell: Cell,
) -> Measured:
    """Measure a cell, and return it as read from its file, so that rows do not depend on caching.

    Raises:
        ConfigError: As `Cell.check_software` and `Cell.check_data`.
    """
    cell.check_software()
    cell.check_data(files(options, cell.configuration))
    found: Mapping[str, Any] = json.loads(json.dumps(measure(options, cell.configuration, cell.seed)))
    return found
