"""Faults of requests to an endpoint: classification, requested waits, and the rule to stop."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from datetime import UTC
from datetime import datetime
from email.utils import parsedate_to_datetime

from pytest_llmeval.core import FILTERED
from pytest_llmeval.core import LlmevalError
from pytest_llmeval.models.openai.error_body import ErrorBody
from pytest_llmeval.models.openai.error_body import read_error
from pytest_llmeval.models.openai.spec import Secret

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec|seconds?|m|min|minutes?|h|hours?|d)")
# OpenAI: "Please try again in 1m30.002s."; Google: "Please retry in 17.3s."; Azure: "Please retry
# after 6 seconds."
_IN_TEXT = re.compile(
    r"\b(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)?\s*[a-z]+\s*)+)", re.IGNORECASE
)


def requested_wait(headers: Mapping[str, str], message: str, now: datetime) -> float | None:
    """Return the wait in seconds that an error response requests, above 0, or None.

    Only a positive wait is used: a date in the past, 0 or less come from servers with a wrong clock
    or an expired limit, and would use up all retries within two seconds.

    Sources, in this order: ``retry-after-ms``, ``retry-after``, the text, and
    ``x-ratelimit-reset-…`` of a limit of which nothing remains
    (platform.openai.com/docs/guides/rate-limits). A date is compared with the ``date`` of the
    response, so that the clocks need not agree, else with ``now``.
    """
    if (value := headers.get("retry-after-ms")) is not None:
        milliseconds = _positive(value)
        if milliseconds is not None:
            return milliseconds / 1000
    if (value := headers.get("retry-after")) is not None:
        seconds = retry_after_seconds(value, _date(headers.get("date", "")) or now)
        if seconds is not None:
            return seconds
    if match := _IN_TEXT.search(message):
        return duration(match[1])
    waits = [
        duration(headers.get(f"x-ratelimit-reset-{what}", ""))
        for what in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{what}") == "0"
    ]
    return max((wait for wait in waits if wait is not None), default=None)


def retry_after_seconds(value: str, now: datetime) -> float | None:
    """Return the seconds of a Retry-After header: a number or an HTTP date (RFC 9110).

    None if the time is not in the future, and for invalid values.
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
    """Return the seconds of ``6m0s``, ``1m30.002s``, ``644ms`` or ``6 seconds``, or None."""
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


_RETRYABLE = frozenset({408, 409, 425, 429})
_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size|limit)|max_model_len|prompt is too long|input is too long"
    r"|too many (?:input )?tokens|maximum (?:input|sequence|model|prompt) length"
    r"|must have less than \d+ tokens|token count\b.{0,40}\bexceeds"
    r"|inputs?`? tokens \+ `?max_new_tokens",
    re.IGNORECASE,
)
# A request that exceeds a limit on its own. OpenAI (429) and Groq (413): "Request too large for …
# on tokens per min (TPM): Limit 30000, Requested 31012"; GitHub Models (413): "Request body too
# large for gpt-4o model. Max size: 8000 tokens."; Anthropic (413): request_too_large.
_TOO_LARGE = re.compile(
    r"request[ _](?:body |payload |entity )?(?:is )?too[ _]large|tokens_limit_reached"
    r"|tokens must be reduced|reduce your message size",
    re.IGNORECASE,
)
_LIMIT = re.compile(r"\blimit:? (\d[\d,_]*)", re.IGNORECASE)
_REQUESTED = re.compile(r"\brequested:? (\d[\d,_]*)", re.IGNORECASE)

