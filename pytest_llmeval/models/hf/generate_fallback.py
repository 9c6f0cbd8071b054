"""Texts by transformers' own ``generate``: for every architecture, batch by batch.

Where an architecture cannot share prefixes between texts, its own cache and its own loop are
used. The tokens are still chosen, and the ends still found, by the code that serves all others:
the loop is told each choice as the only possible one.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from pytest_llmeval.models.hf.generation_state import Generation
from pytest_llmeval.models.hf.sampling import choose
from pytest_llmeval.models.hf.self_check import agrees

log = logging.getLogger("pytest_llmeval.models.hf")


class WholeTexts:
    """``generate`` over left-padded batches; text by text where padding changes the results."""

    def __init__(self, model: Any, device: torch.device) -> None:
        self._model = model
        self._device = device
        self.pads = self._padding_is_neutral()
        if not self.pads:
            log.warning("%s cannot be padded: texts are made one by one", type(model).__name__)

    def finish(self, generations: Sequence[Generation]) -> None:
        """Add tokens to every text until all are done."""

        def step(logits: Tensor) -> tuple[list[int], list[bool]]:
            draws = [0.0 if one.done else one.draw() for one in generations]
            tokens = choose(logits, [one.decoding for one in generations], draws)
            for one, token in zip(generations, tokens, strict=True):
                if not one.done:
                    one.add(token)
            return [token or 0 for token in tokens], [one.done for one in generations]

        self._run([one.read for one in generations], step, _longest(generations))

    def _padding_is_neutral(self) -> bool:
        """Whether a short and a long text give together what each gives alone."""
        vocabulary = self._model.config.get_text_config().vocab_size
        rows = [
            tuple((7 * i * i + 3 * i + n) % vocabulary for i in range(5 + 4 * n)) for n in (0, 1)
        ]

        def logprobs(rows: Sequence[tuple[int, ...]]) -> Tensor:
            found: list[Tensor] = []

            def step(logits: Tensor) -> tuple[list[int], list[bool]]:
                found.append(logits.float().log_softmax(-1))
                return [len(found)] * len(rows), [len(found) == 3] * len(rows)

            self._run(rows, step, 3)
            return torch.stack(found, dim=1)

        try:
            together = logprobs(rows)
            alone = torch.cat([logprobs([row]) for row in rows])
        except Exception as error:
            log.info("padded prompts do not work with this model: %s", error)
            return False
        return agrees((together - alone).abs().max().item(), self._model.dtype)

    def _run(self, rows: Sequence[tuple[int, ...]], step: Any, limit: int) -> None:
        """Call ``step`` with the logits after every row, until it says that all are done."""
        generation: Any = importlib.import_module("transformers.generation")
        done: list[bool] = []

        def process(_: Tensor, scores: Tensor) -> Tensor:
            tokens, done[:] = step(scores)
            forced = torch.full_like(scores, -torch.inf)
            at = torch.tensor(tokens, device=scores.device)[:, None]
            return forced.scatter_(1, at, 0.0)

        def stop(tokens: Tensor, _: Tensor, **__: Any) -> Tensor:
            return torch.tensor(done, device=tokens.device)

        longest = max(map(len, rows))
        tokens = torch.tensor([(0,) * (longest - len(row)) + row for row in rows])
        mask = torch.tensor([(0,) * (longest - len(row)) + (1,) * len(row) for row in rows])
        with torch.inference_mode(), _plain(self._model, generation.GenerationConfig) as config:
            self._model.generate(
                input_ids=tokens.to(self._device),
                attention_mask=mask.to(self._device),
                generation_config=config(
                    max_new_tokens=limit, do_sample=False, use_cache=True, pad_token_id=0
                ),
                logits_processor=generation.LogitsProcessorList([process]),
                stopping_criteria=generation.StoppingCriteriaList([stop]),
            )


def _longest(generations: Sequence[Generation]) -> int:
    return max(one.opening.limit - len(one.tokens) for one in generations)


@contextmanager
def _plain(model: Any, config: Any) -> Iterator[Any]:
    """Within the context the model brings no settings of its own (a repetition penalty, …)."""
    before = model.generation_config
    model.generation_config = config()
    try:
        yield config
    finally:
        model.generation_config = before
