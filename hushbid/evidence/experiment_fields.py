"""What the options of all experiments have in common, and how a field becomes an option of a verb."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self, TypeAlias

import typer

from protocol.runtime.command import by_option, option

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
    "data_field",
    "epsilons_field",
    "seeds_field",
]

JobsOption: TypeAlias = Annotated[int, typer.Option(min=1, help="Processes that share the work.")]
OutOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Write results, figures and a page here; what is done already is kept.", metavar="DIR"),
]
SchedulerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="A Dask scheduler, as tcp://HOST:PORT, whose workers do the work.", metavar="ADDRESS"),
]
QuickOption: TypeAlias = Annotated[
    bool, typer.Option("--quick", help="A small form, of a minute or so, where options say nothing else.")
]

ENVIRONMENT: Final = "HUSHBID_DATA"


def argument_field(kind: Any, **settings: Any) -> dict[str, object]:
    """A field's metadata that make it an argument of the verb."""
    return by_option(Annotated[kind, typer.Argument(**settings)])


def data_field(help_text: str, kind: Any = Path) -> dict[str, object]:
    """A field's metadata that make it the option ``--data``."""
    return by_option(Annotated[kind, typer.Option(envvar=ENVIRONMENT, help=help_text)])


def seeds_field(count: int) -> Any:
    """The field of the number of seeds, with its default."""
    return option(int, default=count, min=1, help="Number of seeds.")


def epsilons_field(help_text: str) -> Any:
    """The field of the ε that are tried, none of them by default."""
    return option(list[float] | None, "--epsilon", min=0.0, help=help_text)


@dataclass(frozen=True, kw_only=True)
class ExperimentOptions:
    """What all experiments take.

    Attributes:
        seeds: How many, or which.
        first_seed: The first of them, if it is said how many.
        jobs: Processes; times that are measured are those of as many at once.
        scheduler: Address of a Dask scheduler whose workers do the work in their place, each of which has to
            find the data files under the same paths. None: processes of this machine.
        quick: Whether what is not said is as in `QUICK`: a run that shows that all works, and no figure.
        out: A directory for the results, and a file for each configuration and seed that is done: those that
            are there already are not run again. None: results are returned alone.
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

    def settled(self) -> Self:
        """What is run: `QUICK` in place of what was left at its default, if it is to be quick."""
        if not self.quick:
            return self
        defaults = {each.name: each.default for each in fields(self)}
        small = {name: value for name, value in self.QUICK.items() if getattr(self, name) == defaults[name]}
        return replace(self, quick=False, **small)
