"""Frozen dataclasses of the project's vocabulary: Item, Benchmark, Protocol, Request, Response.

Nothing here does I/O or imports an optional dependency. Every other package depends on these
types, so they are kept small.
"""

from __future__ import annotations

from pytest_llmeval.core.benchmark import Benchmark
from pytest_llmeval.core.errors import ConfigError
from pytest_llmeval.core.errors import DataError
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.errors import ModelError
from pytest_llmeval.core.errors import RunError
from pytest_llmeval.core.hashing import canonical_json
from pytest_llmeval.core.items import ITEM_ID
from pytest_llmeval.core.items import LABELS
from pytest_llmeval.core.items import Dataset
from pytest_llmeval.core.items import Item
from pytest_llmeval.core.items import check_dataset
from pytest_llmeval.core.items import option_index
from pytest_llmeval.core.items import option_label
from pytest_llmeval.core.items import option_labels
from pytest_llmeval.core.items import subject_sizes
from pytest_llmeval.core.protocol import LETTER_DECODING
from pytest_llmeval.core.protocol import Arrange
from pytest_llmeval.core.protocol import Draw
from pytest_llmeval.core.protocol import Protocol
from pytest_llmeval.core.record import Outcome
from pytest_llmeval.core.record import Record
from pytest_llmeval.core.record import Score
from pytest_llmeval.core.request import FILTERED
from pytest_llmeval.core.request import REFUSED
from pytest_llmeval.core.request import Ask
from pytest_llmeval.core.request import Decoding
from pytest_llmeval.core.request import Request
from pytest_llmeval.core.request import Response
from pytest_llmeval.core.request import replace_lone_surrogates
from pytest_llmeval.core.template import Prompt
from pytest_llmeval.core.template import Template

__all__ = [
    "FILTERED",
    "ITEM_ID",
    "LABELS",
    "LETTER_DECODING",
    "REFUSED",
    "Arrange",
    "Ask",
    "Benchmark",
    "ConfigError",
    "DataError",
    "Dataset",
    "Decoding",
    "Draw",
    "Item",
    "LlmevalError",
    "ModelError",
    "Outcome",
    "Prompt",
    "Protocol",
    "Record",
    "Request",
    "Response",
    "RunError",
    "Score",
    "Template",
    "canonical_json",
    "check_dataset",
    "option_index",
    "option_label",
    "option_labels",
    "replace_lone_surrogates",
    "subject_sizes",
]
