"""The table of docs/plan.md: what the first paper's theorems ask of sessions."""

from __future__ import annotations

from typing import Final

from hushbid.plan.theory import asked
from tests.docs.tables.markers import Made, Table
from tests.support.theory_settings import SETTINGS

_DIGITS: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _rounded(value: float) -> str:
    """Two digits; from 10⁵ on as a power of ten."""
    if value < 1e5:
        return f"{value:.2g}" if value < 100 else f"{value:,.0f}"
    mantissa, _, power = f"{value:.0e}".partition("e")
    return f"{mantissa}·10{str(int(power)).translate(_DIGITS)}"


def theory() -> Table:
    """A row for each of `SETTINGS`."""
    rows = []
    for name, setting in SETTINGS.items():
        found = asked(setting)
        sizes = (
            found.validation_needed,
            setting.validation,
            found.seed_points_needed,
            setting.seed_points,
            found.dimension_needed,
            setting.dimension,
            found.additive_error,
            found.target_error,
            found.zero_error,
        )
        rows.append((name, *map(_rounded, sizes), ", ".join(found.met) or "none"))
    return Table(rows)


PLAN: Final[dict[str, Made]] = {"theory": theory}
