"""Estimators of scikit-learn by name: what there is, what takes weights, and what parameters each has."""

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from protocol.errors import ConfigError
from protocol.extras import need

__all__ = ["SUGGESTED", "is_regressor", "made", "takes_weights"]

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
"""Those that people are shown; all others of scikit-learn's classifiers and regressors are there, too."""
_MANY: Final = 1000
"""Iterations of a model whose own default is so low that points of a session often need more."""
_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "LogisticRegression": {"max_iter": _MANY},
    "MLPClassifier": {"max_iter": _MANY},
    "MLPRegressor": {"max_iter": _MANY},
}
_NEAR: Final = 3
_CUTOFF: Final = 0.5
"""How alike names must be, of difflib's 0 to 1."""


def made(name: str, parameters: Mapping[str, Any], *, seed: int) -> Any:
    """An estimator that is not fitted yet.

    Args:
        name: Of a class that `sklearn.utils.all_estimators` lists as a classifier or a regressor.
        parameters: Of its constructor; what is not given has scikit-learn's default, but for `_DEFAULTS`.
        seed: Its ``random_state``, if it has one.

    Raises:
        ConfigError: There is none of that name, or it is made of other estimators; it has no such parameter;
            or scikit-learn is not installed.
    """
    need("sklearn", "A model of delivered points")
    kinds = _estimators()
    if name not in kinds:
        near = _near(name, kinds)
        raise ConfigError(
            f"scikit-learn has no classifier or regressor named {name!r}.",
            advice=f"Did you mean {', '.join(near)}?" if near else f"Name one of: {', '.join(SUGGESTED)}.",
        )
    kind = kinds[name]
    own = inspect.signature(kind).parameters
    if missing := [each.name for each in own.values() if each.default is inspect.Parameter.empty]:
        raise _of_others(name, ", ".join(missing))
    for parameter in parameters:
        if parameter not in own:
            near = _near(parameter, own)
            raise ConfigError(
                f"{name} has no parameter {parameter!r}.",
                advice=f"Did you mean {', '.join(near)}?" if near else f"It has: {', '.join(own)}.",
            )
    seeded = {"random_state": seed} if "random_state" in own else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a class will be gone in a later release of scikit-learn
        return kind(**{**_DEFAULTS.get(name, {}), **seeded, **parameters})


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


def _near(name: str, names: Mapping[str, Any]) -> list[str]:
    folded = {each.casefold(): each for each in names}
    return [folded[each] for each in difflib.get_close_matches(name.casefold(), folded, _NEAR, _CUTOFF)]
