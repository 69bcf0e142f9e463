"""What the options of all experiments have in common, and how a field becomes an option of a verb."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self, TypeAlias, get_args

import typer

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.command import OPTION, by_option, option

if TYPE_CHECKING:
    from pydantic import ConfigDict

__all__ = [
    "ENVIRONMENT",
    "ExperimentOptions",
    "JobsOption",
    "OutOption",
    "QuickOption",
    "SchedulerOption",
    "argument_field",
    "bounded_field",
    "data_field",
    "epsilons_field",
    "positive_field",
    "refuse_out_of_bounds",
    "seeds_field",
]

JobsOption: TypeAlias = Annotated[int, typer.Option(min=1, help="Processes that share the work.")]
OutOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output",
        help="Write results, figures and a page here; what is done already is kept.",
        metavar="DIR",
    ),
]
SchedulerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="A Dask scheduler, as tcp://HOST:PORT, whose workers do the work.", metavar="ADDRESS"),
]
QuickOption: TypeAlias = Annotated[
    bool, typer.Option("--quick", help="A small form, of a minute or so, where options say nothing else.")
]

ENVIRONMENT: Final = "HUSHBID_DATA"
_BOUNDS: Final = "bounds"
_POSITIVE: Final = "positive"
_SEEDS: Final = "seeds"
_FIRST_SEED: Final = "first_seed"


def argument_field(kind: Any, **settings: Any) -> dict[str, object]:
    """A field's metadata that make it an argument of the verb."""
    return by_option(Annotated[kind, typer.Argument(**settings)])


def data_field(help_text: str, kind: Any = Path) -> dict[str, object]:
    """A field's metadata that make it the option ``--data``."""
    return by_option(Annotated[kind, typer.Option(envvar=ENVIRONMENT, help=help_text)])


def bounded_field(kind: Any, *, default: Any, least: float) -> Any:
    """A field of numbers that no verb has, with what `refuse_out_of_bounds` needs of it."""
    return field(default=default, metadata={_BOUNDS: Annotated[kind, typer.Option(min=least)]})


def seeds_field(count: int) -> Any:
    """The field of the number of seeds, with its default."""
    return option(int, default=count, min=1, help="Number of seeds.")


def positive_field(kind: Any, *declared: str, help_text: str) -> Any:
    """A field of numbers above 0, which the option's least number alone cannot say; None by default."""
    annotation = Annotated[kind, typer.Option(*declared, min=0.0, help=help_text)]
    return field(default=None, metadata=by_option(annotation) | {_POSITIVE: True})


def epsilons_field(help_text: str) -> Any:
    """The field of the ε that are tried, none of them by default."""
    return positive_field(list[float] | None, "--epsilon", help_text=help_text)


@dataclass(frozen=True, kw_only=True)
class ExperimentOptions:
    """What all experiments take.

    Attributes:
        seeds: How many, or which.
        jobs: Times that are measured are those of as many at once.
        scheduler: Address of a Dask scheduler whose workers do the work in their place, each of which has to
            find the data files under the same paths. None: processes of this machine.
        quick: Whether what is not said is as in `QUICK`: a run that shows that all works, and no figure.
        out: None: results are returned alone.
        say: Told what is being run.
    """

    NAME: ClassVar[str]
    QUICK: ClassVar[Mapping[str, Any]] = {"seeds": 1}
    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid", "strict": False}

    seeds: int | Sequence[int] = seeds_field(5)
    first_seed: int = option(int, default=0, min=0, help="The first of them.")
    jobs: int = field(default=1, metadata=by_option(JobsOption))
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
        """Refuse values that no option of the verb takes, whoever gave them.

        Raises:
            ConfigError: As `refuse_out_of_bounds`.
        """
        refuse_out_of_bounds(type(self), {each.name: getattr(self, each.name) for each in fields(self)})

    def settled(self) -> Self:
        """What is run: `QUICK` in place of what was left at its default, if it is to be quick."""
        if not self.quick:
            return self
        defaults = {each.name: each.default for each in fields(self)}
        small = {name: value for name, value in self.QUICK.items() if getattr(self, name) == defaults[name]}
        return replace(self, quick=False, **small)


def refuse_out_of_bounds(kind: type[ExperimentOptions], values: Mapping[str, Any]) -> None:
    """Refuse numbers that are none, or beyond the bounds that the fields' options say.

    The command line looks at its options' bounds by itself, though not for NaN; a file and Python come here.

    Args:
        values: Some of its fields by their names; None is what is not said.

    Raises:
        ConfigError: A field of numbers has what is none, as truth values are, or one that is not finite, not
            whole where it has to be, or out of bounds.
    """
    for each in fields(kind):
        number, bounds = _number_of(each)
        value = values.get(each.name)
        if number is None or value is None:
            continue
        several = isinstance(value, Iterable) and not isinstance(value, str)
        if several and each.name == _SEEDS:
            # A number of seeds is one at least; a seed may be 0.
            _, bounds = _number_of(next(other for other in fields(kind) if other.name == _FIRST_SEED))
        for one in value if several else (value,):
            fault = _fault(one, number, bounds)
            if fault is None and one == 0 and _POSITIVE in each.metadata:
                fault = "is not above 0"
            if fault is not None:
                raise ConfigError(f"{each.name}: {one} {fault}.", advice="Correct it.")


def _number_of(of: Field[Any]) -> tuple[type[int] | type[float] | None, tuple[float | None, float | None]]:
    """Whether a field has whole numbers, others or none, and the least and the most of its option."""
    kind, *metadata = get_args(of.metadata.get(OPTION) or of.metadata.get(_BOUNDS)) or (None,)
    kinds = _parts(kind)
    bounds = next(((each.min, each.max) for each in metadata if hasattr(each, "min")), (None, None))
    return (int if int in kinds else float if float in kinds else None), bounds


def _parts(kind: Any) -> set[Any]:
    """The types that a union or a list is made of, itself included."""
    return {kind}.union(*map(_parts, get_args(kind)))


def _fault(
    value: Any, number: type[int] | type[float], bounds: tuple[float | None, float | None]
) -> str | None:
    """What is wrong with a number; None: nothing."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return "is no number"
    if not math.isfinite(value):
        return "is not a finite number"
    if number is int and not isinstance(value, Integral):
        return "is not a whole number"
    least, most = bounds
    if least is not None and float(value) < least:
        return f"is below {least:g}"
    if most is not None and float(value) > most:
        return f"is above {most:g}"
    return None
