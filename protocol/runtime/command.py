"""How a verb of the command line is declared, parsed and run; `ending` says how it ends."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, field, fields
from functools import cache
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Concatenate,
    Final,
    Generic,
    NoReturn,
    ParamSpec,
    TypeAlias,
    TypeVar,
)

import typer
from typer.exceptions import TyperException

from hushbid.protocol.errors import ConfigError, ExitCode
from hushbid.protocol.runtime.ending import (
    JsonResult,
    fail,
    is_quiet,
    json_line,
    log_to_stderr,
    run_verb,
    say,
    set_quiet,
    show_figures,
    tell,
)
from hushbid.protocol.runtime.interrupts import end_interrupted
from hushbid.protocol.runtime.ranged import ranged, without_range
from hushbid.protocol.runtime.telemetry.logs import LogFormat, LogLevel

__all__ = [
    "HELP_OPTIONS",
    "KIND",
    "OPTION",
    "JsonOption",
    "JsonResult",
    "KeyOption",
    "KeywordFunction",
    "LogFormatOption",
    "LogLevelOption",
    "MetricsOption",
    "StateOption",
    "app_of",
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
    LogFormat, typer.Option(help="Format of the log.", envvar="HUSHBID_LOG_FORMAT")
]
LogLevelOption: TypeAlias = Annotated[
    LogLevel,
    typer.Option(
        help="Lowest level that is logged; --quiet: warnings and errors.", envvar="HUSHBID_LOG_LEVEL"
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
_Options = TypeVar("_Options")
_Arguments = ParamSpec("_Arguments")
_Rest = ParamSpec("_Rest")
_Result = TypeVar("_Result")
OPTION: Final = "option"
"""The key of a field's metadata under which its option is."""
KIND: Final = "kind"
"""The key under which the type is that `option` took, with its range."""


def by_option(annotation: object) -> dict[str, object]:
    """The metadata of a dataclass's field that is also an option on the command line (`takes`).

    Args:
        annotation: An ``Annotated`` type with its option or argument, in Typer's form.
    """
    return {OPTION: annotation}


def option(kind: Any, *declared: str, default: Any = None, **settings: Any) -> Any:
    """A dataclass's field that is also an option on the command line.

    Args:
        kind: Its type, as Typer takes it; one that states a range is the option's too (`ranged`).
        declared: Its names on the command line; none: its own.
        default: `dataclasses.MISSING`: it is required.
    """
    metadata = by_option(Annotated[without_range(kind), ranged(kind, *declared, **settings)]) | {KIND: kind}
    return field(default=default, metadata=metadata)


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
) -> Callable[[Callable[..., Mapping[str, Any] | JsonResult]], Callable[..., None]]:
    """Make a verb of a function that returns its result: add `--json`, and end the process (`run_verb`)."""

    def decorate(result: Callable[..., Mapping[str, Any] | JsonResult]) -> Callable[..., None]:
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
    set_quiet(wanted)  # of each verb anew, where a process runs several


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


def run_command(command: Callable[..., None]) -> NoReturn:
    """Run one verb as a program of its own."""
    run_app(app_of(command))


@cache
def app_of(command: Callable[..., None]) -> typer.Typer:
    """The command line of a program that is one verb, made once in a process."""
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": list(HELP_OPTIONS)},
    )
    app.command()(command)
    return app


def run_app(app: typer.Typer) -> NoReturn:
    """Run a command line and end the process with the verb's exit code; usage errors end with 4."""
    set_quiet(False)
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
