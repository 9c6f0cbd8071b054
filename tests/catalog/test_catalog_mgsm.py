"""MGSM: 11 languages from the tsv files and from the hub."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import mgsm
from pytest_llmeval.catalog.mgsm import LANGUAGES
from pytest_llmeval.catalog.mgsm import ROWS
from pytest_llmeval.catalog.mgsm import from_folder
from pytest_llmeval.catalog.mgsm import from_hub
from pytest_llmeval.catalog.mgsm import load
from pytest_llmeval.core import DataError
from pytest_llmeval.core import check_dataset

CONTENT_HASH = "5db5a742b9af5afd"


def write(folder: Path, languages: tuple[str, ...] = LANGUAGES, exemplars: bool = True) -> Path:
    """A made-up copy in the official layout."""
    folder.mkdir(parents=True, exist_ok=True)
    for language in languages:
        lines = [f'"{language}" {n}?\t{n * 100:,}' for n in range(ROWS)]
        (folder / f"mgsm_{language}.tsv").write_text("\n".join(lines), encoding="utf-8")
    if exemplars:
        texts = {
            language: {str(n): {"q": f"Q: {language} {n}?", "a": f"A: {n}"} for n in (1, 2)}
            for language in languages
        }
        (folder / "exemplars.py").write_text(
            f"raise SystemExit\nEXEMPLAR_NUMBER_ANSWERS = [11, 29]\nMGSM_EXEMPLARS = {texts!r}\n",
            encoding="utf-8",
        )
    return folder


def hub_rows(path: str, language: str, split: str, revision: str) -> list[dict[str, Any]]:
    """What the hub's copy of the same rows gives."""
    assert (path, len(revision)) == ("juletxara/mgsm", 40)
    if split == "test":
        return [
            {"question": f'"{language}" {n}?', "answer": None, "answer_number": n * 100}
            for n in range(ROWS)
        ]
    return [
        {"question": f"Q: {language} {n}?", "answer": f"A: {n}", "answer_number": number}
        for n, number in ((1, 11), (2, 29))
    ]


def test_the_official_files_are_complete(data: Path) -> None:
    dataset = load(data)
    check_dataset("mgsm", dataset)
    assert dataset.subject_sizes() == dict.fromkeys(LANGUAGES, 250)
    assert len(LANGUAGES) == 11
    assert dataset.content_hash() == CONTENT_HASH
    assert all(item.fields["language"] == item.subject for item in dataset.items)
    # The same problems in every language; four answers have thousands separators in the files.
    golds = {
        tuple(item.gold for item in dataset.items if item.subject == language)
        for language in LANGUAGES
    }
    assert len(golds) == 1
    assert {"2125", "114200", "276000", "5600"} <= set(golds.pop())


def test_hub_and_files_give_the_same_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("pytest_llmeval.catalog.mgsm")
    monkeypatch.setattr(module.hub, "load_rows", hub_rows)
    files = from_folder(write(tmp_path))
    assert files == from_hub()
    assert files.content_hash() == from_hub().content_hash()
    assert files.items[ROWS + 3].id == "de-0003"
    assert files.items[ROWS + 12].gold == "1200"
    shot = files.pool["de"][1]
    assert (shot.id, shot.gold, shot.fields["answer"]) == ("train-de-0001", "29", "A: 2")


def test_exemplars_may_be_missing_and_are_read_without_running(tmp_path: Path) -> None:
    with_shots = from_folder(write(tmp_path / "a"))
    without = from_folder(write(tmp_path / "b", exemplars=False))
    assert with_shots.items == without.items
    assert without.pool == {}
    # A clone of the repository has the files in a folder of that name.
    write(tmp_path / "clone" / "mgsm")
    assert from_folder(tmp_path / "clone") == with_shots


def test_a_missing_language_is_named(tmp_path: Path) -> None:
    write(tmp_path, LANGUAGES[:-1])
    with pytest.raises(DataError, match=r"mgsm_zh\.tsv: no such file"):
        from_folder(tmp_path)
    (tmp_path / "mgsm_zh.tsv").write_text("one?\t1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"not the complete set: test zh has 1 of 250 rows"):
        from_folder(tmp_path)
    with pytest.raises(DataError, match="not a copy of mgsm"):
        from_folder(tmp_path.parent)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("mgsm_bn.tsv", "one?\n", r"mgsm_bn\.tsv, row 1: 1 cells; question and answer"),
        ("mgsm_bn.tsv", "one?\tmany\n", r"mgsm_bn\.tsv, row 1: answer 'many' is not a whole"),
        ("exemplars.py", "MGSM_EXEMPLARS = {", "not the exemplars of mgsm"),
        ("exemplars.py", "MGSM_EXEMPLARS = open('x')", "not the exemplars of mgsm"),
        ("exemplars.py", "MGSM_EXEMPLARS = {}", "not the exemplars of mgsm"),
    ],
)
def test_unusable_files_are_named(tmp_path: Path, file: str, content: str, message: str) -> None:
    (write(tmp_path) / file).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        from_folder(tmp_path)


def test_the_hub_is_named_where_it_lacks_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("pytest_llmeval.catalog.mgsm")
    monkeypatch.setattr(module.hub, "load_rows", lambda *_: [{"question": "one?"}])
    with pytest.raises(DataError, match="juletxara/mgsm, bn, row 0: answer None is not"):
        from_hub()


def test_every_protocol_stops_at_the_next_question_of_every_language() -> None:
    for protocol in mgsm().protocols:
        assert len(protocol.decoding.stop) == len(set(protocol.decoding.stop)) == 13
        assert json.dumps(protocol.decoding.stop)
