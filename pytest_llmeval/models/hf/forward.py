"""Forward passes: packed rows after a shared prefix, or every row in full.

Both return the log-probabilities of choices; the packed one also the next logits of texts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pytest_llmeval.models.hf import packed_attention
from pytest_llmeval.models.hf.batching import Question
from pytest_llmeval.models.hf.batching import ScoredToken
from pytest_llmeval.models.hf.batching import Segment
from pytest_llmeval.models.hf.batching import build_segment
from pytest_llmeval.models.hf.batching import common_length
from pytest_llmeval.models.hf.packed_attention import AttentionPlan
from pytest_llmeval.models.hf.packed_attention import KeysValues
from pytest_llmeval.models.hf.packed_attention import PackedLayout

# Rows of logits to normalise at a time: 128 × 50,000 floats are 26 MB.
_ROWS = 128

Scores = list[list[float]]  # per question, the log-probability of each choice


class FullForward:
    """Forward pass over separate right-padded rows, for every causal model."""

    def __init__(self, model: Any, device: torch.device) -> None:
        self._model = model
        self._device = device
        self._head = _SelectiveHead(model)

    def score(self, questions: Sequence[Question]) -> Scores:
        """Return the log-probability of each choice, per question."""
        # Rows that read the same tokens (single-token choices) are computed once.
        rows: dict[tuple[int, ...], int] = {}
        for question in questions:
            for row in question.rows:
                rows.setdefault(row[:-1], len(rows))
        longest = max(map(len, rows))
        tokens = torch.zeros(len(rows), longest, dtype=torch.long)
        mask = torch.zeros(len(rows), longest, dtype=torch.long)
        for row, number in rows.items():
            tokens[number, : len(row)] = torch.tensor(row)
            mask[number, : len(row)] = 1
        scored = [
            [
                ScoredToken(rows[row[:-1]] * longest + place - 1, row[place], choice)
                for choice, (row, start) in enumerate(
                    zip(question.rows, question.starts, strict=True)
                )
                for place in range(start, len(row))
            ]
            for question in questions
        ]
        with torch.inference_mode():
            return _sum_logprobs(
                scored,
                [len(question.rows) for question in questions],
                lambda needed: self._head.logits(
                    needed.to(self._device),
                    input_ids=tokens.to(self._device),
                    attention_mask=mask.to(self._device),
                ),
            )


@dataclass(slots=True)
class Prefix:
    """Computed tokens with the keys and values of every layer."""

    tokens: tuple[int, ...]
    keys_values: list[KeysValues]

    def first(self, length: int) -> list[KeysValues] | None:
        """Return views of the first ``length`` keys and values; None for 0."""
        if length == 0:
            return None
        return [(keys[:, :, :length], values[:, :, :length]) for keys, values in self.keys_values]


class PackedForward:
    """Forward pass over questions packed into one row, after a prefix that is kept between calls.

    ``trims``: compute the last layer's MLP for the needed positions only.
    """

    def __init__(self, model: Any, device: torch.device, *, trims: bool = True) -> None:
        packed_attention.register()
        self._model = model
        self._device = device
        self._head = _SelectiveHead(model)
        self._mlp = _SelectiveLastMlp(model) if trims else None
        self._merges = packed_attention.can_merge(device)
        self._live = Prefix((), [])

    @property
    def pads(self) -> bool:
        """True if attention pads the questions of a batch to the longest one."""
        return not self._merges

    def live_length(self, tokens: tuple[int, ...]) -> int:
        """Return the number of leading tokens of ``tokens`` that the live prefix holds."""
        return common_length([tokens, self._live.tokens])

    def read(self, tokens: tuple[int, ...]) -> None:
        """Make the live prefix start with ``tokens``, computing only the missing ones."""
        shared = self.live_length(tokens)
        if shared == len(tokens):
            return
        cached = self._live.first(shared)
        new = tokens[shared:]
        segment = Segment(new, tuple(range(shared, len(tokens))), (0,) * len(new), (), len(new))
        captured: list[KeysValues] = []
        with torch.inference_mode():
            self._forward([segment], cached, shared, torch.empty(0, dtype=torch.long), captured)
            if cached is not None:
                captured = [
                    (torch.cat([old[0], own[0]], dim=2), torch.cat([old[1], own[1]], dim=2))
                    for old, own in zip(cached, captured, strict=True)
                ]
            else:
                # Copy from the projections' output, so that attention reads contiguous memory.
                captured = [(keys.contiguous(), values.contiguous()) for keys, values in captured]
        self._live = Prefix(tokens, captured)

    def keys_values(self, tokens: tuple[int, ...]) -> list[KeysValues] | None:
        """Return keys and values of a prefix, computed if missing; None for an empty one."""
        self.read(tokens)
        return self._live.first(len(tokens))

    def begin(
        self, rows: Sequence[tuple[int, ...]], prefix: tuple[int, ...]
    ) -> tuple[Tensor, list[KeysValues]]:
        """Compute rows after a prefix.

        Returns the next logits, (rows, vocabulary), and per layer the keys and values of the rows'
        own tokens, concatenated over the rows, (1, heads, tokens, size).
        """
        seen = len(prefix)
        segments = [
            Segment(row, tuple(range(seen, seen + len(row))), (0,) * len(row), (), len(row))
            for row in rows
        ]
        last = torch.tensor(list(itertools.accumulate(map(len, rows)))) - 1
        captured: list[KeysValues] = []
        with torch.inference_mode():
            logits = self._forward(segments, self.keys_values(prefix), seen, last, captured)
        return logits, captured

    def step(self, tokens: Sequence[int], positions: Sequence[int], plan: AttentionPlan) -> Tensor:
        """Compute one more token per row; return the next logits, (rows, vocabulary)."""
        with torch.inference_mode(), packed_attention.use_plan(self._model, plan):
            logits: Tensor = self._model(
                input_ids=torch.tensor([tokens], device=self._device),
                position_ids=torch.tensor([positions], device=self._device),
                use_cache=False,
                return_dict=True,
            ).logits
        return logits.flatten(0, -2)

    def forget(self) -> None:
        """Free the live prefix."""
        self._live = Prefix((), [])

    def close(self) -> None:
        """Remove all hooks from the model and free the live prefix."""
        self.forget()
        if self._mlp is not None:
            self._mlp.remove()

    def score(self, questions: Sequence[Question], prefix: tuple[int, ...] = ()) -> Scores:
        """Return the log-probability of each choice, per question; all start with ``prefix``."""
        self.read(prefix)
        segments = [build_segment(question, len(prefix)) for question in questions]
        offsets = itertools.accumulate((len(segment.tokens) for segment in segments), initial=0)
        scored = [
            [item._replace(node=item.node + offset) for item in segment.scored]
            for segment, offset in zip(segments, offsets, strict=False)
        ]
        with torch.inference_mode():
            return _sum_logprobs(
                scored,
                [len(question.rows) for question in questions],
                lambda needed: self._forward(
                    segments, self._live.first(len(prefix)), len(prefix), needed, None
                ),
            )

    def _forward(
        self,
        segments: Sequence[Segment],
        prefix: list[KeysValues] | None,
        seen: int,
        needed: Tensor,
        captured: list[KeysValues] | None,
    ) -> Tensor:
        tokens = torch.tensor([[token for segment in segments for token in segment.tokens]])
        positions = torch.tensor([[at for segment in segments for at in segment.positions]])
        ends = list(itertools.accumulate(len(segment.tokens) for segment in segments))
        spans = tuple(zip([0, *ends], ends, strict=False))
        masks = tuple(_mask(segment, self._model.dtype) for segment in segments)
        layout = PackedLayout(
            spans=spans,
            masks=masks,
            prefix=prefix,
            captured=captured,
            padded_batch=None
            if self._merges
            else packed_attention.pad_batch(spans, masks, seen, self._device),
        )
        rows = needed.to(self._device)
        with packed_attention.use_plan(self._model, layout), _selected_rows(self._mlp, rows):
            return self._head.logits(
                rows,
                input_ids=tokens.to(self._device),
                position_ids=positions.to(self._device),
            )


def _mask(segment: Segment, dtype: torch.dtype) -> Tensor | None:
    """Return the attention mask of a question, None if causal.

    Tokens attend to earlier tokens of the trunk and of their own branch.
    """
    if segment.is_chain:
        return None
    branch = torch.tensor(segment.branch_of)
    sees = (branch[:, None] == branch) | (branch == 0)
    hidden = ~sees.tril()
    return torch.zeros(hidden.shape, dtype=dtype).masked_fill_(hidden, -torch.inf)[None, None]


def _sum_logprobs(
    scored: Sequence[Sequence[ScoredToken]], choices: Sequence[int], logits_at: Any
) -> Scores:
    """Sum the log-probabilities of the scored tokens by question and choice.

    ``logits_at`` receives the distinct nodes in ascending order and returns logits of shape
    (nodes, vocabulary). Log-softmax is computed in float32 for every dtype of the model.
    """
    nodes = sorted({item.node for items in scored for item in items})
    row_of = {node: row for row, node in enumerate(nodes)}
    logits = logits_at(torch.tensor(nodes))
    by_row = sorted(
        (row_of[item.node], item.token, question, item.choice)
        for question, items in enumerate(scored)
        for item in items
    )
    values = []
    for begin, entries in itertools.groupby(by_row, key=lambda item: item[0] // _ROWS * _ROWS):
        chunk = torch.log_softmax(logits[begin : begin + _ROWS].float(), dim=-1)
        at = torch.tensor([[row - begin, token] for row, token, _, _ in entries])
        at = at.to(chunk.device)
        values.append(chunk[at[:, 0], at[:, 1]])
    sums = [[0.0] * count for count in choices]
    for (_, _, question, choice), value in zip(by_row, torch.cat(values).tolist(), strict=True):
        sums[question][choice] += value
    return sums


def _select(states: Tensor, rows: Tensor) -> Tensor:
    """Select rows of the flattened positions: (…, size) → (1, rows, size).

    A model whose layers are on several devices has states on other devices than its input.
    """
    return states.flatten(0, -2).index_select(0, rows.to(states.device))[None]


class _SelectiveHead:
    """Restriction of the output head to the positions whose logits are needed.

    It is a hook before the head because not every architecture has ``logits_to_keep``.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._head = model.get_output_embeddings()

    def logits(self, rows: Tensor, **inputs: Tensor) -> Tensor:
        """Return logits, (rows, vocabulary); ``rows`` are indices of the flattened positions."""
        hook = None
        if self._head is not None:
            hook = self._head.register_forward_pre_hook(
                lambda _, args: (_select(args[0], rows), *args[1:])
            )
        try:
            logits: Tensor = self._model(**inputs, use_cache=False, return_dict=True).logits
        finally:
            if hook is not None:
                hook.remove()
        logits = logits.flatten(0, -2)
        if hook is None:
            return logits.index_select(0, rows.to(logits.device))
        return logits


