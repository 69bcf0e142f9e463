"""How a verb of the command line ends: with one JSON object or text for people, and the right exit code."""

from __future__ import annotations

import errno
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, field, fields
from functools import cache
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    Concatenate,
    Final,
    Generic,
    NoReturn,
    ParamSpec,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
)

import typer
from typer.exceptions import TyperException

from hushbid.protocol import platform
from hushbid.protocol.errors import ConfigError, ExitCode, HushbidError, Stopped
from hushbid.protocol.finite import finite
from hushbid.protocol.printable import printable, printable_in, printable_lines, printable_source
from hushbid.protocol.runtime.interrupts import end_interrupted, print_error
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import LogFormat, LogLevel, log, logs_json, set_up_logging
from hushbid.protocol.shortage import as_shortage, shortage_of

__all__ = [
    "HELP_OPTIONS",
    "OPTION",
    "JsonOption",
    "KeyOption",
    "KeywordFunction",
    "LogFormatOption",
    "LogLevelOption",
    "MetricsOption",
    "Record",
    "StateOption",
    "built",
    "by_option",
    "fail",
    "is_quiet",
    "json_line",
    "keywords_of",
    "log_to_stderr",
    "option",
    "run_app",
    "run_command",
    "run_verb",
    "say",
    "show_figures",
    "takes",
    "tell",
    "verb",
    "with_quiet",
]

KeyOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="Secret key file, in place of the file's.", envvar="HUSHBID_KEY")
]
StateOption: TypeAlias = Annotated[
    Path | None, typer.Option(help="State directory, in place of the file's.", envvar="HUSHBID_STATE")
]
LogFormatOption: TypeAlias = Annotated[
    LogFormat, typer.Option(help="How the log is written.", envvar="HUSHBID_LOG_FORMAT")
]
LogLevelOption: TypeAlias = Annotated[
    LogLevel,
    typer.Option(
        help="The least that the log has; --quiet: warnings and errors.", envvar="HUSHBID_LOG_LEVEL"
    ),
]
MetricsOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Serve metrics at this address, in place of the file's.",
        metavar="HOST:PORT",
        envvar="HUSHBID_METRICS",
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
"""Options of every party's verb."""


HELP_OPTIONS: Final = ("-h", "--help")
_WARNING: Final = "WARNING"
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
"""A line for people that begins so is told to those who want no remarks, too."""


class Record(Protocol):
    """A verb's result that is its own JSON, as `hushbid.protocol.figures.Figures` are."""

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The record again."""


_Options = TypeVar("_Options")
_Arguments = ParamSpec("_Arguments")
_Rest = ParamSpec("_Rest")
_Result = TypeVar("_Result")
OPTION: Final = "option"
"""The key of a field's metadata under which its option is."""


def by_option(annotation: object) -> dict[str, object]:
    """The metadata of a dataclass's field that is also an option on the command line (`takes`).

    Args:
        annotation: An ``Annotated`` type with its option or argument, in Typer's form.
    """
    return {OPTION: annotation}


def option(kind: Any, *declared: str, default: Any = None, **settings: Any) -> Any:
    """A dataclass's field that is also an option on the command line.

    Args:
        kind: Its type, as Typer takes it.
        declared: Its names on the command line; none: its own.
        default: `dataclasses.MISSING`: it is required.
    """
    return field(default=default, metadata=by_option(Annotated[kind, typer.Option(*declared, **settings)]))


