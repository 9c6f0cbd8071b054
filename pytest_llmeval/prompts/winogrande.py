"""WinoGrande by partial evaluation: which option makes the rest of the sentence likelier.

Sources: Trinh & Le (2018) for the method, ``tasks/winogrande`` of lm-evaluation-harness 0.4.13
for the text. Each option fills the blank; what stands before the blank and the option itself are
read, only what follows is scored. The scored text is the same for all options.
"""

from __future__ import annotations

from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.lettered import no_description
from pytest_llmeval.prompts.lettered import whole_options

BLANK = "_"


def _before(item: Item) -> str:
    return item.question.partition(BLANK)[0]


def _after(item: Item) -> tuple[str, ...]:
    rest = item.question.partition(BLANK)[2].strip()
    return (rest,) * len(item.options)


LMEVAL_WINOGRANDE = Template(
    name="lmeval-winogrande",
    description=no_description,
    question=_before,
    choices=_after,
    given=whole_options,
)
