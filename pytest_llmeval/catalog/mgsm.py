"""MGSM (Shi et al., 2022): 250 problems of GSM8K in 11 languages, each of which is a subject.

Items and ids are the same from every source: the official tsv files or the hub. Item ids are
``<language>-<row>``. The pool for shots are the authors' eight exemplars per language, from
``exemplars.py`` in the official folder and from the hub's split ``train``. A folder without that
file is accepted, but has no shots and a different content hash.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.prompts.chain_of_thought import MGSM_DIRECT
from pytest_llmeval.prompts.chain_of_thought import MGSM_NATIVE_COT
from pytest_llmeval.prompts.chain_of_thought import MGSM_STOP
from pytest_llmeval.prompts.chain_of_thought import MGSM_WORDS
from pytest_llmeval.sources import hub
from pytest_llmeval.sources.files import READ_ERRORS
from pytest_llmeval.sources.files import read_error
from pytest_llmeval.sources.files import read_tsv
from pytest_llmeval.sources.item_ids import row_id
from pytest_llmeval.sources.locate import check_sizes
from pytest_llmeval.sources.locate import first_file
from pytest_llmeval.sources.locate import load_first

REPO = "juletxara/mgsm"
REVISION = "b2f13d426afe3be8d69a7e739b36724db8b66bbc"
LANGUAGES = tuple(MGSM_WORDS)
ROWS = 250

# Without shots, as in lm-eval by default; `--llm-shots 8` shows the exemplars.
_DECODING = Decoding(max_tokens=512, stop=(*MGSM_STOP, "</s>", "<|im_end|>"))
PROTOCOLS = (
    Protocol("native_cot", MGSM_NATIVE_COT, scorer="number", ask="text", decoding=_DECODING),
    Protocol("direct", MGSM_DIRECT, scorer="number", ask="text", decoding=_DECODING),
)


def mgsm() -> Benchmark:
    """Return the benchmark; its rows are loaded on first use."""
    return Benchmark("mgsm", source=load, protocols=PROTOCOLS, subject_files=True)


def load(data_dir: Any = None) -> Dataset:
    """Load the complete data from ``DIR/mgsm`` if the data folder has it, else from the hub.

    Raises DataError if there is no copy or it is incomplete.
    """
    return load_first("mgsm", data_dir, from_folder, from_hub)


def from_folder(folder: Path) -> Dataset:
    """Read the items of ``mgsm_<language>.tsv``, or of a clone of the hub's repository.

    In a clone of the official repository the files are in ``mgsm``.
    """
    for root in (folder, folder / "mgsm"):
        if first_file(root, *(f"mgsm_{language}.tsv" for language in LANGUAGES)) is not None:
            return _from_tsv(root)
    if any((folder / "en").glob("test-*.parquet")):
        return from_hub(str(folder))
    raise DataError(
        f"{folder}: not a copy of mgsm (neither mgsm_<language>.tsv nor en/test-*.parquet)"
    )


def from_hub(path: str = REPO, revision: str = REVISION) -> Dataset:
    """Read the items of the hub's configurations (one per language), splits test and train."""
    items: list[Item] = []
    pool: dict[str, tuple[Item, ...]] = {}
    for language in LANGUAGES:
        for number, row in enumerate(hub.load_rows(path, language, "test", revision)):
            where = f"{path}, {language}, row {number}"
            items.append(
                _item(where, language, number, row.get("question"), row.get("answer_number"))
            )
        pool[language] = tuple(
            _exemplar(
                f"{path}, {language}, train, row {number}",
                language,
                number,
                row.get("question"),
                row.get("answer"),
                row.get("answer_number"),
            )
            for number, row in enumerate(hub.load_rows(path, language, "train", revision))
        )
    return _checked(path, Dataset(tuple(items), pool))


def _from_tsv(root: Path) -> Dataset:
    items: list[Item] = []
    for language in LANGUAGES:
        path = root / f"mgsm_{language}.tsv"
        for number, row in enumerate(read_tsv(path)):
            where = f"{path}, row {number + 1}"
            if len(row) != 2:
                raise DataError(f"{where}: {len(row)} cells; question and answer were expected")
            items.append(_item(where, language, number, *row))
    exemplars = first_file(root, "exemplars.py")
    pool = _read_exemplars(exemplars) if exemplars is not None else {}
    return _checked(str(root), Dataset(tuple(items), pool))


def _checked(where: str, dataset: Dataset) -> Dataset:
    published = dict.fromkeys(LANGUAGES, ROWS)
    check_sizes("mgsm", where, [("test", dataset.subject_sizes(), published)])
    return dataset


def _item(where: str, language: str, number: int, question: Any, answer: Any) -> Item:
    if not isinstance(question, str):
        raise DataError(f"{where}: the question is not a text")
    return Item(
        row_id(language, number),
        language,
        question,
        _gold(where, answer),
        fields={"language": language},
    )


def _exemplar(
    where: str, language: str, number: int, question: Any, answer: Any, solution: Any
) -> Item:
    if not isinstance(question, str) or not isinstance(answer, str):
        raise DataError(f"{where}: texts of question and answer were expected")
    return Item(
        f"train-{row_id(language, number)}",
        language,
        question,
        _gold(where, solution),
        fields={"language": language, "answer": answer},
    )


def _gold(where: str, answer: Any) -> str:
    """Return the text of the answer without thousands separators; the hub has integers."""
    text = str(answer).strip().replace(",", "")
    if not text.removeprefix("-").isdecimal():
        raise DataError(f"{where}: answer {answer!r} is not a whole number")
    return text


def _read_exemplars(path: Path) -> Mapping[str, tuple[Item, ...]]:
    """Return the exemplars of the official ``exemplars.py``, which is parsed but not run."""
    try:
        module = ast.parse(path.read_bytes())
        constants = {
            target.id: ast.literal_eval(node.value)
            for node in module.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        numbers: list[int] = constants["EXEMPLAR_NUMBER_ANSWERS"]
        texts: dict[str, dict[str, dict[str, str]]] = constants["MGSM_EXEMPLARS"]
        return {
            language: tuple(
                _exemplar(
                    f"{path}, {language}, exemplar {key}",
                    language,
                    number,
                    text["q"],
                    text["a"],
                    numbers[number],
                )
                for number, (key, text) in enumerate(texts[language].items())
            )
            for language in LANGUAGES
            if language in texts
        }
    except READ_ERRORS as error:
        raise read_error(path, error) from None
    except (SyntaxError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: not the exemplars of mgsm ({type(error).__name__}: {error})"
        ) from None
