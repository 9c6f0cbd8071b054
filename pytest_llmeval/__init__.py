"""pytest-llmeval: a benchmark item is a pytest test, a model is a fixture, a gate is a line."""

from __future__ import annotations

from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core import Template

__all__ = [
    "Benchmark",
    "Dataset",
    "Decoding",
    "Item",
    "Outcome",
    "Protocol",
    "Request",
    "Response",
    "Template",
]

__version__ = "0.1.0"
