"""A planned setting: a session, the sizes of the parties' data, and known or assumed facts about these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from hushbid.cluster.data import ClusterData
from hushbid.cluster.evaluation import uniform
from hushbid.cluster.file import Cluster, found_cluster, open_cluster
from hushbid.plan.flags import PlanFlags
from hushbid.plan.tables import (
    ASSUMED,
    names_only,
    no_network,
    release_table,
    whole_tables,
    with_flags,
)
from hushbid.protocol.config.loading import read_toml, validated
from hushbid.protocol.config.purchase import check_purchase
from hushbid.protocol.config.session import (
    NetworkSection,
    NoiseSection,
    RosterSection,
    SessionFile,
)
from hushbid.protocol.data.dataset import Outside
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import MODEL
from hushbid.protocol.privacy.acquisition import RULES, acquisition_rule
from hushbid.protocol.privacy.releases import Prior, Statistic
from hushbid.protocol.privacy.releases.statistic import BASIS_BITS
from hushbid.protocol.session.points import hash_dataset, hash_seed_set
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.session.wishes import check_wishes
from hushbid.protocol.space.grid import FEATURE_UNIT
from hushbid.protocol.space.mmd import mmd2

__all__ = ["PlanSetting", "plan_setting", "setting_of"]

_FILE: Final = "the file"
_COMMAND: Final = "the command line"


@dataclass(frozen=True, kw_only=True)
class PlanSetting:
    """The planned session and its sizes.

    Attributes:
        file: The session's public file; its roster has names and no keys.
        m: |D_v|.
        owner_points: Points of each owner, in the order of their names.
        seed_points: |D_init|.
        point_type: Type of a raw point's numbers, a numpy dtype's name.
        spread: ρ, the root mean square of ‖φ(x) - c‖ about the seed set's mean c (`Prior.spread`).
        drift: ‖mean of y‖ over D_v, of the clipped statistic y (`Statistic`): how far one bought point moves
            a total on average.
        mmd2_uniform: MMD² of p points drawn at random.
        data: The parties' data, on which the last three were measured; None: they are assumed.
        drawn: Whether the seed set of `data` is drawn within the bounds.
        model: The consumer's model in `data`.
        sources: The source of each size: the file, the command line, or "assumed".
        refusal: Why the acquisition rule is not for this session; empty if it is.
    """

    file: SessionFile
    m: int
    owner_points: tuple[int, ...]
    seed_points: int
    point_type: str
    spread: float
    drift: float
    mmd2_uniform: float
    sources: Mapping[str, str]
    refusal: str = ""
    data: ClusterData | None = None
    drawn: bool = False
    model: str = MODEL

    @property
    def p(self) -> int:
        return self.file.session.points

    @property
    def rounds(self) -> int:
        return self.file.rounds

    @property
    def count(self) -> float:
        """The q of the last broadcast; 1 without a seed set and an earlier round."""
        return self.file.seed_weight * self.seed_points + self.file.batch * (self.rounds - 1) or 1.0

    def session(self) -> Session:
        """The parties' session, with `ask-all` in place of a refused rule."""
        file = self.file
        if self.refusal:
            features = file.features.model_copy(update={"seed": 0})
            rule = file.acquisition.model_validate({"rule": "ask-all"})
            session = file.session.model_copy(update={"batch": file.batch})
            file = file.model_copy(update={"acquisition": rule, "features": features, "session": session})
        return open_session(file)

    def with_session(self, **changes: Any) -> PlanSetting:
        """The same with other keys of ``[session]``."""
        session = self.file.session.model_copy(update=changes)
        return replace(self, file=self.file.model_copy(update={"session": session}))

    def with_releases(self, mechanism: str, owners: float, consumer: float) -> PlanSetting:
        """The same with one of `RELEASES` on both sides, at these ε of owners' and consumer's records."""
        tables = self.file.model_dump()
        for name, epsilon in (("summary", owners), ("target", consumer)):
            tables[name] = release_table(name, mechanism, epsilon)
        return replace(self, file=validated(SessionFile, tables, where="the plan"))


