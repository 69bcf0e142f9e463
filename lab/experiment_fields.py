"""Options common to all experiments, and how a field becomes an option of a verb."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self, TypeAlias, get_args

import typer

from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.intervals import Interval, interval_of
from hushbid.protocol.runtime.command import KIND, by_option, option
from hushbid.protocol.runtime.ranged import ranged

if TYPE_CHECKING:
    from pydantic import ConfigDict

__all__ = [
    "ENVIRONMENT",
    "ExperimentOptions",
    "JobsOption",
    "OutOption",
    "QuickOption",
    "SchedulerOption",
    "Small",
    "argument_field",
    "data_field",
    "epsilons_field",
    "python_field",
    "refuse_out_of_bounds",
    "seeds_field",
]

JobsOption: TypeAlias = Annotated[int, ranged(ranges.Count, help="Number of processes.")]
OutOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output",
        help="Write results, figures and a page here; finished cells are kept.",
        metavar="DIR",
    ),
]
SchedulerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Dask scheduler, tcp://HOST:PORT, whose workers do the work.", metavar="ADDRESS"),
]
QuickOption: TypeAlias = Annotated[
    bool, typer.Option("--quick", help="Run a small version of about a minute; explicit options still apply.")
]

ENVIRONMENT: Final = "HUSHBID_DATA"
_SEEDS: Final = "seeds"

Small: TypeAlias = Mapping[str, float | Sequence[float] | Sequence[str]]
"""Values of an experiment's small version, by field."""


def argument_field(kind: Any, **settings: Any) -> dict[str, object]:
    """Metadata that make a field an argument of the verb."""
    return by_option(Annotated[kind, typer.Argument(**settings)])


def data_field(help_text: str, kind: Any = Path) -> dict[str, object]:
    """Metadata that make a field the option ``--data``."""
    return by_option(Annotated[kind, typer.Option(envvar=ENVIRONMENT, help=help_text)])


def python_field(kind: Any, *, default: Any) -> Any:
    """A field that is no option of a verb; `refuse_out_of_bounds` checks the range that its type states."""
    return field(default=default, metadata={KIND: kind})


def seeds_field(count: int) -> Any:
    """The field for the number of seeds."""
    return option(ranges.Count, default=count, help="Number of seeds.")


def epsilons_field(help_text: str) -> Any:
    """The field for the values of ε to try; None by default."""
    return option(list[ranges.Epsilon] | None, "--epsilon", help=help_text)


@dataclass(frozen=True, kw_only=True)
class ExperimentOptions:
    """Options of every experiment.

    Attributes:
        seeds: Their number, or the seeds themselves.
        jobs: Number of processes. Measured times are those of concurrent processes.
        scheduler: Address of a Dask scheduler whose workers do the work, with the data files under the same
            paths. None: processes on this machine.
        quick: Take unset options from `QUICK`: a smoke test whose numbers mean nothing.
        out: Directory for results; None: they are only returned.
        say: Called with what is being run.
    """

    NAME: ClassVar[str]
    QUICK: ClassVar[Small] = {"seeds": 1}
    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid", "strict": False}

    seeds: int | Sequence[int] = seeds_field(5)
    first_seed: int = option(ranges.Seed, default=0, help="First seed.")
    jobs: int = field(default=1, metadata=by_option(JobsOption) | {KIND: ranges.Count})
    scheduler: str | None = field(default=None, metadata=by_option(SchedulerOption))
    quick: bool = field(default=False, metadata=by_option(QuickOption))
    out: Path | None = field(default=None, metadata=by_option(OutOption))
    say: Callable[[str], None] | None = field(default=None, compare=False, repr=False)

    @property
    def every_seed(self) -> Sequence[int]:
        """The seeds, in order."""
        if isinstance(self.seeds, int):
            return range(self.first_seed, self.first_seed + self.seeds)
        return self.seeds

    def check(self) -> None:
        """Refuse values that the verb's options would refuse, wherever they come from.

        Raises:
            ConfigError: As `refuse_out_of_bounds`.
        """
        refuse_out_of_bounds(type(self), {each.name: getattr(self, each.name) for each in fields(self)})

    def settled(self) -> Self:
        """The options to run with: if `quick` is set, `QUICK` replaces defaults."""
        if not self.quick:
            return self
        defaults = {each.name: each.default for each in fields(self)}
        small: dict[str, Any] = {
            name: value for name, value in self.QUICK.items() if getattr(self, name) == defaults[name]
        }
        return replace(self, quick=False, **small)


def refuse_out_of_bounds(kind: type[ExperimentOptions], values: Mapping[str, Any]) -> None:
    """Refuse values that are not numbers, or out of the bounds of the fields' options.

    The command line checks bounds itself, but not NaN. Files and Python rely on this function.

    Args:
        values: Values by field name; None means unset.

    Raises:
        ConfigError: A numeric field has a value that is not a number (a boolean is not one), not finite, not
            whole where required, or out of bounds.
    """
    for each in fields(kind):
        stated = each.metadata.get(KIND)
        number, value = _number_of(stated), values.get(each.name)
        if number is None or value is None:
            continue
        several = isinstance(value, Iterable) and not isinstance(value, str)
        # The number of seeds is at least 1, but a seed itself may be 0.
        interval = interval_of(ranges.Seed if several and each.name == _SEEDS else stated) or Interval()
        for one in value if several else (value,):
            fault = _fault(one, number, interval)
            if fault is not None:
                raise ConfigError(f"{each.name}: {one} {fault}.", advice="Correct it.")


def _number_of(kind: Any) -> type[int] | type[float] | None:
    """The type of number that a type is, or has in its list or union; None if it is not numeric."""
    kinds = _parts(kind)
    return int if int in kinds else float if float in kinds else None


def _parts(kind: Any) -> set[Any]:
    """A type and all types nested in it, for unions and lists."""
    return {kind}.union(*map(_parts, get_args(kind)))


def _fault(value: Any, number: type[int] | type[float], interval: Interval) -> str | None:
    """What is wrong with a number; None if nothing is."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return "is no number"
    if not math.isfinite(value):
        return "is not a finite number"
    if number is int and not isinstance(value, Integral):
        return "is not a whole number"
    return interval.fault(float(value))
