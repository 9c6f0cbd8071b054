"""ARC: numbered and lettered options, three to five of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pytest_llmeval.catalog import arc_challenge
from pytest_llmeval.catalog import arc_easy
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.scorers import get_scorer
from support.choice_copies import ARC_CHALLENGE


def test_option_counts_and_repeated_questions_of_the_public_copies(data: Path) -> None:
    easy, challenge = arc_easy().source(data), arc_challenge().source(data)
    for dataset, sizes in ((challenge, {3: 4, 4: 1165, 5: 3}), (easy, {3: 7, 4: 2365, 5: 4})):
        assert Counter(len(item.options) for item in dataset.items) == sizes
    assert challenge.warnings == (
        "arc_challenge: 2 question texts occur more than once (TIMSS_2003_8_pg47 ="
        " Mercury_SC_LBS10597, Mercury_7116183 = Mercury_406639)",
    )
    assert [warning[:48] for warning in easy.warnings] == [
        "arc_easy: 5 question texts occur more than once "
    ]


def test_a_key_is_looked_up_among_the_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ARC_CHALLENGE.use_constants(monkeypatch)
    texts = ("iron", "salt", "neon", "wax")
    choices = [{"text": text, "label": str(n)} for n, text in enumerate(texts, start=1)]
    question = {"stem": "Which is a gas at room temperature?", "choices": choices}
    numbered = {"id": "gas", "question": question, "answerKey": "3"}
    test, train = ARC_CHALLENGE.splits["test"], ARC_CHALLENGE.splits["train"]
    copy = ARC_CHALLENGE.write(tmp_path, {"test": [numbered, *test[1:]], "train": train})
    dataset = ARC_CHALLENGE.load(copy)
    item = dataset.items[0]
    assert (item.gold, item.gold_label) == (2, "C")
    letter = next(protocol for protocol in arc_challenge().protocols if protocol.name == "letter")
    request = letter.request(item, dataset.pool["arc_challenge"])
    assert request.prompt.question.endswith("\nA. iron\nB. salt\nC. neon\nD. wax\nAnswer:")
    assert request.choices == ("A", "B", "C", "D")
    assert get_scorer("choice")(item, Response(item.id, text="C")).outcome == Outcome.CORRECT


def test_both_scorers_of_lm_eval_score_the_same_log_likelihoods() -> None:
    lmeval = next(protocol for protocol in arc_easy().protocols if protocol.name == "lmeval")
    assert (lmeval.scorer, lmeval.also, lmeval.shots) == ("cloze", ("likelihood",), 0)
    assert arc_easy().protocols[0].template == lmeval.template


def test_the_challenge_set_is_not_a_copy_of_the_easy_set(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"not a copy of arc .*ARC-Easy-Test"):
        arc_easy().source(ARC_CHALLENGE.write(tmp_path))