# Errors of content filters on prompts and replies are recognised by a code or by their text.
# Azure: content_filter, ResponsibleAIPolicyViolation; Alibaba: data_inspection_failed; LiteLLM:
# content_policy_violation; new-api: sensitive_words_detected; OpenAI: moderation_blocked.
_FILTER_CODE = re.compile(
    r"content_?(?:filter|policy|moderat|blocked)|responsible_?ai_?policy|policy_?violation"
    r"|data_?inspection|moderation_?(?:block|flag)|safety_?(?:violation|check|block)"
    r"|sensitive_?(?:words?|content|info)|prohibited_?content|guardrail_?(?:interven|block)",
    re.IGNORECASE,
)
# OpenAI (invalid_prompt): "your prompt was flagged as potentially violating our usage policy",
# "we've limited access to this content for safety reasons"; Anthropic: "Output blocked by content
# filtering policy"; DeepSeek: "Content Exists Risk"; Moonshot: "considered high risk"; xAI (403):
# "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"; OpenRouter (403):
# "requires moderation and your input was flagged".
_FILTER = r"(?:content filter|guardrail|moderation)"
_HELD_BACK = r"(?:block|filter|trigger|reject|flag|violat|interven|stop)"
_FILTER_TEXT = re.compile(
    r"content management policy|usage (?:polic|guideline)|content (?:safety |usage )?polic"
    rf"|\b{_HELD_BACK}.{{0,80}}\b{_FILTER}|\b{_FILTER}.{{0,80}}\b{_HELD_BACK}|content exists risk"
    r"|(?:prompt|input|content|request|message)s? (?:was|were|has been|have been|is|are) flagged"
    r"|safety (?:reason|system|filter|polic|check)|inappropriate content|harmful content"
    r"|sensitive (?:words?|content|information)|considered high risk|SAFETY_CHECK|DataInspection"
    r"|prohibited (?:use|content)",
    re.IGNORECASE,
)
# Errors about a user, not about a prompt.
_BANNED = re.compile(
    r"\b(?:account|organi[sz]ation|project|api key|your access|user)\b.{0,60}"
    r"\b(?:suspended|deactivated|terminated|disabled|banned|blocked|restricted)",
    re.IGNORECASE,
)
_PAGE = re.compile(r"<\s*(?:!doctype|html|head|body)\b", re.IGNORECASE)
_FILTER_STATUS = frozenset({400, 403, 422, 451})
# OpenAI's error if reasoning has used up the token limit.
_SPENT = re.compile(r"max_tokens or model output limit was reached", re.IGNORECASE)
_LONGEST_MESSAGE = 300
_LOGIN = "set HTTPS_PROXY (or HTTP_PROXY) to http://USER:PASSWORD@HOST:PORT"


@dataclass(frozen=True, slots=True)
class Fault:
    """Reason why a request has no reply."""

    #: Category of the fault, which ``StopRule`` compares.
    kind: str
    message: str
    retryable: bool = False
    #: True if the server may be overloaded.
    overload: bool = False
    #: Wait in seconds that the server requests.
    retry_after: float | None = None
    status: int | None = None
    #: True for faults of a single item, such as a prompt that is too long.
    item_specific: bool = False
    #: Set for errors that count as a reply without text that ended for this reason.
    finish_reason: str | None = None
    #: Error body of the server.
    body: ErrorBody = field(default_factory=ErrorBody)

    def redacted(self, *secrets: Secret) -> Fault:
        """Return the fault without the key and headers, which servers may repeat in their messages."""
        message, body_message = self.message, self.body.message
        for secret in secrets:
            message, body_message = secret.redact(message), secret.redact(body_message)
        return replace(self, message=message, body=replace(self.body, message=body_message))


