"""The price table ``prices.toml``: prices of a million tokens by model.

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
from pytest_llmeval.core.validation import explain_validation_error
from pytest_llmeval.core.validation import located_error
from pytest_llmeval.core.validation import read_text
from pytest_llmeval.core.validation import toml_problem


@dataclass(frozen=True)
class Prices:
    """Prices by model; a key is the model's spec without the part from ``?``."""

    currency: str = ""
    models: Mapping[str, Price] = field(default_factory=dict)

    def of(self, model: str) -> Price | None:
        """Return the price for a model's spec; None if the table has none."""
        return self.models.get(price_key(model))

    def format_amount(self, amount: float) -> str:
        """Return an amount with its currency, with two significant digits or more."""
        small = 0 < amount < 0.001
        digits = (
            1 - math.floor(math.log10(amount)) if small else 2 if amount == 0 or amount >= 10 else 4
        )
        return f"{amount:,.{digits}f} {self.currency}".rstrip()


def price_key(model: str) -> str:
    """Return the key of a model in price tables."""
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
    """Read and validate a price table; raise ConfigError, in one line, for any mistake in it."""
    file = str(path)
    text = read_text(path, "price table")
    try:
        table = _File.model_validate(tomllib.loads(text))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        keys, problem = explain_validation_error(first)
        if first["type"] == "extra_forbidden":
            schema = _Price if len(keys) > 2 else _File
            problem = f"unknown key{suggestion(keys[-1], schema.model_fields)}"
        raise located_error(file, keys, problem) from None
    except (ValueError, RecursionError) as error:
        raise located_error(file, (), toml_problem(str(error), text)) from None
    for spec in table.models:
        if "?" in spec:
            raise located_error(file, ("models", spec), "write the model without the part from '?'")
    return Prices(
        table.currency,
        {
            spec: Price(price.input, price.output, price.cached_input)
            for spec, price in table.models.items()
        },
    )
