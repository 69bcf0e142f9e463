"""Acquisition rules: how the curator gets the points (DESIGN §3). One file per rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from protocol.acquisition.ask_all import AskAll
from protocol.acquisition.base import AcquisitionRule, Standing
from protocol.acquisition.published import Published
from protocol.acquisition.winner_only import WinnerOnly
from protocol.errors import ConfigError

__all__ = ["RULES", "AcquisitionRule", "Standing", "acquisition_rule"]

RULES: Final[dict[str, type[AcquisitionRule]]] = {rule.name: rule for rule in (AskAll, Published, WinnerOnly)}


def acquisition_rule(name: str, parameters: Mapping[str, Any], *, owners: int) -> AcquisitionRule:
    """The rule of that name.

    Args:
        name: A key of `RULES`.
        parameters: The further keys of the session file's ``[acquisition]``.
        owners: K.

    Raises:
        ConfigError: No such rule, or parameters that it does not take.
    """
    rule = RULES.get(name)
    if rule is None:
        raise ConfigError(
            f"acquisition.rule: no rule is named {name!r}.", advice=f"There are: {', '.join(RULES)}."
        )
    try:
        return rule(rule.Parameters.model_validate(dict(parameters)), owners=owners)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise ConfigError(
            f"acquisition.{where}: {fault['msg']}.", advice=f"Correct the parameters of {name}."
        ) from None
