"""Content-free prompts: what they show, which items carry them, and where there is none for all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval.bias.arms import arms
from pytest_llmeval.bias.content_free import ARMS
from pytest_llmeval.bias.content_free import arms_of_item
from pytest_llmeval.bias.content_free import carrier_ids
from pytest_llmeval.bias.content_free import check_shared_prompt
from pytest_llmeval.bias.content_free import without_content
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core.plan import is_content_free
from pytest_llmeval.prompts import LMEVAL_COMMONSENSEQA
from pytest_llmeval.prompts import LMEVAL_INCLUDE
from pytest_llmeval.prompts import LMEVAL_MMLU

LETTER = Protocol("letter", LMEVAL_MMLU, scorer="letter", shots=1)


def item(name: str, subject: str = "art", options: int = 3, **fields: str) -> Item:
    texts = tuple(f"{name}{n}" for n in range(options))
    return Item(name, subject, f"{name}?", 1, texts, fields)


def test_the_text_replaces_question_and_options() -> None:
    free = without_content(item("a"), "[MASK]")
    assert LMEVAL_MMLU.question(free) == "[MASK]\nA. [MASK]\nB. [MASK]\nC. [MASK]\nAnswer:"
    assert LMEVAL_MMLU.question(without_content(item("a"), "")) == "\nA. \nB. \nC. \nAnswer:"


def test_content_free_prompts_have_the_first_shots_of_the_pool() -> None:
    a, pool = item("a"), (item("a"), item("b"))
    assert LETTER.select_shots(a, pool) == (item("b"),)
    assert LETTER.select_shots(without_content(a, "N/A"), pool) == (item("a"),)


def test_one_item_carries_the_prompts_of_all_that_share_them() -> None:
    items = [item("a"), item("b"), item("c", options=4), item("d", "law"), item("e", options=4)]
    assert carrier_ids(items) == {"a", "c", "d"}
    assert carrier_ids([]) == frozenset()


def test_only_a_carrier_is_in_the_arms_without_content() -> None:
    every = (*arms("cyclic", 4)[1:], *ARMS)
    names = [arm.name for arm in every]
    assert names[3:] == ["free@N/A", "free@[MASK]", "free@"]
    assert [is_content_free(name) for name in names] == [False] * 3 + [True] * 3
    # Three options have no third rotation.
    presented = list(arms_of_item(item("a"), every, carries=True))
    assert [arm.name for arm, _ in presented] == ["cyclic@1", "cyclic@2", *names[3:]]
    assert presented[0][1].options == ("a1", "a2", "a0")
    assert presented[4][1] == without_content(item("a"), "")
    carried = arms_of_item(item("a"), every, carries=False)
    assert [arm.name for arm, _ in carried] == ["cyclic@1", "cyclic@2"]


def test_a_prompt_with_other_fields_is_not_shared() -> None:
    protocol = Protocol("lmeval", LMEVAL_INCLUDE, scorer="letter")
    items = (item("a", domain="Law"), item("b", domain="Law"), item("c", domain="Art"))
    check_shared_prompt("test_x", protocol, Dataset(items[:2]))
    with pytest.raises(ConfigError, match="'lmeval' shows more of item 'c' than question"):
        check_shared_prompt("test_x", protocol, Dataset(items))
    # Another subject, or another number of options, has a prompt of its own.
    apart = (items[0], replace(items[2], subject="law"), item("d", options=4, domain="Art"))
    check_shared_prompt("test_x", protocol, Dataset(apart))


def test_shots_of_the_items_own_are_none_for_all() -> None:
    protocol = Protocol("lmeval", LMEVAL_COMMONSENSEQA, scorer="letter", draw="lmeval_spare")
    data = Dataset((item("a"), item("b")), {"art": (item("c"), item("d"), item("e"))})
    check_shared_prompt("test_x", protocol, data)
    with pytest.raises(ConfigError, match="'lmeval' selects different shots for every item"):
        check_shared_prompt("test_x", replace(protocol, shots=2), data)
