"""Fingerprints: which weights, tokenizer, chat template with its date, revision and dtype.

Render chat templates at a fixed date, so that a prompt is the same on every day.

Templates of Llama 3.2 and 3.3, Granite, SmolLM3, Mistral Small, gpt-oss and others write the current
date into the system message. They call ``strftime_now``, which transformers defines over the clock
(``utils.chat_template_utils``). A variable of that name cannot replace it in every release: 4.56
passes a function on to the template, 5.24 makes a text of it.

Nothing else in a template's environment reads a clock. Two of jinja2's names are random (the filter
``random`` and ``lipsum``); they are the same at every rendering here.
"""

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
from pytest_llmeval.models.hf.spec import DEFAULT_DATE
from pytest_llmeval.models.hf.spec import READS_DATE
from pytest_llmeval.models.hf.spec import Spec
from pytest_llmeval.models.hf.spec import snapshot

_PROBE = "{{ strftime_now('%Y-%m-%d') }}"


@contextmanager
def at(day: date) -> Iterator[None]:
    """Within the context transformers renders chat templates at the beginning of this day."""

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
    """Raise ModelError where the tokenizer's chat template would read another date than this."""
    if READS_DATE not in str(tokenizer.chat_template):
        return
    messages = [{"role": "user", "content": ""}]
    with at(day):
        read = tokenizer.apply_chat_template(messages, chat_template=_PROBE, tokenize=False)
    if read != day.isoformat():
        version = importlib.import_module("transformers").__version__
        raise ModelError(
            f"the chat template writes the current date, and transformers {version} reads {read!r}"
            f" instead of {day}: use another release of it (4.56 to 5.24 are known to work)"
        )


WEIGHTS = frozenset({".safetensors", ".bin", ".pt", ".pth", ".gguf"})
# Small files beside the weights that can move a score: config, tokenizer, chat template.
SETTINGS = frozenset({".json", ".jinja", ".txt", ".model", ".py", ".tiktoken"})

# What training leaves beside a checkpoint and no score depends on.
_LEFTOVERS = re.compile(r"(trainer_state|training_args|optimizer|scheduler|rng_state|scaler)\b.*")

# Where transformers finds chat templates in a folder.
_TEMPLATES = (
    "tokenizer_config.json",
    "chat_template.json",
    "*.jinja",
    "additional_chat_templates/*.jinja",
)


def fingerprint(spec: Spec) -> str:
    """16 hexadecimal digits that identify what the spec would load, without loading weights.

    A folder or a GGUF file is identified by its content: settings, tokenizer and chat template
    in full, weight files by name, size and ``sampled_hash``, so that a checkpoint copied to
    another place stays the same model. A hub name is identified by the commit it stands for in
    the cache, or by name and revision where it is not cached yet. The dtype enters as used, the
    date where the chat template reads it.
    """
    digest = hashlib.sha256()
    if spec.kind == "hub":
        cached = snapshot(spec.target, spec.revision)
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
    # Of a model that is not here yet only a date that was chosen: the default one is the same always.
    if (spec.day or reads_date(spec)) and (day := template_date(spec)):
        _add(digest, "date", day)
    return digest.hexdigest()[:16]


def template_date(spec: Spec) -> str:
    """The date that the chat template reads, as ``2024-07-26``; empty where it reads none.

    Of a hub name that is not cached yet the template is not known: it may read it.
    """
    return "" if reads_date(spec) is False else (spec.day or DEFAULT_DATE).isoformat()


def reads_date(spec: Spec) -> bool | None:
    """Whether a chat template of the model reads the date; None where the model is not here yet."""
    target = Path(spec.target)
    name = READS_DATE.encode()
    if spec.kind == "gguf":
        with target.open("rb") as file:
            return name in file.read(GGUF_HEAD)
    if spec.kind == "hub":
        cached = snapshot(spec.target, spec.revision)
        if cached is None:
            return None
        target = cached.folder
    files = (file for pattern in _TEMPLATES for file in target.glob(pattern))
    return any(name in file.read_bytes() for file in files)


def dtype_used(spec: Spec) -> str:
    """The dtype that the weights will have: as asked, else float32 on CPU, bfloat16 elsewhere."""
    if spec.dtype:
        return spec.dtype
    if spec.device:
        return "float32" if spec.device == "cpu" else "bfloat16"
    return "bfloat16" if has_cuda() else "float32"


def has_cuda() -> bool:
    """Whether a CUDA device can be used. Torch is imported only where it was built for CUDA."""
    found = importlib.util.find_spec("torch")
    if found is None or not found.submodule_search_locations:
        return False
    version = Path(next(iter(found.submodule_search_locations))) / "version.py"
    try:
        built = version.read_text(encoding="utf-8")
    except OSError:
        built = ""
    # Torch for AMD devices calls them cuda, too, and says so under hip.
    if all(re.search(rf"(?m)^{name}\b.*=\s*None\s*$", built) for name in ("cuda", "hip")):
        return False
    import torch

    return torch.cuda.is_available()


def _add(digest: hashlib._Hash, *parts: str) -> None:
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        digest.update(f"{len(data)}:".encode() + data)
