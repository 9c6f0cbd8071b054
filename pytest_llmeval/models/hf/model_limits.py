"""Limits of a model (context window, attention) and of the memory for its batches."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import sys
from pathlib import Path
from typing import Any

import torch

# From here on, a tokenizer's model_max_length is transformers' placeholder for "unknown".
_KNOWN_LENGTH = 1 << 30

_FULL = "full_attention"
_SLIDING = "sliding_attention"
_CHUNKED = "chunked_attention"


def context_window(config: Any, tokenizer: Any) -> int | None:
    """Return the size of the context window in tokens; None if unlimited or unknown."""
    config = _text_config(config)
    for name in ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            return value
    length = getattr(tokenizer, "model_max_length", None)
    return int(length) if length is not None and length < _KNOWN_LENGTH else None


def end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Return the end tokens of the generation config, and the EOS of the tokenizer."""
    eos = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    if eos is None:
        eos = getattr(_text_config(model.config), "eos_token_id", None)
    ends = eos if isinstance(eos, list | tuple) else [eos]
    return frozenset(int(end) for end in (*ends, tokenizer.eos_token_id) if end is not None)


def packed_reach(model: Any) -> int:
    """Return the maximum number of tokens for which all attention is full and causal.

    0 for other architectures: encoder-decoders, state-space and hybrid models, and models without
    transformers' attention interface. A sliding window or an attention chunk is only an upper
    bound: it does not change the attention of shorter questions.
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
    """Return the configuration of the language model inside a multimodal one."""
    return config.get_text_config() if hasattr(config, "get_text_config") else config


# Tokens per batch. Larger batches are no faster on a CPU and exceed its caches; a GPU needs large
# ones to be utilised.
_BATCH_TOKENS = {"cpu": 1024}
_BATCH_TOKENS_ELSEWHERE = 16_384

# Number of tokens whose keys and values take as much memory as the computation of one token.
KEYS_PER_TOKEN = 16


def default_batch_tokens(device: torch.device) -> int:
    """Return the default number of tokens per batch on a device."""
    return _BATCH_TOKENS.get(device.type, _BATCH_TOKENS_ELSEWHERE)


def xdist_worker() -> tuple[int, int]:
    """Return the number of this xdist worker and the number of workers; (0, 1) without xdist."""
    name = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    number = name.removeprefix("gw")
    count = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    return int(number) if number.isdecimal() else 0, int(count) if count.isdecimal() else 1


def available_memory(device: torch.device) -> int | None:
    """Return the free bytes of a device per worker that uses it; None if unknown."""
    _, workers = xdist_worker()
    if device.type == "cuda":
        free_bytes = int(torch.cuda.mem_get_info(device)[0])
        return free_bytes // -(-workers // torch.cuda.device_count())
    if device.type == "cpu":
        with contextlib.suppress(OSError):
            match = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text())
            return int(match[1]) * 1024 // workers if match else None
    return None


def free_memory(device: torch.device) -> None:
    """Release memory without references, including the cache of CUDA."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def is_out_of_memory(error: BaseException) -> bool:
    """Return True for out-of-memory errors of Python, CUDA and other devices."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(
        words in text for words in ("out of memory", "can't allocate memory", "not enough memory")
    )


def error_summary(error: Any) -> str:
    """Return the type and the first line of an error."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"
