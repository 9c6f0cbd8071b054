"""CommonsenseQA as lm-evaluation-harness asks it: question, lettered options, letters compared.

Source: ``tasks/commonsense_qa/default.yaml`` of lm-evaluation-harness 0.4.13, which knows five
options. The question is stripped, the options are not. Here it takes any number of options, and
also asks benchmarks by letter for which no lettered format was published.
"""

from __future__ import annotations

from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.lettered import labels
from pytest_llmeval.prompts.lettered import no_description
from pytest_llmeval.prompts.lettered import option_lines


def _question(item: Item) -> str:
    return f"Question: {item.question.strip()}{option_lines(item)}\nAnswer:"


LMEVAL_COMMONSENSEQA = Template(
    name="lmeval-commonsenseqa", description=no_description, question=_question, choices=labels
)
