"""Hashes of JSON values, and of files too large to be read in full."""

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
    """Return JSON text in ASCII that is equal for equal values, as input of hashes."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return text.encode("ascii")


def sampled_hash(path: Path) -> str:
    """Return the SHA-256 of a file's size and of samples of its content, in hexadecimal.

    The samples are the first MiB (GGUF: 32 MiB), the last MiB and 64 evenly spaced blocks of
    64 KiB between them, so every tensor larger than 1/64 of the file contributes. The hash
    distinguishes trained checkpoints, which differ everywhere; it does not detect a forged file.
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
