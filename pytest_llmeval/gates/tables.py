"""A table of thresholds.toml as a frozen model: its keys are checked, and tables can be merged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from typing import ClassVar
from typing import Self

from pydantic import BaseModel
from pydantic import ConfigDict
from pydantic import model_validator
from pydantic_core import PydanticCustomError

from pytest_llmeval.core.suggestions import suggestion
from pytest_llmeval.core.toml_errors import EMPTY_TABLE


def problem(text: str, key: str | None = None) -> PydanticCustomError:
    """A mistake in the table or value being validated, or in one ``key`` of it."""
    return PydanticCustomError("gate", "{text}", {"text": text, "key": key})


class Table(BaseModel):
    """A TOML table with known keys."""

    # Built by the first file that is read: most sessions import the gates and have no such file.
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", defer_build=True)

    # Message instead of "unknown key" for a key that is right in another table.
    elsewhere: ClassVar[Mapping[str, str]] = {}
    empty: ClassVar[str] = EMPTY_TABLE

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, data: Any) -> Any:
        # First of all checks: a misspelt key explains whatever else is wrong with the table.
        if isinstance(data, dict):
            for key in data:
                if key in cls.model_fields or cls.accepts(key):
                    continue
                if key in cls.elsewhere:
                    raise problem(cls.elsewhere[key], key)
                raise problem(f"unknown key {key!r}{suggestion(key, cls.model_fields)}", key)
            if not data:
                raise problem(cls.empty)
        return data

    @classmethod
    def accepts(cls, key: str) -> bool:
        """True for a key that is valid although it is no field; may raise a ``problem``."""
        return False

    def merged(self, over: Self) -> Self:
        """The table with the keys that ``over`` sets, each merged with its own value."""
        update = {
            key: merge(getattr(self, key, None), getattr(over, key))
            for key in over.model_fields_set
        }
        return self.model_copy(update=update)


def merge(base: Any, over: Any) -> Any:
    """Return ``over`` where it is a single value, else the tables of both, merged key by key."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{key: merge(base.get(key), value) for key, value in over.items()}}
    if isinstance(base, Table) and isinstance(over, Table):
        return base.merged(over)
    return over
