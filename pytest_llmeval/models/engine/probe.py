"""An architecture earns the packed path by agreeing with its own full forward."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch

from pytest_llmeval.models.engine.forward import FullForward
from pytest_llmeval.models.engine.forward import PackedForward
from pytest_llmeval.models.engine.questions import Question
from pytest_llmeval.models.engine.questions import tree_of

log = logging.getLogger("pytest_llmeval.models.hf")

# Largest difference of a log-probability that rounding explains, by dtype.
_ROUNDING = {torch.float32: 1e-3, torch.float16: 0.05, torch.bfloat16: 0.3}


def proven(model: Any, device: torch.device, full: FullForward) -> PackedForward | None:
    """The packed path where the model gives the same by it as in full, else None.

    A few tokens are enough to tell: position numbers, masks or attention that the packed path
    does not serve show at once. Costs two forwards of about 30 tokens.
    """
    questions = _questions(model.config.get_text_config().vocab_size)
    prefix = questions[0].shareable[:_SHARED]
    try:
        expected = full.score(questions)
    except Exception as error:
        # Not for this module to judge: each request will tell what is wrong with the model.
        log.info("the model does not compute a few tokens in full: %s", error)
        return None
    for trims in (True, False):
        packed = PackedForward(model, device, trims=trims)
        try:
            found = packed.score(questions, prefix)
        except Exception as error:
            log.info("packed prompts do not work with this model: %s", error)
            packed.close()
            continue
        difference = max(
            abs(a - b)
            for row, other in zip(expected, found, strict=True)
            for a, b in zip(row, other, strict=True)
        )
        # NaN weights give NaN both ways: no reason against either.
        if not difference > _ROUNDING.get(model.dtype, 1e-3):
            packed.forget()
            return packed
        log.info("packed prompts give other results with this model (by %.3g)", difference)
        packed.close()
    log.warning(
        "%s cannot share a prefix between prompts: every prompt is computed in full",
        type(model).__name__,
    )
    return None


_SHARED = 5


def _questions(vocabulary: int) -> list[Question]:
    """A question with one-token choices and one with longer ones, behind the same beginning."""

    def words(count: int, salt: int) -> tuple[int, ...]:
        return tuple((salt * 31 + 17 * i * i + 7 * i + 3) % vocabulary for i in range(count))

    beginning = words(_SHARED, 1)
    short = beginning + words(4, 2)
    long = beginning + words(6, 3)
    return [
        _question(0, short, [words(1, 4), words(1, 5)]),
        _question(1, long, [words(3, 6), words(4, 7)]),
    ]


def _question(index: int, context: tuple[int, ...], choices: Sequence[tuple[int, ...]]) -> Question:
    rows = tuple(context + choice for choice in choices)
    return Question(index, rows, (len(context),) * len(rows), tree_of(rows), len(context))
