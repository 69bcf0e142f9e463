"""A screening: a consumer's own release, the entries that can be compared with it, and their ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consumer.party import check_disjoint
from consumer.target import map_identity
from hushbid.catalogue.candidates import Refusal, candidates, entry_files
from hushbid.catalogue.consumer_release import RELATION, Asked, Consumer
from hushbid.catalogue.kme import feature_map_of
from hushbid.catalogue.ranking import Ranking, rank
from hushbid.roster.file import RosterFile
from protocol.data import check_dataset
from protocol.errors import ConfigError
from protocol.names import CONSUMER
from protocol.privacy.noise import NoiseSource, SecureNoise, SimulatedNoise

__all__ = ["Screening", "ScreeningResult", "screen", "write_session"]


@dataclass(frozen=True, kw_only=True)
class Screening:
    """A request to screen.

    Attributes:
        catalogue: Files of entries, and directories of them.
        session: The session file whose map, target mechanism and roster count, if there is one.
        epsilon: ε of the consumer's release; None: as the session's `[target]` has it.
        delta: The δ that goes with it, where it is not the session's.
        best: How many owners to choose.
        unaccounted: Rank by the exact D_v. Its result is not private.
        allow_simulated: Compare entries whose noise protects nobody, too.
    """

    catalogue: Sequence[Path]
    session: RosterFile | None
    epsilon: float | None
    delta: float
    best: int
    unaccounted: bool
    allow_simulated: bool

    def asked(self) -> Asked:
        """The release that the session would make; without one, or by `epsilon`, a Gaussian one.

        Raises:
            ConfigError: Nothing says its ε.
        """
        if self.session is None or self.epsilon is not None:
            if self.epsilon is None:
                raise ConfigError(
                    "At which ε is the validation set to be released?",
                    advice="Give `--epsilon`, or a session file whose [target] says it; `--unaccounted` "
                    "releases nothing, and what comes of it is not private.",
                )
            return Asked("gaussian", {"epsilon": self.epsilon, "neighbours": RELATION.value}, self.delta)
        section = self.session.draft.target
        return Asked(section.mechanism, section.parameters, self.session.draft.session.delta)

    def noise(self) -> NoiseSource:
        """Where the noise of that release comes from: as the session has it."""
        if self.session is None or self.session.draft.noise.source == SecureNoise.name:
            return SecureNoise()
        return SimulatedNoise(self.session.draft.noise.seed or 0, CONSUMER)


@dataclass(frozen=True)
class ScreeningResult:
    """The result of a screening.

    Attributes:
        ranking: Owners and choices of owners.
        refused: Entries that were not compared.
        accounted: Whether all of it follows from a release that was charged.
        release: What release: "mechanism", "epsilon", "delta", "neighbours", "noise", "file", "ledger" and
            whether it was "charged" now or "kept" from before; None if D_v was used as it is.
    """

    ranking: Ranking
    refused: tuple[Refusal, ...]
    accounted: bool
    release: dict[str, Any] | None

    @property
    def chosen(self) -> tuple[str, ...]:
        return self.ranking.chosen.owners

    def as_json(self) -> dict[str, Any]:
        return {
            "accounted": self.accounted,
            "release": self.release,
            "kind": self.ranking.owners[0].candidate.entry.release.kind,
            "owners": [row.as_json() for row in self.ranking.owners],
            "subsets": [subset.as_json() for subset in self.ranking.subsets],
            "search": self.ranking.search,
            "chosen": list(self.chosen),
            "why_so_many": self.ranking.why_so_many,
            "why_these": self.ranking.why_these,
            "refused": [{"file": each.file, "why": each.why} for each in self.refused],
        }


def screen(what: Screening, consumer: Consumer) -> ScreeningResult:
    """Rank owners by their entries.

    Args:
        what: Which entries, and for which session.
        consumer: D_v, and what pays for its release.

    Raises:
        DataError: No entry can be compared, or D_v does not fit them.
        ConfigError: A setting that cannot hold, or a release that was kept and is another.
        BudgetExceeded: The release of D_v would go over the budget; nothing was charged.
    """
    draft = None if what.session is None else what.session.draft
    functions = None
    if draft is not None and draft.features.seed is not None:
        functions = map_identity(feature_map_of(draft.features))
    found, refused = candidates(
        entry_files(what.catalogue),
        functions=functions,
        keys={} if draft is None else draft.roster.owners,
        allow_simulated=what.allow_simulated,
    )
    example = found[0].entry.release
    section = example.section
    for dataset in filter(None, (consumer.validation, consumer.seed_set)):
        check_dataset(dataset, columns=section.columns, lower=section.lower, upper=section.upper)
    if consumer.seed_set is not None:
        values = None if draft is None else draft.session.column_values
        check_disjoint(consumer.validation, consumer.seed_set, column_values=values)
    target, release = example.target(what, consumer)
    ranking = rank(target, found, best=what.best)
    return ScreeningResult(ranking, tuple(refused), release is not None, release)


def write_session(session: RosterFile, owners: Sequence[str], path: Path) -> None:
    """Write a session file whose roster has these owners and no others.

    Owners that had no place there get one without a key: it is put there by `hushbid keys approve`, once
    fingerprints were compared.

    Args:
        session: The session file, as it was read.
        owners: Their names.
        path: The file to write: the session file itself, or one that is not there yet.

    Raises:
        ConfigError: The session needs more owners, or the file cannot be written.
    """
    session.restrict(owners)
    if path.resolve() == session.path.resolve():
        session.save()
    else:
        session.save_as(path)
