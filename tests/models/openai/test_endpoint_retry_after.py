"""How long is waited before a retry: what servers send, and what of it is information."""

from __future__ import annotations

from datetime import UTC
from datetime import datetime
from datetime import timedelta
from email.utils import format_datetime

import pytest

from pytest_llmeval.models.openai import faults
from pytest_llmeval.models.openai.client import RetryPolicy
from pytest_llmeval.models.openai.faults import duration
from pytest_llmeval.models.openai.faults import requested_wait
from pytest_llmeval.models.openai.faults import retry_after_seconds

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def http_date(seconds: float) -> str:
    """The HTTP date so many seconds from now."""
    return format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2.5", 2.5),
        ("7", 7.0),
        (http_date(30), 30.0),
        # No information: it would spend all retries at once.
        ("0", None),
        ("0.0", None),
        ("-3", None),
        (http_date(-5), None),
        (http_date(0), None),
        (http_date(-86400 * 365), None),
        ("Fri, 02 Jan 2026 03:04:35 -0000", 30.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("", None),
    ],
)
def test_retry_after_in_seconds_and_as_a_date(value: str, seconds: float | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@pytest.mark.parametrize("skew", [-7200, -90, 90, 7200])
def test_the_date_of_the_response_decides_where_two_clocks_differ(skew: float) -> None:
    headers = {"retry-after": http_date(skew + 30), "date": http_date(skew)}
    assert requested_wait(headers, "", NOW) == 30
    past = {"retry-after": http_date(skew - 30), "date": http_date(skew)}
    assert requested_wait(past, "", NOW) is None


def test_a_date_is_compared_with_the_own_clock_where_the_response_has_none() -> None:
    assert requested_wait({"retry-after": http_date(30)}, "", NOW) == 30
    assert requested_wait({"retry-after": http_date(30), "date": "nonsense"}, "", NOW) == 30


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, "", 1.5),
        ({"retry-after-ms": "0", "retry-after": "9"}, "", 9.0),
        ({"retry-after": "9"}, "Please try again in 2s.", 9.0),
        ({"retry-after": "0"}, "Please try again in 2s.", 2.0),
        # OpenAI: BuilderIO/micro-agent#86, microsoft/graphrag#757.
        ({}, "Limit 30000, Used 29937, Requested 385. Please try again in 644ms.", 0.644),
        ({}, "Used 73124, Requested 1877. Please try again in 1m30.002s.", 90.002),
        # Google: continuedev/continue#11926. Azure: learn.microsoft.com/azure/ai-foundry/quotas.
        ({}, "limit: 10, model: gemini Please retry in 17.30897372s.", 17.30897372),
        ({}, "pricing tier. Please retry after 6 seconds. Please go here", 6.0),
        # A limit that is not exhausted does not affect the wait.
        ({"x-ratelimit-reset-requests": "6m0s"}, "", None),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            "",
            360.0,
        ),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "0"}, "", None),
        ({}, "", None),
        ({}, "retry in a moment", None),
    ],
)
def test_the_wait_that_a_refusal_names(
    headers: dict[str, str], message: str, seconds: float | None
) -> None:
    assert requested_wait(headers, message, NOW) == pytest.approx(seconds)


def test_the_delay_of_googles_details_is_read() -> None:
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}
    body = [{"error": {"code": 429, "message": "Resource exhausted", "details": [delay]}}]
    assert faults.status_fault(429, body, {}, NOW).retry_after == 17


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("14m24s", 864.0),
        ("2h15m", 8100.0),
        ("76ms", 0.076),
        ("7.66s", 7.66),
        ("6 seconds", 6.0),
        ("2 minutes", 120.0),
        ("0s", None),
        ("60", None),
        ("", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert duration(text) == pytest.approx(seconds)


def test_only_what_is_tried_again_has_a_wait() -> None:
    assert faults.status_fault(429, None, {"retry-after": "7"}, NOW).retry_after == 7
    assert faults.status_fault(401, None, {"retry-after": "7"}, NOW).retry_after is None


def test_a_wait_is_at_least_the_wanted_one_and_at_most_the_longest() -> None:
    retry_policy = RetryPolicy(first_wait=0.5, longest_wait=60)
    assert 7 <= retry_policy.wait(0, 7) <= 7.5
    assert 60 <= retry_policy.wait(0, 86400) <= 60.5


def test_a_short_wait_does_not_shorten_the_own_one() -> None:
    """Eight retries of a server that always wants 0.01 s would be spent within a moment."""
    retry_policy = RetryPolicy(first_wait=0.5, longest_wait=60)
    assert sum(retry_policy.wait(retry, 0.01) for retry in range(8)) > 0.25 * (2**8 - 1)


def test_waits_double_up_to_a_limit_and_are_partly_random() -> None:
    retry_policy = RetryPolicy(first_wait=0.5, longest_wait=60)
    for retry, longest in ((0, 0.5), (1, 1.0), (4, 8.0), (20, 60.0)):
        waits = {retry_policy.wait(retry, None) for _ in range(50)}
        assert all(longest / 2 <= wait <= longest for wait in waits)
        assert len(waits) > 10
