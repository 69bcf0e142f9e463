"""A feature of an extra is refused before it is needed, with how to get it."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

from hushbid.cluster.file import open_cluster
from hushbid.consumer.downstream import accuracy
from hushbid.evidence.audit.run import audit
from hushbid.evidence.pool import results_of
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.extras import EXTRA, PACKAGES, need
from hushbid.running.report import write_report
from tests.conftest import ROOT

DIGITS = ROOT / "configs" / "digits" / "cluster.toml"


def test_the_extra_has_these_packages() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {Requirement(text).name for text in extras[EXTRA]} == set(PACKAGES.values())
    assert f"hushbid[{EXTRA}]" in extras["lab"]
    assert "hushbid[lab]" in extras["dev"], "one install for whoever works on it"


USES: list[tuple[str, Callable[[Path], object]]] = [
    ("scikit-learn", lambda _: open_cluster(DIGITS).load()),
    ("scikit-learn", lambda _: list(audit(()))),
    ("scikit-learn", lambda _: accuracy("logistic", np.eye(2), [0, 1], np.eye(2), [0, 1], seed=0)),
    ("scikit-learn", lambda _: import_module("hushbid.kme").KernelMeanRelease),
    ("scikit-learn", lambda _: import_module("hushbid.race").RaceSketch),
    ("scikit-learn", lambda _: __import__("hushbid.lab.experiments")),
    ("joblib", lambda _: list(results_of(abs, [1], jobs=2))),
    ("bokeh", lambda place: write_report([], place / "report.html")),
]


@pytest.mark.parametrize(
    ("package", "use"), USES, ids=["digits", "audit", "model", "kme", "race", "experiments", "pool", "report"]
)
def test_who_needs_one_says_so(
    package: str, use: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("hushbid.kme", "hushbid.race", "hushbid.lab.experiments"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for module in PACKAGES:
        need(module, "What is here")
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"needs {package}.*pip install 'hushbid\[operator\]'"):
        use(tmp_path)
