"""Batched decoding: rows that start from shared prefixes and grow by one token per step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from pytest_llmeval.models.hf.forward import PackedForward
from pytest_llmeval.models.hf.packed_attention import KeysValues
from pytest_llmeval.models.hf.packed_attention import merge
from pytest_llmeval.models.hf.packed_attention import with_log_sum_exp

# Number of columns to clear at a time.
_CLEARED = 64


class RowCache:
    """Preallocated keys and values of rows with different lengths.

    ``like``: per layer, keys and values that define the number of heads, the head size and the
    dtype. ``capacity``: maximum number of tokens per row.
    """

    def __init__(self, like: Sequence[KeysValues], rows: int, capacity: int) -> None:
        def empty(x: Tensor) -> Tensor:
            return x.new_empty(rows, x.shape[1], capacity, x.shape[3])

        self.layers: list[KeysValues] = [(empty(keys), empty(values)) for keys, values in like]
        self.lengths: list[int] = []
        self._capacity = capacity
        self._cleared = 0

    def clear_to(self, columns: int) -> None:
        """Zero the uninitialised memory of every row up to this number of columns.

        Masked values are still multiplied, and uninitialised memory may contain NaN. Clearing on
        demand avoids that the system allocates memory that is never used.
        """
        if columns <= self._cleared:
            return
        end = min(self._capacity, -(-columns // _CLEARED) * _CLEARED)
        for layer in self.layers:
            for x in layer:
                x[:, :, self._cleared : end] = 0
        self._cleared = end

    def append(self, source: Sequence[KeysValues], begin: int, end: int) -> None:
        """Add a row with the columns ``begin:end`` of ``source``, of shape (1, heads, …, size)."""
        row, length = len(self.lengths), end - begin
        self.clear_to(length)
        for (keys, values), (new_keys, new_values) in zip(self.layers, source, strict=True):
            keys[row, :, :length] = new_keys[0, :, begin:end]
            values[row, :, :length] = new_values[0, :, begin:end]
        self.lengths.append(length)

    def drop(self, row: int) -> None:
        """Remove a row; the last row takes its index."""
        length = self.lengths.pop()
        last = len(self.lengths)
        if row != last:
            for keys, values in self.layers:
                keys[row, :, :length] = keys[last, :, :length]
                values[row, :, :length] = values[last, :, :length]
            self.lengths[row] = length

    def advance(self) -> None:
        """Increment the length of every row after a step has written a token to it."""
        self.lengths = [length + 1 for length in self.lengths]


@dataclass(frozen=True, slots=True)
class AttachedPrefix:
    """Keys and values of a prefix, and the rows that start with it (None: all rows)."""

    keys_values: list[KeysValues]
    rows: Tensor | None


@dataclass(frozen=True, slots=True)
class StepAttention:
    """Attention of the next token of every row: to a shared prefix, to its row, and to itself.

    All rows of a prefix attend to it in one product, which reads its keys and values once.
    """

    layers: list[KeysValues]
    #: (rows,), the column that each token is written to.
    places: Tensor
    #: Number of columns to attend to.
    longest: int
    #: 0 or −inf, of shape (rows, 1, 1, longest); None if all rows have the same length.
    mask: Tensor | None
    shared: tuple[AttachedPrefix, ...]

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """See ``AttentionPlan``; there is one token per row."""
        keys, values = self.layers[layer]
        rows, heads = query.shape[2], query.shape[1]
        key_heads = key.shape[1]
        # The layers of a model may be on several devices.
        device = query.device
        places = self.places.to(device)
        mask = None if self.mask is None else self.mask.to(device)
        every = torch.arange(rows, device=device)
        keys[every, :, places] = key[0].transpose(0, 1)
        values[every, :, places] = value[0].transpose(0, 1)
        # Query heads that share a key head take the token dimension, so that keys are read once.
        folded = query[0].transpose(0, 1).reshape(rows, key_heads, heads // key_heads, -1)
        out, lse = with_log_sum_exp(
            folded,
            keys[:rows, :, : self.longest],
            values[:rows, :, : self.longest],
            scale,
            mask,
        )
        for prefix in self.shared:
            if prefix.rows is None:
                out = merge(out, lse, *_attend_to_prefix(folded, prefix.keys_values[layer], scale))
            else:
                at = prefix.rows.to(device)
                out[at] = merge(
                    out[at],
                    lse[at],
                    *_attend_to_prefix(folded[at], prefix.keys_values[layer], scale),
                )
        return out.reshape(1, rows, heads, -1)


def _attend_to_prefix(
    query: Tensor, keys_values: KeysValues, scale: float
) -> tuple[Tensor, Tensor]:
    """Compute the attention of queries (rows, heads, queries, size) to one row of keys.

    The rows are flattened, as if all queries were tokens of the same row.
    """
    rows, heads, queries, _ = query.shape
    flat = query.transpose(0, 1).reshape(1, heads, rows * queries, -1)
    out, lse = with_log_sum_exp(flat, *keys_values, scale)
    return (
        out.view(heads, rows, queries, -1).transpose(0, 1),
        lse.view(heads, rows, queries).transpose(0, 1),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Prefix:
    """Prefix of one or more rows, in memory as long as one of them refers to it."""

    tokens: tuple[int, ...]
    keys_values: list[KeysValues] | None


class _PromptState(NamedTuple):
    """Result of a forward pass over a prompt: logits of the next token, keys and values.

    ``keys_values`` may hold several prompts; this one has the columns ``begin:end``.
    """

    tokens: tuple[int, ...]
    prefix: tuple[int, ...]
    logits: Tensor
    keys_values: list[KeysValues]
    begin: int
    end: int

    def copy(self) -> _PromptState:
        """Return a copy that does not keep the tensors of the batch alive."""
        at = slice(self.begin, self.end)
        own = [
            (keys[:, :, at].clone(), values[:, :, at].clone()) for keys, values in self.keys_values
        ]
        return self._replace(
            logits=self.logits.clone(), keys_values=own, begin=0, end=self.end - self.begin
        )


class Decoder:
    """Rows of a key-value cache, and the forward passes that fill them.

    ``open`` allocates the rows, ``begin`` adds rows, ``step`` appends a token to each, ``drop``
    removes one. ``close`` frees everything except the live prefix, which belongs to ``packed``.
    ``like``: keys and values of any tokens, for their shapes.
    """

    def __init__(
        self,
        packed: PackedForward,
        device: torch.device,
        like: Sequence[KeysValues] | None = None,
    ) -> None:
        self._packed = packed
        self._device = device
        self._like = packed.begin([(0,)], ())[1] if like is None else like
        self.is_open = False
        self._rows: list[_Prefix] = []
        self._last: _PromptState | None = None
        self._cache = RowCache(self._like, 0, 0)
        self._shared: tuple[AttachedPrefix, ...] | None = None

    @property
    def bytes_per_token(self) -> int:
        """Bytes of the keys and values of one token, over all layers."""
        return sum(
            x.shape[1] * x.shape[3] * x.element_size() for layer in self._like for x in layer
        )

    def open(self, rows: int, capacity: int) -> None:
        """Allocate rows of ``capacity`` tokens, excluding prefixes."""
        self.close()
        with torch.inference_mode():
            self._cache = RowCache(self._like, rows, capacity)
        self.is_open = True

    def new_empty(self) -> Decoder:
        """Return a decoder of the same model without rows."""
        return Decoder(self._packed, self._device, self._like)

    def close(self) -> None:
        """Free all rows."""
        self.is_open = False
        self._cache = RowCache(self._like, 0, 0)
        self._rows = []
        self._last = self._shared = None

    def begin(self, rows: Sequence[tuple[int, ...]], prefix: tuple[int, ...]) -> Tensor:
        """Add rows that start with ``prefix``; return their next logits, (rows, vocabulary).

        Equal consecutive rows, within a call or over two calls, are computed once.
        """
        states = self._read(rows, prefix)
        existing = next((row for row in self._rows if row.tokens == prefix), None)
        shared = existing or _Prefix(prefix, self._packed.keys_values(prefix))
        with torch.inference_mode():
            self._last = states[-1].copy()
            for state in states:
                self._cache.append(state.keys_values, state.begin, state.end)
                self._rows.append(shared)
        self._shared = None
        return torch.stack([state.logits for state in states])

    def _read(self, rows: Sequence[tuple[int, ...]], prefix: tuple[int, ...]) -> list[_PromptState]:
        states: dict[tuple[int, ...], _PromptState] = {}
        if self._last is not None and self._last.prefix == prefix:
            states[self._last.tokens] = self._last
        new = [row for row in dict.fromkeys(rows) if row not in states]
        if new:
            own = [row[len(prefix) :] for row in new]
            logits, keys_values = self._packed.begin(own, prefix)
            end = 0
            for number, row in enumerate(new):
                begin, end = end, end + len(own[number])
                states[row] = _PromptState(row, prefix, logits[number], keys_values, begin, end)
        return [states[row] for row in rows]

    def step(self, tokens: Sequence[int]) -> Tensor:
        """Append a token to every row; return their next logits, (rows, vocabulary)."""
        lengths = self._cache.lengths
        places = torch.tensor(lengths, device=self._device)
        longest = max(lengths) + 1
        with torch.inference_mode():
            self._cache.clear_to(longest)
        mask = None
        if min(lengths) + 1 < longest:
            dtype = self._like[0][0].dtype
            hidden = torch.arange(longest, device=self._device) > places[:, None]
            mask = torch.zeros(hidden.shape, dtype=dtype, device=self._device)
            mask = mask.masked_fill_(hidden, -torch.inf)[:, None, None]
        positions = [
            len(prefix.tokens) + length for prefix, length in zip(self._rows, lengths, strict=True)
        ]
        if self._shared is None:
            self._shared = self._attached_prefixes()
        plan = StepAttention(self._cache.layers, places, longest, mask, self._shared)
        logits = self._packed.step(tokens, positions, plan)
        self._cache.advance()
        return logits

    def _attached_prefixes(self) -> tuple[AttachedPrefix, ...]:
        """Return every distinct prefix with the indices of its rows."""
        rows_of: dict[_Prefix, list[int]] = {}
        for row, prefix in enumerate(self._rows):
            if prefix.keys_values is not None:
                rows_of.setdefault(prefix, []).append(row)
        return tuple(
            AttachedPrefix(
                prefix.keys_values,
                None if len(rows) == len(self._rows) else torch.tensor(rows, device=self._device),
            )
            for prefix, rows in rows_of.items()
            if prefix.keys_values is not None
        )

    def drop(self, row: int) -> None:
        """Remove a row; the last row takes its index."""
        with torch.inference_mode():
            self._cache.drop(row)
        last = self._rows.pop()
        if row != len(self._rows):
            self._rows[row] = last
        self._shared = None

    def truncate(self, count: int) -> None:
        """Remove all rows but the first ``count``."""
        while len(self._rows) > count:
            self.drop(len(self._rows) - 1)
