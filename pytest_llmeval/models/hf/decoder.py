"""Texts grown side by side by one model: begun behind shared prefixes, then a token at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from pytest_llmeval.models.hf.forward import PackedForward
from pytest_llmeval.models.hf.kv_cache import RowCache
from pytest_llmeval.models.hf.kv_cache import Shared
from pytest_llmeval.models.hf.kv_cache import Step
from pytest_llmeval.models.hf.packed_attention import KeysValues


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
