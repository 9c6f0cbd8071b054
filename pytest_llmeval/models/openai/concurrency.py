"""How many requests to have in flight: more while that answers more, fewer when pushed back.

Pure bookkeeping: times come from the caller. Outcomes are counted in rounds of about twice the
limit, so that a round tells what the limit brought.
"""

from __future__ import annotations

from dataclasses import dataclass

_START = 8
_ROUND = 16
# Twice as many requests must bring this much more, or there is nothing to gain.
_GAIN = 1.1
_CUT = 0.7
# A cut that leaves less of the answers a second than this was not what was needed.
_COST = 0.85
# Share of requests pushed back, beyond what happens anyway, from which on there are too many.
_TOO_MANY = 0.1
# Share from which on it is too many whatever the cause; the count of answers is all noise there.
_MOST = 0.5
# Rounds before growth is tried again.
_PATIENCE = 10


@dataclass(slots=True)
class _Round:
    started: float
    answered: int = 0
    pushed_back: int = 0

    @property
    def outcomes(self) -> int:
        return self.answered + self.pushed_back

    @property
    def share(self) -> float:
        return self.pushed_back / self.outcomes


class Window:
    """The number of requests in flight. ``limit`` changes as outcomes are told.

    ``fixed``: begin with ``most`` instead of finding out; it still gives way to a server that
    pushes back, and returns.
    """

    def __init__(self, most: int, *, fixed: bool = False) -> None:
        self.most = most
        self.limit = most if fixed else min(_START, most)
        self._growing = not fixed
        self._best = 0.0
        self._before_growth = self.limit
        # The limit and the answers a second before the last cut.
        self._before_cut: tuple[int, float] | None = None
        self._anyway = 0.0
        self._waited = 0
        self._round: _Round | None = None

    def succeeded(self, now: float, *, full: bool) -> None:
        """Note an answer. ``full``: as many were in flight as the limit allows."""
        if not full:
            # A round in which there was too little to ask says nothing about the limit.
            self._round = None
            return
        self._count(now).answered += 1
        self._end_round(now)

    def pushed_back(self, now: float) -> None:
        """Note that the server was overloaded: 429, 5xx, no answer in time."""
        self._count(now).pushed_back += 1
        self._end_round(now)

    def _count(self, now: float) -> _Round:
        if self._round is None:
            self._round = _Round(now)
        return self._round

    def _end_round(self, now: float) -> None:
        done = self._round
        if done is None or done.outcomes < max(2 * self.limit, _ROUND) or now <= done.started:
            return
        self._round = None
        rate = done.answered / (now - done.started)
        if done.share > self._anyway + _TOO_MANY:
            self._cut(done.share, rate)
            return
        self._before_cut = None
        self._anyway += (done.share - self._anyway) / 4
        self._waited += 1
        if self._growing and rate < self._best * _GAIN:
            # The last step brought nothing: back to where it was taken from.
            self.limit, self._growing, self._waited = self._before_growth, False, 0
        elif self._growing or self._waited >= _PATIENCE:
            self._best, self._before_growth = rate, self.limit
            self.limit = min(self.most, 2 * self.limit)
            self._growing, self._waited = self.limit > self._before_growth, 0

    def _cut(self, share: float, rate: float) -> None:
        self._growing, self._waited = False, 0
        before = self._before_cut
        if before is not None and rate < before[1] * _COST and share < _MOST:
            # Fewer requests, fewer answers: it is not our number that has them pushed back.
            self.limit, self._anyway = before[0], share
            self._before_cut = None
            return
        self._before_cut = (self.limit, rate)
        self.limit = max(1, int(self.limit * _CUT))
