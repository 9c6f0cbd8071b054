"""Attention over packed questions: tokens attend to the prefix and to their own question only.

All questions of a batch form one row of shape (1, tokens), without padding, after a prefix whose
keys and values were computed once and are shared by reference. The function is registered in
transformers' attention interface and works with every architecture that uses it. It reads the keys
and values of the prefix directly, without transformers' caches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field
from typing import Any
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right

from pytest_llmeval.core import LlmevalError

NAME = "llmeval_packed"

KeysValues = tuple[Tensor, Tensor]

# Arguments of the interface that change the result of attention and are not supported here.
_UNSUPPORTED = ("softcap", "s_aux", "sinks", "position_bias", "head_mask", "cross_attention_states")

# The fused CPU kernel of scaled_dot_product_attention, called directly because only the kernel
# returns the log-sum-exp, which is needed to merge two attentions.
_flash: Any = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)


def can_merge(device: torch.device) -> bool:
    """Return True if the device has the kernel for attention without padding."""
    return device.type == "cpu" and _flash is not None


class UnsupportedModelError(LlmevalError):
    """Error for a model that needs more than plain attention, such as attention with sinks."""


class AttentionPlan(Protocol):
    """Attention pattern of the tokens of one row."""

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """Compute attention: (1, heads, tokens, size) → (1, tokens, heads, size)."""
        ...


@dataclass(frozen=True, slots=True)
class PackedLayout:
    """Attention pattern of questions that are packed into one row."""

    #: Begin and end of each question.
    spans: tuple[tuple[int, int], ...]
    #: Per question, 0 or −inf of shape (1, 1, length, length); None for causal attention.
    masks: tuple[Tensor | None, ...]
    #: Per layer, keys and values of shape (1, heads, prefix, size).
    prefix: list[KeysValues] | None = None
    #: List that receives the row's own keys and values.
    captured: list[KeysValues] | None = None
    #: None on devices that need no padding.
    padded_batch: PaddedBatch | None = None

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """See ``AttentionPlan``."""
        if self.captured is not None:
            if layer != len(self.captured):
                raise UnsupportedModelError("layers that do not follow each other")
            self.captured.append((key, value))
        prefix = self.prefix[layer] if self.prefix is not None else None
        if self.padded_batch is None:
            return _attend_merged(query, key, value, prefix, self, scale)
        return _attend_padded(query, key, value, prefix, self.padded_batch.on(query.device), scale)


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """Questions as the rows of a padded batch, for devices without the fused CPU kernel."""

    #: (questions, longest), the token at each position; padding may be any token.
    gather: Tensor
    #: (tokens,), the position of each token in the flattened batch.
    places: Tensor
    #: 0 or −inf of shape (questions, 1, longest, prefix + longest); None for causal attention.
    mask: Tensor | None
    #: The same batch on other devices, for a model whose layers are on several.
    copies: dict[torch.device, PaddedBatch] = field(default_factory=dict)

    def on(self, device: torch.device) -> PaddedBatch:
        """Return the batch on a device, copied to it once."""
        if device == self.gather.device:
            return self
        if device not in self.copies:
            mask = None if self.mask is None else self.mask.to(device)
            self.copies[device] = PaddedBatch(
                self.gather.to(device), self.places.to(device), mask, self.copies
            )
        return self.copies[device]


def pad_batch(
    spans: tuple[tuple[int, int], ...],
    masks: tuple[Tensor | None, ...],
    seen: int,
    device: torch.device,
) -> PaddedBatch:
    """Return the padded batch of these questions after a prefix of ``seen`` tokens."""
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
    return PaddedBatch(gather.to(device), places.to(device), mask)


_plan: AttentionPlan | None = None


@contextmanager
def use_plan(model: Any, plan: AttentionPlan) -> Iterator[None]:
    """Make the model's attention follow the plan inside the context."""
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
    """Register the attention function with transformers.

    Without a registered mask function, transformers builds no masks, as for other backends with
    masks of their own.
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
    """Compute attention for transformers: (1, heads, tokens, size) → (1, tokens, heads, size).

    Raises UnsupportedModelError if the model needs more than plain attention.
    """
    unsupported = [name for name in _UNSUPPORTED if options.get(name) is not None]
    if _plan is None or unsupported or query.shape[0] != 1 or query.shape[2] != key.shape[2]:
        raise UnsupportedModelError(f"attention with {', '.join(unsupported) or 'other shapes'}")
    scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
    return _plan.attend(module.layer_idx, query, key, value, scale), None


def with_log_sum_exp(
    query: Tensor, key: Tensor, value: Tensor, scale: float, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return bidirectional attention, and the logarithm of each softmax denominator.

    Arguments and attention are of shape (batch, heads, tokens, size), the logarithm is of shape
    (batch, heads, tokens). Meant for few queries: devices without the fused kernel materialise the
    scores.
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
    """Return the attention over two disjoint sets of keys from the attention over each.

    Each is weighted by its share of the denominator of the softmax over all keys.
    """
    share = torch.sigmoid(other_lse - own_lse).unsqueeze(-1).to(own.dtype)
    return torch.lerp(own, other, share, out=out)


def _attend_merged(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    prefix: KeysValues | None,
    layout: PackedLayout,
    scale: float,
) -> Tensor:
    """Merge attention to the prefix (all tokens at once) with attention within each question.

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


def _attend_padded(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    prefix: KeysValues | None,
    batch: PaddedBatch,
    scale: float,
) -> Tensor:
    """Attend in a batch padded on the right, with a copy of the prefix per question.

    On GPUs, copies of keys are cheap and many small calls are not. The fused kernels are used
    through the public scaled_dot_product_attention.
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
        # Padding follows all tokens, so causal attention excludes it.
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
