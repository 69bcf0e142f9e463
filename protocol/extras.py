"""Packages that are not on every machine: they come with an extra (pyproject.toml), mostly `operator`.

A party's own machine takes part without them. Code that uses one asks for it first, before any work.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from hushbid.protocol.errors import ConfigError

__all__ = ["EXTRA", "OTHERS", "PACKAGES", "lazily", "missing", "need"]

EXTRA: Final = "operator"
PACKAGES: Final = {
    "PIL": "pillow",
    "bokeh": "bokeh",
    "joblib": "joblib",
    "skops": "skops",
    "sklearn": "scikit-learn",
}
"""Module name → the package that installs it."""
OTHERS: Final = {
    "distributed": ("distributed", "dask"),
    "goodpoints": ("goodpoints", "rivals"),
    "apricot": ("apricot-select", "rivals"),
    "grpc": ("grpcio", "peers"),
}
"""Module name → the package that installs it, and its extra."""


def need(module: str, what: str) -> None:
    """Refuse a feature whose package is missing; call it before the import, and before any work.

    Args:
        module: A key of `PACKAGES` or `OTHERS`.
        what: The subject of the sentence, as in "A report".

    Raises:
        ConfigError: It is not installed; names the extra.
    """
    package, extra = OTHERS[module] if module in OTHERS else (PACKAGES[module], EXTRA)
    if missing(module):
        raise ConfigError(
            f"{what} needs {package}, which is not installed.",
            advice=f"Install hushbid with its extra: `pip install 'hushbid[{extra}]'`.",
        )


def missing(module: str) -> bool:
    """Whether a package is not installed."""
    try:
        return importlib.util.find_spec(module) is None
    except (ImportError, ValueError):  # a stand-in took its place
        return True


def lazily(package: str, names: Mapping[str, str], needed: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package that imports some of its names only when they are asked for.

    Args:
        names: Each name, and the package's module that has it.
        needed: What these modules import, as `need` takes it: each name is refused if that is missing.
    """

    def found(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        need(needed, f"`{package}.{name}`")
        return getattr(import_module(f"{package}.{names[name]}"), name)

    return found