class _SelectiveLastMlp:
    """Restriction of the last layer's MLP to the positions whose logits are needed."""

    def __init__(self, model: Any) -> None:
        self.rows: Tensor | None = None
        self._shape = torch.Size()
        layers = [
            child
            for child in model.base_model.children()
            if isinstance(child, torch.nn.ModuleList)
            and len(child) == getattr(model.config, "num_hidden_layers", None)
        ]
        mlp = getattr(layers[0][-1], "mlp", None) if len(layers) == 1 else None
        self._hooks = []
        if mlp is not None:
            self._hooks.append(mlp.register_forward_pre_hook(self._before))
            self._hooks.append(mlp.register_forward_hook(self._after))

    def remove(self) -> None:
        """Remove the hooks from the model."""
        for hook in self._hooks:
            hook.remove()

    def _before(self, _: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if self.rows is None:
            return None
        self._shape = args[0].shape
        return (_select(args[0], self.rows), *args[1:])

    def _after(self, _: Any, args: tuple[Any, ...], output: Any) -> Any:
        if self.rows is None:
            return None
        if not isinstance(output, Tensor):
            raise packed_attention.UnsupportedModelError("an MLP that returns more than its output")
        full = output.new_zeros(self._shape)
        full.flatten(0, -2).index_copy_(0, self.rows.to(full.device), output[0])
        return full


@contextmanager
def _selected_rows(mlp: _SelectiveLastMlp | None, rows: Tensor) -> Iterator[None]:
    if mlp is None:
        yield
        return
    mlp.rows = rows
    try:
        yield
    finally:
        mlp.rows = None
