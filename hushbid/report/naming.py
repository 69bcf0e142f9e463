"""Owners in a report by their display names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hushbid.report.figures import ReportFigures

__all__ = ["named"]


def named(figures: ReportFigures, display: Mapping[str, str]) -> ReportFigures:
    """The figures with these names in place of those of the roster, which transcripts and files keep.

    Args:
        display: Names by those of the roster; an owner without one keeps its own.
    """

    def name(party: str | None) -> str | None:
        return party if party is None else display.get(party, party)

    def each(owners: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(display.get(owner, owner) for owner in owners)

    rounds, quality, incidents = figures.rounds, figures.quality, figures.incidents
    if rounds.map is not None:
        rounds = replace(rounds, map=replace(rounds.map, owners=each(rounds.map.owners)))
    if quality.appraisal is not None:
        own = quality.appraisal.own
        parts = {display.get(owner, owner): part for owner, part in own.by_owner.items()}
        quality = replace(quality, appraisal=replace(quality.appraisal, own=replace(own, by_owner=parts)))
    told = tuple(
        replace(found, party=name(found.party), told_by=display.get(found.told_by, found.told_by))
        for found in incidents.listed
    )
    return replace(
        figures,
        rounds=rounds,
        quality=quality,
        owners=replace(figures.owners, name=each(figures.owners.name)),
        incidents=replace(incidents, listed=told),
        transcripts=tuple(
            replace(found, party=display.get(found.party, found.party)) for found in figures.transcripts
        ),
    )
