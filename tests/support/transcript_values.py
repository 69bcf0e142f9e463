"""Strategies for what transcripts hold; apart, as processes that are no test import transcripts."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from hushbid.protocol.wire.values import Item, Value
from tests.support.transcripts import Step

_TEXT = st.text(max_size=8)
_SCALARS: st.SearchStrategy[Value] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    _TEXT,
    st.binary(max_size=40),
    st.lists(st.integers(-(2**15), 2**15 - 1), max_size=4).map(lambda row: np.array(row, np.int16)),
)
VALUES: st.SearchStrategy[Value] = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner, inner), st.dictionaries(_TEXT, inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def items(draw: st.DrawFn) -> Item:
    names = draw(st.lists(_TEXT, max_size=5, unique=True))
    split = draw(st.integers(0, len(names)))
    fields = {name: draw(VALUES) for name in names}
    return Item(
        draw(_TEXT),
        {name: fields[name] for name in names[:split]},
        {name: fields[name] for name in names[split:]},
    )


STEP_LISTS: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(st.floats(0, 1e9), items(), st.lists(items(), max_size=2).map(tuple)), max_size=3
)
