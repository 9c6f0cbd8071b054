"""The price table: ``prices.toml`` → what a million tokens of a model cost.

    version = 1
    currency = "USD"

    [models."openai:qwen3-8b"]
    input = 0.15
    cached_input = 0.075         # of prompt tokens that the server had computed; default: input
    output = 0.60                # reasoning is output

Prices change and differ by contract, so none come with the plugin.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel
from pydantic import ConfigDict
from pydantic import NonNegativeFloat
from pydantic import ValidationError

from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.usage import Price
from pytest_llmeval.core.validation import explain
from pytest_llmeval.core.validation import mistake
from pytest_llmeval.core.validation import read_text
from pytest_llmeval.core.validation import toml_problem


@dataclass(frozen=True)
class Prices:
    """Prices by model: its spec without what follows ``?``."""

    currency: str = ""
    models: Mapping[str, Price] = field(default_factory=dict)

    def of(self, model: str) -> Price | None:
        """The price of the model of that spec, if it is known."""
        return self.models.get(priced_as(model))

    def money(self, amount: float) -> str:
        """An amount to be read by people: two significant digits at least, and the currency."""
        small = 0 < amount < 0.001
        digits = (
            1 - math.floor(math.log10(amount)) if small else 2 if amount == 0 or amount >= 10 else 4
        )
        return f"{amount:,.{digits}f} {self.currency}".rstrip()


def priced_as(model: str) -> str:
    """The model as price tables name it."""
    return model.partition("?")[0]


class _Price(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)

    input: NonNegativeFloat
    output: NonNegativeFloat
    cached_input: NonNegativeFloat | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)

    version: Literal[1]
    currency: str = ""
    models: dict[str, _Price]


def load_prices(path: Path) -> Prices:
    """Read and check a price table. Raises ConfigError, in one line, for any mistake in it."""
    file = str(path)
    text = read_text(path, "price table")
    try:
        read = _File.model_validate(tomllib.loads(text))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        keys, problem = explain(first)
        if first["type"] == "extra_forbidden":
            table = _Price if len(keys) > 2 else _File
            problem = f"unknown key{suggestion(keys[-1], table.model_fields)}"
        raise mistake(file, keys, problem) from None
    except (ValueError, RecursionError) as error:
        raise mistake(file, (), toml_problem(str(error), text)) from None
    for spec in read.models:
        if "?" in spec:
            raise mistake(file, ("models", spec), "write the model without what follows '?'")
    return Prices(
        read.currency,
        {spec: Price(one.input, one.output, one.cached_input) for spec, one in read.models.items()},
    )
