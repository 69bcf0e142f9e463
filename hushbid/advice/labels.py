"""Whether labels should take part in the selection: tested on public rows, some of which stand for D_v.

A session file states whether they do, and the possible labels. If both follow from public rows, the file
reveals nothing of D_v by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.appraisal import Judge
from hushbid.datasets.partition import Table
from hushbid.datasets.tilted import NEAR, tilted
from hushbid.plan.rehearsal import play
from hushbid.protocol.config.labels import MOST_CLASSES, LabelsSection
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset, read_attributes
from hushbid.protocol.errors import ConfigError, DataError, HushbidError
from hushbid.protocol.figures import Figures
from hushbid.protocol.session.session import open_session

__all__ = ["LabelTrial", "labels_given", "labels_of", "tried"]

PLAYS: Final = 3
LEAST: Final = 0.01
"""Points of accuracy, or of R², that labels must gain on average: plays differ by less."""
_MOST_ROWS: Final = 1_000
"""Shares of the public rows that stand for D_v, and that the model is tested on."""
_MARGIN: Final = 0.1
"""Margin of a range on either side of public numeric labels, as a share of it."""


@figures(frozen=True, slots=True, kw_only=True)
class LabelTrial(Figures):
    """The consumer's model after a purchase by features and after one that also uses labels, on public rows.

    Attributes:
        own, by_features, by_labels: Means over the plays: own rows alone, and with each purchase.
        gains: What labels gain, in each play.
    """

    TOLD: ClassVar[Mapping[str, str]] = {"pays": "pays"}

    metric: Literal["accuracy", "r2"]
    own: float
    by_features: float
    by_labels: float
    gains: tuple[float, ...]

    @property
    def pays(self) -> bool:
        """Whether labels gain `LEAST` on average, and lose in no play."""
        return fmean(self.gains) >= LEAST and min(self.gains) >= 0.0

    def sentence(self) -> str:
        said = "R²" if self.metric == "r2" else "accuracy"
        return (
            f"In {len(self.gains)} plays on public rows the model's {said} was {self.own:.3f} with own rows "
            f"alone, {self.by_features:.3f} with a purchase by features, and {self.by_labels:.3f} with one "
            "by labels too."
        )


def labels_given(classes: str | None, amounts: str | None) -> LabelsSection | None:
    """The classes in ``3,4,7`` or ``no,yes``, or the range ``0,500`` of amounts; None if neither is given.

    Raises:
        ConfigError: Both are given, or no session can have them.
    """
    if classes is not None and amounts is not None:
        raise ConfigError("Labels are classes or amounts.", advice="Give --classes or --amounts.")
    try:
        if classes is not None:
            names = [part.strip() for part in classes.split(",")]
            whole = all(name.removeprefix("-").isdecimal() for name in names)
            values: list[int | str] = [int(name) if whole else name for name in names]
            return LabelsSection(classes=values)
        if amounts is not None:
            lower, upper = (float(part) for part in amounts.split(","))
            return LabelsSection(lower=lower, upper=upper)
    except ValueError:
        option, given = ("--classes", classes) if amounts is None else ("--amounts", amounts)
        raise ConfigError(
            f"{option} is {given!r}.",
            advice="Give all classes, separated by commas, as in --classes no,yes; or the range of amounts, "
            "as in --amounts 0,500.",
        ) from None
    return None


def labels_of(public: Dataset) -> LabelsSection | None:
    """The labels that public rows suggest: their classes, or the range of their amounts and a tenth more.

    Returns:
        None if they have no labels, one class, or row names in place of labels.
    """
    if public.labels is None or public.labelled is not None:
        return None
    values = np.unique(public.labels)
    if public.labels.dtype.kind == "f":
        low, high = float(values[0]), float(values[-1])
        beyond = _MARGIN * (high - low)
        return LabelsSection(lower=low - beyond, upper=high + beyond) if low < high else None
    if not 2 <= len(values) <= min(MOST_CLASSES, len(public) // 2):
        return None
    return LabelsSection(classes=values.tolist())


def tried(
    file: SessionFile, section: LabelsSection, public: Dataset, rows: int, say: Callable[[str], object]
) -> LabelTrial | str:
    """Play a session with labels in the selection and without, on public rows alone.

    The rows are dealt out along their first principal component (`hushbid.datasets.tilted`): some stand for
    D_v, some for owners that resemble it more or less, and some test the model.

    Args:
        file: The session, without [labels].
        rows: m.

    Returns:
        The reason, if nothing was tried.
    """
    found = []
    for seed in range(PLAYS):
        say(f"Playing with labels in the choice and without, on public rows: {seed + 1} of {PLAYS}.")
        try:
            found.append(_played(file, section, public, rows, seed))
        except HushbidError as error:
            return error.what.rstrip(".")
    metrics, own, plain, labelled = zip(*found, strict=True)
    gains = tuple(float(second - first) for first, second in zip(plain, labelled, strict=True))
    return LabelTrial(
        metric=metrics[0],
        own=fmean(own),
        by_features=fmean(plain),
        by_labels=fmean(labelled),
        gains=gains,
    )


def _played(
    file: SessionFile, section: LabelsSection, public: Dataset, rows: int, seed: int
) -> tuple[str, float, float, float]:
    """The metric, and its values with own rows alone, after a purchase by features, and by labels."""
    session = open_session(file)
    scale, places = session.space.scale, np.arange(len(public))
    wanted_rows = min(rows, _MOST_ROWS, len(public) // 5)
    dealt = tilted(
        Table(scale(public.features), places),  # rows' places are dealt out as if they were labels
        NEAR,
        validation=wanted_rows,
        test=min(_MOST_ROWS, len(public) // 5),
        owner_points=len(public),
        generator=np.random.default_rng(seed),
    )

    def part(name: str, of: npt.NDArray[np.intp]) -> Dataset:
        labels = public.labels
        assert labels is not None, "or there would be no section"
        return Dataset.from_arrays(name, public.features[of], labels[of])

    owner = part("public rows", np.concatenate([table.labels for table in dealt.owners.values()]))
    wanted, test = part("wanted", dealt.validation.labels), part("test", dealt.test.labels)
    seeds = public.features[dealt.seed_set.labels]
    points = min(file.session.points, max(1, len(owner) // 5))
    smaller = file.session.model_copy(update={"points": points, "batch": None})
    judge = Judge(
        scale(wanted.features),
        session.space.gamma,
        test=(scale(test.features), test.known),
        seed=seed,
        wanted_labels=wanted.known,
        amounts=not section.classes,
    )
    figures = []
    for labels in (None, section):
        played = play(
            file.model_copy(update={"session": smaller, "labels": labels}), owner, wanted, seeds, seed
        )
        bought = scale(np.stack([each.point for each in played]))
        known = [read_attributes(each.attributes).label for each in played]
        _, matching = judge.weighed(judge.quality(bought, [None] * len(bought)), bought, known)
        model, _ = judge.model_figures(bought, known, matching)
        if model.metric is None or model.own is None or model.own_and_bought is None:
            raise DataError(f"the model cannot be judged: {model.why}", advice="Leave labels out.")
        figures.append(model)
    plain, labelled = figures
    assert plain.own is not None
    assert plain.own_and_bought is not None
    assert labelled.own_and_bought is not None
    return str(plain.metric), plain.own.value, plain.own_and_bought.value, labelled.own_and_bought.value
