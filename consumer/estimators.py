"""Estimators of scikit-learn by name: what there is, what takes weights, and what parameters each has."""

# ruff: noqa: PLC0415

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.extras import need

__all__ = ["SUGGESTED", "check_model_seed", "is_regressor", "made", "takes_weights", "unknown"]

SUGGESTED: Final = (
    "LogisticRegression",
    "LinearSVC",
    "SVC",
    "MLPClassifier",
    "RandomForestClassifier",
    "HistGradientBoostingClassifier",
    "Ridge",
    "KernelRidge",
    "SVR",
    "RandomForestRegressor",
    "HistGradientBoostingRegressor",
)
"""Estimators that people are shown; all others of scikit-learn can be named as well."""
_MANY: Final = 1000
"""Iterations of a model whose own default is often too low for the points of a session."""
_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "LogisticRegression": {"max_iter": _MANY},
    "MLPClassifier": {"max_iter": _MANY},
    "MLPRegressor": {"max_iter": _MANY},
}
_NEAR: Final = 3
_CUTOFF: Final = 0.5
"""Least similarity of names, by difflib."""


def made(name: str, parameters: Mapping[str, Any], *, seed: int) -> Any:
    """An estimator that is not fitted yet, of a class that `sklearn.utils.all_estimators` lists.

    Args:
        parameters: Of its constructor; others have scikit-learn's defaults, except `_DEFAULTS`.
        seed: Its ``random_state``, if it has one.

    Raises:
        ConfigError: There is none of that name, or it is made of other estimators; it has no such parameter;
            the seed is too large; or scikit-learn is not installed.
    """
    need("sklearn", "A model of delivered points")
    kinds = _estimators()
    if name not in kinds:
        advice = _near(name, kinds) or f"Name one of: {', '.join(SUGGESTED)}."
        raise ConfigError(f"scikit-learn has no classifier or regressor named {name!r}.", advice=advice)
    kind = kinds[name]
    own = inspect.signature(kind).parameters
    if missing := [each.name for each in own.values() if each.default is inspect.Parameter.empty]:
        raise _of_others(name, ", ".join(missing))
    for parameter in parameters:
        if parameter not in own:
            advice = _near(parameter, own) or f"It has: {', '.join(own)}."
            raise ConfigError(f"{name} has no parameter {parameter!r}.", advice=advice)
    seeded = {}
    if "random_state" in own:
        check_model_seed(seed)
        seeded = {"random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a class will be gone in a later release of scikit-learn
        return kind(**{**_DEFAULTS.get(name, {}), **seeded, **parameters})


def unknown(name: str) -> str | None:
    """None if scikit-learn has an estimator of that name; else what it may have been meant for, or empty."""
    kinds = _estimators()
    return None if name in kinds else _near(name, kinds)


def check_model_seed(seed: int) -> None:
    """Refuse a model's seed that scikit-learn does not take.

    Raises:
        ConfigError: It is no number of 32 bits.
    """
    if not 0 <= seed < 2**32:
        raise ConfigError(
            f"The model's seed is {seed}.", advice=f"Set seed to a whole number from 0 to {2**32 - 1}."
        )


def takes_weights(estimator: Any) -> bool:
    """Whether an estimator's ``fit`` takes ``sample_weight``."""
    from sklearn.utils.validation import has_fit_parameter

    return bool(has_fit_parameter(estimator, "sample_weight"))


def is_regressor(estimator: Any) -> bool:
    """Whether it learns numbers; otherwise it learns classes.

    Raises:
        ConfigError: It lacks the estimator that it is made of.
    """
    from sklearn.base import is_regressor as is_one

    try:
        return bool(is_one(estimator))
    except AttributeError:  # it asks the other one, which is None
        raise _of_others(type(estimator).__name__, "estimator") from None


def _of_others(name: str, missing: str) -> ConfigError:
    return ConfigError(
        f"{name} is made of other estimators ({missing}), which no option names.",
        advice="Make it in Python: `hushbid.train(..., estimator=...)` takes an estimator itself.",
    )


@cache
def _estimators() -> Mapping[str, Any]:
    from sklearn.utils import all_estimators

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # modules that are going to be renamed say so when they are looked at
        return dict(all_estimators(type_filter=["classifier", "regressor"]))


def _near(name: str, names: Mapping[str, Any]) -> str:
    """A question whether a name like the given one was meant; empty if there is none."""
    folded = {each.casefold(): each for each in names}
    near = difflib.get_close_matches(name.casefold(), folded, _NEAR, _CUTOFF)
    return f"Did you mean {', '.join(folded[each] for each in near)}?" if near else ""
