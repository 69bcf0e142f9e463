"""What declares the experiments that compare methods of buying: those of DPDS, and what goes beyond."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from hushbid.evidence.experiment_fields import (
    ExperimentOptions,
    argument_field,
    data_field,
    epsilons_field,
    positive_field,
    seeds_field,
)
from protocol.runtime.command import option

__all__ = ["PURCHASES", "InsuranceOptions", "MnistOptions", "PurchaseOptions", "RareOptions", "RivalsOptions"]


@dataclass(frozen=True, kw_only=True)
class PurchaseOptions(ExperimentOptions):
    """What the experiments on purchases take.

    Attributes:
        data: Where the dataset lies; None if it needs no files.
        methods: Some of `hushbid.evidence.experiments.methods.METHODS`; None: the experiment's.
        epsilons: ε of methods that are calibrated to one, for each of the two sides; None: the experiment's.
        points: p of each purchase; None: the experiment's.
        owner_points: Most points of an owner, drawn at random; None: all.
    """

    data: Path | None = field(
        default=None, kw_only=False, metadata=data_field("Where the dataset's files lie.", Path | None)
    )
    methods: Sequence[str] | None = option(
        list[str] | None, "--method", help="A method, such as private or uniform; may be repeated."
    )
    epsilons: Sequence[float] | None = epsilons_field("ε of owners and of consumer, each; may be repeated.")
    points: Sequence[int] | None = option(list[int] | None, min=1, help="Points to buy; may be repeated.")
    owner_points: int | None = option(int | None, min=1, help="Most points of an owner; default: all.")


@dataclass(frozen=True, kw_only=True)
class MnistOptions(PurchaseOptions):
    """Purchases of handwritten digits, as in appendix G of DPDS.

    Attributes:
        gammas: γ of the kernel on pixels in [0, 1]; None: 0.1, the paper's, and 0.01.
    """

    NAME: ClassVar[str] = "mnist"
    QUICK: ClassVar[Mapping[str, Any]] = {
        "seeds": 1,
        "points": (100,),
        "owner_points": 1000,
        "epsilons": (1.0,),
    }

    seeds: int | Sequence[int] = seeds_field(3)
    gammas: Sequence[float] | None = positive_field(
        list[float] | None, "--gamma", help_text="γ; may be repeated. Default: 0.1 and 0.01."
    )


@dataclass(frozen=True, kw_only=True)
class InsuranceOptions(PurchaseOptions):
    """Purchases of insurance customers, as in §4 of DPDS."""

    NAME: ClassVar[str] = "insurance"
    QUICK: ClassVar[Mapping[str, Any]] = {"seeds": 1, "points": (100,), "epsilons": (1.0,)}


@dataclass(frozen=True, kw_only=True)
class RareOptions(PurchaseOptions):
    """Purchases of handwritten digits where few of the owners' points are wanted.

    Attributes:
        shares: Of the owners' points, those that are wanted; None: 0.005, 0.02, 0.1 and 0.2.
        pool: Points of all owners together.
    """

    NAME: ClassVar[str] = "rare"
    QUICK: ClassVar[Mapping[str, Any]] = {
        "seeds": 1,
        "points": (100,),
        "pool": 2000,
        "epsilons": (1.0,),
    }

    shares: Sequence[float] | None = option(
        list[float] | None, "--share", min=0.0, max=1.0, help="Wanted points of the owners'; may be repeated."
    )
    pool: int = option(int, default=10_000, min=10, help="Points of all owners together.")


@dataclass(frozen=True, kw_only=True)
class RivalsOptions(ExperimentOptions):
    """What else could be done with the same data at the same ε.

    Attributes:
        dataset: One of `hushbid.datasets.DATASETS`, with the γ and the model that suit it.
        data: Where it lies; None if it needs no files.
        rivals: Some of `hushbid.evidence.experiments.rivals.RIVALS`; None: all.
        epsilons: ε of each private one; None: 1 and 3.
        points: Points to buy, make or keep; None: 1000.
        owner_points: Most points of an owner, drawn at random; None: all.
    """

    NAME: ClassVar[str] = "rivals"
    QUICK: ClassVar[Mapping[str, Any]] = {
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
        list[str] | None, "--rival", help="A rival, such as private or dp-merf; may be repeated."
    )
    epsilons: Sequence[float] | None = epsilons_field("ε; may be repeated.")
    points: Sequence[int] | None = option(
        list[int] | None, min=1, help="Points to buy, make or keep; may be repeated."
    )
    owner_points: int | None = option(int | None, min=1, help="Most points of an owner; default: all.")


@dataclass(frozen=True, kw_only=True)
class PrivacyUtilityOptions(PurchaseOptions):
    """Quality over ε of every release.

    Attributes:
        dataset: One of `hushbid.datasets.DATASETS`, with the γ and the model that suit it.
    """

    NAME: ClassVar[str] = "privacy-utility"
    QUICK: ClassVar[Mapping[str, Any]] = {"seeds": 1, "points": (40,), "epsilons": (1.0, 10.0)}

    dataset: str = field(
        default="insurance",
        metadata=argument_field(str, help="digits, mnist or insurance."),
    )


@dataclass(frozen=True, kw_only=True)
class ScalingOptions(ExperimentOptions):
    """What a session costs by the number of owners.

    Attributes:
        rules: Some of `protocol.privacy.acquisition.RULES`; None: all.
        owners: K of each session; None: 4, 32, 256 and 2048.
        batches: b of each; None: 1 and 5. Rules that take one point a round have 1 alone.
        points: p.
        owner_points: Points of each owner.
    """

    NAME: ClassVar[str] = "scaling"
    QUICK: ClassVar[Mapping[str, Any]] = {"seeds": 1, "owners": (4, 40), "points": 10}

    seeds: int | Sequence[int] = seeds_field(1)
    rules: Sequence[str] | None = option(
        list[str] | None, "--rule", help="An acquisition rule; may be repeated. Default: all."
    )
    owners: Sequence[int] | None = option(list[int] | None, min=1, help="K; may be repeated.")
    batches: Sequence[int] | None = option(
        list[int] | None, "--batch", min=1, help="b, points that a round buys; may be repeated."
    )
    points: int = option(int, default=20, min=1, help="Points to buy.")
    owner_points: int = option(int, default=20, min=1, help="Points of each owner.")


PURCHASES: Final = (
    MnistOptions,
    InsuranceOptions,
    RareOptions,
    RivalsOptions,
    PrivacyUtilityOptions,
    ScalingOptions,
)
"""The kinds of this module."""
