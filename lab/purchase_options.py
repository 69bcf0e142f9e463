"""Declarations of the experiments that compare methods of buying: those of DPDS, and further ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Final

from annotated_types import Ge, Le

from hushbid.lab.experiment_fields import (
    ExperimentOptions,
    Small,
    argument_field,
    data_field,
    epsilons_field,
    seeds_field,
)
from hushbid.protocol import ranges
from hushbid.protocol.runtime.command import option

__all__ = ["PURCHASES", "InsuranceOptions", "MnistOptions", "PurchaseOptions", "RareOptions", "RivalsOptions"]


@dataclass(frozen=True, kw_only=True)
class PurchaseOptions(ExperimentOptions):
    """Options of the experiments on purchases; None means the experiment's own value.

    Attributes:
        methods: Some of `hushbid.lab.experiments.methods.METHODS`.
        epsilons: ε of calibrated methods, for each of the two sides.
        owner_points: Drawn at random.
    """

    data: Path | None = field(
        default=None, kw_only=False, metadata=data_field("Where the dataset's files lie.", Path | None)
    )
    methods: Sequence[str] | None = option(
        list[str] | None, "--method", help="Method, such as private or uniform; may be repeated."
    )
    epsilons: Sequence[float] | None = epsilons_field("ε of owners and of the consumer; may be repeated.")
    points: Sequence[int] | None = option(list[ranges.Points] | None, help="Points to buy; may be repeated.")
    owner_points: int | None = option(ranges.Count | None, help="Most points of an owner; default: all.")


@dataclass(frozen=True, kw_only=True)
class MnistOptions(PurchaseOptions):
    """Buy handwritten digits by each method, as in appendix G of the first paper.

    Attributes:
        gammas: γ of the kernel on pixels in [0, 1]; 0.1 is the paper's.
    """

    NAME: ClassVar[str] = "mnist"
    QUICK: ClassVar[Small] = {
        "seeds": 1,
        "points": (100,),
        "owner_points": 1000,
        "epsilons": (1.0,),
    }

    seeds: int | Sequence[int] = seeds_field(3)
    gammas: Sequence[float] | None = option(
        list[ranges.Gamma] | None, "--gamma", help="γ; may be repeated. Default: 0.1 and 0.01."
    )


@dataclass(frozen=True, kw_only=True)
class InsuranceOptions(PurchaseOptions):
    """Buy insurance customers by each method, as in section 4 of the first paper."""

    NAME: ClassVar[str] = "insurance"
    QUICK: ClassVar[Small] = {"seeds": 1, "points": (100,), "epsilons": (1.0,)}


@dataclass(frozen=True, kw_only=True)
class RareOptions(PurchaseOptions):
    """Buy by each method where few of the owners' points are wanted: there private selection pays.

    Attributes:
        shares: None: 0.005, 0.02, 0.1 and 0.2.
    """

    NAME: ClassVar[str] = "rare"
    QUICK: ClassVar[Small] = {
        "seeds": 1,
        "points": (100,),
        "pool": 2000,
        "epsilons": (1.0,),
    }

    shares: Sequence[float] | None = option(
        list[Annotated[float, Ge(0), Le(1)]] | None,
        "--share",
        help="Share of the owners' points that are wanted; may be repeated.",
    )
    pool: int = option(Annotated[int, Ge(10)], default=10_000, help="Total points of all owners.")


@dataclass(frozen=True, kw_only=True)
class RivalsOptions(ExperimentOptions):
    """Compare buying points with training on published releases and with compression, at equal ε and size.

    Attributes:
        dataset: One of `hushbid.datasets.DATASETS`, with the γ and the model that suit it.
        rivals: Some of `hushbid.lab.experiments.rivals.RIVALS`; None: all.
        epsilons: ε of each private rival; None: 1 and 3.
        points: None: 1000.
        owner_points: Drawn at random.
    """

    NAME: ClassVar[str] = "rivals"
    QUICK: ClassVar[Small] = {
        "seeds": 1,
        "points": (100,),
        "epsilons": (1.0,),
        "owner_points": 500,
    }

    dataset: str = field(
        default="insurance",
        kw_only=False,
        metadata=argument_field(str, help="digits, mnist or insurance."),
    )
    data: Path | None = field(
        default=None, kw_only=False, metadata=data_field("Where the dataset's files lie.", Path | None)
    )
    rivals: Sequence[str] | None = option(
        list[str] | None, "--rival", help="Rival, such as private or dp-merf; may be repeated."
    )
    epsilons: Sequence[float] | None = epsilons_field("ε; may be repeated.")
    points: Sequence[int] | None = option(
        list[ranges.Points] | None, help="Points to buy, synthesize or keep; may be repeated."
    )
    owner_points: int | None = option(ranges.Count | None, help="Most points of an owner; default: all.")


@dataclass(frozen=True, kw_only=True)
class PrivacyUtilityOptions(PurchaseOptions):
    """Measure the quality of purchases over ε, for every release at the same sound ε.

    Attributes:
        dataset: One of `hushbid.datasets.DATASETS`, with the γ and the model that suit it.
    """

    NAME: ClassVar[str] = "privacy-utility"
    QUICK: ClassVar[Small] = {"seeds": 1, "points": (40,), "epsilons": (1.0, 10.0)}

    dataset: str = field(
        default="insurance",
        metadata=argument_field(str, help="digits, mnist or insurance."),
    )


@dataclass(frozen=True, kw_only=True)
class ScalingOptions(ExperimentOptions):
    """Measure what a session costs and what its curator sees, by number of owners, for every rule.

    Attributes:
        rules: Some of `hushbid.protocol.privacy.acquisition.RULES`.
        owners: None: 4, 32, 256 and 2048.
        batches: None: 1 and 5. Rules that buy one point per round use only 1.
    """

    NAME: ClassVar[str] = "scaling"
    QUICK: ClassVar[Small] = {"seeds": 1, "owners": (4, 40), "points": 10}

    seeds: int | Sequence[int] = seeds_field(1)
    rules: Sequence[str] | None = option(
        list[str] | None, "--rule", help="Acquisition rule; may be repeated. Default: all."
    )
    owners: Sequence[int] | None = option(list[ranges.OwnerCount] | None, help="K; may be repeated.")
    batches: Sequence[int] | None = option(
        list[ranges.PointsOfRound] | None, "--batch", help="b, points bought per round; may be repeated."
    )
    points: int = option(ranges.Points, default=20, help="Points to buy.")
    owner_points: int = option(ranges.Count, default=20, help="Points per owner.")


PURCHASES: Final = (
    MnistOptions,
    InsuranceOptions,
    RareOptions,
    RivalsOptions,
    PrivacyUtilityOptions,
    ScalingOptions,
)
"""The options classes of this module."""
