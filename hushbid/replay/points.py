"""The points of a session for the page's picture: what is wanted, was offered and was bought, by φ.

φ of a point is on record where a party saw it: in the bids that the curator of an open or sealed rule got
and owners sent, and in what was delivered to the consumer. D_v is on record by its released mean alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.consumer.machine import ConsumerMachine
from hushbid.curator.machine import CuratorMachine
from hushbid.protocol.names import CONSUMER, CURATOR, listed
from hushbid.protocol.printable import printable
from hushbid.protocol.session.points import labels_of
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import Features, features_to_float
from hushbid.replay.components import Components, components_of
from hushbid.replay.facts import ChosenPoints, Cloud, PointPicture
from hushbid.replay.offers import MOST_OFFERED, HandedPoint
from hushbid.replay.ordering import ReadTranscript
from hushbid.replay.own import OwnFiles
from hushbid.report.rounds import shortened, thinned

__all__ = ["MOST_BOUGHT", "MOST_WANTED", "points_of"]

MOST_WANTED: Final = 200
MOST_BOUGHT: Final = 400
"""Most points of a kind that are drawn; of those that were offered, `MOST_OFFERED`."""
_NAMED: Final = 6
_PARTIES: Final = (CURATOR, CONSUMER)
"""Who tells what was chosen, in the order of all parties."""

Floats: TypeAlias = npt.NDArray[np.float64]


def points_of(
    session: Session,
    told: Sequence[ReadTranscript],
    chosen: ChosenPoints | None,
    own: OwnFiles | str,
    rounds: Sequence[int],
) -> PointPicture | str:
    """The points whose φ these transcripts have, on their first two principal components.

    Args:
        told: With their places among the steps.
        chosen: The points that were chosen.
        own: The consumer's files; or why they are not here.
        rounds: The round of each step.

    Returns:
        Or why no point can be shown, in a sentence.
    """
    by_party = {each.party: each for each in told}
    offers = _offers(by_party)
    features = [] if chosen is None else _chosen_features(by_party, chosen)
    there = [place for place, each in enumerate(features) if each is not None]
    drawn = [there[number - 1] for number in thinned(len(there), MOST_BOUGHT)] if there else []
    rows, wanted = _wanted(session, by_party, own)
    parts = [
        wanted,
        _stacked(session, [offer.features for _, offer in offers]),
        _stacked(session, [features[place] for place in drawn]),
    ]
    if not sum(map(len, parts[1:])):
        return _why_none(session, told)
    components = components_of(np.concatenate(parts))
    if components is None:
        return "All points are one to the session's kernel: there is nothing to tell them apart by."
    at = _steps_of(offers, len(rounds))
    spots = [components.places(part) for part in parts]
    mean, whose = _mean(session, by_party, components)
    count = sum(teller.reading.offers.count for teller in _tellers(by_party))
    bought_at = [] if chosen is None else [chosen.at[place] for place in drawn]
    bought_in = [] if chosen is None else [chosen.round[place] for place in drawn]
    return PointPicture(
        explained=(shortened(components.explained[0]), shortened(components.explained[1])),
        mean=mean,
        wanted=_cloud(spots[0], rows),
        offered=_cloud(spots[1], count, at, [rounds[step] for step in at]),
        bought=_cloud(spots[2], len(there), bought_at, bought_in),
        means=_means(session, components, features, drawn),
        told=(
            _told_wanted(rows, len(wanted), whose),
            _told_offered(session, _tellers(by_party), count, len(offers)),
            _told_bought(chosen, len(there), len(drawn)),
        ),
    )


# -- which points there are --------------------------------------------------------------------------------


def _tellers(by_party: Mapping[str, ReadTranscript]) -> list[ReadTranscript]:
    """Whose transcripts tell what was offered: the curator's, else those of owners."""
    telling = [each for each in by_party.values() if each.reading.offers.count]
    curator = [each for each in telling if each.party == CURATOR]
    return curator or telling


def _offers(by_party: Mapping[str, ReadTranscript]) -> list[tuple[ReadTranscript, HandedPoint]]:
    found = [(each, offer) for each in _tellers(by_party) for offer in each.reading.offers.kept()]
    return [found[number - 1] for number in thinned(len(found), MOST_OFFERED)] if found else []


def _steps_of(offers: Sequence[tuple[ReadTranscript, HandedPoint]], steps: int) -> list[int]:
    """The step in which each was handed over."""
    places = {
        id(row): place
        for each in {teller.party: teller for teller, _ in offers}.values()
        for row, place in zip(each.reading.rows, each.places, strict=True)
    }
    return [min(places[id(offer.row)], steps - 1) for _, offer in offers]


def _chosen_features(by_party: Mapping[str, ReadTranscript], chosen: ChosenPoints) -> list[Features | None]:
    """φ of each chosen point, by the transcript that tells which they are; None where it has none."""
    machine = by_party[_PARTIES[chosen.teller]].reading.machine
    candidates: list[Any]
    if isinstance(machine, CuratorMachine):
        candidates = [win.candidate for win in machine.ledger.wins]
    else:
        assert isinstance(machine, ConsumerMachine), "nobody else tells what was chosen"
        candidates = [entry.candidate for entry in machine.delivered]
    found = [getattr(candidate, "features", None) for candidate in candidates[: len(chosen.at)]]
    return [None if each is None or not each.size else each for each in found]  # a blind curator has none