class RequestFailedError(LlmevalError):
    """Error for a request that failed after all retries; ``fault`` has the reason."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def status_fault(
    status: int, body: object, headers: Mapping[str, str], now: datetime | None = None
) -> Fault:
    """Return the fault for an HTTP error status.

    ``now``: time to compare a Retry-After date with if the response has no date.
    """
    error = read_error(body)
    code = next(iter(error.codes), "")
    name = f"{status} {code}".strip()
    message = _one_line(error.message)
    line = f"the server answered {name}: {message}" if message else f"the server answered {name}"
    fault = Fault(name, line, status=status, body=error)
    if status in _FILTER_STATUS and _is_filter(error):
        return replace(fault, kind="filtered", finish_reason=FILTERED, item_specific=True)
    if status == 400 and _SPENT.search(error.message):
        return replace(fault, kind="truncated", finish_reason="length", item_specific=True)
    if status == 407:
        return replace(fault, kind="proxy", message=f"the proxy needs a login: {line}; {_LOGIN}")
    wait = requested_wait(headers, error.message, now or datetime.now(UTC))
    limit, requested = _figure(_LIMIT, error.message), _figure(_REQUESTED, error.message)
    if _QUOTA.intersection(error.codes) or (
        status == 429
        # Google uses OpenAI's text for an empty account for its limits per minute, with a wait.
        and (limit == 0 or ("exceeded your current quota" in error.message and wait is None))
    ):
        return replace(fault, message=f"quota exhausted: {line}")
    if "context_length_exceeded" in error.codes or (
        status in (400, 413, 422) and _TOO_LONG.search(error.message)
    ):
        message = f"the prompt is too long: {line}"
        return replace(fault, kind="context too long", message=message, item_specific=True)
    if status == 413 or (status == 429 and _is_too_large(error, limit, requested)):
        message = f"the request is too large: {line}"
        return replace(fault, kind="request too large", message=message, item_specific=True)
    retryable = status in _RETRYABLE or status >= 500
    return replace(
        fault,
        retryable=retryable,
        overload=status == 429 or status >= 500,
        retry_after=wait if retryable else None,
    )


def body_fault(error: object) -> Fault:
    """Return the fault for ``{"error": …}`` with a success status, as some gateways send it."""
    code = error.get("code") if isinstance(error, dict) else None
    status = int(str(code)) if str(code).isdecimal() else None
    if status is not None and 400 <= status < 600:
        return status_fault(status, error, {})
    return status_fault(400 if _is_filter(read_error(error)) else 502, error, {})


def connection_fault(error: BaseException) -> Fault:
    """Return the fault for a connection that was refused, reset, or closed during a response."""
    name = type(error).__name__
    line = _one_line(str(error))
    if "CERTIFICATE_VERIFY_FAILED" in line:
        return Fault(
            "certificate",
            f"the server's certificate is not trusted: {line}; if its authority is your own, name the"
            " file with its certificate in the environment variable SSL_CERT_FILE",
        )
    if "proxy" in name.lower() and re.search(r"\b407\b", line):
        return Fault(
            "proxy",
            f"the proxy needs a login: {line}; {_LOGIN}",
        )
    return Fault(
        f"connection: {name}",
        f"connection failed: {name}: {line}" if line else f"connection failed: {name}",
        retryable=True,
    )


def timeout_fault(seconds: float) -> Fault:
    """Return the fault for a response that is not complete within the timeout."""
    return Fault("time-out", f"no answer within {seconds:g} s", retryable=True, overload=True)


def unreadable_fault(reason: str) -> Fault:
    """Return the fault for an invalid body: truncated JSON, HTML, another format."""
    return Fault(
        "unreadable answer", f"the answer cannot be read: {_one_line(reason)}", retryable=True
    )


class StopRule:
    """Rule to stop after ``limit`` consecutive final failures of the same kind.

    Item-specific faults count only until the first success.
    """

    def __init__(self, limit: int = 20) -> None:
        self.limit = limit
        self._kind: str | None = None
        self._streak = 0
        self._answered = False

    def succeeded(self) -> None:
        self._streak, self._answered = 0, True

    def failed(self, fault: Fault) -> bool:
        """Count a final failure; return True if the session should stop."""
        if fault.item_specific and self._answered:
            return False
        self._streak = self._streak + 1 if fault.kind == self._kind else 1
        self._kind = fault.kind
        return self._streak >= self.limit


def _is_filter(error: ErrorBody) -> bool:
    """Return True if a content filter blocked the prompt or the reply.

    False for HTML pages: they come from a proxy that would block every item.
    """
    if _BANNED.search(error.message) or _PAGE.search(error.message):
        return False
    return bool(_FILTER_CODE.search(" ".join(error.codes)) or _FILTER_TEXT.search(error.message))


def _is_too_large(error: ErrorBody, limit: float | None, requested: float | None) -> bool:
    """Return True if a request exceeds a limit on its own, so that waiting would not help.

    If both figures are given, they decide: "Limit 30000, Used 29000, Requested 2000" passes later.
    """
    if limit is not None and requested is not None:
        return requested > limit
    return bool(_TOO_LARGE.search(f"{error.message} {' '.join(error.codes)}"))


def _figure(pattern: re.Pattern[str], message: str) -> float | None:
    match = pattern.search(message)
    return None if match is None else float(match[1].replace(",", "").replace("_", ""))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}…"
