"""Render chat templates at a fixed date, so that a prompt is the same on every day.

Templates of Llama 3.2 and 3.3, Granite, SmolLM3, Mistral Small, gpt-oss and others write the current
date into the system message. They call ``strftime_now``, which transformers defines over the clock
(``utils.chat_template_utils``). A variable of that name cannot replace it in every release: 4.56
passes a function on to the template, 5.24 makes a text of it.

Nothing else in a template's environment reads a clock. Two of jinja2's names are random (the filter
``random`` and ``lipsum``); they are the same at every rendering here.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from datetime import datetime
from datetime import tzinfo
from typing import Any
from unittest import mock

from pytest_llmeval.core import ModelError
from pytest_llmeval.models.hf.spec import READS_DATE

_PROBE = "{{ strftime_now('%Y-%m-%d') }}"


@contextmanager
def at(day: date) -> Iterator[None]:
    """Within the context transformers renders chat templates at the beginning of this day."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Clock:
            return cls(day.year, day.month, day.day, tzinfo=tz)

    templates: Any = importlib.import_module("transformers.utils.chat_template_utils")
    state = random.getstate()
    random.seed(0)
    try:
        with mock.patch.object(templates, "datetime", Clock):
            yield
    finally:
        random.setstate(state)


def check_date(tokenizer: Any, day: date) -> None:
    """Raise ModelError where the tokenizer's chat template would read another date than this."""
    if READS_DATE not in str(tokenizer.chat_template):
        return
    messages = [{"role": "user", "content": ""}]
    with at(day):
        read = tokenizer.apply_chat_template(messages, chat_template=_PROBE, tokenize=False)
    if read != day.isoformat():
        version = importlib.import_module("transformers").__version__
        raise ModelError(
            f"the chat template writes the current date, and transformers {version} reads {read!r}"
            f" instead of {day}: use another release of it (4.56 to 5.24 are known to work)"
        )
