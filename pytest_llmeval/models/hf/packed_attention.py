"""Attention over packed questions: every token sees the prefix and its own question, no other.

All questions of a batch stand in one row of shape (1, tokens), without padding, behind a prefix
whose keys and values were computed once and are shared by reference. The function is plugged
into transformers' attention interface, so it serves every architecture that uses it, and it
takes the prefix' keys and values itself: transformers' caches are not involved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right

from pytest_llmeval.core import LlmevalError

NAME = "llmeval_packed"

KeysValues = tuple[Tensor, Tensor]

# Arguments of the interface that change what attention computes and are not served here.
_UNSERVED = ("softcap", "s_aux", "sinks", "position_bias", "head_mask", "cross_attention_states")

# The fused CPU kernel behind scaled_dot_product_attention. It is called by its own name because
# only so does it tell the log-sum-exp, which merging two attentions needs.
_flash: Any = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)


def can_merge(device: torch.device) -> bool:
    """Whether the questions need not be padded: the kernel for it exists on this device."""
    return device.type == "cpu" and _flash is not None


class UnsupportedModelError(LlmevalError):
    """A model whose computation cannot be reproduced here, such as attention with sinks."""


class Plan(Protocol):
    """How the tokens of one row attend."""

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """(1, heads, tokens, size) → (1, tokens, heads, size)."""
        ...


@dataclass(frozen=True, slots=True)
class Layout:
    """How the tokens of one packed row belong together.

    ``spans``: begin and end of each question. ``masks``: per question what may be seen, as 0 or
    −inf of shape (1, 1, length, length), or None for plain causal attention. ``prefix``: per
    layer, keys and values of shape (1, heads, prefix, size), or None. ``captured``: where to put
    the row's own keys and values, or None.
    """

    spans: tuple[tuple[int, int], ...]
    masks: tuple[Tensor | None, ...]
    prefix: list[KeysValues] | None = None
    captured: list[KeysValues] | None = None
    side_by_side: SideBySide | None = None

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """See ``Plan``."""
        if self.captured is not None:
            if layer != len(self.captured):
                raise UnsupportedModelError("layers that do not follow each other")
            self.captured.append((key, value))
        prefix = self.prefix[layer] if self.prefix is not None else None
        if self.side_by_side is None:
            return _merged(query, key, value, prefix, self, scale)
        return _gathered(query, key, value, prefix, self.side_by_side, scale)


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Questions as the rows of a padded batch, for devices that prefer it.

    ``gather``: (questions, longest), which token stands where, padded with any. ``places``:
    (tokens,), where in the flattened batch a token is found again. ``mask``: 0 or −inf of shape
    (questions, 1, longest, prefix + longest), or None for plain causal attention.
    """

    gather: Tensor
    places: Tensor
    mask: Tensor | None


def side_by_side(
    spans: tuple[tuple[int, int], ...],
    masks: tuple[Tensor | None, ...],
    seen: int,
    device: torch.device,
) -> SideBySide:
    """The padded batch of these questions behind a prefix of ``seen`` tokens."""
    begins = torch.tensor([begin for begin, _ in spans])
    lengths = torch.tensor([end - begin for begin, end in spans])
    longest = int(lengths.max())
    column = torch.arange(longest)
    real = column < lengths[:, None]
    gather = begins[:, None] + torch.minimum(column, lengths[:, None] - 1)
    places = real.flatten().nonzero().flatten()
    mask = None
    special = [(number, own) for number, own in enumerate(masks) if own is not None]
    if special:
        dtype = special[0][1].dtype
        causal = torch.full((longest, longest), -torch.inf, dtype=dtype).triu(1)
        mask = causal.repeat(len(spans), 1, 1)
        for number, own in special:
            length = own.shape[-1]
            mask[number, :length, :length] = own[0, 0]
        mask = F.pad(mask, (seen, 0)).unsqueeze(1).to(device)
    return SideBySide(gather.to(device), places.to(device), mask)


_plan: Plan | None = None


@contextmanager
def planned(model: Any, plan: Plan) -> Iterator[None]:
    """Within the context the model's attention follows the plan."""
    global _plan
    config = model.config
    before = config._attn_implementation
    config._attn_implementation = NAME
    _plan = plan
    try:
        yield
    finally:
        config._attn_implementation = before
        _plan = None