def _wanted(
    session: Session, by_party: Mapping[str, ReadTranscript], own: OwnFiles | str
) -> tuple[int, Floats]:
    """How many rows D_v has, and φ of those that are drawn; without the consumer's files, of none."""
    if isinstance(own, str):
        return 0, _stacked(session, [])
    validation = own.by.validation
    seed = by_party[CONSUMER].reading.map_seed
    feature_map = session.space.map(seed) if seed else session.public_map
    if feature_map is None:
        return len(validation), _stacked(session, [])  # nothing was released
    rows = np.array(thinned(len(validation), MOST_WANTED)) - 1
    labels = labels_of(validation)
    found = feature_map.hash(validation.features[rows], [labels[row] for row in rows])
    return len(validation), features_to_float(found)


def _stacked(session: Session, features: Sequence[Features | None]) -> Floats:
    if not features:
        return np.empty((0, session.space.dimension))
    return features_to_float(np.stack([each for each in features if each is not None]))


# -- where they are ----------------------------------------------------------------------------------------


def _cloud(spots: Floats, of: int, at: Sequence[int] = (), rounds: Sequence[int] = ()) -> Cloud:
    x, y = (tuple(column.tolist()) for column in spots.T)
    return Cloud(of=of, x=x, y=y, at=tuple(at), round=tuple(rounds))


def _mean(
    session: Session, by_party: Mapping[str, ReadTranscript], components: Components
) -> tuple[tuple[float, float] | None, str]:
    """Where the released mean of D_v is, and whose transcript has it."""
    for party in (CONSUMER, CURATOR):
        each = by_party.get(party)
        if each is None:
            continue
        machine = each.reading.machine
        embedding = each.reading.embedding
        if isinstance(machine, CuratorMachine) and machine.target is not None:
            embedding = machine.target.embedding
        if embedding is not None and embedding.shape == (session.space.dimension,):
            x, y = components.places(embedding[None])[0].tolist()
            return (x, y), party
    return None, ""


def _means(
    session: Session, components: Components, features: Sequence[Features | None], drawn: Sequence[int]
) -> tuple[tuple[float, float], ...]:
    """Where the mean of the chosen points is, up to each that is drawn."""
    if not drawn:
        return ()
    there = np.array([each is not None for each in features])
    counts = np.cumsum(there)
    placed = components.places(_stacked(session, [each for each in features if each is not None]))
    means = np.cumsum(placed, axis=0) / np.arange(1, len(placed) + 1)[:, None]
    found = np.round(means[counts[np.array(drawn)] - 1], components.decimals)
    return tuple((x, y) for x, y in found.tolist())


# -- in words ----------------------------------------------------------------------------------------------


def _told_wanted(rows: int, drawn: int, whose: str) -> str:
    mean = f" The cross is their released mean, from the {whose}’s transcript." if whose else ""
    if drawn:
        which = f"the {rows:,}" if drawn == rows else f"{drawn:,} of the {rows:,}"
        return f"The squares are {which} rows of the validation set, from the consumer’s files.{mean}"
    if whose:
        return f"No transcript has the rows of the validation set.{mean}"
    return "What is wanted is not in these transcripts."


def _told_offered(session: Session, tellers: Sequence[ReadTranscript], count: int, drawn: int) -> str:
    if not tellers:
        return _why_no_offer(session)
    names = [each.party for each in tellers]
    whose = "the curator’s transcript" if names == [CURATOR] else f"the transcripts of {_listed(names)}"
    return f"Owners handed over {count:,} points, by {whose}{_some(count, drawn)}."


def _told_bought(chosen: ChosenPoints | None, there: int, drawn: int) -> str:
    if chosen is None:
        return "What was bought is not in these transcripts: the curator’s has it, or the consumer’s."
    teller = _PARTIES[chosen.teller]
    if not there and chosen.at:
        return f"The {teller}’s transcript does not have where the bought points are."
    return f"The bought points are from the {teller}’s transcript{_some(there, drawn)}."


def _some(count: int, drawn: int) -> str:
    return "" if drawn == count else f"; {drawn:,} of them are drawn"


def _why_no_offer(session: Session) -> str:
    if not session.curator_reads:
        return "No transcript has points that were offered and not bought: under blind they stay in boxes."
    return "What was offered is not in these transcripts: the curator’s has it, and each owner’s its own."


def _why_none(session: Session, told: Sequence[ReadTranscript]) -> str:
    if all(each.reading.redacted for each in told):
        return "Not in these transcripts: redacted copies have no points."
    if not session.curator_reads:
        return "Not in these transcripts: under blind only the consumer’s has points, those that it bought."
    return (
        "No point is in these transcripts. The curator’s and owners’ have what was handed over, and the "
        "consumer’s what it bought."
    )


def _listed(names: Sequence[str]) -> str:
    return listed([printable(name) for name in names], _NAMED, rest="owner")
