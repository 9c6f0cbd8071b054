"""Parity with lm-eval, on the same weights, offline. Run by ``tox -e parity``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")


@pytest.fixture(scope="session")
def data(data: Path) -> Path:
    """The folder of public data, from which lm-eval's tasks load their rows as well."""
    pytest.importorskip("lm_eval", reason="lm-eval is not installed; tox -e parity")
    from support import lm_eval_rows

    lm_eval_rows.feed(data)
    return data


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo model as safetensors: both tools read these very weights."""
    from pytest_llmeval.models import demo
    from pytest_llmeval.models.hf.loading import load
    from pytest_llmeval.models.hf.spec import parse_spec

    path = demo.weights()
    if path is None:
        pytest.skip(f"no demo model; {demo.INSTALL}")
    loaded = load(parse_spec(f"{path}?device=cpu&dtype=float32"))
    folder = tmp_path_factory.mktemp("weights") / "demo"
    save(loaded.model, loaded.tokenizer, folder)
    return folder


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Save a model that came from a GGUF file as one that never did."""
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
