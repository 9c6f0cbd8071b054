"""The wait that a server requests with a refusal, from its headers or its text.

Only a positive wait is information. A date that has passed, 0 and less come from servers with a wrong
clock or an expired limit; to follow them would spend all retries within two seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC
from datetime import datetime
from email.utils import parsedate_to_datetime

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec|seconds?|m|min|minutes?|h|hours?|d)")
# OpenAI: "Please try again in 1m30.002s."; Google: "Please retry in 17.3s."; Azure: "Please retry
# after 6 seconds."
_IN_TEXT = re.compile(
    r"\b(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)?\s*[a-z]+\s*)+)", re.IGNORECASE
)


def wait_wanted(headers: Mapping[str, str], message: str, now: datetime) -> float | None:
    """Seconds that a refusal requests, above 0; None where it requests no wait.

    In this order: ``retry-after-ms``, ``retry-after``, the text, and ``x-ratelimit-reset-…`` of
    a limit of which nothing remains (platform.openai.com/docs/guides/rate-limits). A date is
    compared with the response's own ``date``, so that the two clocks need not agree; with ``now``
    where it has none.
    """
    if (value := headers.get("retry-after-ms")) is not None:
        milliseconds = _positive(value)
        if milliseconds is not None:
            return milliseconds / 1000
    if (value := headers.get("retry-after")) is not None:
        seconds = retry_after_seconds(value, _date(headers.get("date", "")) or now)
        if seconds is not None:
            return seconds
    if found := _IN_TEXT.search(message):
        return duration(found[1])
    waits = [
        duration(headers.get(f"x-ratelimit-reset-{what}", ""))
        for what in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{what}") == "0"
    ]
    return max((wait for wait in waits if wait is not None), default=None)


def retry_after_seconds(value: str, now: datetime) -> float | None:
    """Seconds to wait by a Retry-After header, given as seconds or as an HTTP date (RFC 9110).

    None for what is not in the future, and for anything else.
    """
    seconds = _positive(value)
    if seconds is not None:
        return seconds
    date = _date(value)
    if date is None:
        return None
    seconds = (date - now).total_seconds()
    return seconds if seconds > 0 else None


def duration(text: str) -> float | None:
    """Seconds of ``6m0s``, ``1m30.002s``, ``644ms`` or ``6 seconds``; None for 0 and others."""
    seconds = sum(
        float(number) * _UNITS["ms" if unit.startswith(("ms", "mil")) else unit[0]]
        for number, unit in _PART.findall(text.lower())
    )
    return seconds if seconds > 0 else None


def _positive(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return date.replace(tzinfo=date.tzinfo or UTC)
