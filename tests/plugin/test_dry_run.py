"""What a dry run shows of a request is what would be sent."""

from __future__ import annotations

from rich.console import Console

from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Request
from pytest_llmeval.core.prices import Prices
from pytest_llmeval.plugin.dry_run import dry_run_parts
from pytest_llmeval.plugin.estimates import RequestEstimate
from pytest_llmeval.prompts import CLOZE
from pytest_llmeval.prompts import LMEVAL_WINOGRANDE

ITEM = Item("i", "s", "Ann dealt to Bo because _ had the pack.", 0, ("Ann", "Bo"))


def shown(request: Request) -> str:
    console = Console(width=200)
    estimate = RequestEstimate("m", "b", "likelihood", 1, 1, 1, 0, None, request)
    with console.capture() as captured:
        console.print(*dry_run_parts([estimate], Prices()), sep="\n")
    return captured.get()


def test_the_first_choice_ends_the_question_where_choices_do() -> None:
    protocol = Protocol("p", LMEVAL_WINOGRANDE, scorer="likelihood")
    assert "\nAnn dealt to Bo because Ann\n" in shown(protocol.request(ITEM, ()))
    chat = shown(protocol.with_chat().request(ITEM, ()))
    assert "\n[user]\nAnn dealt to Bo because Ann\n" in chat


def test_the_prompt_is_shown_otherwise() -> None:
    request = Protocol("p", CLOZE, scorer="cloze").request(ITEM, ())
    assert "\nQuestion: Ann dealt to Bo because _ had the pack.\nAnswer:\n" in shown(request)
