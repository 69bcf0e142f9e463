"""The session file: everything that all parties must agree on, and nothing private.

Every party has a copy. At Hello, parties compare the digest of everything that defines the session: all but
the network address and the timeouts, and, if noise is simulated, the roster's keys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from hushbid.protocol import limits, ranges
from hushbid.protocol.config.boxes import attribute_rooms, commitment_depth
from hushbid.protocol.config.completing import completed, features_of, with_columns
from hushbid.protocol.config.labels import IdentifierKind, LabelsSection, reading
from hushbid.protocol.config.meaning import digest_of, in_force
from hushbid.protocol.config.network import NetworkSection, TimeoutSection
from hushbid.protocol.config.section import FINITE, PartyName, Section, matches
from hushbid.protocol.config.wishes import WishesSection
from hushbid.protocol.crypto.blinding import MASK_BYTES
from hushbid.protocol.crypto.commitment import opening_bytes
from hushbid.protocol.crypto.sealing import DIGEST_BYTES, SEAL_BYTES
from hushbid.protocol.data.checks import check_dataset, check_identifiers, check_labels
from hushbid.protocol.data.column import Column, LabelKind
from hushbid.protocol.data.dataset import DataColumns, Dataset
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.intervals import within
from hushbid.protocol.privacy.acquisition import RULES, herds

__all__ = [
    "SEED_WEIGHT",
    "DraftRoster",
    "DraftSession",
    "FeatureSection",
    "MechanismSection",
    "NetworkSection",
    "NoiseSection",
    "PartyName",
    "RosterSection",
    "RuleSection",
    "Section",
    "SessionFile",
    "SessionSection",
    "SettlementSection",
    "TimeoutSection",
]


Real = Annotated[float, FINITE]
PublicKeyText = Annotated[
    str,
    matches(
        r"([\x21-\x7e]{40})?",
        "not a public key: 40 characters, as `hushbid keys show` prints (of a .pub file the last word alone)",
    ),
]
"""A public CURVE key in Z85, or empty."""


SEED_WEIGHT: Final = 0.1
"""A starting point for the first rounds; it does not count as bought (docs/design.md §1)."""

JITTER: Final = 25.0
"""In points: suits five seeds on five datasets well (docs/design.md §1, "Jitter")."""

FEW_COLUMNS: Final = 8
JITTER_OF_FEW_COLUMNS: Final = 50.0
"""With so few columns, a point has many neighbours, and buying another one instead loses nothing."""

ROUNDS: Final = 50
"""Default number of rounds of a session that does not set `batch`."""

LARGEST_BATCH: Final = 100
"""Default limit on `batch`: each bought point brings the digests of its whole batch."""

_BESIDE_A_POINT: Final = 64
"""Upper bound in bytes on a point's score, number and digest in a batch."""

_MAP_OPTIONS: Final = ("family", "cells", "bandwidth")
"""Keys of ``[features]`` that only one map has."""


class SessionSection(Section):
    """``[session]``: the purchase."""

    name: PartyName
    points: ranges.Points
    """p, the most points to acquire."""
    batch: ranges.PointsOfRound | None = None
    """b, the points bought per round; None: as many as give fifty rounds (`SessionFile.batch`)."""
    submission: Annotated[int, Field(ge=1, le=limits.MAX_HERDED)] | None = None
    """The points that an owner submits under `tender`, rounded up to whole messages; None: p."""
    seed_weight: ranges.SeedWeight | None = None
    """The weight of a seed point relative to a bought point; None: `SEED_WEIGHT`."""
    jitter: ranges.Jitter | None = None
    """N, the number of points that the owners' mixture counts for as an estimate of the target, where noise
    hides the summary (`hushbid.protocol.space.jitter`); 0: scores have no jitter; None: see
    `SessionFile.jitter`.
    """
    distinct: bool | None = None
    """Whether a point held by several owners is bought once (`hushbid.protocol.space.copies`). Owners that
    miss a round are then out of all later ones. None: see `SessionFile.distinct`.
    """
    numbered: bool | None = None
    """Whether the boxes of one message of an owner have one ephemeral key together, and each a number, which
    takes an eighth of the time (docs/wire.md, "Numbered boxes"); None: see `SessionFile.numbered`. Those of
    `tender`, and of owners that commit to their rows, have anyway.
    """
    min_owners: ranges.OwnerCount = 1
    """The session pauses with fewer present owners than this."""
    delta: ranges.Delta = 1e-5
    """The δ at which privacy is reported."""
    allow_nonprivate: bool = False
    """Required to be true for releases, rules or noise that protect nobody."""
    nonce: Annotated[str, StringConstraints(max_length=64)] = ""
    """Distinguishes sessions with otherwise equal files."""
    labels: LabelKind | Literal["any", "optional"] | None = None
    """The type of every owner's labels (`hushbid.protocol.data.check_labels`), which every point then has;
    "any": they are required, of whatever type; "optional": any, or no labels. None: likewise, but whoever
    knows that the consumer has labels requires them (`hushbid.cluster.file.Cluster.load`), or warns.
    """
    identifiers: IdentifierKind | None = None
    """The type of every owner's identifiers, which every point then has; "any": they are required, of
    whatever type; None: any, or no identifiers.
    """
    fixed_cadence: Annotated[float, Field(ge=0.02, le=86400, allow_inf_nan=False)] | None = None
    """Seconds from each broadcast to the next, whoever has answered; None: a round ends with its slowest
    owner (DESIGN §3, "No feedback").
    """
    column_values: ranges.ColumnValues | None = None
    """Most different values in a column of points, if they are so few that a row of D_v may equal a public
    seed row by chance; None: no row of D_v may.
    """


