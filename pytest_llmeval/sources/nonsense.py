"""Questions that mean nothing: random words, after NonsenseQA (Nowak et al. 2026).

Source: arXiv:2602.17445. Its questions were not published, nor the list of words and the
distributions of lengths; what is known (1,000 questions of random words, four options, golds
uniform over the positions, the shape of one example) is kept, the rest is this recipe:

- a question is 8 to 16 words, an option 1 to 6, each number as likely; the first letter is a
  capital, and the question ends in a question mark;
- no word occurs twice in an item, so no two options are equal;
- the golds of the items are the positions in turn, shuffled: as many at each as can be. Those
  of the shots are shuffled four by four, so that the first few show every position.

Words are drawn from ``words.txt`` (its licence stands beside it), every word as likely. An item
depends on recipe, seed and its number alone. ``RECIPE`` grows when anything here changes an item.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources

from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core.seeded_random import Draws
from pytest_llmeval.sources.item_ids import row_id

RECIPE = "1"
SUBJECT = "miscellaneous"
"""Shown in the headers of prompts; one that says what the questions are would be a hint."""

OPTIONS = 4
_QUESTION_WORDS = range(8, 17)
_OPTION_WORDS = range(1, 7)


def nonsense(items: int = 1000, shots: int = 20, seed: int = 0) -> Dataset:
    """The items ``nonsense-0000`` … and a pool of shots for them."""
    golds = Draws("nonsense", RECIPE, seed, "golds").shuffled(_in_turn(items))
    return Dataset(
        items=tuple(_item("nonsense", seed, number, gold) for number, gold in enumerate(golds)),
        pool={
            SUBJECT: tuple(
                _item("shot", seed, number, gold)
                for number, gold in enumerate(_shot_golds(shots, seed))
            )
        },
    )


def _item(kind: str, seed: int, number: int, gold: int) -> Item:
    draws = Draws("nonsense", RECIPE, seed, kind, number)
    sizes = [draws.one_of(_QUESTION_WORDS)]
    sizes += [draws.one_of(_OPTION_WORDS) for _ in range(OPTIONS)]
    drawn = draws.some_of(words(), sum(sizes))
    texts = []
    for size in sizes:
        texts.append(" ".join(drawn[:size]).capitalize())
        del drawn[:size]
    question, *options = texts
    return Item(row_id(kind, number), SUBJECT, f"{question}?", gold, tuple(options))


def _in_turn(number: int) -> Sequence[int]:
    return [place % OPTIONS for place in range(number)]


def _shot_golds(number: int, seed: int) -> list[int]:
    draws = Draws("nonsense", RECIPE, seed, "shot golds")
    golds: list[int] = []
    while len(golds) < number:
        golds += draws.shuffled(range(OPTIONS))
    return golds[:number]


@cache
def words() -> tuple[str, ...]:
    """The packaged list: 3,896 common English words."""
    text = resources.files(__package__).joinpath("words.txt").read_text(encoding="ascii")
    return tuple(text.split())
