"""Texts grown side by side by one model: begun behind shared prefixes, then a token at a time."""

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

# Number of columns that are cleared at a time.
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

        What is masked out is still multiplied, and uninitialised memory may hold NaN.
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


@dataclass(frozen=True, slots=True, eq=False)
class _Prefix:
    """A prefix that rows are attached to. It stays in memory as long as one of them."""

    tokens: tuple[int, ...]
    kept: list[KeysValues] | None


class _Read(NamedTuple):
    """What reading a prompt gave: logits for the next token, and its own keys and values."""

    tokens: tuple[int, ...]
    prefix: tuple[int, ...]
    logits: Tensor
    kept: list[KeysValues]
    begin: int
    end: int

    def alone(self) -> _Read:
        """The same without what was read beside it."""
        at = slice(self.begin, self.end)
        kept = [(keys[:, :, at].clone(), values[:, :, at].clone()) for keys, values in self.kept]
        return self._replace(
            logits=self.logits.clone(), kept=kept, begin=0, end=self.end - self.begin
        )


class Decoder:
    """Rows of a cache, and the forwards that fill them.

    ``open`` makes room; then rows are added with ``begin``, lengthened with ``step``, taken out
    with ``drop``; ``close`` frees everything but the live prefix, which stays with ``packed``.
    ``like``: keys and values of any tokens, to know their shapes by.
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
        self._last: _Read | None = None
        self._cache = RowCache(self._like, 0, 0)
        self._shared: tuple[Shared, ...] | None = None

    @property
    def bytes_per_token(self) -> int:
        """Memory for the keys and values of one token."""
        return sum(
            x.shape[1] * x.shape[3] * x.element_size() for layer in self._like for x in layer
        )

    def open(self, rows: int, capacity: int) -> None:
        """Make room for rows of ``capacity`` tokens, prefixes not counted."""
        self.close()
        with torch.inference_mode():
            self._cache = RowCache(self._like, rows, capacity)
        self.is_open = True

    def another(self) -> Decoder:
        """A decoder like this one with rows of its own."""
        return Decoder(self._packed, self._device, self._like)

    def close(self) -> None:
        """Free the rows."""
        self.is_open = False
        self._cache = RowCache(self._like, 0, 0)
        self._rows = []
        self._last = self._shared = None

    def begin(self, rows: Sequence[tuple[int, ...]], prefix: tuple[int, ...]) -> Tensor:
        """Add rows, all beginning with ``prefix``; logits after each, (rows, vocabulary).

        Equal rows that follow one another, here or in the next call, are read once.
        """
        reads = self._read(rows, prefix)
        known = next((row for row in self._rows if row.tokens == prefix), None)
        shared = known or _Prefix(prefix, self._packed.kept(prefix))
        with torch.inference_mode():
            self._last = reads[-1].alone()
            for read in reads:
                self._cache.append(read.kept, read.begin, read.end)
                self._rows.append(shared)
        self._shared = None
        return torch.stack([read.logits for read in reads])

    def _read(self, rows: Sequence[tuple[int, ...]], prefix: tuple[int, ...]) -> list[_Read]:
        found: dict[tuple[int, ...], _Read] = {}
        if self._last is not None and self._last.prefix == prefix:
            found[self._last.tokens] = self._last
        new = [row for row in dict.fromkeys(rows) if row not in found]
        if new:
            own = [row[len(prefix) :] for row in new]
            logits, kept = self._packed.begin(own, prefix)
            end = 0
            for number, row in enumerate(new):
                begin, end = end, end + len(own[number])
                found[row] = _Read(row, prefix, logits[number], kept, begin, end)
        return [found[row] for row in rows]

    def step(self, tokens: Sequence[int]) -> Tensor:
        """Append a token to every row; logits after each, (rows, vocabulary)."""
        lengths = self._cache.lengths
        places = torch.tensor(lengths, device=self._device)
        longest = max(lengths) + 1
        with torch.inference_mode():
            self._cache.reach(longest)
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
            self._shared = self._attached()
        plan = Step(self._cache.layers, places, longest, mask, self._shared)
        logits = self._packed.step(tokens, positions, plan)
        self._cache.grown()
        return logits

    def _attached(self) -> tuple[Shared, ...]:
        """The prefixes with their rows."""
        found: dict[_Prefix, list[int]] = {}
        for row, prefix in enumerate(self._rows):
            if prefix.kept is not None:
                found.setdefault(prefix, []).append(row)
        return tuple(
            Shared(
                prefix.kept,
                None if len(rows) == len(self._rows) else torch.tensor(rows, device=self._device),
            )
            for prefix, rows in found.items()
            if prefix.kept is not None
        )

    def drop(self, row: int) -> None:
        """Take out a row; the last one takes its place."""
        with torch.inference_mode():
            self._cache.drop(row)
        last = self._rows.pop()
        if row != len(self._rows):
            self._rows[row] = last
        self._shared = None

    def keep(self, count: int) -> None:
        """Take out all rows but the first ``count``."""
        while len(self._rows) > count:
            self.drop(len(self._rows) - 1)
