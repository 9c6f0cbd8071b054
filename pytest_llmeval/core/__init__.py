"""The words of the project as frozen dataclasses: Item, Benchmark, Protocol, Request, Response …

Nothing here does I/O or imports an optional dependency. Every other room builds on these
types, so a change here is a change everywhere: keep them small.
"""

from __future__ import annotations

from .benchmark import Benchmark
from .canonical import canonical_json
from .errors import ConfigError
from .errors import DataError
from .errors import ModelError
from .errors import RunError
from .exchange import FILTERED
from .exchange import REFUSED
from .exchange import Ask
from .exchange import Decoding
from .exchange import Request
from .exchange import Response
from .exchange import mend
from .items import ITEM_ID
from .items import LABELS
from .items import Dataset
from .items import Item
from .items import check_dataset
from .items import subject_sizes
from .prompt import Prompt
from .prompt import Template
from .protocol import LETTER_DECODING
from .protocol import Arrange
from .protocol import Draw
from .protocol import Protocol
from .records import Outcome
from .records import Record
from .records import Score

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
    "mend",
    "subject_sizes",
]
