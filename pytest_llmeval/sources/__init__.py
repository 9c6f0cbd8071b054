"""Where items come from: local files, the hub, packages. Rows in, ``Dataset`` out."""

from __future__ import annotations

from pytest_llmeval.sources.find import find
from pytest_llmeval.sources.names import safe_id
from pytest_llmeval.sources.own import jsonl

__all__ = ["find", "jsonl", "safe_id"]
