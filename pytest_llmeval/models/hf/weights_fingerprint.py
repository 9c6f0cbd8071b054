"""Fingerprints of models, and chat templates that render the same prompt on every day."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from datetime import datetime
from datetime import tzinfo
from pathlib import Path
from typing import Any
from unittest import mock

from pytest_llmeval.core import ModelError
from pytest_llmeval.core.hashing import GGUF_HEAD
from pytest_llmeval.core.hashing import sampled_hash
from pytest_llmeval.models.hf.spec import DATE_FUNCTION
from pytest_llmeval.models.hf.spec import DEFAULT_DATE
from pytest_llmeval.models.hf.spec import HfSpec
from pytest_llmeval.models.hf.spec import find_snapshot

_PROBE = "{{ strftime_now('%Y-%m-%d') }}"


@contextmanager
def template_clock(day: date) -> Iterator[None]:
    """Make transformers render chat templates as at the beginning of this day.

    Templates of Llama 3.2 and 3.3, Granite, SmolLM3, Mistral Small, gpt-oss and others print the
    current date in the system message. They call ``strftime_now``, which transformers defines with
    the clock (``utils.chat_template_utils``). A variable of that name cannot replace it in every
    release: 4.56 passes a function on to the template, 5.24 converts it to a string.

    Nothing else in the environment of a template reads a clock. Two names of jinja2 are random (the
    filter ``random`` and ``lipsum``); the context seeds the random generator for them.
    """

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Clock:
            return cls(day.year, day.month, day.day, tzinfo=tz)

    templates: Any = importlib.import_module("transformers.utils.chat_template_utils")
    state = random.getstate()
    random.seed(0)
    try:
        with mock.patch.object(templates, "datetime", Clock):
            yield
    finally:
        random.setstate(state)


def check_date(tokenizer: Any, day: date) -> None:
    """Raise ModelError if the chat template of the tokenizer would read another date."""
    if DATE_FUNCTION not in str(tokenizer.chat_template):
        return
    messages = [{"role": "user", "content": ""}]
    with template_clock(day):
        read = tokenizer.apply_chat_template(messages, chat_template=_PROBE, tokenize=False)
    if read != day.isoformat():
        version = importlib.import_module("transformers").__version__
        raise ModelError(
            f"the chat template prints the current date, and transformers {version} returns"
            f" {read!r} instead of {day}: install another release (4.56 to 5.24 work)"
        )


WEIGHTS = frozenset({".safetensors", ".bin", ".pt", ".pth", ".gguf"})
# Small files next to the weights that can change a score: config, tokenizer, chat template.
SETTINGS = frozenset({".json", ".jinja", ".txt", ".model", ".py", ".tiktoken"})

# Files that training leaves next to a checkpoint and that do not affect scores.
_LEFTOVERS = re.compile(r"(trainer_state|training_args|optimizer|scheduler|rng_state|scaler)\b.*")

# Files of a folder in which transformers looks for chat templates.
_TEMPLATES = (
    "tokenizer_config.json",
    "chat_template.json",
    "*.jinja",
    "additional_chat_templates/*.jinja",
)


def fingerprint(spec: HfSpec) -> str:
    """Return 16 hexadecimal digits that identify the model of a spec, without loading weights.

    A folder or a GGUF file is identified by its content: settings, tokenizer and chat template
    in full, weight files by name, size and ``sampled_hash``, so that a checkpoint copied to
    another place stays the same model. A hub name is identified by its cached commit, or by name
    and revision if it is not cached yet. The dtype of the weights is included, and the date if the
    chat template reads it.
    """
    digest = hashlib.sha256()
    if spec.kind == "hub":
        cached = find_snapshot(spec.target, spec.revision)
        _add(digest, "hub", spec.target, cached.commit if cached else spec.revision or "main")
    elif spec.kind == "gguf":
        _add(digest, "weights", sampled_hash(Path(spec.target)))
    else:
        for path in sorted(Path(spec.target).iterdir()):
            if _LEFTOVERS.match(path.name):
                continue
            if path.suffix in WEIGHTS:
                _add(digest, "weights", path.name, sampled_hash(path))
            elif path.suffix in SETTINGS:
                _add(digest, "settings", path.name, hashlib.sha256(path.read_bytes()).hexdigest())
    _add(digest, "dtype", dtype_used(spec))
    # For a model that is not cached yet, only a date chosen by the user: the default never changes.
    if (spec.day or reads_date(spec)) and (day := template_date(spec)):
        _add(digest, "date", day)
    return digest.hexdigest()[:16]


def template_date(spec: HfSpec) -> str:
    """Return the date that the chat template reads (``2024-07-26``); empty if it reads none.

    The template of a hub name that is not cached yet is unknown and may read the date.
    """
    return "" if reads_date(spec) is False else (spec.day or DEFAULT_DATE).isoformat()


def reads_date(spec: HfSpec) -> bool | None:
    """Return whether a chat template reads the date; None for a hub name that is not cached yet."""
    target = Path(spec.target)
    name = DATE_FUNCTION.encode()
    if spec.kind == "gguf":
        with target.open("rb") as file:
            return name in file.read(GGUF_HEAD)
    if spec.kind == "hub":
        cached = find_snapshot(spec.target, spec.revision)
        if cached is None:
            return None
        target = cached.folder
    files = (file for pattern in _TEMPLATES for file in target.glob(pattern))
    return any(name in file.read_bytes() for file in files)


def dtype_used(spec: HfSpec) -> str:
    """Return the dtype of the spec, else float32 on a CPU and bfloat16 elsewhere."""
    if spec.dtype:
        return spec.dtype
    if spec.device:
        return "float32" if spec.device == "cpu" else "bfloat16"
    return "bfloat16" if has_cuda() else "float32"


def has_cuda() -> bool:
    """Return True if a CUDA device is available; imports torch only if it was built for CUDA."""
    module = importlib.util.find_spec("torch")
    if module is None or not module.submodule_search_locations:
        return False
    version = Path(next(iter(module.submodule_search_locations))) / "version.py"
    try:
        built = version.read_text(encoding="utf-8")
    except OSError:
        built = ""
    # Torch for AMD devices also calls them cuda, and sets hip.
    if all(re.search(rf"(?m)^{name}\b.*=\s*None\s*$", built) for name in ("cuda", "hip")):
        return False
    import torch

    return torch.cuda.is_available()


def _add(digest: hashlib._Hash, *parts: str) -> None:
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        digest.update(f"{len(data)}:".encode() + data)
