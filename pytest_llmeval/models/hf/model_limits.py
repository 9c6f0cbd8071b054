"""Limits of a model and of the memory that its batches may take."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import sys
from pathlib import Path
from typing import Any

import torch

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


# TokenUsage computed at a time. On a CPU more does not raise the speed of matrix products and falls
# out of the caches; a GPU wants to be filled.
_BATCH_TOKENS = {"cpu": 1024}
_BATCH_TOKENS_ELSEWHERE = 16_384

# Number of tokens whose copied keys and values take the memory that computing one token does.
KEYS_PER_TOKEN = 16


def default_budget(device: torch.device) -> int:
    """The number of tokens to compute at a time on a device."""
    return _BATCH_TOKENS.get(device.type, _BATCH_TOKENS_ELSEWHERE)


def worker() -> tuple[int, int]:
    """Number of this process among the xdist workers, and how many there are; else (0, 1)."""
    name = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    number = name.removeprefix("gw")
    count = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    return int(number) if number.isdecimal() else 0, int(count) if count.isdecimal() else 1


def available(device: torch.device) -> int | None:
    """Bytes free on a device, for each of the workers on it; None where nobody can tell."""
    _, workers = worker()
    if device.type == "cuda":
        free_bytes = int(torch.cuda.mem_get_info(device)[0])
        return free_bytes // -(-workers // torch.cuda.device_count())
    if device.type == "cpu":
        with contextlib.suppress(OSError):
            found = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text())
            return int(found[1]) * 1024 // workers if found else None
    return None


def free(device: torch.device) -> None:
    """Give back what nothing refers to any more."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on whatever device."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(
        words in text for words in ("out of memory", "can't allocate memory", "not enough memory")
    )


def reason_of(error: Any) -> str:
    """An error in one line."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"
