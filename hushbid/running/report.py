"""Writing a report: from transcripts to a file, and at the end of a run."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hushbid.consumer.learners import Training, train_here
from hushbid.protocol.errors import HushbidError
from hushbid.protocol.extras import need
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.report.curves import APPRAISAL, BASELINES, DISPLAY
from hushbid.report.figures import ReportFigures, figures_of
from hushbid.report.html import FIRST_BYTES, SESSION
from hushbid.report.own_rows import ConsumerRows, own_rows
from hushbid.report.sources import EVALUATION, open_sources
from hushbid.text_files import check_page_session, page_there, write_page

if TYPE_CHECKING:
    from hushbid.cluster.evaluation import Baselines
    from hushbid.results.run import RunResult

__all__ = ["REPLAY", "REPORT", "import_page", "with_pages", "with_replay", "with_report", "write_report"]

REPORT: Final = "report.html"
REPLAY: Final = "replay.html"
_WHAT: Final = "report"


@one_blas_thread()  # as in the parties' processes: the same sums in the same order
def write_report(
    transcripts: Sequence[Path],
    output: Path,
    *,
    evaluation: Path | None = None,
    wanted: ConsumerRows | None = None,
) -> ReportFigures:
    """Make a report of the transcripts of one session.

    Args:
        transcripts: At least one.
        output: The file to write, readable by its owner only; it replaces an older report.
        evaluation: A file of the baselines' curves.
        wanted: The consumer's rows, to draw them.

    Raises:
        ConfigError: The transcripts do not belong together, the report cannot be written, or bokeh is not
            installed; or pictures are requested for more than the consumer's transcript alone.
        DataError: A transcript, the evaluation or the consumer's rows cannot be used.
        TranscriptDamaged: The chain of one is broken.
        ReplayDivergence: One differs from what its party's machine does.
    """
    need("bokeh", "A report")
    from hushbid.report.page import page_of

    old = page_there(output, FIRST_BYTES, _WHAT)
    figures = _figures(transcripts, evaluation, wanted)
    check_page_session(old, output, SESSION, figures.session.identifier, _WHAT)
    write_page(output, page_of(figures), _WHAT)
    return figures


def import_page() -> None:
    """Import the drawing code of reports, which takes a third of a second, before there is one to write."""
    with suppress(ImportError, OSError, MemoryError):  # a failure is reported when the report is made
        import hushbid.report.page  # noqa: F401
        from hushbid.report.drawing import program

        program()


def _figures(
    transcripts: Sequence[Path], evaluation: Path | None, wanted: ConsumerRows | None
) -> ReportFigures:
    """The figures alone: the parties' machines, some kilobytes a round, are freed before the page is made."""
    sources = open_sources(transcripts)
    return figures_of(sources, evaluation, None if wanted is None else own_rows(sources, wanted))


def with_pages(
    result: RunResult,
    reference: Baselines,
    directory: Path,
    say: Callable[[str], object] | None,
    replaying: Training | None,
) -> RunResult:
    """A run's result with its report and, if there is somewhere to make it, its replay.

    Args:
        replaying: Where the replay is made, meanwhile.
    """
    if replaying is None:
        return with_report(result, reference, directory, say)
    lines: list[str] = []  # said at the end: an interrupt ends the other process too
    beside = ThreadPoolExecutor(max_workers=1)
    page = beside.submit(with_replay, result, directory, lines.append, replaying)
    result = replace(with_report(result, reference, directory, say), replay=page.result().replay)
    if say is not None:
        for line in lines:
            say(line)
    return result


def with_report(
    result: RunResult, reference: Baselines, directory: Path, say: Callable[[str], object] | None
) -> RunResult:
    """A run's result with a report of it, made from the curator's and the consumer's transcripts.

    A failure is printed, and the result is kept. The baselines' curves go to a file beside the report.
    """
    with _said("report", say):
        return replace(result, report=_reported(result, reference, directory))
    return result


def with_replay(
    result: RunResult, directory: Path, say: Callable[[str], object] | None, training: Training = train_here
) -> RunResult:
    """A run's result with a replay of it, made from all its transcripts. A failure costs only the replay.

    Args:
        training: Where it is made, as it trains models.
    """
    with _said("replay", say):
        # Another process has another working directory.
        transcripts = {party: path.resolve() for party, path in result.transcripts.items()}
        page = training(partial(_replayed, transcripts, directory.resolve() / REPLAY))
        return replace(result, replay=page)
    return result


@contextmanager
def _said(what: str, say: Callable[[str], object] | None) -> Iterator[None]:
    """Print why a page cannot be written, and go on: it must not cost the run."""
    try:
        yield
        return
    except HushbidError as error:
        reason = str(error)
    except Exception:
        reason = f"this is a bug in hushbid, please report it.\n{traceback.format_exc()}"
    if say is not None:
        say(f"WARNING: no {what} was written: {reason}")


def _reported(result: RunResult, reference: Baselines, directory: Path) -> Path:
    telling = [result.transcripts[party] for party in (CURATOR, CONSUMER) if party in result.transcripts]
    curves = dict(zip(BASELINES, (reference.greedy_by_round, reference.uniform_by_round), strict=True))
    choices = {"greedy": result.choices.greedy.as_json(), "uniform": result.choices.uniform.as_json()}
    appraisal = {**result.choices.run.as_json(), **result.own.as_json(), "choices": choices}
    appraisal["model"] = result.model.as_json()
    evaluation = directory / EVALUATION
    values = {**curves, APPRAISAL: appraisal, **({DISPLAY: result.display} if result.display else {})}
    write_page(evaluation, json.dumps(values, allow_nan=False) + "\n", _WHAT)
    write_report(telling, directory / REPORT, evaluation=evaluation)
    return (directory / REPORT).resolve()


def _replayed(transcripts: Mapping[str, Path], page: Path) -> Path:
    from hushbid.replay.own import ReplayFiles
    from hushbid.replay.writing import write_replay

    own = transcripts.get(CONSUMER)
    write_replay(ReplayFiles(list(transcripts.values()), None if own is None else own.parent), page)
    return page
