"""A protocol's fingerprint covers everything that moves a score, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pytest_llmeval import Dataset
from pytest_llmeval import Item
from pytest_llmeval import Protocol
from pytest_llmeval import scorers
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Decoding
from pytest_llmeval.evaluation.fingerprint import fingerprint
from pytest_llmeval.evaluation.fingerprint import protocol_content
from pytest_llmeval.prompts import LMEVAL_MMLU
from pytest_llmeval.scorers import SCORERS

ITEM = Item("q0", "s", "What?", 1, ("x", "y"))
POOL = tuple(replace(ITEM, id=f"q{number}", question=f"What {number}?") for number in range(1, 5))
DATA = Dataset((ITEM,), {"s": POOL})
PROTOCOL = Protocol("p", LMEVAL_MMLU, scorer="choice", shots=2, ask="text").bound_to(DATA)
WRITTEN = "c658ddad9218892b"


def template(**change: Any) -> Protocol:
    return replace(PROTOCOL, template=replace(LMEVAL_MMLU, **change))


def decoding(**change: Any) -> Protocol:
    return replace(PROTOCOL, decoding=replace(PROTOCOL.decoding, **change))


CHANGES = {
    "ask": replace(PROTOCOL, ask="choices"),
    "scorer": replace(PROTOCOL, scorer="exact_match"),
    "shots": replace(PROTOCOL, shots=3),
    "draw": replace(PROTOCOL, allow_copies=True),
    "shots_as_text": replace(PROTOCOL.with_chat(), shots_as_text=True),
    "shots_used": PROTOCOL.bound_to(Dataset((ITEM,), {"s": POOL[1:]})),
    "prompts_used": PROTOCOL.bound_to(Dataset((replace(ITEM, question="Why?"),), {"s": POOL})),
    "chat": PROTOCOL.with_chat(),
    "prefix": replace(PROTOCOL, prefix="The answer is"),
    "samples": replace(PROTOCOL, samples=5),
    "decoding.max_tokens": decoding(max_tokens=255),
    "decoding.temperature": decoding(temperature=0.7),
    "decoding.top_p": decoding(top_p=0.9),
    "decoding.top_k": decoding(top_k=40),
    "decoding.min_p": decoding(min_p=0.1),
    "decoding.stop": decoding(stop=("Q:",)),
    "template.name": template(name="other"),
    "template.description": template(description=lambda subject: f"{subject}."),
    "template.question": template(question=lambda item: item.question),
    "template.choices": template(choices=lambda item: ("a", "b")),
    "template.shot_answer": template(answer=lambda item: "B!"),
    "template.delimiter": template(delimiter=""),
    "template.separator": template(separator="\n"),
}


def leaves(content: dict[str, Any], path: str = "") -> Iterator[str]:
    for key, value in content.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}"


@pytest.mark.parametrize("field", CHANGES)
def test_every_field_changes_the_fingerprint(field):
    changed, value = protocol_content(CHANGES[field]), protocol_content(PROTOCOL)
    for key in field.split("."):
        assert changed.keys() == value.keys()
        changed, value = changed[key], value[key]
    assert changed != value
    assert fingerprint(CHANGES[field]) != fingerprint(PROTOCOL)


def test_no_field_is_left_out_above():
    assert {*leaves(protocol_content(PROTOCOL))} == {*CHANGES, "name", "scorer_version"}
    assert len(set(map(fingerprint, [PROTOCOL, *CHANGES.values()]))) == len(CHANGES) + 1


def test_the_version_of_the_scorer_changes_the_fingerprint(monkeypatch):
    before = fingerprint(PROTOCOL)
    newer = replace(SCORERS["choice"], version=SCORERS["choice"].version + 1)
    monkeypatch.setattr(scorers, "SCORERS", {**SCORERS, "choice": newer})
    assert fingerprint(PROTOCOL) != before


def test_every_method_of_drawing_shots_has_its_own_fingerprint():
    """Also where the shots that are drawn happen to be the same."""
    methods = (
        PROTOCOL,
        replace(PROTOCOL, allow_copies=True),
        replace(PROTOCOL, examples=POOL),
        replace(PROTOCOL, draw="lmeval"),
        replace(PROTOCOL, draw="lmeval_spare"),
    )
    assert len({fingerprint(protocol) for protocol in methods}) == len(methods)


def test_settings_that_move_no_score_do_not_change_the_fingerprint():
    assert fingerprint(replace(PROTOCOL, name="other")) == fingerprint(PROTOCOL)
    # Outside a chat, shots are text anyway.
    assert fingerprint(replace(PROTOCOL, shots_as_text=True)) == fingerprint(PROTOCOL)
    # Decoding and several samples do not enter where nothing is generated.
    choices = replace(PROTOCOL, ask="choices", scorer="letter")
    for same in (replace(choices, decoding=Decoding(max_tokens=3)), replace(choices, samples=5)):
        assert fingerprint(same) == fingerprint(choices)


def test_the_shots_are_those_that_are_used():
    """Neither the rest of the pool nor other items enter; a changed shot does."""
    longer = Dataset((ITEM, replace(ITEM, id="q9", question="Which?")), {"s": POOL[:2], "t": POOL})
    assert fingerprint(PROTOCOL.bound_to(longer)) == fingerprint(PROTOCOL)
    assert PROTOCOL.bound_to(DATA) == PROTOCOL
    changed = Dataset((ITEM,), {"s": (POOL[0], replace(POOL[1], gold=0))})
    assert fingerprint(PROTOCOL.bound_to(changed)) != fingerprint(PROTOCOL)
    examples = [replace(PROTOCOL, examples=pool).bound_to(DATA) for pool in (POOL, POOL[1:])]
    assert fingerprint(examples[0]) != fingerprint(examples[1])
    none = replace(PROTOCOL, shots=0)
    assert none.bound_to(DATA) == none.bound_to(changed)


@pytest.mark.parametrize("seed", ["0", "1"])
def test_fingerprints_are_equal_in_every_process(seed, tmp_path):
    """Neither hash seed, folder, locale nor time zone enter; the value is written down here."""
    code = (
        "from pytest_llmeval.evaluation.fingerprint import fingerprint;"
        "from pytest_llmeval.catalog import mmlu;"
        "print(fingerprint(mmlu().protocols[0]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert process.stdout.strip() == WRITTEN, process.stderr


def test_a_template_may_depend_on_subject_and_number_of_options():
    """A change that the fixed item does not show is in what is made of the data."""
    items = (
        ITEM,
        replace(ITEM, id="q8", subject="law"),
        replace(ITEM, id="q9", options=("x",) * 5),
    )
    data = Dataset(items, {"s": POOL, "law": POOL})
    careful = {
        "law": lambda item: item.question + ("!" if item.subject == "law" else ""),
        "five": lambda item: item.question + ("!" if len(item.options) == 5 else ""),
    }
    fingerprints = {fingerprint(template(question=q).bound_to(data)) for q in careful.values()}
    plain = fingerprint(template(question=lambda item: item.question).bound_to(data))
    assert len(fingerprints | {plain}) == 3


def test_equal_protocols_have_equal_fingerprints():
    assert fingerprint(decoding(temperature=0)) == fingerprint(decoding(temperature=0.0))
    none = replace(PROTOCOL, shots=0).bound_to(DATA)
    assert fingerprint(replace(none, allow_copies=True)) == fingerprint(none)


def test_a_template_that_fails_is_reported_in_one_line():
    broken = template(question=lambda item: item.fields["a"] + 1)
    with pytest.raises(ConfigError, match=r"protocol 'p': template 'lmeval.*fails.*TypeError"):
        fingerprint(broken)


def test_blank_stop_strings_are_in_the_fingerprint():
    """It once ended answers that begin with blank lines, whose runs are not comparable."""
    blank = protocol_content(decoding(stop=("Q:", "\n\n")))["decoding"]
    assert (blank["stop"], blank["blank_stop"]) == (["Q:", "\n\n"], "behind text")
    assert "blank_stop" not in protocol_content(decoding(stop=("Q:", "\n\ndef")))["decoding"]
