"""A screening: a consumer's own release, the entries that can be compared with it, and their ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consumer.party import check_disjoint
from hushbid.catalogue.candidates import Candidate, Refusal, candidates, entry_files
from hushbid.catalogue.consumer_release import (
    Asked,
    Payment,
    exact_mean,
    exact_sketch_mean,
    make_sketch,
    make_target,
    read_sketch,
    read_target,
    target_mean,
)
from hushbid.catalogue.estimates import NoisyMean
from hushbid.catalogue.kme import KmeRelease, feature_map_of
from hushbid.catalogue.race import RaceRelease
from hushbid.catalogue.ranking import Ranking, rank
from hushbid.roster.file import RosterFile
from protocol.config.party import BudgetSection
from protocol.data import Dataset, check_dataset
from protocol.errors import ConfigError
from protocol.names import CONSUMER
from protocol.privacy.noise import NoiseSource, SecureNoise, SimulatedNoise
from protocol.privacy.releases import Neighbours
from protocol.runtime.ledger.known_ledgers import KnownRows

__all__ = ["Consumer", "Screening", "ScreeningResult", "screen", "write_session"]


@dataclass(frozen=True, kw_only=True)
class Consumer:
    """What is the consumer's own.

    Attributes:
        validation: D_v.
        seed_set: D_init, if there is one.
        target: Where its release is kept: used again if it is there, made if not.
        ledger: D_v's lifetime ledger.
        budget: The most that it may come to; None: what it says itself.
    """

    validation: Dataset
    seed_set: Dataset | None
    target: Path
    ledger: Path
    budget: BudgetSection | None


@dataclass(frozen=True, kw_only=True)
class Screening:
    """What is to be screened, and how.

    Attributes:
        catalogue: Files of entries, and directories of them.
        session: The session file whose map, target mechanism and roster count, if there is one.
        epsilon: ε of the consumer's release; None: as the session's `[target]` has it.
        delta: The δ that goes with it, where it is not the session's.
        best: How many owners to choose.
        unaccounted: Rank by the exact D_v. What comes of it is not private.
        allow_simulated: Compare entries whose noise protects nobody, too.
    """

    catalogue: Sequence[Path]
    session: RosterFile | None
    epsilon: float | None
    delta: float
    best: int
    unaccounted: bool
    allow_simulated: bool


@dataclass(frozen=True)
class ScreeningResult:
    """What a screening found.

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
        """The owners that were chosen."""
        return self.ranking.chosen.owners

    def as_json(self) -> dict[str, Any]:
        """The result under the names of the command line's JSON."""
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
    public = draft is not None and draft.features.seed is not None
    found, refused = candidates(
        entry_files(what.catalogue),
        functions=_session_functions(what.session) if public else None,
        keys={} if draft is None else draft.roster.owners,
        allow_simulated=what.allow_simulated,
    )
    target, release = _target(what, consumer, found[0])
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


def _session_functions(session: RosterFile | None) -> bytes | None:
    """The session's public feature map with its bounds, as entries have theirs."""
    if session is None:
        return None
    from consumer.target import map_identity

    return map_identity(feature_map_of(session.draft.features))


def _target(
    what: Screening, consumer: Consumer, example: Candidate
) -> tuple[NoisyMean, dict[str, Any] | None]:
    """The consumer's mean by the entries' functions, and what was released of D_v for it."""
    release = example.entry.release
    section = release.features if isinstance(release, KmeRelease) else release.hashes
    for dataset in filter(None, (consumer.validation, consumer.seed_set)):
        check_dataset(dataset, columns=section.columns, lower=section.lower, upper=section.upper)
    if consumer.seed_set is not None:
        values = None if what.session is None else what.session.draft.session.column_values
        check_disjoint(consumer.validation, consumer.seed_set, column_values=values)
    if isinstance(release, RaceRelease):
        return _sketch(what, consumer, release)
    feature_map = feature_map_of(release.features)
    if what.unaccounted:
        return exact_mean(feature_map, consumer.validation), None
    asked, fresh = _asked(what), not consumer.target.exists()
    if fresh:
        payment = Payment(consumer.ledger, consumer.budget, KnownRows(consumer.validation), consumer.target)
        kept = make_target(
            asked, feature_map, consumer.validation, consumer.seed_set, _noise(what.session), payment
        )
    else:
        kept = read_target(consumer.target, feature_map, consumer.validation)
        if (kept.mechanism, kept.parameters, kept.delta) != (asked.mechanism, asked.parameters, asked.delta):
            raise _other_price(consumer.target)
    guarantee = asked.mechanism_of(feature_map).guarantee(
        neighbours=Neighbours.SUBSTITUTE_ONE, delta=asked.delta
    )
    described = _described(consumer, asked.mechanism, guarantee.epsilon, asked.delta, kept.release.noise_name)
    return target_mean(kept), {**described, "charged": fresh}


def _sketch(
    what: Screening, consumer: Consumer, release: RaceRelease
) -> tuple[NoisyMean, dict[str, Any] | None]:
    if what.unaccounted:
        return exact_sketch_mean(release.hashes, consumer.validation), None
    if what.epsilon is None:
        raise ConfigError(
            "Sketches are compared with a sketch of the validation set, which no session releases.",
            advice="Say at which ε it is to be made, with `--epsilon`.",
        )
    noise, fresh = _noise(what.session), not consumer.target.exists()
    if fresh:
        payment = Payment(consumer.ledger, consumer.budget, KnownRows(consumer.validation), consumer.target)
        kept = make_sketch(
            release.hashes, consumer.validation, noise, payment, epsilon=what.epsilon, delta=what.delta
        )
    else:
        kept = read_sketch(consumer.target, release.functions(), consumer.validation)
        if (kept.epsilon, kept.delta) != (what.epsilon, what.delta):
            raise _other_price(consumer.target)
    described = _described(consumer, "race", kept.epsilon, kept.delta, kept.noise)
    return kept.release.noisy_mean(), {**described, "charged": fresh}


def _asked(what: Screening) -> Asked:
    """The release that the session would make; without one, or by `--epsilon`, a Gaussian one."""
    if what.session is None or what.epsilon is not None:
        if what.epsilon is None:
            raise ConfigError(
                "At which ε is the validation set to be released?",
                advice="Give `--epsilon`, or a session file whose [target] says it; `--unaccounted` releases "
                "nothing, and what comes of it is not private.",
            )
        parameters = {"epsilon": what.epsilon, "neighbours": Neighbours.SUBSTITUTE_ONE.value}
        return Asked("gaussian", parameters, what.delta)
    section = what.session.draft.target
    return Asked(section.mechanism, section.parameters, what.session.draft.session.delta)


def _noise(session: RosterFile | None) -> NoiseSource:
    if session is None or session.draft.noise.source == SecureNoise.name:
        return SecureNoise()
    return SimulatedNoise(session.draft.noise.seed or 0, CONSUMER)


def _described(
    consumer: Consumer, mechanism: str, epsilon: float | None, delta: float, noise: str
) -> dict[str, Any]:
    return {
        "mechanism": mechanism,
        "epsilon": epsilon,
        "delta": delta,
        "neighbours": Neighbours.SUBSTITUTE_ONE.value,
        "noise": noise,
        "file": str(consumer.target),
        "ledger": str(consumer.ledger),
    }


def _other_price(path: Path) -> ConfigError:
    return ConfigError(
        f"{path}: the release that is kept there was made by another mechanism, or at another ε or δ.",
        advice="Screen as it was made; or name a new file with `--target-file`: another release is charged.",
    )
