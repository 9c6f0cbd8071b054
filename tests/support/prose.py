"""Random prose to put around an answer: no lone letter, no number, no statement of its own."""

from __future__ import annotations

from hypothesis import strategies as st

_WORDS = (
    "the river carries silt which rules out half of these mentioned before however metal rusts"
    " slowly under water because oxygen reacts and heat speeds up"
)
PROSE = st.lists(st.sampled_from(_WORDS.split()), max_size=30).map(" ".join)
