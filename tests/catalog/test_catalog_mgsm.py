"""MGSM: the same problems in 11 languages, and exemplars that are read without running."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_llmeval.catalog import mgsm
from pytest_llmeval.catalog.mgsm import LANGUAGES
from pytest_llmeval.catalog.mgsm import from_folder
from pytest_llmeval.catalog.mgsm import from_hub
from pytest_llmeval.core import DataError
from support.catalog_copies import fake_hub
from support.generation_copies import MGSM
from support.generation_copies import MGSM_LANGUAGES
from support.generation_copies import mgsm_row


def test_answers_of_the_public_copy(data: Path) -> None:
    dataset = mgsm().source(data)
    assert dataset.subject_sizes() == dict.fromkeys(LANGUAGES, 250)
    assert len(LANGUAGES) == 11
    assert all(item.fields["language"] == item.subject for item in dataset.items)
    # The same problems in every language; four answers have thousands separators in the files.
    golds = {
        tuple(item.gold for item in dataset.items if item.subject == language)
        for language in LANGUAGES
    }
    assert len(golds) == 1
    assert {"2125", "114200", "276000", "5600"} <= set(golds.pop())


def test_exemplars_become_shots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MGSM.use_constants(monkeypatch)
    dataset = MGSM.load(MGSM.write(tmp_path))
    assert dataset.items[3].id == "de-0001"
    shot = dataset.pool["de"][1]
    assert (shot.id, shot.gold, shot.fields["answer"]) == ("train-de-0001", "7101", "A")


def test_a_missing_language_is_named(tmp_path: Path) -> None:
    rows = [mgsm_row(language, "test", n) for language in LANGUAGES[:-1] for n in range(2)]
    folder = MGSM.write(tmp_path, {"test": rows}) / "mgsm"
    with pytest.raises(DataError, match=r"mgsm_zh\.tsv: no such file"):
        from_folder(folder)
    (folder / "mgsm_zh.tsv").write_text("1 + 0?\t1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"not the complete set: .* and 6 more"):
        from_folder(folder)


@pytest.mark.parametrize(
    "content", ["MGSM_EXEMPLARS = {", "MGSM_EXEMPLARS = open('x')", "MGSM_EXEMPLARS = {}"]
)
def test_unusable_exemplars_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    MGSM.use_constants(monkeypatch)
    file = MGSM.write(tmp_path) / "mgsm" / "exemplars.py"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"exemplars\.py: not the exemplars of mgsm"):
        MGSM.load(tmp_path)


def test_a_hub_row_without_an_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    splits = {(language, "test"): [{"question": "1 + 1?"}] for language in MGSM_LANGUAGES}
    fake_hub(monkeypatch, MGSM.repo, splits)
    with pytest.raises(DataError, match="juletxara/mgsm, bn, row 0: answer None is not"):
        from_hub()


def test_every_protocol_stops_at_the_next_question_in_every_language() -> None:
    for protocol in mgsm().protocols:
        assert len(protocol.decoding.stop) == len(set(protocol.decoding.stop)) == 13
