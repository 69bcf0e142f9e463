"""A screening: a consumer's own release, the comparable entries, and their ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushbid.catalogue.candidates import Exclusion, candidates, entry_files
from hushbid.catalogue.consumer_release import ConsumerData, Screening
from hushbid.catalogue.kme import feature_map_of
from hushbid.catalogue.ranking import Ranking, rank
from hushbid.consumer.party import check_disjoint
from hushbid.consumer.target import map_identity
from hushbid.protocol.data import check_dataset
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.roster.file import RosterFile

__all__ = ["ScreeningResult", "screen", "write_session"]


@dataclass(frozen=True)
class ScreeningResult:
    """The result of a screening.

    Attributes:
        refused: Entries that were not compared.
        accounted: Whether everything follows from a charged release.
        release: A description of the release: "mechanism", "epsilon", "delta", "neighbours", "noise", "file",
            "ledger" and whether it was "charged" now or "kept" from before; None if D_v itself was used.
    """

    ranking: Ranking
    refused: tuple[Exclusion, ...]
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


@one_blas_thread()
def screen(what: Screening, consumer: ConsumerData) -> ScreeningResult:
    """Rank owners by their entries.

    Raises:
        DataError: No entry can be compared, or D_v does not fit them.
        ConfigError: A setting is invalid, or the stored release is a different one.
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
        columns=consumer.validation.feature_names,
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
    """Write a session file whose roster has exactly these owners, to its own path or to a new one.

    New owners get a place without a key: `hushbid keys approve` adds it once fingerprints have been compared.

    Raises:
        ConfigError: The session needs more owners, or the file cannot be written.
    """
    session.restrict(owners)
    if path.resolve() == session.path.resolve():
        session.save()
    else:
        session.save_as(path)