def plan_setting(
    path: Path | None, flags: PlanFlags, *, data: Path | None = None, outside: Outside | None = None
) -> PlanSetting:
    """The setting by a session file or a cluster file, if any, and the command line, which takes precedence.

    Args:
        path: The file.
        flags: The command line.
        data: Directory of a cluster file's dataset, in place of the file's own path.
        outside: Treatment of rows of its tables that do not fit, in place of the file's own.

    Raises:
        ConfigError: A value is missing, unknown or out of range.
        DataError: A cluster file's data cannot be used.
    """
    values = None if path is None else read_toml(path := found_cluster(path))
    if outside is not None and (values is None or "roster" in values):
        raise ConfigError(
            "--outside is for the tables that a cluster file names.",
            advice="Name the cluster file, or leave --outside and HUSHBID_OUTSIDE out.",
        )
    if values is None:
        if data is not None:
            raise ConfigError("--data is for a cluster file's dataset.", advice="Name the cluster file too.")
        return _assembled(whole_tables(flags), flags, None, {})
    assert path is not None, "it was read"
    if "roster" not in values:
        cluster = open_cluster(path, data=data)
        return _with_data(cluster if outside is None else cluster.reading_with(outside), flags)
    if data is not None:
        raise ConfigError(
            f"{path} is a session file, which names no dataset.", advice="Leave --data and HUSHBID_DATA out."
        )
    owners = values["roster"].get("owners") if isinstance(values["roster"], dict) else None
    if not isinstance(owners, dict):
        raise ConfigError(f"{path}: [roster.owners] is missing.", advice="Name the owners there.")
    values |= {"roster": names_only(list(owners)), "network": no_network()}
    return _assembled(
        values, flags, None, dict.fromkeys(("owners", "points", "columns"), _FILE), where=str(path)
    )


def setting_of(
    file: SessionFile, *, validation: int, seed_points: int, owner_points: int | None = None
) -> PlanSetting:
    """A session as its consumer can plan it, knowing |D_v| and |D_init|, and perhaps an owner's points.

    Raises:
        ConfigError: A value cannot be planned with.
    """
    values = file.model_dump() | {"roster": names_only(list(file.roster.owners)), "network": no_network()}
    flags = PlanFlags(validation=validation, seed_points=seed_points, owner_points=owner_points)
    return _assembled(values, flags, None, {})


def _with_data(cluster: Cluster, flags: PlanFlags) -> PlanSetting:
    if flags.columns is not None:
        raise ConfigError(
            f"The data of {cluster.where} have {cluster.features.columns} columns, and --columns says "
            f"{flags.columns}.",
            advice="Leave --columns out.",
        )
    data = cluster.load()
    roster = RosterSection.model_validate(names_only(list(data.owners)))
    file = cluster.session_file(roster, NetworkSection.model_validate(no_network()))
    sizes = ("owners", "points", "validation", "owner_points", "seed_points", "columns")
    found = _assembled(file.model_dump(), flags, data, dict.fromkeys(sizes, _FILE), where=str(cluster.where))
    return replace(found, drawn=cluster.file.consumer.seed_points is not None, model=cluster.model)


def _assembled(
    tables: dict[str, Any],
    flags: PlanFlags,
    data: ClusterData | None,
    sources: dict[str, str],
    where: str = _COMMAND,
) -> PlanSetting:
    tables = with_flags(tables, flags)
    if tables["roster"].get("owners") == {}:
        raise ConfigError(f"{where}: no owner is on its roster yet.", advice="Give their number: --owners K.")
    file = _without_wishes(validated(SessionFile, tables, where=where))
    sources = sources | dict.fromkeys(flags.given(), _COMMAND)
    m = flags.validation or (len(data.validation) if data is not None else None)
    if m is None:
        raise ConfigError("The size of the validation set is missing.", advice="Give --validation m.")
    number = len(file.roster.owners)
    assumed = [name for name in ("owner_points", "seed_points", "columns") if name not in sources]
    if data is None:
        assumed += ["spread", "drift", "mmd2_uniform"]
    seed_points = flags.seed_points
    if seed_points is None:
        seed_points = int(ASSUMED["seed_points"]) if data is None else len(data.seed_set)
    setting = PlanSetting(
        file=file,
        m=m,
        owner_points=_owner_points(flags, data, number),
        seed_points=seed_points,
        point_type="float64" if data is None else data.validation.features.dtype.name,
        spread=float(ASSUMED["spread"]),
        drift=float(ASSUMED["drift"]),
        mmd2_uniform=float(ASSUMED["mmd2_uniform"]),
        sources=sources | dict.fromkeys(assumed, "assumed"),
        refusal=_refusal(file, number),
        data=data,
    )
    setting = _with_noise_that_is_there(setting)
    return setting if data is None else _measured(setting, data)


