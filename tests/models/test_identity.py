"""A fingerprint changes with whatever can change an answer, and with nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_llmeval.core.hashing import sampled_hash
from pytest_llmeval.models.hf import weights_fingerprint
from pytest_llmeval.models.hf.spec import parse_spec
from pytest_llmeval.models.hf.weights_fingerprint import fingerprint


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint"
    path.mkdir()
    (path / "config.json").write_text('{"hidden_size": 8}')
    (path / "tokenizer.json").write_text("{}")
    (path / "chat_template.jinja").write_text("{{ messages }}")
    (path / "model.safetensors").write_bytes(bytes(range(256)) * 64)
    return path


def of(path: Path, options: str = "?device=cpu") -> str:
    return fingerprint(parse_spec(f"{path}{options}"))


def test_a_copy_elsewhere_is_the_same_model(checkpoint: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copied" / "elsewhere"
    shutil.copytree(checkpoint, copy)
    assert of(copy) == of(checkpoint)
    assert len(of(copy)) == 16


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors"]
)
def test_one_changed_byte_in_any_file_is_another_model(checkpoint: Path, name: str) -> None:
    before = of(checkpoint)
    data = bytearray((checkpoint / name).read_bytes())
    data[-1] ^= 1
    (checkpoint / name).write_bytes(data)
    assert of(checkpoint) != before


def test_training_artefacts_do_not_change_the_identity(checkpoint: Path) -> None:
    before = of(checkpoint)
    for name in ("trainer_state.json", "optimizer.pt", "rng_state.pth", "training_args.bin"):
        (checkpoint / name).write_bytes(b"x")
    assert of(checkpoint) == before


def test_dtype_counts_as_used(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights_fingerprint, "has_cuda", lambda: False)
    assert of(checkpoint, "") == of(checkpoint) == of(checkpoint, "?dtype=fp32")
    assert of(checkpoint, "?dtype=bf16") != of(checkpoint)
    monkeypatch.setattr(weights_fingerprint, "has_cuda", lambda: True)
    assert of(checkpoint, "") == of(checkpoint, "?dtype=bf16")


def test_batch_size_and_name_do_not_count(checkpoint: Path) -> None:
    assert of(checkpoint, "?device=cpu&batch_tokens=7&name=other") == of(checkpoint)


def test_sampled_hash_reads_all_parts_of_a_large_file(tmp_path: Path) -> None:
    """12 MiB: first and last MiB in full, 64 blocks between; the size itself counts, too."""
    path = tmp_path / "w.safetensors"
    size = 12 << 20
    path.write_bytes(bytes(size))
    hashes = {sampled_hash(path)}
    for place in (0, 1 << 20, size // 2 - (size // 2) % (1 << 20), size - 1):
        data = bytearray(size)
        data[place] = 1
        path.write_bytes(data)
        hashes.add(sampled_hash(path))
    path.write_bytes(bytes(size + 1))
    hashes.add(sampled_hash(path))
    assert len(hashes) >= 5


def test_a_hub_name_is_its_cached_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    unknown = fingerprint(parse_spec("org/model?device=cpu"))
    commit = "a" * 40
    refs = tmp_path / "models--org--model" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text(commit)
    files = refs.parent / "snapshots" / commit
    files.mkdir(parents=True)
    (files / "config.json").write_text("{}")
    cached = fingerprint(parse_spec("org/model?device=cpu"))
    assert cached != unknown
    assert cached == fingerprint(parse_spec(f"org/model?device=cpu&revision={commit}"))
