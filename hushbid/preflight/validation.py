"""Checks of bounds, γ and seed set against D_v before a session, and a rehearsal.

Every message here depends on the consumer's validation set, is for the consumer alone, and says so.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hushbid.consumer.prospect import FEW
from hushbid.consumer.seed_distance import seed_distance
from hushbid.consumer.verdict import Verdict
from hushbid.plan.verdict import Rehearsing, what_is_wrong
from hushbid.preflight.subject import NotChecked, Subject, Warned
from hushbid.protocol.data.names import feature_column
from hushbid.protocol.errors import Hopeless
from hushbid.protocol.names import listed

__all__ = ["bounds", "kernel", "rehearsal", "seed_set"]

NARROW: Final = 0.01
"""Share of its bounds that a column's values should span."""

_VARIED: Final = 0.05
"""Share of rows that differ from the median in a column that distinguishes rows."""
_OWN: Final = "This follows from the validation set: keep it to yourself"
_KERNEL_FIRST: Final = "first correct what `kernel` reports: until then these figures mean nothing"
_FAR: Final = (
    "Releases are clipped about the seed set, so noise does more harm. Use a seed set closer to what is "
    "wanted, from related data of your own, or check whether a drawn one (`seed_points`) lies nearer."
)
_LEADS: Final = "The seed set leads the first round. "
_WEIGH_LESS: Final = (
    " A `session.seed_weight` of {least:g} or less limits the harm; the session has {weight:g}."
)
_LITTLE_WEIGHT: Final = 0.1
_DRAWN: Final = (
    "A drawn seed set is mostly far from real data, so clipping fits badly and noise does more harm "
    "(docs/configuration.md has figures). Name a file of related data (`seed_set`) if you have any that lies "
    "nearer."
)
_SHOW_MORE: Final = (
    "Name a file of related data (`seed_set`) that also has unwanted rows: if the session cannot tell these "
    "apart either, its bounds are too wide, or its gamma is too small."
)
_UNCERTAIN: Final = (
    "The outcome depends on what owners have. If much of it is wanted, buy at random and weigh "
    "(`hushbid weigh`); more rows of validation data, or a larger epsilon, reduce the noise."
)


def bounds(subject: Subject) -> str | Warned:
    """Whether each column's values span a fair part of its bounds: too wide a bound hides differences."""
    features = subject.session.file.features
    rows = subject.validation.features.astype(np.float64)
    width = np.broadcast_to(np.asarray(features.upper) - np.asarray(features.lower), rows.shape[1])
    span = np.ptp(rows, axis=0)
    # If almost all rows are equal, as in a pixel at the edge, a column says little within any bounds.
    varied = (rows != np.median(rows, axis=0)).mean(axis=0) >= _VARIED
    narrow = np.flatnonzero(varied & (span < NARROW * width)).tolist()
    if not narrow:
        return f"no column that tells rows apart spans less than {NARROW:.0%} of its bounds. {_OWN}"
    names = subject.validation.feature_names
    columns = listed([feature_column(index, names) for index in narrow], 5)
    return Warned(
        f"values span less than {NARROW:.0%} of their bounds in {columns} of {rows.shape[1]}. {_OWN}",
        "The session cannot tell apart rows that differ in such a column alone. Agree on bounds "
        f"({subject.session.file.bounds_keys}, a number for each column) about as wide as the data may be, "
        "or on another scale for the column (its logarithm, say).",
    )


def kernel(subject: Subject) -> str | Warned:
    """Whether γ and the bounds let rows differ, and not too much."""
    found = subject.looked
    said = (
        f"the mean kernel value of two rows of the validation set is {found.kernel:.3g}, of one and a row of "
        f"the seed set {found.beside:.3g}. {_OWN}"
    )
    if found.blind:
        what, advice = what_is_wrong(subject.session, subject.validation.features, Verdict(found))
        return Warned(f"{what}: {said}", advice)
    if found.unseen:
        return Warned(f"{found.meaning}: {said}", _SHOW_MORE)
    return said


def seed_set(subject: Subject) -> str | NotChecked | Warned:
    """The distance of the seed set from D_v, beside its distance by chance."""
    validation, seeds = subject.validation.features, subject.seed_set.features
    if subject.looked.blind:
        return NotChecked(_KERNEL_FIRST)
    space = subject.session.space
    found = seed_distance(space.scale(validation), space.scale(seeds), space.gamma)
    if subject.drawn:
        return Warned(f"drawn within the bounds: {found.sentence()}. {_OWN}", _DRAWN)
    if not found.far:
        return f"{found.sentence()}. {_OWN}"
    weight, advice = subject.session.file.seed_weight, _FAR
    if not subject.session.file.herds:  # a tender gives it no weight
        less = _WEIGH_LESS.format(least=_LITTLE_WEIGHT, weight=weight) if weight > _LITTLE_WEIGHT else ""
        advice = f"{_LEADS}{_FAR}{less}"
    return Warned(f"far from the validation set: {found.sentence()}. {_OWN}", advice)


_NOT_FOR_THE_MODEL: Final = "Do not buy for this model. If you want the points for more, go on."
_MORE_ROWS: Final = "More labelled rows of your own would tell"


def _by_model(found: Verdict) -> str:
    """The advice if own rows decide, and speak against buying."""
    if found.word == "hopeless":
        return _NOT_FOR_THE_MODEL
    if found.prospect is not None and found.prospect.rows > FEW:
        return f"{_MORE_ROWS} more surely."
    return f"{_MORE_ROWS}; more than {FEW} are enough for some certainty."


def rehearsal(subject: Subject) -> str | NotChecked | Warned:
    """A rehearsal: the session's purchase from owners made from D_v."""
    found = Rehearsing(wanted=subject.rehearse, anyway=True).verdict(subject.session, lambda: subject.sets)
    played = found.rehearsal
    if found.word is None:
        return NotChecked(found.why)
    lines = [] if played is None else played.lines()
    own = [found.summary()] if found.by_model else []
    word = () if found.by_model else (found.word,)  # the summary of own rows begins with it
    said = "\n".join((*word, *own, *([found.why] if found.why else []), *lines, _OWN))
    if found.word == "good":
        return said
    if not found.refused:
        if found.by_model:
            return Warned(said, _by_model(found))
        return Warned(said, _SHOW_MORE if played is not None and played.unseen else _UNCERTAIN)
    what, advice = what_is_wrong(subject.session, subject.validation.features, found)
    advice = f"{what[0].upper()}{what[1:]}. {advice}"
    if subject.anyway:
        return Warned(said, advice)
    raise Hopeless(said, advice=f"{advice} `--anyway` goes on all the same, and that stays on record.")
