"""`hushbid train`: a scikit-learn model trained on the purchase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from hushbid.consumer.estimators import SUGGESTED
from hushbid.owner.role import FeaturesOption, LabelOption, SessionOfTablesOption
from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.command import JsonResult, say, show_figures, tell, verb
from hushbid.protocol.runtime.ranged import ranged
from hushbid.tables.options import DeliveredArgument, OutsideOfTablesOption, changes_told

if TYPE_CHECKING:
    from hushbid.tables.training import Fitted, Trained

__all__ = ["show_trained", "train_command"]

_NAMES: Final[Mapping[str, str]] = {
    "accuracy": "accuracy",
    "f1_macro": "F1, mean of classes",
    "r2": "R²",
    "mean_absolute_error": "mean absolute error",
    "root_mean_squared_error": "root mean squared error",
}


def show_trained(result: Trained, *, verdict: bool = True, scores: bool = True, tables: bool = True) -> None:
    """Print the result for people; without what is already printed, or is not wanted."""
    for line in changes_told(result.outside) if tables else ():
        say(line)
    learned = f"{result.points}"
    if result.unlabelled:
        learned += f", and {result.unlabelled} without a label left out"
    figures = {
        result.kind: result.estimator,
        "learned from": learned,
        "weights": "used" if result.weights_used else f"not used: {result.weights_why}",
        **(_score_lines(result.fitted, "") if scores else {}),
    }
    if result.beside is not None:
        figures["own rows"] = str(result.own_rows)
    if result.without_weights is not None and scores:
        figures |= _score_lines(result.without_weights, " without weights")
    if result.tested is not None:
        figures["test points"] = str(result.tested)
    if result.labels_why:
        figures["note"] = result.labels_why
    if result.output is not None:
        figures["written to"] = str(result.output)
        figures["it takes"] = "rows of numbers (of a table with [[columns]]: `hushbid schema encode`)"
    if verdict:
        tell("\n".join(result.sentences))
    show_figures(figures, indent="  ")


def _score_lines(of: Fitted, which: str) -> dict[str, str]:
    lines = {} if of.converged else {f"fit{which}": "stopped at its most iterations"}
    for key, name in _NAMES.items():
        if (score := getattr(of.scores, key, None)) is not None:
            low_high = getattr(of.scores, f"{key}_interval", None)
            interval = "" if low_high is None else f" ({low_high[0]:.3f} to {low_high[1]:.3f})"
            lines[name + which] = f"{score:.4g}{interval}"
    return lines


@verb(show=show_trained)
def train_command(
    delivered: DeliveredArgument,
    estimator: Annotated[
        str,
        typer.Option(
            help=f"Any classifier or regressor of scikit-learn: {', '.join(SUGGESTED)}, …", metavar="NAME"
        ),
    ] = "LogisticRegression",
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            help="A parameter of the model, as in C=0.1 or kernel=rbf; may be repeated.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    test: Annotated[Path | None, typer.Option(help="Held-out labelled points for the evaluation.")] = None,
    validation: Annotated[
        Path | None,
        typer.Option(
            help="D_v: also learn from own rows, some of them labelled. Cross-validation on them chooses "
            "the points' relative weight."
        ),
    ] = None,
    features: FeaturesOption = None,
    label: LabelOption = None,
    outside: OutsideOfTablesOption = None,
    session: SessionOfTablesOption = None,
    without_weights: Annotated[
        bool,
        typer.Option("--without-weights", help="Also fit a model without weights, for comparison."),
    ] = False,
    seed: Annotated[int, ranged(ranges.Seed, help="Random seed of the model.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(help="A .skops file to write the model to, for skops.io.load.", metavar="FILE"),
    ] = None,
) -> JsonResult:
    """Train a scikit-learn model on delivered points and evaluate it. Nothing leaves this machine."""
    from hushbid.tables.training import train

    return train(
        delivered,
        estimator,
        test=test,
        validation=validation,
        columns=(features, label),
        session=session,
        parameters=_parameters(parameter or ()),
        without_weights=without_weights,
        seed=seed,
        output=output,
        outside=outside,
    )


def _parameters(given: Sequence[str]) -> dict[str, Any]:
    """Values are TOML, or text where that does not parse: `kernel=rbf` needs no quotes."""
    from hushbid.protocol.config.loading import toml_value

    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise ConfigError(f"--parameter {each}: no name and value.", advice="Write it as NAME=VALUE.")
        if name == "verbose":
            raise ConfigError(
                "--parameter verbose: scikit-learn would print its progress among the results.",
                advice="Omit it, or train in Python (`hushbid.train`).",
            )
        found[name] = None if value == "None" else toml_value(value)
    return found
