"""How a verb of the command line ends: with one JSON object or text for people, and the right exit code.

This module imports little, because each health check starts a process.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Final, NoReturn, Protocol, Self

from hushbid.protocol import platform
from hushbid.protocol.errors import ConfigError, ExitCode, HushbidError, Stopped
from hushbid.protocol.finite import finite
from hushbid.protocol.printable import printable, printable_in, printable_lines, printable_source
from hushbid.protocol.runtime.interrupts import SignalEnd, end_by_signal, end_interrupted, print_error
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import LogFormat, LogLevel, log, logs_json, set_up_logging
from hushbid.protocol.shortage import as_shortage, shortage_of

__all__ = [
    "JsonResult",
    "fail",
    "is_quiet",
    "json_line",
    "log_to_stderr",
    "run_verb",
    "say",
    "set_quiet",
    "show_figures",
    "tell",
]

_WARNING: Final = "WARNING"
"""A line for people that begins so is told to those who want no remarks, too."""
_UNWRITABLE: Final = (errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC))
"""Numbers of errors that a full or broken stdout gives."""
_OUT_OF_REACH: Final = (
    errno.EACCES,
    errno.EPERM,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.EROFS,
)
"""Numbers of errors that a path gives which a user named, and not a bug of ours."""


class JsonResult(Protocol):
    """A verb's result that is its own JSON, as `hushbid.protocol.figures.Figures` are."""

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The record again."""


def run_verb(
    body: Callable[[], Mapping[str, Any] | JsonResult],
    *,
    as_json: bool,
    show: Callable[[Any], object] | None = None,
    ends: Callable[[Any], ExitCode] | None = None,
    sources: Collection[str] = (),
) -> NoReturn:
    """Run a verb and end the process with its exit code.

    Args:
        body: Does the work and returns the verb's result.
        as_json: Print the result as one JSON object on stdout; text for people stays on stderr.
        show: Prints the result for people, and is given it, a mapping or a record, with all its texts
            printable, each as one line; None: there is nothing more to say.
        ends: The exit code of a result, asked for after it was printed; None: always `DONE`.
        sources: Fields of a mapping that are TOML for a file, of which `show` keeps lines and meaning.
    """
    begun = False
    try:
        result = body()
        line = json_line(result if isinstance(result, Mapping) else result.as_json()) if as_json else ""
        begun = True  # a part of the line may be out: no object of an interrupt is to be glued to it
        _tell_result(result, line=line, show=show, sources=sources)
    except HushbidError as error:
        _tell_notes(error)
        fail(as_shortage(error), as_json=as_json)
    except SignalEnd as end:
        end_by_signal(end, as_json=as_json and not begun)
    except KeyboardInterrupt as interrupt:
        end_interrupted(as_json=as_json and not begun, notes=_notes_of(interrupt))
    except Exception as error:
        if isinstance(error, OSError) and _may_be_of_stdout(error) and _stdout_is_full():
            fail(_unwritten(error), as_json=False)
        if (short := shortage_of(error)) is not None:
            _tell_notes(error)
            fail(short, as_json=as_json)
        if isinstance(error, OSError) and error.filename is not None and error.errno in _OUT_OF_REACH:
            _tell_notes(error)
            fail(_out_of_reach(error), as_json=as_json)
        if logs_json():
            log(
                LogEvent.PARTY_FAILED,
                trace=True,
                reason="This is a bug in hushbid.",
                advice="Please report it.",
            )
        else:
            _write_to_stderr(traceback.format_exc().rstrip("\n"))
            _write_to_stderr("This is a bug in hushbid: please report it with the lines above.")
        if as_json:
            _print_error("bug", "An unexpected error; see stderr.", "Report it.", ExitCode.BUG)
        sys.exit(ExitCode.BUG)
    sys.exit(ExitCode.DONE if ends is None else ends(result))


def _tell_result(
    result: Mapping[str, Any] | JsonResult,
    *,
    line: str,
    show: Callable[[Any], object] | None,
    sources: Collection[str],
) -> None:
    """Print the line of JSON, or the result for people if there is none."""
    try:
        if line:
            sys.stdout.write(line)
            sys.stdout.flush()
        elif show is not None:
            values = result if isinstance(result, Mapping) else result.as_json()
            written = {name: printable_source(values[name]) for name in sources}
            told = printable_in({**values, **dict.fromkeys(sources)}) | written
            show(told if isinstance(result, Mapping) else result.from_json(told))
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:  # of a file, not of stdout
            raise
        _no_more_output()
        fail(_unwritten(error), as_json=bool(line))


def _out_of_reach(error: OSError) -> HushbidError:
    return ConfigError(
        f"{os.fsdecode(error.filename)}: {error.strerror}.",
        advice="Check the path, and what this user may read and write there.",
    )


def _unwritten(error: OSError) -> HushbidError:
    return HushbidError(
        f"The result cannot be written to stdout: {error.strerror}.",
        advice="All else is done. Make room where stdout leads, or lead it elsewhere.",
    )


def _may_be_of_stdout(error: OSError) -> bool:
    """Whether a write to stdout could have failed so: trying writes a line break, which is not done idly."""
    return error.filename is None and error.errno in _UNWRITABLE


def _stdout_is_full() -> bool:
    """Whether stdout takes not even a line break; it is then led nowhere."""
    try:
        os.write(sys.stdout.fileno(), b"\n")
    except OSError:
        _no_more_output()
        return True
    return False


class _Remarks:
    """Whether remarks and progress are written: of the whole process, as its stderr is."""

    wanted: ClassVar[bool] = True


def is_quiet() -> bool:
    """Whether `--quiet` was given: no progress and no remarks, but warnings and errors."""
    return not _Remarks.wanted


def set_quiet(wanted: bool) -> None:
    """Say whether `--quiet` is given."""
    _Remarks.wanted = not wanted


def log_to_stderr(party: str, form: LogFormat, level: LogLevel) -> None:
    """Set up a party's log (`set_up_logging`), as its options and `--quiet` say."""
    set_up_logging(party, form, LogLevel.WARNING if is_quiet() and level is LogLevel.INFO else level)


