"""Whether what was measured is inside a bound: by its value, by its interval, against chance."""

from __future__ import annotations

import math

from pytest_llmeval.gates.bounds import Bound
from pytest_llmeval.gates.bounds import percent
from pytest_llmeval.gates.estimates import Measured
from pytest_llmeval.gates.verdict import TOLERANCE
from pytest_llmeval.gates.verdict import Status


def _limits(bound: Bound) -> tuple[float, float]:
    least = -math.inf if bound.min is None else bound.min - TOLERANCE
    return least, math.inf if bound.max is None else bound.max + TOLERANCE


def decide(bound: Bound, measured: Measured) -> Status:
    """By the values, whatever the errors could have been."""
    least, most = _limits(bound)
    return "pass" if measured.least.value >= least and measured.most.value <= most else "fail"


def decide_by_interval(bound: Bound, measured: Measured) -> tuple[Status, str]:
    least, most = _limits(bound)
    low, high = measured.interval
    status: Status
    if low >= least and high <= most:
        status, how = "pass", "is inside"
    elif high < least or low > most:
        status, how = "fail", "is outside"
    else:
        status, how = "undecided", "straddles"
    return status, f"the {percent(bound.level)} interval {how} the bound"


def decide_finite(bound: Bound, measured: Measured, subject: str | None) -> tuple[Status, str]:
    """A draw, asked for the value of the whole: it can only be shown to be out of bounds."""
    least, most = _limits(bound)
    low, high = measured.interval
    whole = "benchmark" if subject is None else "subject"
    reason = f"the whole {whole}'s value is between {low:.4f} and {high:.4f} (95 %)"
    return "fail" if high < least or low > most else "undecided", reason


def decide_chance(
    bound: Bound, measured: Measured, chance: float, subject: bool
) -> tuple[Status, str]:
    """Two-sided: knowing too much is a finding too, such as a leak of the answers."""
    level = f"chance {chance:.4g}{' of the whole benchmark' if subject else ''}"
    interval = f"the {percent(bound.level)} interval"
    if measured.least.low > chance + TOLERANCE:
        return "fail", f"{interval} is above {level}: more than chance is a finding too"
    if measured.most.high < chance - TOLERANCE:
        return "fail", f"{interval} is below {level}: less than chance is a finding too"
    # The intervals move up with every error that is taken as right.
    if measured.most.low <= chance + TOLERANCE and measured.least.high >= chance - TOLERANCE:
        return "pass", f"{interval} contains {level}"
    return "undecided", f"whether {interval} contains {level} depends on the errors"
