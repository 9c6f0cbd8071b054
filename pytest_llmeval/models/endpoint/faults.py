"""What can go wrong with one request, and what follows from it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

_RETRYABLE = frozenset({408, 409, 425, 429})
_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|max_model_len|prompt is too long|input is too long"
    r"|too many (?:input )?tokens|maximum (?:input|sequence|model) length"
    r"|must have less than \d+ tokens",
    re.IGNORECASE,
)
_LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a request has no answer. ``kind`` is what two equal faults have in common.

    ``overload``: the server may have too much to do. ``retry_after``: seconds it asked for.
    ``of_item``: it is the item's own (a prompt too long), and says nothing about others.
    """

    kind: str
    message: str
    retryable: bool = False
    overload: bool = False
    retry_after: float | None = None
    status: int | None = None
    of_item: bool = False


class Failed(Exception):
    """A request that failed for good."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def of_status(
    status: int, body: object, headers: Mapping[str, str], now: datetime | None = None
) -> Fault:
    """The fault behind an HTTP status that is none of success.

    ``now`` is the time that a Retry-After date is compared with.
    """
    message, code = _said(body)
    name = f"{status} {code}".strip()
    line = f"the server answered {name}: {message}" if message else f"the server answered {name}"
    if code in _QUOTA or (status == 429 and "exceeded your current quota" in message):
        return Fault(name, f"quota exhausted: {line}", status=status)
    if code == "context_length_exceeded" or (
        status in (400, 413, 422) and _TOO_LONG.search(message)
    ):
        return Fault(
            "context too long", f"the prompt is too long: {line}", status=status, of_item=True
        )
    retryable = status in _RETRYABLE or status >= 500
    return Fault(
        name,
        line,
        retryable=retryable,
        overload=status == 429 or status >= 500,
        retry_after=_retry_after(headers, now or datetime.now(UTC)) if retryable else None,
        status=status,
    )


def of_body(error: object) -> Fault:
    """The fault behind ``{"error": …}`` under a status of success, as some gateways send it."""
    status = error.get("code") if isinstance(error, dict) else None
    known = isinstance(status, int) and 400 <= status < 600
    return of_status(status if known and isinstance(status, int) else 502, error, {})


def of_connection(error: BaseException) -> Fault:
    """A connection that was refused, reset, or closed within an answer."""
    name = type(error).__name__
    line = _one_line(str(error))
    return Fault(
        f"connection: {name}",
        f"connection failed: {name}: {line}" if line else f"connection failed: {name}",
        retryable=True,
    )


def timed_out(seconds: float) -> Fault:
    """No whole answer within the time a request is given."""
    return Fault("time-out", f"no answer within {seconds:g} s", retryable=True, overload=True)


def unreadable(reason: str) -> Fault:
    """An answer of success that is none: torn JSON, HTML, another shape."""
    return Fault(
        "unreadable answer", f"the answer cannot be read: {_one_line(reason)}", retryable=True
    )


def retry_after_seconds(value: str, now: datetime) -> float | None:
    """Seconds to wait by a Retry-After header, given as seconds or as an HTTP date.

    None for anything else; a date that has passed is 0.
    """
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds()
        return max(seconds, 0.0)
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


class StopRule:
    """Tells when to give up: when so many requests in a row failed for good in the same way.

    A fault of the item itself counts only as long as nothing has been answered.
    """

    def __init__(self, limit: int = 20) -> None:
        self.limit = limit
        self._kind: str | None = None
        self._row = 0
        self._answered = False

    def succeeded(self) -> None:
        self._row, self._answered = 0, True

    def failed(self, fault: Fault) -> bool:
        """Note a final failure; True when it is time to give up."""
        if fault.of_item and self._answered:
            return False
        self._row = self._row + 1 if fault.kind == self._kind else 1
        self._kind = fault.kind
        return self._row >= self.limit


def _retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    milliseconds = headers.get("retry-after-ms")
    if milliseconds is not None:
        seconds = retry_after_seconds(milliseconds, now)
        return None if seconds is None else seconds / 1000
    value = headers.get("retry-after")
    return None if value is None else retry_after_seconds(value, now)


def _said(body: object) -> tuple[str, str]:
    """Message and code of an error body, whichever shape the server gives it."""
    if isinstance(body, dict) and isinstance(body.get("error"), dict | str):
        body = body["error"]
    if isinstance(body, dict):
        message: Any = body.get("message") or body.get("detail") or ""
        names = (body.get("code"), body.get("type"))
        return _one_line(str(message)), next((n for n in names if isinstance(n, str)), "")
    return _one_line(body if isinstance(body, str) else ""), ""


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}…"