def say(text: str) -> None:
    """Write a line for people, or several, to stderr; of `--quiet` only what begins with WARNING."""
    if is_quiet() and not text.startswith(_WARNING):
        return
    _write_to_stderr(text)


def _write_to_stderr(text: str) -> None:
    sys.stderr.write(f"{printable_lines(text)}\n")
    sys.stderr.flush()


def tell(text: str) -> None:
    """Write a line of a result for people, or several, to stdout."""
    sys.stdout.write(f"{printable_lines(text)}\n")


def json_line(value: Mapping[str, object]) -> str:
    """An object as a line of JSON, with no character that a terminal acts on."""
    return printable_source(json.dumps(finite(value), allow_nan=False)) + "\n"


def show_figures(figures: Mapping[str, object], *, indent: str = "") -> None:
    """Print figures for people, a line for each, one below the other."""
    shown = {printable(name): printable(str(value)) for name, value in figures.items()}
    width = max(map(len, shown))
    sys.stdout.write("".join(f"{indent}{name:<{width}}  {value}\n" for name, value in shown.items()))


def _no_more_output() -> None:
    """Discard further output: Python would try again, in vain, to write the rest at the end."""
    os.dup2(platform.open_nowhere(), sys.stdout.fileno())


def fail(error: HushbidError, *, as_json: bool) -> NoReturn:
    """Report the error and end the process. A peer's text cannot steer the terminal or begin a line."""
    if logs_json():
        event = LogEvent.PARTY_STOPPED if isinstance(error, Stopped) else LogEvent.PARTY_FAILED
        log(event, reason=error.what, advice=error.advice)
    else:
        _tell(error)
    if as_json:
        _print_error(type(error).__name__, error.what, error.advice, error.exit_code)
    sys.exit(error.exit_code)


def _notes_of(interrupt: BaseException | None) -> Sequence[str]:
    """The notes of an interrupt, or of one before it, if more came while it was dealt with."""
    while interrupt is not None and not hasattr(interrupt, "__notes__"):
        interrupt = interrupt.__context__
    return getattr(interrupt, "__notes__", ())


def _tell_notes(error: Exception) -> None:
    """Print what was left behind, such as charges; `--quiet` hides no error's lines."""
    if not logs_json():
        for note in getattr(error, "__notes__", ()):
            _write_to_stderr(note)


def _tell(error: HushbidError) -> None:
    for start, text in (("hushbid: ", error.what), ("         ", error.advice)):
        for line in text.split("\n") if text else ():
            sys.stderr.write(f"{start}{printable(line)}\n")
            start = "         "


def _print_error(kind: str, what: str, advice: str, code: int) -> None:
    """Print an error as JSON; if stdout takes nothing, stderr has the error already."""
    try:
        print_error(kind, what, advice, code)
    except OSError:
        _no_more_output()