class FeatureSection(Section):
    """``[features]``: the feature map φ and the public bounds that all parties scale by."""

    map: str = "paired"
    dimension: ranges.Dimension = 140
    gamma: Annotated[ranges.Gamma, FINITE]
    """The RBF kernel's γ on columns scaled to [0, 1]."""
    seed: ranges.PublicSeed | None = None
    """Seed of W and b; None if the map is secret: the consumer then draws it (DESIGN §3, `sealed`)."""
    family: Literal["l2", "l1"] | None = None
    """Family of hash functions of the map `lsh`; None, here and in the next two: the map's own default."""
    cells: Annotated[int, Field(ge=2, le=limits.MAX_DIMENSION)] | None = None
    """Cells in a row of the map `lsh`, which has dimension/cells rows."""
    bandwidth: Annotated[ranges.Bandwidth, FINITE] | None = None
    """Bandwidth of the hash functions of the map `lsh`, on columns scaled to [0, 1]."""
    columns: ranges.Columns
    lower: Real | list[Real] = 0.0
    upper: Real | list[Real] = 1.0

    @model_validator(mode="after")
    def _bounds_fit(self) -> FeatureSection:
        for name in ("lower", "upper"):
            bound = getattr(self, name)
            if isinstance(bound, list) and len(bound) != self.columns:
                raise ValueError(f"{name} has {len(bound)} values for {self.columns} columns")
        return self

    @property
    def options(self) -> dict[str, Any]:
        """The given parameters that belong to one map (`FeatureSpace.options`)."""
        given = {name: getattr(self, name) for name in _MAP_OPTIONS}
        return {name: value for name, value in given.items() if value is not None}

    @model_serializer(mode="wrap")
    def _without_options_that_are_not_set(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Left out if empty, so that catalogue entries made before they existed keep their bytes.
        values: dict[str, Any] = handler(self)
        return {
            name: value for name, value in values.items() if name not in _MAP_OPTIONS or value is not None
        }


def _is_beyond_64_bits(value: object) -> bool:
    """Whether a TOML value contains a whole number that the session's digest cannot encode."""
    match value:
        case int():
            return not -(2**63) <= value < 2**64
        case list():
            return any(_is_beyond_64_bits(each) for each in value)
        case dict():
            return any(_is_beyond_64_bits(each) for each in value.values())
        case _:
            return False


class _Open(BaseModel):
    """A table whose further keys belong to the mechanism, rule or map that it names."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")

    @model_validator(mode="after")
    def _numbers_can_be_encoded(self) -> Self:
        for key, value in (self.model_extra or {}).items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{key} is not a finite number")
            if _is_beyond_64_bits(value):
                raise ValueError(f"{key} has a whole number of more than 64 bits; write a large one as 1e30")
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys that belong to the named mechanism, rule or map."""
        return dict(self.model_extra or {})


class MechanismSection(_Open):
    """``[target]`` and ``[summary]``: the release mechanism of g̃ or g; further keys are its parameters."""

    mechanism: str


class RuleSection(_Open):
    """``[acquisition]``: how the curator gets the points; further keys are the rule's parameters."""

    rule: str


class SettlementSection(Section):
    """``[settlement]``: whether owners may be told the numbers they are paid by."""

    private: bool = False
    """Settle by noisy numbers (`hushbid.protocol.privacy.settlement`); otherwise by exact ones, which only
    the curator sees.
    """
    epsilon: Annotated[ranges.Epsilon, FINITE] | None = None
    """ε of the settlement alone, for one record of one owner added or removed, at the session's δ."""

    @model_validator(mode="after")
    def _has_an_epsilon_if_private(self) -> SettlementSection:
        if self.private and self.epsilon is None:
            raise ValueError("a private settlement needs an epsilon of its own")
        if not self.private and self.epsilon is not None:
            raise ValueError("an epsilon is for a private settlement: set private = true, or leave it out")
        return self


class NoiseSection(Section):
    """``[noise]``: the source of noise, and of keys that live as long as a session."""

    source: Literal["secure", "simulated"] = "secure"
    seed: ranges.PublicSeed | None = None
    """Seed of simulated noise, which needs one; secure noise takes none."""

    @model_validator(mode="after")
    def _has_a_seed_if_simulated(self) -> NoiseSection:
        if self.source == "simulated" and self.seed is None:
            raise ValueError("simulated noise needs a seed")
        if self.source == "secure" and self.seed is not None:
            raise ValueError("secure noise has no seed: it comes from the operating system")
        return self


class DraftRoster(Section):
    """``[roster]`` while keys are being collected: its entries may still be replaced."""

    curator: str = ""
    consumer: str = ""
    owners: dict[PartyName, str] = Field(default_factory=dict)


class RosterSection(DraftRoster):
    """``[roster]``: the parties and their public CURVE keys; keys are empty in insecure sessions."""

    curator: PublicKeyText = ""
    consumer: PublicKeyText = ""
    owners: dict[PartyName, PublicKeyText]

    @model_validator(mode="after")
    def _names_are_distinct(self) -> RosterSection:
        if not within(ranges.OwnerCount, len(self.owners)):
            raise ValueError(f"a session has 1 to {limits.MAX_OWNERS} owners")
        if "consumer" in self.owners or "curator" in self.owners:
            raise ValueError("an owner cannot be named curator or consumer")
        keys = [key for key in (self.curator, self.consumer, *self.owners.values()) if key]
        if len(keys) != len(set(keys)):
            raise ValueError("two parties have the same key")
        return self


class SessionTables(Section):
    """The tables that a session file and a cluster file have in common."""

    session: SessionSection
    features: Any
    columns: list[Column] = Field(default_factory=list)
    """The columns of every party's table, which encode rows; empty: rows are numbers already."""
    target: MechanismSection
    summary: MechanismSection
    """Of the purchase so far, in every round but the first; left out: as `target`. `tender` releases none."""
    acquisition: RuleSection
    settlement: SettlementSection = SettlementSection()
    wishes: WishesSection | None = None
    """Prices of owners' points, and the most points bought from each owner; None: neither is specified."""
    labels: LabelsSection | None = None
    """The part of labels in the choice; None: points are chosen by their features alone."""
    noise: NoiseSection = NoiseSection()
    timeouts: TimeoutSection = TimeoutSection()
    network: NetworkSection = NetworkSection(address="tcp://127.0.0.1:5790")

    @model_validator(mode="before")
    @classmethod
    def _what_is_left_out_follows(cls, values: Any) -> Any:
        return completed(values) if isinstance(values, Mapping) else values

    @cached_property
    def rows(self) -> Schema | None:
        """The schema of rows, if the file has columns."""
        return Schema(columns=tuple(self.columns)) if self.columns else None

    def reading_of(
        self, columns: DataColumns, features: FeatureSection, *, owners: int | None = None
    ) -> DataColumns:
        """How a file is read whose columns are such: by the session's, and what it declares of labels.

        Args:
            features: The session's, complete.
            owners: How many owners there are, where the rows are for sale: they have to fit into boxes.
        """
        rule, rooms, depth = self.acquisition, None, 0
        if owners is not None:
            rooms = attribute_rooms(rule.rule, rule.parameters, features.columns, owners)
            depth = commitment_depth(rule.parameters)
        return reading(
            columns,
            self.rows,
            self.session.labels,
            self.labels,
            (features.lower, features.upper),
            identifiers=self.session.identifiers,
            rooms=rooms,
            depth=depth,
        )


class DraftSession(SessionTables):
    """A session file whose roster may be incomplete; everything else is final."""

    features: FeatureSection
    roster: DraftRoster = DraftRoster()

    @model_validator(mode="before")
    @classmethod
    def _features_follow_from_columns(cls, values: Any) -> Any:
        return with_columns(values) if isinstance(values, Mapping) else values

    @model_validator(mode="after")
    def _features_are_those_of_the_columns(self) -> Self:
        for name, value in features_of(self.columns).items() if self.columns else ():
            given = getattr(self.features, name)
            if given != value and not (isinstance(value, list) and [given] * len(value) == value):
                raise ValueError(f"features.{name} is another than [[columns]] say: leave it out")
        return self

    @model_serializer(mode="wrap")
    def _without_what_is_not_used(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Settings that a session does not use do not affect its meaning: the digest leaves them out.
        values: dict[str, Any] = handler(self)
        if not self.settlement.private:
            values.pop("settlement", None)
        if not self.columns:
            values.pop("columns", None)
        for name in ("wishes", "labels"):
            if getattr(self, name) is None:
                values.pop(name, None)
        return values

    def reading(self, columns: DataColumns, *, sold: bool = False) -> DataColumns:
        """How this session reads a party's file: by the session's columns, and what it declares of labels.

        Args:
            sold: Whether the rows are an owner's, which have to fit into boxes.
        """
        return self.reading_of(columns, self.features, owners=len(self.roster.owners) if sold else None)

    def check_points(self, dataset: Dataset, *, sold: bool = True) -> None:
        """Check that points satisfy the session's public bounds and columns.

        Args:
            sold: Whether they may be bought or are to be matched. The seed set is neither, and may be
                anything within the bounds.

        Raises:
            DataError: They do not (`hushbid.protocol.data.check_dataset`).
        """
        features = self.features
        bounds = {"lower": features.lower, "upper": features.upper}
        check_dataset(dataset, columns=features.columns, **bounds, schema=self.rows if sold else None)

    def check_labels(self, dataset: Dataset) -> None:
        """Raise `DataError` unless an owner's labels and identifiers are of the declared types.

        Labels that have a part in the choice must be those of ``[labels]``, too.
        """
        check_labels(dataset, self.session.labels)
        check_identifiers(dataset, self.session.identifiers)
        if self.labels is not None:
            self.labels.check_sold(dataset)

    @property
    def labels_are_amounts(self) -> bool | None:
        """Whether labels are amounts, by `[labels]`; None: the file does not say."""
        return None if self.labels is None else not self.labels.classes

    def check_wanted_labels(self, validation: Dataset) -> None:
        """Raise `DataError` unless D_v has labels of the choice, if they have a part in it."""
        if self.labels is not None:
            self.labels.check_wanted(validation)


class SessionFile(DraftSession):
    """A complete session file."""

    roster: RosterSection

    @model_validator(mode="after")
    def _secure_sessions_have_keys(self) -> SessionFile:
        if self.session.min_owners > len(self.roster.owners):
            raise ValueError("session.min_owners is more than the roster's owners")
        parties = {"curator": self.roster.curator, "consumer": self.roster.consumer} | self.roster.owners
        keyless = sorted(name for name, key in parties.items() if not key)
        if not self.network.insecure and keyless:
            raise ValueError(
                f"roster: no public key for {', '.join(keyless)} (`hushbid keys approve` puts them there)"
            )
        # Keys are in the digest and `insecure` is not; otherwise the file without it would be the same
        # session.
        if self.network.insecure and self.noise.source == "secure" and len(keyless) < len(parties):
            raise ValueError(
                "roster: an insecure session has no public keys (leave them empty, or network.insecure out)"
            )
        return self

    @property
    def owners(self) -> tuple[str, ...]:
        """The owners' names, sorted."""
        return tuple(sorted(self.roster.owners))

    @property
    def bounds_keys(self) -> str:
        """Where the file has the columns' bounds, for an advice to change them."""
        return "`lower`, `upper` of `[[columns]]`" if self.columns else "`features.lower`, `features.upper`"

    @property
    def batch(self) -> int:
        """b, the points bought per round: by default p/50 rounded up, within 100 and what a bid holds.

        Rules whose points come after their bids ask for one at a time. Under `tender` it is what a message of
        a submission brings: all of it, or an even part where a message has no room for all.
        """
        if self.session.batch is not None:
            return self.session.batch
        rule = RULES.get(self.acquisition.rule)
        if rule is None or not rule.candidate_with_bid:
            return 1
        if rule.herds:
            return -(-self.submission // -(-self.submission // self.most_in_a_bid))
        return max(1, min(-(-self.session.points // ROUNDS), LARGEST_BATCH, self.most_in_a_bid))

    @property
    def submission(self) -> int:
        """The points that an owner submits under `tender`, before it is rounded up to whole messages."""
        return self.session.submission or min(self.session.points, limits.MAX_HERDED)

    @property
    def messages(self) -> int:
        """Messages in which an owner submits under `tender`; 1 under other rules."""
        return -(-self.submission // self.batch) if self.herds else 1

    @property
    def most_in_a_bid(self) -> int:
        """Most points that a message can bring, at least 1."""
        rule = RULES.get(self.acquisition.rule)
        size = 8 * self.features.columns + limits.MAX_ATTRIBUTES
        if rule is not None and rule.sealed:
            given = in_force(
                "acquisition",
                {"rule": rule.name, **self.acquisition.parameters},
                self.features.columns,
                len(self.roster.owners),
            )
            size = SEAL_BYTES + int(given.get("box_bytes") or size)
            size += opening_bytes(given.get("commitment_depth") or 0)
        one = size + 2 * self.features.dimension + _BESIDE_A_POINT
        if rule is not None and rule.blind:
            # A bid brings a score for every box sent so far, and every bought box brings its bid's digests.
            room = limits.MAX_MESSAGE_BYTES - limits.SMALL_FRAME_BYTES - MASK_BYTES * self.session.points
            award = math.isqrt(limits.MAX_FRAME_BYTES // (2 * DIGEST_BYTES))
            frames = limits.MAX_FRAME_BYTES // (2 * (size + _BESIDE_A_POINT))
            bids = room // (size + 2 * MASK_BYTES + DIGEST_BYTES)
            return max(1, min(bids, award, frames, limits.MAX_BATCH))
        return max(1, min((limits.MAX_MESSAGE_BYTES - limits.SMALL_FRAME_BYTES) // one, limits.MAX_BATCH))

    @property
    def longest_bid(self) -> int:
        """Upper bound in bytes on a blind bid."""
        return limits.SMALL_FRAME_BYTES + MASK_BYTES * (self.session.points + 2 * self.batch)

    @property
    def seed_weight(self) -> float:
        """s, the weight of a seed point relative to a bought one."""
        given = self.session.seed_weight
        return SEED_WEIGHT if given is None else given

    @property
    def jitter(self) -> float:
        """N, the jitter in points; 0.0: scores have none.

        Rules that ask for points have no jitter, as the privacy cost of an ask is derived without it.
        """
        given = self.session.jitter
        if given is not None:
            return given
        rule = RULES.get(self.acquisition.rule)
        if rule is None or not rule.candidate_with_bid or rule.herds:
            return 0.0
        return JITTER_OF_FEW_COLUMNS if self.features.columns <= FEW_COLUMNS else JITTER

    @property
    def distinct(self) -> bool:
        """Whether a point held by several owners is bought once.

        The default is yes if bids bring their points to a curator that can compare them, and no private
        settlement has to say who sold them. It is no at a fixed cadence, where a slow owner misses rounds; no
        if columns have so few values that rows are equal by chance; and no if wishes treat owners
        differently, but for `tender`, whose choice may count.
        """
        section, rule = self.session, RULES.get(self.acquisition.rule)
        if section.distinct is not None:
            return section.distinct
        if section.fixed_cadence is not None or section.column_values is not None or self.settlement.private:
            return False
        if self.wishes is not None and self.wishes.uneven and not self.herds:
            return False
        return rule is not None and rule.candidate_with_bid and not rule.blind

    @property
    def numbered(self) -> bool:
        """Whether boxes have numbers that would have none otherwise; the default is yes."""
        rule = RULES.get(self.acquisition.rule)
        if rule is None or not rule.sealed or rule.herds or commitment_depth(self.acquisition.parameters):
            return False
        return self.session.numbered is not False

    @property
    def herds(self) -> bool:
        """Whether the rule chooses by running sums, in one round (`AcquisitionRule.herds`)."""
        return herds(self.acquisition.rule)

    @property
    def owners_delta(self) -> float:
        """δ of the owners' guarantee: under `tender` they are perfectly private from each other."""
        return 0.0 if self.herds else self.session.delta

    @property
    def rounds(self) -> int:
        """T, the number of rounds: p/b, rounded up; 1 under `tender`."""
        if self.herds:
            return 1
        return -(-self.session.points // self.batch)

    def in_force(self) -> dict[str, Any]:
        """The tables, with the effective values of ``[session]`` keys that were left out."""
        values = self.model_dump(mode="json", exclude_none=True)
        values["session"] |= {
            "batch": self.batch,
            "seed_weight": self.seed_weight,
            "jitter": self.jitter,
            "distinct": self.distinct,
            "numbered": self.numbered,
        }
        if self.herds:
            values["session"]["submission"] = self.submission
        return values

    def digest(self) -> bytes:
        """SHA-256 of what defines the session, 32 bytes.

        It does not depend on how the file is written: see `hushbid.protocol.config.meaning`. It leaves out
        addresses, which affect no computation. If noise is simulated, it also leaves out keys: nothing is
        sealed to them, and a simulation of the same session has none.
        """
        return digest_of(self.in_force(), self.owners)
