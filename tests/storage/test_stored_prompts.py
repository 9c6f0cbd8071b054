"""Prompts beside the records: what was rendered is what is read."""

from __future__ import annotations

import gzip
import json

import pytest

from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import RunError
from pytest_llmeval.core import Template
from pytest_llmeval.storage.prompts import FILE
from pytest_llmeval.storage.prompts import PromptedItems
from pytest_llmeval.storage.prompts import merge_prompts
from pytest_llmeval.storage.prompts import read_prompts
from pytest_llmeval.storage.prompts import write_prompts

TEMPLATE = Template(
    "plain",
    description=lambda subject: f"About {subject}.\n",
    question=lambda item: item.question + ("" if item.question else item.fields["absent"]),
    choices=lambda item: ("A", "B"),
)
POOL = {
    "art": tuple(Item(f"shot-{n}", "art", f"Shot {n} \ud800?", 0, ("x", "y")) for n in range(5))
}
ITEMS = tuple(Item(f"art-{n}", "art", f"Frage {n} 漢\x00?", 1, ("x", "y")) for n in range(4))


def prompted(
    protocol: Protocol, fingerprints: list[str], items: tuple[Item, ...] = ITEMS
) -> PromptedItems:
    return PromptedItems("bench", protocol, POOL, fingerprints, items)


@pytest.mark.parametrize("chat", [False, True])
def test_prompts_come_back_as_they_were(tmp_path, chat):
    protocol = Protocol("plain", TEMPLATE, "letter", shots=3, chat=chat, prefix="The answer is")
    write_prompts(tmp_path, [prompted(protocol, ["fp-1", "fp-2"])])
    prompts = read_prompts(tmp_path)
    assert len(prompts) == 8
    for item in ITEMS:
        for fingerprint in ("fp-1", "fp-2"):
            stored = prompts["bench", fingerprint, item.id]
            assert stored.prompt == protocol.render(item, POOL["art"])
            assert stored.choices == ("A", "B")


def test_the_same_prompts_are_the_same_bytes_and_shots_are_kept_once(tmp_path):
    protocol = Protocol("plain", TEMPLATE, "letter", shots=3)
    written = []
    for _ in range(2):
        write_prompts(tmp_path, [prompted(protocol, ["fp"])])
        written.append((tmp_path / FILE).read_bytes())
    assert written[0] == written[1]
    assert len(json.loads(gzip.decompress(written[0]))["shots"]) == 3


def test_an_item_whose_template_fails_has_no_prompt(tmp_path):
    broken = Item("art-9", "art", "", 1, ("x", "y"))
    items = (*ITEMS[:1], broken)
    write_prompts(tmp_path, [prompted(Protocol("p", TEMPLATE, "letter"), ["fp"], items)])
    assert [item for _, _, item in read_prompts(tmp_path)] == ["art-0"]


def test_the_prompts_of_shards_are_joined(tmp_path):
    protocol = Protocol("plain", TEMPLATE, "letter", shots=3)
    folders = [tmp_path / name for name in ("whole", "a", "b", "none", "joined")]
    for folder in folders:
        folder.mkdir()
    whole, first, second, none, joined = folders
    for folder, items in ((whole, ITEMS), (first, ITEMS[2:]), (second, ITEMS[:2])):
        write_prompts(folder, [prompted(protocol, ["fp-1", "fp-2"], items)])
    merge_prompts([first, second, none], joined)
    assert read_prompts(joined) == read_prompts(whole)
    assert len(json.loads(gzip.decompress((joined / FILE).read_bytes()))["shots"]) == 3
    merge_prompts([none], none)
    assert not list(none.iterdir())


def test_no_prompts_and_damaged_ones(tmp_path):
    assert read_prompts(tmp_path) == {}
    for damage in (b"no gzip", gzip.compress(b"{}"), gzip.compress(b'{"format": 9}')):
        (tmp_path / FILE).write_bytes(damage)
        with pytest.raises(RunError, match="damaged prompts"):
            read_prompts(tmp_path)
