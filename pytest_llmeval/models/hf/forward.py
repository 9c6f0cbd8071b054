"""Forward passes: packed behind a shared prefix, or every row in full.

They give the scores of choices, and the first and next logits of texts.
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
from pytest_llmeval.models.hf.batching import Scored
from pytest_llmeval.models.hf.batching import Segment
from pytest_llmeval.models.hf.batching import common_length
from pytest_llmeval.models.hf.batching import segment_of
from pytest_llmeval.models.hf.packed_attention import KeysValues
from pytest_llmeval.models.hf.packed_attention import Layout
from pytest_llmeval.models.hf.packed_attention import Plan

# Rows of logits turned into log-probabilities at a time: 128 × 50,000 floats are 26 MB.
_ROWS = 128

Scores = list[list[float]]  # of each question, the log-probability of each choice


class FullForward:
    """Every row of a question computed by itself, right padded. Serves any causal model."""

    def __init__(self, model: Any, device: torch.device) -> None:
        self._model = model
        self._device = device
        self._head = _RowsOfHead(model)

    def score(self, questions: Sequence[Question]) -> Scores:
        """Of each question, the log-probability of each choice."""
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
                Scored(rows[row[:-1]] * longest + place - 1, row[place], choice)
                for choice, (row, start) in enumerate(
                    zip(question.rows, question.starts, strict=True)
                )
                for place in range(start, len(row))
            ]
            for question in questions
        ]
        with torch.inference_mode():
            return _sum_up(
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
    """TokenUsage that were read, with the keys and values of every layer."""

    tokens: tuple[int, ...]
    kept: list[KeysValues]

    def first(self, length: int) -> list[KeysValues] | None:
        """Keys and values of the first tokens; nothing is copied."""
        if length == 0:
            return None
        return [(keys[:, :, :length], values[:, :, :length]) for keys, values in self.kept]


class PackedForward:
    """Questions in one row without padding behind a prefix that stays alive between calls.

    ``trims``: the last layer's MLP, too, sees only the needed positions.
    """

    def __init__(self, model: Any, device: torch.device, *, trims: bool = True) -> None:
        packed_attention.register()
        self._model = model
        self._device = device
        self._head = _RowsOfHead(model)
        self._mlp = _RowsOfLastMlp(model) if trims else None
        self._merges = packed_attention.can_merge(device)
        self._live = Prefix((), [])

    @property
    def pads(self) -> bool:
        """Whether attention pads the questions of a batch to their longest."""
        return not self._merges

    def shared_with_live(self, tokens: tuple[int, ...]) -> int:
        """How many leading tokens the live prefix already holds."""
        return common_length([tokens, self._live.tokens])

    def read(self, tokens: tuple[int, ...]) -> None:
        """Make ``tokens`` the beginning of the live prefix, computing only what is new."""
        shared = self.shared_with_live(tokens)
        if shared == len(tokens):
            return
        known = self._live.first(shared)
        new = tokens[shared:]
        segment = Segment(new, tuple(range(shared, len(tokens))), (0,) * len(new), (), len(new))
        captured: list[KeysValues] = []
        with torch.inference_mode():
            self._forward([segment], known, shared, torch.empty(0, dtype=torch.long), captured)
            if known is not None:
                captured = [
                    (torch.cat([old[0], own[0]], dim=2), torch.cat([old[1], own[1]], dim=2))
                    for old, own in zip(known, captured, strict=True)
                ]
            else:
                # Out of the projections' output, so that attention reads them in one piece.
                captured = [(keys.contiguous(), values.contiguous()) for keys, values in captured]
        self._live = Prefix(tokens, captured)

    def kept(self, tokens: tuple[int, ...]) -> list[KeysValues] | None:
        """Keys and values of a prefix, which is read where it is not live; None of an empty one."""
        self.read(tokens)
        return self._live.first(len(tokens))

    def begin(
        self, rows: Sequence[tuple[int, ...]], prefix: tuple[int, ...]
    ) -> tuple[Tensor, list[KeysValues]]:
        """Read rows that go on after the prefix: what follows each, and what they leave behind.

        Logits of shape (rows, vocabulary), then of every layer the keys and values of the rows'
        own tokens, one row after the other, of shape (1, heads, tokens, size).
        """
        seen = len(prefix)
        segments = [
            Segment(row, tuple(range(seen, seen + len(row))), (0,) * len(row), (), len(row))
            for row in rows
        ]
        last = torch.tensor(list(itertools.accumulate(map(len, rows)))) - 1
        captured: list[KeysValues] = []
        with torch.inference_mode():
            logits = self._forward(segments, self.kept(prefix), seen, last, captured)
        return logits, captured

    def step(self, tokens: Sequence[int], positions: Sequence[int], plan: Plan) -> Tensor:
        """Logits after one more token of every row, of shape (rows, vocabulary)."""
        with torch.inference_mode(), packed_attention.planned(self._model, plan):
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
        """Leave the model as it was found."""
        self.forget()
        if self._mlp is not None:
            self._mlp.remove()

    def score(self, questions: Sequence[Question], prefix: tuple[int, ...] = ()) -> Scores:
        """Of each question, the log-probability of each choice; all begin with ``prefix``."""
        self.read(prefix)
        segments = [segment_of(question, len(prefix)) for question in questions]
        offsets = itertools.accumulate((len(segment.tokens) for segment in segments), initial=0)
        scored = [
            [item._replace(node=item.node + offset) for item in segment.scored]
            for segment, offset in zip(segments, offsets, strict=False)
        ]
        with torch.inference_mode():
            return _sum_up(
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
        layout = Layout(
            spans=spans,
            masks=masks,
            prefix=prefix,
            captured=captured,
            side_by_side=None
            if self._merges
            else packed_attention.side_by_side(spans, masks, seen, self._device),
        )
        rows = needed.to(self._device)
        with packed_attention.planned(self._model, layout), _narrowed(self._mlp, rows):
            return self._head.logits(
                rows,
                input_ids=tokens.to(self._device),
                position_ids=positions.to(self._device),
            )


def _mask(segment: Segment, dtype: torch.dtype) -> Tensor | None:
    """What the tokens of a question see: earlier ones, on the trunk or on their own branch."""
    if segment.is_chain:
        return None
    branch = torch.tensor(segment.branch_of)
    sees = (branch[:, None] == branch) | (branch == 0)
    hidden = ~sees.tril()
    return torch.zeros(hidden.shape, dtype=dtype).masked_fill_(hidden, -torch.inf)[None, None]


def _sum_up(scored: Sequence[Sequence[Scored]], choices: Sequence[int], logits_at: Any) -> Scores:
    """Sum the log-probabilities of the scored tokens by question and choice.

    ``logits_at`` is given the distinct nodes, ascending, and returns logits of shape
    (nodes, vocabulary). Log-softmax is computed in float32, whatever the model's dtype.
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
    for begin, wanted in itertools.groupby(by_row, key=lambda item: item[0] // _ROWS * _ROWS):
        chunk = torch.log_softmax(logits[begin : begin + _ROWS].float(), dim=-1)
        at = torch.tensor([[row - begin, token] for row, token, _, _ in wanted])
        at = at.to(chunk.device)
        values.append(chunk[at[:, 0], at[:, 1]])
    sums = [[0.0] * count for count in choices]
    for (_, _, question, choice), value in zip(by_row, torch.cat(values).tolist(), strict=True):
        sums[question][choice] += value
    return sums


class _RowsOfHead:
    """Runs a model so that its output head sees only the positions that are asked for.

    A hook before the head does it, because not every architecture has ``logits_to_keep``.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._head = model.get_output_embeddings()

    def logits(self, rows: Tensor, **inputs: Tensor) -> Tensor:
        """Logits of shape (rows, vocabulary); ``rows`` index the flattened positions."""
        hook = None
        if self._head is not None:
            hook = self._head.register_forward_pre_hook(
                lambda _, args: (args[0].flatten(0, -2).index_select(0, rows)[None], *args[1:])
            )
        try:
            logits: Tensor = self._model(**inputs, use_cache=False, return_dict=True).logits
        finally:
            if hook is not None:
                hook.remove()
        logits = logits.flatten(0, -2)
        if hook is None:
            return logits.index_select(0, rows)
        return logits


class _RowsOfLastMlp:
    """Lets the last layer's MLP see only some positions; nothing reads its output elsewhere."""

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
        """Take the hooks off the model."""
        for hook in self._hooks:
            hook.remove()

    def _before(self, _: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if self.rows is None:
            return None
        self._shape = args[0].shape
        return (args[0].flatten(0, -2).index_select(0, self.rows)[None], *args[1:])

    def _after(self, _: Any, args: tuple[Any, ...], output: Any) -> Any:
        if self.rows is None:
            return None
        if not isinstance(output, Tensor):
            raise packed_attention.UnsupportedModelError("an MLP that returns more than its output")
        full = output.new_zeros(self._shape)
        full.flatten(0, -2).index_copy_(0, self.rows, output[0])
        return full


@contextmanager
def _narrowed(mlp: _RowsOfLastMlp | None, rows: Tensor) -> Iterator[None]:
    if mlp is None:
        yield
        return
    mlp.rows = rows
    try:
        yield
    finally:
        mlp.rows = None
