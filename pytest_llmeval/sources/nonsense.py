"""Meaningless questions of random words, after NonsenseQA (Nowak et al. 2026).

Source: arXiv:2602.17445. Its questions, list of words and distributions of lengths were not
published. The published properties (1,000 questions of random words, four options, golds uniform
over the positions, the form of one example) are reproduced; the rest is this recipe:

- a question has 8 to 16 words, an option 1 to 6, uniformly distributed; the first letter is a
  capital, and the question ends in a question mark;
- no word occurs twice in an item, so no two options are equal;
- the golds of the items are a shuffled sequence with all positions equally often (up to one).
  Those of the shots are shuffled in groups of four, so that the first shots show every position.

Words are sampled uniformly from ``words.txt`` (its licence is in the same folder). An item depends
only on recipe, seed and its number. ``RECIPE`` is increased when a change here changes an item.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources

from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core.seeded_random import SeededRandom
from pytest_llmeval.sources.item_ids import row_id

RECIPE = "1"
SUBJECT = "miscellaneous"
"""Subject in the headers of prompts; a subject that describes the questions would be a hint."""

OPTIONS = 4
_QUESTION_WORDS = range(8, 17)
_OPTION_WORDS = range(1, 7)


def nonsense(items: int = 1000, shots: int = 20, seed: int = 0) -> Dataset:
    """Return the generated data set: items ``nonsense-0000`` … and a pool of shots."""
    golds = SeededRandom("nonsense", RECIPE, seed, "golds").shuffled(_cyclic_positions(items))
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
    generator = SeededRandom("nonsense", RECIPE, seed, kind, number)
    sizes = [generator.choice(_QUESTION_WORDS)]
    sizes += [generator.choice(_OPTION_WORDS) for _ in range(OPTIONS)]
    sample = generator.sample(words(), sum(sizes))
    texts = []
    for size in sizes:
        texts.append(" ".join(sample[:size]).capitalize())
        del sample[:size]
    question, *options = texts
    return Item(row_id(kind, number), SUBJECT, f"{question}?", gold, tuple(options))


def _cyclic_positions(number: int) -> Sequence[int]:
    return [index % OPTIONS for index in range(number)]


def _shot_golds(number: int, seed: int) -> list[int]:
    generator = SeededRandom("nonsense", RECIPE, seed, "shot golds")
    golds: list[int] = []
    while len(golds) < number:
        golds += generator.shuffled(range(OPTIONS))
    return golds[:number]


@cache
def words() -> tuple[str, ...]:
    """Return the packaged list: 3,896 common English words."""
    text = resources.files(__package__).joinpath("words.txt").read_text(encoding="ascii")
    return tuple(text.split())