def _with_noise_that_is_there(setting: PlanSetting) -> PlanSetting:
    """The setting with simulated noise if it has Laplace noise, which has no secure source."""
    session = setting.session()
    draws = (*session.target.draws(0), *session.summary.draws(setting.rounds - 1))
    if not session.noise_protects or all(draw.distribution != "laplace" for draw in draws):
        return setting
    noise = NoiseSection(source="simulated", seed=0)
    return replace(setting, file=setting.file.model_copy(update={"noise": noise}))


def _without_wishes(file: SessionFile) -> SessionFile:
    """Check the file's wishes and remove them: no figure of a plan depends on them."""
    check_wishes(file)
    session = file.session.model_copy(update={"distinct": file.distinct})
    return file if file.wishes is None else file.model_copy(update={"wishes": None, "session": session})


def _refusal(file: SessionFile, owners: int) -> str:
    """Why a rule with correct keys is not for this session; empty if it is."""
    check_purchase(file)
    section, session = file.acquisition, file.session
    try:
        acquisition_rule(
            section.rule, section.parameters, owners=owners, rounds=file.rounds, delta=session.delta
        )
    except ConfigError as error:
        RULES.chosen(section.rule, section.parameters)  # otherwise the keys are wrong
        return error.what
    return ""


def _measured(setting: PlanSetting, data: ClusterData) -> PlanSetting:
    """The setting with figures of its parties' data, which only the operator of a demonstration has."""
    session = setting.session()
    feature_map = session.public_map or session.space.map(0)
    seeds = hash_seed_set(feature_map, data.seed_set.features).sum(axis=0, dtype=np.int64)
    prior = Prior.of_total(seeds, len(data.seed_set))
    clipped = Statistic(session.space.dimension, prior.centre, prior.radius)
    setting.file.check_wanted_labels(data.validation)  # this names its file, as the map cannot
    drift = clipped.of(hash_dataset(feature_map, data.validation)).mean(axis=0) * FEATURE_UNIT
    sizes = {name: len(dataset) for name, dataset in data.owners.items()}
    drawn = uniform(sizes, setting.p, np.random.default_rng(0))
    points = np.stack([data.owners[name].features[row] for name, row in drawn])
    scale = session.space.scale
    return replace(
        setting,
        spread=prior.spread * FEATURE_UNIT,
        drift=float(np.linalg.norm(drift)),
        mmd2_uniform=mmd2(scale(points), scale(data.validation.features), session.space.gamma),
        sources=dict(setting.sources) | dict.fromkeys(("spread", "drift", "mmd2_uniform"), "the data"),
    )


def plain_prior(session: Session, *, size: int, spread: int) -> Prior:
    """A prior of no points in particular, with the origin as centre, for figures that depend on no points.

    Args:
        session: Its releases get their number of directions, each along a coordinate.
        size: The assumed size of the seed set.
        spread: In units of 2^-15.
    """
    dimension = session.space.dimension
    basis = None
    if session.directions:
        basis = np.eye(session.directions, dimension, dtype=np.int16) * np.int16(2**BASIS_BITS)
    return Prior(size, np.zeros(dimension, dtype=np.int64), spread, basis)


def _owner_points(flags: PlanFlags, data: ClusterData | None, owners: int) -> tuple[int, ...]:
    if flags.owner_points is not None:
        return (flags.owner_points,) * owners
    if data is None:
        return (int(ASSUMED["owner_points"]),) * owners
    sizes = [len(dataset) for _, dataset in sorted(data.owners.items())]
    if len(sizes) == owners:
        return tuple(sizes)
    if owners > sum(sizes):
        raise ConfigError(
            f"The data have {sum(sizes)} points, too few for {owners} owners.",
            advice="Give --owner-points n.",
        )
    return tuple(len(share) for share in np.array_split(np.arange(sum(sizes)), owners))