def register() -> None:
    """Make the function known to transformers.

    No mask function is registered beside it: transformers then makes no masks at all, as for
    other backends that bring their own.
    """
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, attend)


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attention as transformers calls it: (1, heads, tokens, size) → (1, tokens, heads, size).

    Raises UnsupportedModelError where the model wants more than plain attention.
    """
    asked = [name for name in _UNSERVED if options.get(name) is not None]
    if _plan is None or asked or query.shape[0] != 1 or query.shape[2] != key.shape[2]:
        raise UnsupportedModelError(f"attention with {', '.join(asked) or 'other shapes'}")
    scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
    return _plan.attend(module.layer_idx, query, key, value, scale), None


def with_log_sum_exp(
    query: Tensor, key: Tensor, value: Tensor, scale: float, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Attention without causality, and the logarithm of each softmax' denominator.

    All of shape (batch, heads, tokens, size); the logarithm has no size. For few queries: on
    devices without the fused kernel the scores are written out.
    """
    if can_merge(query.device):
        out, denominator = _flash(query, key, value, 0.0, False, attn_mask=mask, scale=scale)
        return out, denominator
    scores = (query @ key.transpose(-1, -2)).float() * scale
    if mask is not None:
        scores = scores + mask
    return scores.softmax(-1).to(value.dtype) @ value, scores.logsumexp(-1)


def merge(
    own: Tensor, own_lse: Tensor, other: Tensor, other_lse: Tensor, out: Tensor | None = None
) -> Tensor:
    """The attention over two disjoint sets of keys, from the attention over each.

    Each counts by its share of the denominator of the softmax over all keys.
    """
    share = torch.sigmoid(other_lse - own_lse).unsqueeze(-1).to(own.dtype)
    return torch.lerp(own, other, share, out=out)


def _merged(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    prefix: KeysValues | None,
    layout: Layout,
    scale: float,
) -> Tensor:
    """Prefix once for all tokens, each question for itself, merged by their log-sum-exp.

    Nothing is copied: query heads that share a key head become the batch dimension, over which
    keys and values are expanded with stride 0, and a question is a slice.
    """
    _, heads, tokens, size = query.shape
    key_heads = key.shape[1]
    shared_by = heads // key_heads
    out = query.new_empty(1, tokens, heads, size)

    def fold(x: Tensor) -> Tensor:  # (1, heads, …) → (shared_by, key_heads, …)
        return x[0].view(key_heads, shared_by, tokens, size).transpose(0, 1)

    def expand(x: Tensor) -> Tensor:
        return x.expand(shared_by, -1, -1, -1)

    query, key, value = fold(query), expand(key), expand(value)
    folded_out = fold(out.transpose(1, 2))
    if prefix is not None:
        seen, seen_lse = _flash(
            query, expand(prefix[0]), expand(prefix[1]), 0.0, False, attn_mask=None, scale=scale
        )
    for (begin, end), mask in zip(layout.spans, layout.masks, strict=True):
        at = slice(begin, end)
        own, own_lse = _flash(
            query[:, :, at],
            key[:, :, at],
            value[:, :, at],
            0.0,
            mask is None,
            attn_mask=mask,
            scale=scale,
        )
        if prefix is None:
            folded_out[:, :, at] = own
        else:
            merge(own, own_lse, seen[:, :, at], seen_lse[:, :, at], out=folded_out[:, :, at])
    return out


def _gathered(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    prefix: KeysValues | None,
    batch: SideBySide,
    scale: float,
) -> Tensor:
    """Questions side by side, padded at the end, each with a copy of the prefix before it.

    For GPUs: a copy of the keys is cheap there, many small calls are not, and the fused kernels
    behind scaled_dot_product_attention are used through their official door.
    """
    questions, longest = batch.gather.shape

    def spread(x: Tensor) -> Tensor:  # (1, h, tokens, d) → (questions, h, longest, d)
        rows = x[0].transpose(0, 1).index_select(0, batch.gather.flatten())
        return rows.view(questions, longest, *rows.shape[1:]).transpose(1, 2)

    own_query, own_key, own_value = spread(query), spread(key), spread(value)
    seen = 0
    if prefix is not None:
        seen = prefix[0].shape[2]
        own_key = torch.cat([prefix[0].expand(questions, -1, -1, -1), own_key], dim=2)
        own_value = torch.cat([prefix[1].expand(questions, -1, -1, -1), own_value], dim=2)
    mask: Any = batch.mask
    if mask is None and seen:
        # Padding stands after every real token, so no real token sees it.
        mask = causal_lower_right(longest, seen + longest)
    out = F.scaled_dot_product_attention(
        own_query,
        own_key,
        own_value,
        attn_mask=mask,
        is_causal=mask is None,
        scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return out.transpose(1, 2).flatten(0, 1).index_select(0, batch.places).unsqueeze(0)
