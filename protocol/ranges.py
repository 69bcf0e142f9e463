"""The range of each number that is in a configuration and given elsewhere too, stated once.

The models of the files take these types for their fields, the options of verbs for their parameters
(`hushbid.protocol.runtime.ranged`), and checks in Python ask `hushbid.protocol.intervals.within`. What a
number means is said at its field.

It imports no pydantic, so that a verb's help need not. Fields without a largest number add that it be finite
(`hushbid.protocol.config.section.FINITE`).
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from annotated_types import Ge, Gt, Le, Lt

from hushbid.protocol import limits

__all__ = [
    "Bandwidth",
    "ColumnValues",
    "Columns",
    "Count",
    "Delta",
    "Dimension",
    "DrawnPoints",
    "Epsilon",
    "Gamma",
    "Int64",
    "Jitter",
    "LabelWeight",
    "ModelSeed",
    "Money",
    "OwnerCount",
    "Points",
    "PointsOfRound",
    "Port",
    "Positive",
    "PublicSeed",
    "PureDelta",
    "Ridge",
    "RowCount",
    "Seconds",
    "Seed",
    "SeedWeight",
    "Share",
    "Similarity",
    "SpentEpsilon",
]

Count: TypeAlias = Annotated[int, Ge(1)]
"""A number of things of which there is one at least."""
RowCount: TypeAlias = Annotated[int, Ge(1), Le(2**53)]
"""A number of rows that is only counted with: floats have all whole numbers so far."""
Seed: TypeAlias = Annotated[int, Ge(0)]
"""A seed of numpy's generators."""
Positive: TypeAlias = Annotated[float, Gt(0)]
Share: TypeAlias = Annotated[float, Gt(0), Le(1)]
"""A part of a whole, of which there is some."""
Port: TypeAlias = Annotated[int, Ge(1), Le(limits.MAX_PORT)]

# -- the session ----------------------------------------------------------------------------------------

Points: TypeAlias = Annotated[int, Ge(1), Le(limits.MAX_POINTS)]
PointsOfRound: TypeAlias = Annotated[int, Ge(1), Le(limits.MAX_BATCH)]
SeedWeight: TypeAlias = Annotated[float, Gt(0), Le(1)]
Jitter: TypeAlias = Annotated[float, Ge(0), Le(1e6)]
OwnerCount: TypeAlias = Annotated[int, Ge(1), Le(limits.MAX_OWNERS)]
ColumnValues: TypeAlias = Annotated[int, Ge(2), Le(256)]
Seconds: TypeAlias = Annotated[float, Gt(0), Le(30 * 86400)]
"""How long a party waits."""
Int64: TypeAlias = Annotated[int, Ge(-(2**63)), Lt(2**63)]
"""A whole number as tables keep it."""
Similarity: TypeAlias = Annotated[float, Gt(0), Lt(1)]

# -- privacy --------------------------------------------------------------------------------------------

Epsilon: TypeAlias = Annotated[float, Gt(0)]
SpentEpsilon: TypeAlias = Annotated[float, Ge(0)]
"""What a dataset has lost, which may be nothing."""
Delta: TypeAlias = Annotated[float, Gt(0), Lt(1)]
PureDelta: TypeAlias = Annotated[float, Ge(0), Lt(1)]
"""δ where 0, which is pure ε, is one too."""

# -- the feature map, and hash functions ----------------------------------------------------------------

Dimension: TypeAlias = Annotated[int, Ge(limits.MIN_DIMENSION), Le(limits.MAX_DIMENSION)]
Gamma: TypeAlias = Annotated[float, Gt(0)]
Bandwidth: TypeAlias = Annotated[float, Gt(0)]
PublicSeed: TypeAlias = Annotated[int, Ge(0), Le(2**63 - 1)]
"""A seed that is in a file which all parties have."""
Columns: TypeAlias = Annotated[int, Ge(1), Le(limits.MAX_COLUMNS)]

# -- the consumer, and the curator ----------------------------------------------------------------------

DrawnPoints: TypeAlias = Annotated[int, Ge(1), Le(1_000_000)]
"""Number of points in a drawn seed set."""
ModelSeed: TypeAlias = Annotated[int, Ge(0), Lt(2**32)]
"""A seed that scikit-learn accepts."""
LabelWeight: TypeAlias = Annotated[float, Ge(0), Lt(1)]
"""Strength of labels beside features, in the weights of points."""
Ridge: TypeAlias = Annotated[float, Ge(0)]
"""λ of kernel mean matching."""
Money: TypeAlias = Annotated[float, Ge(0)]
"""An amount in whatever currency was agreed on."""
