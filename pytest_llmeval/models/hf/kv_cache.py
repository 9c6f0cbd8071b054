"""Keys and values of texts that grow side by side: a row each, all of one capacity.

Everything is written in place. Rows in use stand without gaps from the first on; the last one
moves where a row becomes free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pytest_llmeval.models.hf.packed_attention import KeysValues
from pytest_llmeval.models.hf.packed_attention import merge
from pytest_llmeval.models.hf.packed_attention import with_log_sum_exp

# Columns are cleared so many at a time.
_CLEARED = 64


class RowCache:
    """``like``: of every layer, keys and values whose heads, sizes and dtype are taken over."""

    def __init__(self, like: Sequence[KeysValues], rows: int, capacity: int) -> None:
        def room(x: Tensor) -> Tensor:
            return x.new_empty(rows, x.shape[1], capacity, x.shape[3])

        self.layers: list[KeysValues] = [(room(keys), room(values)) for keys, values in like]
        self.lengths: list[int] = []
        self._capacity = capacity
        self._clear = 0

    def reach(self, columns: int) -> None:
        """Make sure that the first columns hold numbers in every row.

        What is masked out is still multiplied, and memory that nobody has written may hold NaN.
        It is cleared as it comes into use: what is never used is then never taken from the system.
        """
        if columns <= self._clear:
            return
        end = min(self._capacity, -(-columns // _CLEARED) * _CLEARED)
        for layer in self.layers:
            for x in layer:
                x[:, :, self._clear : end] = 0
        self._clear = end

    def append(self, kept: Sequence[KeysValues], begin: int, end: int) -> None:
        """Begin a row with some columns of ``kept``, which has the shape (1, heads, …, size)."""
        row, length = len(self.lengths), end - begin
        self.reach(length)
        for (keys, values), (new_keys, new_values) in zip(self.layers, kept, strict=True):
            keys[row, :, :length] = new_keys[0, :, begin:end]
            values[row, :, :length] = new_values[0, :, begin:end]
        self.lengths.append(length)

    def drop(self, row: int) -> None:
        """Free a row; the last one takes its place."""
        length = self.lengths.pop()
        last = len(self.lengths)
        if row != last:
            for keys, values in self.layers:
                keys[row, :, :length] = keys[last, :, :length]
                values[row, :, :length] = values[last, :, :length]
            self.lengths[row] = length

    def grown(self) -> None:
        """Every row holds one token more, which a step has written."""
        self.lengths = [length + 1 for length in self.lengths]


@dataclass(frozen=True, slots=True)
class Shared:
    """A prefix and the rows that begin with it (None: all of them)."""

    kept: list[KeysValues]
    rows: Tensor | None


@dataclass(frozen=True, slots=True)
class Step:
    """Attention of one more token of every row: to a shared prefix, to the row, and to itself.

    The prefix is attended to by all of its rows in one product, and its keys and values are
    read once, however many rows there are. ``places``: (rows,), where each token is written.
    ``longest``: columns to look at. ``mask``: 0 or −inf, of shape (rows, 1, 1, longest), or
    None where all rows are of one length.
    """

    layers: list[KeysValues]
    places: Tensor
    longest: int
    mask: Tensor | None
    shared: tuple[Shared, ...]

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """See ``attention.Plan``; the tokens are one of each row."""
        keys, values = self.layers[layer]
        rows, heads = query.shape[2], query.shape[1]
        key_heads = key.shape[1]
        every = torch.arange(rows, device=query.device)
        keys[every, :, self.places] = key[0].transpose(0, 1)
        values[every, :, self.places] = value[0].transpose(0, 1)
        # Query heads that share a key head stand where tokens do: keys are read once for them.
        folded = query[0].transpose(0, 1).reshape(rows, key_heads, heads // key_heads, -1)
        out, lse = with_log_sum_exp(
            folded,
            keys[:rows, :, : self.longest],
            values[:rows, :, : self.longest],
            scale,
            self.mask,
        )
        for prefix in self.shared:
            if prefix.rows is None:
                out = merge(out, lse, *_to_prefix(folded, prefix.kept[layer], scale))
            else:
                at = prefix.rows
                out[at] = merge(
                    out[at], lse[at], *_to_prefix(folded[at], prefix.kept[layer], scale)
                )
        return out.reshape(1, rows, heads, -1)


def _to_prefix(query: Tensor, kept: KeysValues, scale: float) -> tuple[Tensor, Tensor]:
    """Attention of (rows, heads, queries, size) to one row of keys: as if all were its tokens."""
    rows, heads, queries, _ = query.shape
    flat = query.transpose(0, 1).reshape(1, heads, rows * queries, -1)
    out, lse = with_log_sum_exp(flat, *kept, scale)
    return (
        out.view(heads, rows, queries, -1).transpose(0, 1),
        lse.view(heads, rows, queries).transpose(0, 1),
    )
