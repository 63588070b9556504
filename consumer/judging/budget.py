"""How large a share of the sampled answers the judge sees, so that calls and tokens stay within a minute's and a day's
budget: a lower rate by the hash that sampled, never a hole (design: section 3).

Each limit allows a rate: for a minute, what a bucket of one minute's budget holds, over a minute; for a day (UTC), what
is left of it over the time that is left. The share is the tightest of these over what all answers would cost now. It
depends on past arrivals and past costs only, never on the answer at hand, so weighted means stay unbiased.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

from consumer.judge_settings import Judge

FLOOR = 0.001
"""The share never falls below this: a metric never goes silent for the rest of a day."""
DAY = 86_400.0
MINUTE = 60.0
FIRST_SHARE = 0.05
"""Let through while it is not known yet how much arrives: for one tick."""
TICK_SECONDS = 1.0
MEMORY_SECONDS = 30.0
"""Time constant of the moving averages of arrivals and costs; a rise of arrivals counts at once."""
FIRST_CALLS, FIRST_TOKENS = 4.0, 4000.0
"""What an answer is taken to cost until some have been judged."""
ANSWERS_REMEMBERED = 50.0


@dataclass(slots=True)
class _Limit:
    """What may be spent of one unit. `held` is what answers at the judge will probably cost."""

    most: float
    seconds: float
    unit: int
    left: float

    def accrue(self, elapsed: float) -> None:
        """The bucket of a minute; a day's budget is set anew at midnight instead."""
        self.left = min(self.most, self.left + self.most * elapsed / self.seconds)


class Budget:
    """Safe for threads. `now` is monotonic seconds, `wall_clock` seconds since the epoch (UTC).

    A budget is that of one process. A process that starts in the middle of a day takes it that the day so far has used
    its part, so that restarts do not multiply a day's budget.
    """

    def __init__(self, settings: Judge, now: Callable[[], float], wall_clock: Callable[[], float]) -> None:
        self._now = now
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        passed = wall_clock() % DAY
        self._day = wall_clock() // DAY
        self._minutes = [
            _Limit(float(most), MINUTE, unit, float(most))
            for unit, most in enumerate((settings.calls_per_minute, settings.tokens_per_minute))
            if most
        ]
        self._days = [
            _Limit(float(most), DAY, unit, most * (1.0 - passed / DAY))
            for unit, most in enumerate((settings.calls_per_day, settings.tokens_per_day))
            if most
        ]
        self._costs = [FIRST_CALLS, FIRST_TOKENS]
        """Calls and tokens of one answer, moving averages."""
        self._answers = 0.0
        self._held = 0
        """Answers that were let through and have not come back: their cost is not yet taken off."""
        self._spent_since = [0.0, 0.0]
        self._finished_since = 0
        self._arrivals = 0
        self._rate = 0.0
        self._tick_at = now()
        self._known = False
        self._share = FIRST_SHARE if self._minutes or self._days else 1.0

    @property
    def share(self) -> float:
        """The share in force, in [FLOOR, 1]."""
        return self._share

    def admits(self, unit: float, probability: float) -> float | None:
        """The inclusion probability of the judge's metrics for an answer at `unit` in [0, 1) that was sampled with
        `probability`; None where the budget leaves it out. An answer that is admitted must come back by `finished`."""
        with self._lock:
            self._arrivals += 1
            if self._minutes or self._days:
                self._tick()
            included = probability * self._share
            if unit >= included:
                return None
            self._held += 1
            return included

    def spent(self, calls: int, tokens: int) -> None:
        """A request was made, or its tokens became known."""
        with self._lock:
            for limit in (*self._minutes, *self._days):
                limit.left -= (calls, tokens)[limit.unit]
            self._spent_since[0] += calls
            self._spent_since[1] += tokens

    def finished(self) -> None:
        """An admitted answer has come back, judged or not."""
        with self._lock:
            self._held -= 1
            self._finished_since += 1

    def _tick(self) -> None:
        elapsed = self._now() - self._tick_at
        if elapsed < TICK_SECONDS:
            return
        self._tick_at += elapsed
        self._learn(elapsed)
        self._renew(elapsed)
        allowed = min(self._allowed(limit) for limit in (*self._minutes, *self._days))
        self._share = min(1.0, max(FLOOR, allowed / self._rate)) if self._rate > 0 else 1.0

    def _learn(self, elapsed: float) -> None:
        latest = self._arrivals / elapsed
        if not self._known:
            self._known, self._rate = True, latest
        weight = 1.0 - math.exp(-elapsed / MEMORY_SECONDS)
        self._rate += weight * (latest - self._rate)
        # One second with a few more answers is chance; what is well above it is a rise.
        if self._arrivals - math.sqrt(self._arrivals) > 2 * self._rate * elapsed:
            self._rate = latest
        self._arrivals = 0
        if self._finished_since:
            self._answers = min(ANSWERS_REMEMBERED, self._answers + self._finished_since)
            part = min(1.0, self._finished_since / self._answers)
            for unit in (0, 1):
                each = self._spent_since[unit] / self._finished_since
                self._costs[unit] += part * (each - self._costs[unit])
                self._spent_since[unit] = 0.0
            self._finished_since = 0

    def _renew(self, elapsed: float) -> None:
        for limit in self._minutes:
            limit.accrue(elapsed)
        day = self._wall_clock() // DAY
        if day != self._day:
            self._day = day
            for limit in self._days:
                limit.left = limit.most

    def _allowed(self, limit: _Limit) -> float:
        """Answers a second that this limit can bear from here on."""
        cost = max(self._costs[limit.unit], 1e-6)
        left = max(0.0, limit.left - self._held * cost)
        seconds = limit.seconds
        if limit.seconds == DAY:
            seconds = max(DAY - self._wall_clock() % DAY, MINUTE)
        return left / seconds / cost