class KeywordFunction(Generic[_Arguments, _Options, _Result]):
    """A function that takes the fields of a dataclass as its arguments; `of` takes the dataclass."""

    def __init__(self, options: Callable[_Arguments, _Options], of: Callable[[_Options], _Result]) -> None:
        self._options = options
        self.of = of
        self.__name__, self.__doc__, self.__module__ = of.__name__, of.__doc__, of.__module__
        self.__signature__ = inspect.signature(options)

    def __call__(self, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        return self.of(self._options(*arguments, **named))


def keywords_of(
    options: Callable[_Arguments, _Options],
) -> Callable[[Callable[[_Options], _Result]], KeywordFunction[_Arguments, _Options, _Result]]:
    """Give a function the fields of a dataclass as its arguments, like its verb (`takes`)."""
    return lambda of: KeywordFunction(options, of)


def takes(
    options: Callable[..., _Options], *, without: Collection[str] = ()
) -> Callable[[Callable[Concatenate[_Options, _Rest], None]], Callable[..., None]]:
    """Give a verb the fields of a dataclass as its options: Python and the command line have one list.

    The verb gets the dataclass as its first argument. Fields without `by_option` are for Python alone and
    keep their defaults.

    Args:
        without: Fields that this verb does not take.
    """
    declared = [
        each
        for each in fields(options)  # type: ignore[arg-type]
        if OPTION in each.metadata and each.name not in without
    ]

    def decorate(verb: Callable[Concatenate[_Options, _Rest], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            own = {each.name: given.pop(each.name) for each in declared}
            verb(options(**own), **given)  # type: ignore[call-arg]

        rest = list(inspect.signature(verb, eval_str=True).parameters.values())[1:]
        parameters = [*map(_parameter, declared), *(each.replace(kind=_KEYWORD) for each in rest)]
        return _dressed(command, verb, parameters)

    return decorate


def verb(
    *,
    show: Callable[[Any], object] | None = None,
    ends: Callable[[Any], ExitCode] | None = None,
    sources: Collection[str] = (),
) -> Callable[[Callable[..., Mapping[str, Any] | Record]], Callable[..., None]]:
    """Make a verb of a function that returns its result: add `--json`, and end the process (`run_verb`)."""

    def decorate(result: Callable[..., Mapping[str, Any] | Record]) -> Callable[..., None]:
        parameters = list(inspect.signature(result, eval_str=True).parameters.values())
        told = any(each.name == _JSON.name for each in parameters)

        def command(*given: Any, as_json: bool, **named: Any) -> None:
            if told:
                named |= {_JSON.name: as_json}
            run_verb(lambda: result(*given, **named), as_json=as_json, show=show, ends=ends, sources=sources)

        return _dressed(command, result, parameters if told else [*parameters, _JSON])

    return decorate


def _dressed(
    command: Callable[..., None], of: Callable[..., object], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """The command with another's name and text, as functools.wraps gives it, and these parameters."""
    command.__name__, command.__doc__, command.__module__ = of.__name__, of.__doc__, of.__module__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


_KEYWORD: Final = inspect.Parameter.KEYWORD_ONLY
_JSON: Final = inspect.Parameter("as_json", _KEYWORD, default=False, annotation=JsonOption)


def _parameter(of: Field[Any]) -> inspect.Parameter:
    default = inspect.Parameter.empty if of.default is MISSING else of.default
    return inspect.Parameter(of.name, _KEYWORD, default=default, annotation=of.metadata[OPTION])


def run_verb(
    body: Callable[[], Mapping[str, Any] | Record],
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
    try:
        result = body()
        _tell_result(result, as_json=as_json, show=show, sources=sources)
    except HushbidError as error:
        fail(as_shortage(error), as_json=as_json)
    except KeyboardInterrupt as interrupt:
        end_interrupted(as_json=as_json, notes=getattr(interrupt, "__notes__", ()))
    except BrokenPipeError:
        _no_more_output()  # the reader has read enough, as `head` does
        sys.exit(ExitCode.FAILED)
    except Exception as error:
        if isinstance(error, OSError) and _may_be_of_stdout(error) and _stdout_is_full():
            fail(_unwritten(error), as_json=False)
        if (short := shortage_of(error)) is not None:
            fail(short, as_json=as_json)
        if isinstance(error, OSError) and error.filename is not None and error.errno in _OUT_OF_REACH:
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
    result: Mapping[str, Any] | Record,
    *,
    as_json: bool,
    show: Callable[[Any], object] | None,
    sources: Collection[str],
) -> None:
    try:
        values = result if isinstance(result, Mapping) else result.as_json()
        if as_json:
            _print_json(values)
        elif show is not None:
            written = {name: printable_source(values[name]) for name in sources}
            told = printable_in({**values, **dict.fromkeys(sources)}) | written
            show(told if isinstance(result, Mapping) else result.from_json(told))
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is not None:  # of a file, not of stdout
            raise
        _no_more_output()
        fail(_unwritten(error), as_json=as_json)


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


def with_quiet(command: Any) -> Any:
    """Give a parser, and those below it, the option `--quiet`; returns it."""
    below = getattr(command, "commands", None)
    if isinstance(below, dict):
        for each in below:
            with_quiet(below[each])
    elif below is None and not any("--quiet" in parameter.opts for parameter in command.params):
        command.params.append(_quiet_option())
    return command


def _quieten(wanted: bool) -> None:
    _Remarks.wanted = not wanted  # of each verb anew, where a process runs several


@cache
def _quiet_option() -> Any:
    """The parser's option, which Typer makes of a function that takes it."""
    alone = typer.Typer(add_completion=False)

    @alone.command()
    def _taker(
        _quiet: Annotated[
            bool,
            typer.Option(
                "--quiet",
                "-q",
                help="No progress and no remarks on stderr: only warnings and errors.",
                callback=_quieten,
                expose_value=False,
                is_eager=True,
            ),
        ] = False,
    ) -> None:
        pass

    [found] = typer.main.get_command(alone).params
    return found


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


def json_line(value: Mapping[str, Any]) -> str:
    """An object as a line of JSON, with no character that a terminal acts on."""
    return printable_source(json.dumps(finite(value), allow_nan=False)) + "\n"


def show_figures(figures: Mapping[str, Any], *, indent: str = "") -> None:
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


def _tell(error: HushbidError) -> None:
    for start, text in (("hushbid: ", error.what), ("         ", error.advice)):
        for line in text.split("\n") if text else ():
            sys.stderr.write(f"{start}{printable(line)}\n")
            start = "         "


def run_command(command: Callable[..., None]) -> NoReturn:
    """Run one verb as a program of its own."""
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": list(HELP_OPTIONS)},
    )
    app.command()(command)
    run_app(app)


def run_app(app: typer.Typer) -> NoReturn:
    """Run a command line and end the process with the verb's exit code; usage errors end with 4."""
    _Remarks.wanted = True
    try:
        code = built(app)(standalone_mode=False)
    except TyperException as error:
        if not (said := error.format_message()):  # nothing was asked for, and the help is printed
            sys.exit(ExitCode.USAGE)
        usage = ConfigError(said, advice="`--help` lists what can be given.")
        fail(usage, as_json="--json" in sys.argv[1:])
    except typer.Abort:
        end_interrupted(as_json="--json" in sys.argv[1:])
    sys.exit(code or ExitCode.DONE)


@cache
def built(app: typer.Typer) -> Callable[..., Any]:
    """The parser of a command line, made once in a process: making that of forty verbs takes 0.1 s."""
    command = typer.main.get_command(app)
    return command if hasattr(command, "commands") else with_quiet(command)  # verbs' parsers are made later


def _print_error(kind: str, what: str, advice: str, code: int) -> None:
    """Print an error as JSON; if stdout takes nothing, stderr has the error already."""
    try:
        print_error(kind, what, advice, code)
    except OSError:
        _no_more_output()


def _print_json(value: Mapping[str, Any]) -> None:
    sys.stdout.write(json_line(value))
    sys.stdout.flush()
