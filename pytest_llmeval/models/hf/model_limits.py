"""What a model's configuration says about how much it reads and how it attends."""

from __future__ import annotations

import sys
from typing import Any

# Below this a tokenizer's model_max_length is a bound; above it is transformers' "not known".
_KNOWN_LENGTH = 1 << 30

_FULL = "full_attention"
_SLIDING = "sliding_attention"
_CHUNKED = "chunked_attention"


def window_of(config: Any, tokenizer: Any) -> int | None:
    """The number of tokens that the model reads at once; None where nothing bounds it."""
    config = _text_config(config)
    for name in ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            return value
    length = getattr(tokenizer, "model_max_length", None)
    return int(length) if length is not None and length < _KNOWN_LENGTH else None


def ends_of(model: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end a text: those of the generation config, and the tokenizer's EOS."""
    found = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    if found is None:
        found = getattr(_text_config(model.config), "eos_token_id", None)
    ends = found if isinstance(found, list | tuple) else [found]
    return frozenset(int(end) for end in (*ends, tokenizer.eos_token_id) if end is not None)


def packed_reach(model: Any) -> int:
    """How many tokens a question may have for all its attention to be full and causal.

    0 for architectures that are not of that kind at all: encoder-decoders, state-space and
    hybrid models, and those that do not use transformers' attention interface. A sliding window
    wider than the question changes nothing, so it is only a bound.
    """
    config = _text_config(model.config)
    if (
        getattr(model.config, "is_encoder_decoder", False)
        or getattr(model, "_is_stateful", False)
        or not getattr(model, "_supports_attention_backend", False)
    ):
        return 0
    kinds = set(getattr(config, "layer_types", None) or ())
    if kinds - {_FULL, _SLIDING, _CHUNKED}:
        return 0
    reach = sys.maxsize
    if not kinds or _SLIDING in kinds:
        sliding = getattr(config, "sliding_window", None)
        if _SLIDING in kinds and not isinstance(sliding, int):
            return 0
        if isinstance(sliding, int) and getattr(config, "use_sliding_window", True):
            reach = min(reach, sliding)
    if not kinds or _CHUNKED in kinds:
        chunk = getattr(config, "attention_chunk_size", None)
        if isinstance(chunk, int):
            reach = min(reach, chunk)
    return reach


def _text_config(config: Any) -> Any:
    """The part of a configuration that describes the language model."""
    return config.get_text_config() if hasattr(config, "get_text_config") else config
