"""Hashes: of JSON values, and of files too large to be read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

_MIB = 1 << 20
_SAMPLES = 64
_BLOCK = 1 << 16

GGUF_HEAD = 32 * _MIB
"""Bytes at the start of a GGUF file that hold its settings, tokenizer and chat template."""


def canonical_json(value: object) -> bytes:
    """JSON that is the same for equal values: what hashes are computed over."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return text.encode("ascii")


def sampled_hash(path: Path) -> str:
    """SHA-256 over size, first MiB (GGUF: 32 MiB), last MiB, and 64 blocks of 64 KiB between.

    The blocks are evenly spaced, so every tensor of a transformer's larger than 1/64 of the
    file is touched. It distinguishes trained checkpoints, which differ everywhere; it is no
    protection against a forged file.
    """
    size = path.stat().st_size
    head = GGUF_HEAD if path.suffix == ".gguf" else _MIB
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(head))
        rest = size - head
        if rest <= _SAMPLES * _BLOCK + _MIB:
            digest.update(file.read())
            return digest.hexdigest()
        for sample in range(_SAMPLES):
            file.seek(head + (rest - _MIB) * sample // _SAMPLES)
            digest.update(file.read(_BLOCK))
        file.seek(size - _MIB)
        digest.update(file.read())
    return digest.hexdigest()
