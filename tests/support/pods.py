"""The pods of configs/kubernetes by their parts: documents, environment, mounts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import tomli_w
import yaml

from hushbid.protocol.config.invitation import invitation
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.keys import KeyPair, write_secret
from tests.conftest import ROOT
from tests.support.session_files import changed

__all__ = ["MANIFESTS", "Pod", "documents", "session_of", "write_belongings"]

MANIFESTS = sorted((ROOT / "configs" / "kubernetes").glob("*.yaml"))


def documents(manifest: Path) -> list[dict[str, Any]]:
    """The objects of a manifest."""
    return list(yaml.safe_load_all(manifest.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Pod:
    """The pod of a manifest's Job."""

    job: Mapping[str, Any]

    @classmethod
    def of(cls, manifest: Path, *, name: str = "north") -> Pod:
        """The pod of the owner of this name, from an owner's manifest."""
        text = manifest.read_text(encoding="utf-8").replace("north", name)
        [job] = [each for each in yaml.safe_load_all(text) if each["kind"] == "Job"]
        return cls(job["spec"])

    @property
    def spec(self) -> Mapping[str, Any]:
        spec: dict[str, Any] = self.job["template"]["spec"]
        return spec

    @property
    def containers(self) -> list[dict[str, Any]]:
        """The container that looks first, and the party's."""
        return [*self.spec["initContainers"], *self.spec["containers"]]

    @property
    def volumes(self) -> dict[str, dict[str, Any]]:
        """By name."""
        return {each["name"]: each for each in self.spec["volumes"]}

    @staticmethod
    def environment(container: Mapping[str, Any]) -> dict[str, str]:
        return {each["name"]: each["value"] for each in container["env"]}

    @staticmethod
    def mounts(container: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """By the volume's name."""
        return {each["name"]: each for each in container["volumeMounts"]}


def session_of(keys: Mapping[str, KeyPair], settings: Mapping[str, object] | None = None) -> dict[str, Any]:
    """A session file between pods: a key holder that is neither curator nor consumer is an owner."""
    owners = {name: pair.public.text for name, pair in keys.items() if name not in {CURATOR, CONSUMER}}
    roster = {name: keys[name].public.text for name in (CURATOR, CONSUMER)}
    own = {
        "acquisition.rule": "tender",
        "features.seed": None,
        "noise": {"source": "secure"},
        "summary": None,
    }
    network = {"address": "tcp://hushbid-curator:5790"}
    given: dict[str, Any] = {"session.points": 5, "network": network, **own, **(settings or {})}
    return changed(given) | {"roster": {"owners": owners, **roster}}


def write_belongings(
    directory: Path, name: str, keys: Mapping[str, KeyPair], session: Mapping[str, Any], *, mounted: Path
) -> None:
    """What people give a party's pod: `session`, `key` and `data` below `directory`.

    Args:
        name: The party's.
        keys: All parties' keys.
        session: The session file.
        mounted: Where the party finds it.
    """
    for each in ("session", "key", "data"):
        (directory / each).mkdir(parents=True)
    write_secret(directory / "key" / "secret.key", keys[name])
    head = 'key = "elsewhere.key"\nstate = "elsewhere"\n'
    if name == CURATOR:
        (directory / "session" / "session.toml").write_text(tomli_w.dumps(session))
        (directory / "key" / "party.toml").write_text(head)
        return
    made = invitation(SessionFile.model_validate(session), name, keys[CURATOR])
    (directory / "session" / f"{name}.invitation").write_text(tomli_w.dumps(made))
    rows = np.random.default_rng(sum(name.encode())).random((100, 3))
    data = directory / "data"
    if name != CONSUMER:
        pl.DataFrame(dict(zip("abc", rows.T, strict=True))).write_parquet(data / "customers.parquet")
        return
    np.savez(data / "validation.npz", features=rows[:50])
    np.savez(data / "seed-set.npz", features=rows[50:])
    (directory / "key" / "party.toml").write_text(
        f'{head}validation = "{mounted}/data/validation.npz"\nseed_set = "{mounted}/data/seed-set.npz"\n'
    )
