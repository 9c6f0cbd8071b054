"""Types of a user's definitions in Python are checked: one line, before any request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval import Benchmark
from pytest_llmeval import Dataset
from pytest_llmeval import Item
from pytest_llmeval import Protocol
from pytest_llmeval import Template
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core import check_dataset
from pytest_llmeval.prompts import LMEVAL_MMLU

PROTOCOL = Protocol("p", LMEVAL_MMLU, scorer="letter")
ITEM = Item("a", "s", "What?", 1, ("x", "y"))


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"name": None}, "a protocol: name is of type NoneType, not str"),
        ({"template": "{question}"}, "protocol 'p': template is of type str, not Template"),
        ({"scorer": None}, "protocol 'p': scorer is of type NoneType, not str"),
        ({"also": "choice"}, "protocol 'p': also takes a tuple: write (str, …), with the comma"),
        ({"also": 3}, "protocol 'p': also is of type int, not a tuple of str"),
        ({"also": (3,)}, "protocol 'p': an element of also is of type int, not str"),
        ({"shots": -1}, "protocol 'p': shots = -1 is below 0"),
        ({"shots": "5"}, "protocol 'p': shots = '5' is not a whole number"),
        ({"shots": True}, "protocol 'p': shots = True is not a whole number"),
        ({"samples": 0}, "protocol 'p': samples = 0 is below 1"),
        ({"ask": "txt"}, "protocol 'p': ask = 'txt' is not one of choices, text"),
        ({"ask": ["text"]}, "protocol 'p': ask = ['text'] is not one of choices, text"),
    ],
)
def test_a_protocol(wrong, line):
    with pytest.raises(ConfigError) as caught:
        replace(PROTOCOL, **wrong)
    assert str(caught.value) == line


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"name": 5}, "benchmark name 5: use letters"),
        ({"source": "faq.jsonl"}, "source is of type str, not a function that loads the items"),
        ({"source": Dataset((ITEM,))}, "source is of type Dataset, not a function"),
        ({"protocols": PROTOCOL}, "protocols takes a tuple: write (Protocol, …), with the comma"),
        ({"protocols": "letter"}, "protocols is of type str, not a tuple of Protocol"),
        ({"protocols": ("letter",)}, "an element of protocols is of type str, not Protocol"),
        ({"protocols": ()}, "benchmark 'b' has no protocol"),
        ({"subject_files": "yes"}, "benchmark 'b': subject_files is of type str, not bool"),
        ({"drawn_orders": 1}, "benchmark 'b': drawn_orders is of type int, not bool"),
        ({"protocols": (PROTOCOL, PROTOCOL)}, "benchmark 'b' has several protocols called 'p'"),
    ],
)
def test_a_benchmark(wrong, line):
    right = Benchmark("b", lambda data: Dataset((ITEM,)), (PROTOCOL,))
    with pytest.raises(ConfigError) as caught:
        replace(right, **wrong)
    assert line in str(caught.value)


@pytest.mark.parametrize(
    ("items", "line"),
    [
        (iter([ITEM]), "benchmark 'b': items is of type list_iterator, not a tuple"),
        (("a",), "benchmark 'b': 'a' is of type str, not Item"),
        ((replace(ITEM, id=5),), "benchmark 'b', item 5: id is of type int, not text"),
        ((replace(ITEM, subject=None),), "item 'a': subject is of type NoneType, not text"),
        ((replace(ITEM, question=None),), "item 'a': question is of type NoneType, not text"),
        ((replace(ITEM, options="xy"),), "item 'a': options are of type str, not a tuple"),
        ((replace(ITEM, options=(1, 2)),), "item 'a': an option is of type int, not text"),
        ((replace(ITEM, gold=1.0),), "gold 1.0 is neither the index of an option nor a text"),
        ((replace(ITEM, gold=True),), "gold True is neither the index of an option nor a text"),
    ],
)
def test_items(items, line):
    with pytest.raises(DataError) as caught:
        check_dataset("b", Dataset(items))
    assert line in str(caught.value)


def test_items_may_come_as_lists():
    check_dataset("b", Dataset([replace(ITEM, options=["x", "y"])]))


def test_a_shot_is_held_to_the_same():
    with pytest.raises(DataError, match="item 'a': question is of type int"):
        check_dataset("b", Dataset((ITEM,), {"s": (replace(ITEM, question=3),)}))


@pytest.mark.parametrize("part", ["question", "description"])
def test_a_template_that_gives_no_text_puts_no_none_into_a_prompt(part):
    made = {"description": lambda subject: "", "question": lambda item: item.question}
    template = Template(name="t", choices=lambda item: ("A", "B"), **{**made, part: lambda _: None})
    with pytest.raises(TypeError, match=f"{part} returns NoneType, not text"):
        replace(PROTOCOL, template=template).render(ITEM, ())
