"""A key that can be sent, and is shown nowhere."""

from __future__ import annotations

from typing import NoReturn

# Shorter than this it protects nothing, and striking it out would make messages unreadable.
_SHORTEST = 6


class Secret:
    """A key. Its representation does not hold it, and it cannot be pickled."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "<key>"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not written anywhere")

    def reveal(self) -> str:
        """The key itself, for the one place that sends it."""
        return self._value

    def struck_from(self, text: str) -> str:
        """The text without the key: servers repeat what they were sent in their messages."""
        return text if len(self._value) < _SHORTEST else text.replace(self._value, "***")
