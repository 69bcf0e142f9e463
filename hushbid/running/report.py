"""Writing a report: from transcripts to a file, and at the end of a run."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hushbid.protocol.errors import ConfigError, HushbidError
from hushbid.protocol.extras import need
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.files.durable import in_place_of
from hushbid.report.curves import APPRAISAL, BASELINES, DISPLAY
from hushbid.report.figures import Figures, figures_of
from hushbid.report.html import FIRST_BYTES, SESSION
from hushbid.report.own_rows import Wanted, own_rows
from hushbid.report.sources import EVALUATION, open_sources
from hushbid.text_files import check_file_place

if TYPE_CHECKING:
    from hushbid.cluster.evaluation import Baselines
    from hushbid.results.run import RunResult

__all__ = ["REPORT", "import_page", "with_report", "write_report"]

REPORT: Final = "report.html"
_HEAD_BYTES: Final = 1_000
"""Within which a page names its session."""


def write_report(
    transcripts: Sequence[Path],
    output: Path,
    *,
    evaluation: Path | None = None,
    wanted: Wanted | None = None,
) -> Figures:
    """Make a report of the transcripts of one session.

    Args:
        transcripts: At least one.
        output: Where to write it, readable by its owner only; an older report there is replaced.
        evaluation: A file of the baselines' curves.
        wanted: Where the consumer's rows are, for pictures of them.

    Raises:
        ConfigError: The transcripts do not go together, the report cannot be written, or bokeh is not here;
            or pictures are asked for of other transcripts than the consumer's alone.
        DataError: A transcript, the evaluation or the consumer's rows cannot be used.
        TranscriptDamaged: The chain of one does not hold.
        ReplayDivergence: One is not what its party's machine does.
    """
    need("bokeh", "A report")
    from hushbid.report.page import page_of

    _check_free(output)
    figures = _figures(transcripts, evaluation, wanted)
    _check_session(output, figures.session.identifier)
    _write(output, page_of(figures))
    return figures


def import_page() -> None:
    """Import what draws a report, which takes half a second, before there is one to write."""
    with suppress(ImportError, OSError, MemoryError):  # what stands against it is said of the report
        import hushbid.report.page  # noqa: F401


def _figures(transcripts: Sequence[Path], evaluation: Path | None, wanted: Wanted | None) -> Figures:
    """The figures alone: the parties' machines, some kilobytes a round, are freed before the page is made."""
    sources = open_sources(transcripts)
    return figures_of(sources, evaluation, None if wanted is None else own_rows(sources, wanted))


def with_report(
    result: RunResult, reference: Baselines, directory: Path, say: Callable[[str], object] | None
) -> RunResult:
    """A run's result with a report of it, made of the curator's and the consumer's transcripts.

    The report is the least of what a run leaves: whatever stands against it is said, and the result is kept.
    The curves of the baselines go to a file beside it.
    """
    telling = [result.transcripts[party] for party in (CURATOR, CONSUMER) if party in result.transcripts]
    try:
        curves = dict(zip(BASELINES, (reference.greedy_by_round, reference.uniform_by_round), strict=True))
        choices = {"greedy": result.choices.greedy.as_json(), "uniform": result.choices.uniform.as_json()}
        appraisal = {**result.choices.run.as_json(), **result.own.as_json(), "choices": choices}
        appraisal["model"] = result.model.as_json()
        evaluation = directory / EVALUATION
        values = {**curves, APPRAISAL: appraisal, **({DISPLAY: result.display} if result.display else {})}
        _write(evaluation, json.dumps(values, allow_nan=False) + "\n")
        write_report(telling, directory / REPORT, evaluation=evaluation)
    except HushbidError as error:
        reason = str(error)
    except Exception:  # a bug of the report's must not cost the run
        reason = f"this is a bug in hushbid, please report it.\n{traceback.format_exc()}"
    else:
        return replace(result, report=(directory / REPORT).resolve())
    if say is not None:
        say(f"No report was written: {reason}")
    return result


def _check_free(output: Path) -> None:
    """Refuse to replace what is no report, before work is done for it: a transcript among others."""
    check_file_place(output)  # no pipe is opened then, which would wait for a writer
    try:
        with output.open("rb") as file:
            old = file.read(len(FIRST_BYTES))
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unwritable(output, error) from None
    if old != FIRST_BYTES:
        raise ConfigError(
            f"{output} exists already, and is not a report.", advice="Name another file with --output."
        )


def _check_session(output: Path, session: str) -> None:
    """Refuse to replace the report of another session. Older versions named none."""
    try:
        with output.open("rb") as file:
            old = file.read(_HEAD_BYTES)
    except FileNotFoundError:
        return
    if SESSION in old and SESSION + session.encode() not in old:
        raise ConfigError(
            f"{output} is the report of another session, which is kept.",
            advice="Name another file with --output.",
        )


def _write(output: Path, text: str) -> None:
    try:
        with in_place_of(output) as stream:
            stream.write(text.encode())
    except OSError as error:
        raise _unwritable(output, error) from None


def _unwritable(output: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"{output}: cannot write the report: {error.strerror}.",
        advice="Name a file in a directory that exists and that this user can write to, with room for it.",
    )
