"""The parts that a report does not show, and the files that have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hushbid.protocol.names import listed
from hushbid.report.curves import QualityCurves
from hushbid.report.rounds import wins_of
from hushbid.report.sources import TranscriptSource

__all__ = ["Missing", "missing_of"]

_OF_THE_CURATOR = (
    "the released objective and gains, who was asked, absences, faults, refusals and the settlement"
)
_OF_A_BLIND_CURATOR = "who was present, absences, faults, refusals and the settlement"
_OF_THE_WEIGHING = "The released objective and gains, and which boxes were void"
_ONLY_BY_THE_ORIGINAL = (
    "its private fields were taken out; only the file that the party itself recorded has them"
)


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Figures that are not shown, why not, and which file has them."""

    what: str
    why: str


def missing_of(sources: Sequence[TranscriptSource], quality: QualityCurves) -> tuple[Missing, ...]:
    """The parts that the transcripts of one session do not have."""
    return tuple(Missing(what=what, why=why) for what, why in _absent(sources, quality))


def _absent(sources: Sequence[TranscriptSource], quality: QualityCurves) -> Iterator[tuple[str, str]]:
    roles = {source.header.role: source for source in sources}
    curator, consumer = roles.get("curator"), roles.get("consumer")
    blind = not sources[0].session.curator_reads
    told = _OF_A_BLIND_CURATOR if blind else _OF_THE_CURATOR
    what = told if wins_of(sources) is not None else f"Who won; {told}"
    if curator is None:
        yield what, "they are in the curator's transcript, which was not given"
    elif curator.machine is None:
        yield what, f"the curator's transcript is redacted: {_ONLY_BY_THE_ORIGINAL}"
    if blind and (consumer is None or consumer.machine is None):
        yield _OF_THE_WEIGHING, "the curator is blind, and the consumer weighs: its whole transcript has them"
    if consumer is None:
        yield "MMD²", "the consumer alone can work it out, and its transcript was not given"
    elif consumer.machine is None:
        why = f"the consumer's transcript is redacted: {_ONLY_BY_THE_ORIGINAL}"
        yield "MMD², and what was delivered", why
    elif quality.session is None:
        yield "MMD²", "nothing was delivered that could be compared with the validation set"
    redacted = [each.header.party for each in sources if each.header.role == "owner" and each.machine is None]
    if redacted and (curator is None or curator.machine is None):
        why = f"transcripts of owners are redacted: {_ONLY_BY_THE_ORIGINAL}"
        yield f"What {listed(redacted, 5, rest='other')} handed over", why
    if quality.session is not None and quality.greedy is None and quality.uniform is None:
        why = "no party can compute them; those of a run are in its evaluation.json, for --evaluation"
        yield "MMD² of the greedy and the uniform choice", why
    elif quality.uniform is not None and quality.greedy is None:
        yield "MMD² of the greedy choice", "it was not made: `not_computed` of the run's result says why"
