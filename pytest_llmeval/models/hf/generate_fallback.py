"""Text generation with transformers' ``generate``, for every architecture.

Architectures that cannot share prefixes between texts use their own cache and the loop of
``generate``. Tokens are still chosen, and ends detected, by the same code as for all other models:
a logits processor makes the chosen token the only possible one.
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
from pytest_llmeval.models.hf.sampling import choose_tokens
from pytest_llmeval.models.hf.self_check import within_rounding

log = logging.getLogger("pytest_llmeval.models.hf")


class GenerateFallback:
    """Generation in left-padded batches, or one by one if padding changes the results."""

    def __init__(self, model: Any, device: torch.device) -> None:
        self._model = model
        self._device = device
        self.pads = self._padding_is_neutral()
        if not self.pads:
            log.warning("%s cannot be padded: texts are generated one by one", type(model).__name__)

    def finish(self, generations: Sequence[Generation]) -> None:
        """Generate until every text is done."""

        def step(logits: Tensor) -> tuple[list[int], list[bool]]:
            uniforms = [0.0 if text.done else text.next_random() for text in generations]
            tokens = choose_tokens(logits, [text.decoding for text in generations], uniforms)
            for text, token in zip(generations, tokens, strict=True):
                if not text.done:
                    text.add(token)
            return [token or 0 for token in tokens], [text.done for text in generations]

        self._run([text.all_tokens for text in generations], step, _max_new_tokens(generations))

    def _padding_is_neutral(self) -> bool:
        """Test whether a short and a long text give the same results together and separately."""
        vocabulary = self._model.config.get_text_config().vocab_size
        rows = [
            tuple((7 * i * i + 3 * i + n) % vocabulary for i in range(5 + 4 * n)) for n in (0, 1)
        ]

        def logprobs(rows: Sequence[tuple[int, ...]]) -> Tensor:
            steps: list[Tensor] = []

            def step(logits: Tensor) -> tuple[list[int], list[bool]]:
                steps.append(logits.float().log_softmax(-1))
                return [len(steps)] * len(rows), [len(steps) == 3] * len(rows)

            self._run(rows, step, 3)
            return torch.stack(steps, dim=1)

        try:
            together = logprobs(rows)
            separate = torch.cat([logprobs([row]) for row in rows])
        except Exception as error:
            log.info("padded prompts do not work with this model: %s", error)
            return False
        return within_rounding((together - separate).abs().max().item(), self._model.dtype)

    def _run(self, rows: Sequence[tuple[int, ...]], step: Any, limit: int) -> None:
        """Call ``step`` with the next logits of every row until it reports all rows as done."""
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
        with (
            torch.inference_mode(),
            _default_settings(self._model, generation.GenerationConfig) as config,
        ):
            self._model.generate(
                input_ids=tokens.to(self._device),
                attention_mask=mask.to(self._device),
                generation_config=config(
                    max_new_tokens=limit, do_sample=False, use_cache=True, pad_token_id=0
                ),
                logits_processor=generation.LogitsProcessorList([process]),
                stopping_criteria=generation.StoppingCriteriaList([stop]),
            )


def _max_new_tokens(generations: Sequence[Generation]) -> int:
    return max(text.prompt.limit - len(text.tokens) for text in generations)


@contextmanager
def _default_settings(model: Any, config: Any) -> Iterator[Any]:
    """Replace the model's generation settings (a repetition penalty, …) by defaults."""
    before = model.generation_config
    model.generation_config = config()
    try:
        yield config
    finally:
        model.generation_config = before
