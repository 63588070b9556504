"""How much of what was sampled is scored when there is more than the scorer can do.

Two ways to bear overload. While the topic is fresh enough, a full queue pauses the partitions and the topic holds the
rest. Once the events at hand are older than `max_delay_seconds`, freshness wins: the scorer sheds, by the same hash
that sampled, and the loss goes into the probability of what is kept. The admitted share depends on past arrivals and
service times only, never on the event at hand, so weighted means stay unbiased (Horvitz and Thompson, JASA 47, 1952).
"""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)

FLOOR = 0.0001
"""The admitted share never falls below this: a metric never goes silent for good."""
FIRST_SHARE = 0.005
"""Admitted while it is not yet known how much arrives without pauses: for one tick."""
TICK_SECONDS = 0.2
QUEUE_SECONDS = 2.0
"""While shedding, the queue is steered to this much work, so that what is admitted is fresh when it is scored."""
PAUSE_SECONDS = 5.0
"""More work than this in the queue pauses the partitions; a longer queue would only make what is scored older."""
BATCH_SECONDS = 1.0
FIRST_BATCH = 2
HEADROOM = 0.95
RECOVERY_SECONDS = 10.0
MEMORY = 0.3
"""Weight of the newest tick in the moving averages of arrivals and of service time."""

SETTLED_SECONDS = 2.0
"""Shedding is told of once the share that is scored has been steered for so long."""
TOLD_SECONDS = 300.0
"""Between two warnings: a scorer at its limit may shed, recover and shed again all day."""


class SheddingLog:
    """One warning when shedding begins, and a line when a shedding that was told of has ended."""

    def __init__(self, max_delay_seconds: float) -> None:
        self._max_delay = max_delay_seconds
        self._began: float | None = None
        self._told_at: float | None = None
        self._open = False

    def look(self, now: float, shedding: bool, age: float, share: float) -> None:
        """`now` is monotonic; `age` of the event at hand and what is told are in seconds."""
        if not shedding:
            if self._open and self._began is not None:
                log.warning("shedding ended after %.0f s: every sampled event is scored again", now - self._began)
            self._began, self._open = None, False
            return
        if self._began is None:
            self._began = now
        recently = self._told_at is not None and now - self._told_at < TOLD_SECONDS
        if self._open or recently or now - self._began < SETTLED_SECONDS:
            return
        self._told_at, self._open = now, True
        log.warning(
            "shedding: events are %.0f s old when their turn comes (scorer.max_delay_seconds is %.0f) and more arrive "
            "than can be scored; %s of what was sampled is scored now (by hash), until the backlog is worked off. "
            "Start more scorers, or lower sampling.rate (docs/delivery.md)",
            age, self._max_delay, _percent(share),
        )  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


class Admission:
    """Steers the admitted share. Times are seconds of one monotonic clock, passed in.

    Single writer per method: `arrived`, `admitted_share` from the poll thread, `served` from the inference thread.
    """

    def __init__(self, max_delay_seconds: float) -> None:
        self._max_delay = max_delay_seconds
        self._share = 1.0
        self._shedding = False
        self._service_rate = 0.0
        self._arrival_rate = 0.0
        self._arrivals = 0
        self._tick_start: float | None = None
        self._relaxed_since: float | None = None
        self._log = SheddingLog(max_delay_seconds)

    @property
    def shedding(self) -> bool:
        return self._shedding

    def batch_limit(self, most: int) -> int:
        """How many events one batch may hold: about a second of work, so that a cold model or a slow judge does not
        hide behind one long batch; two before the first has told how fast the scorer is."""
        return max(1, min(most, int(self._service_rate * BATCH_SECONDS) or FIRST_BATCH))

    def queue_limit(self, batch_events: int, most: int) -> int:
        """How many events may wait for a score before partitions are paused: a few seconds of work, at least two
        batches, at most `most`. While shedding the share steers the queue: a pause would hide how much arrives."""
        if self._shedding:
            return most
        return min(most, max(2 * self.batch_limit(batch_events), int(self._service_rate * PAUSE_SECONDS)))

    def served(self, events: int, seconds: float) -> None:
        """A batch of `events` took `seconds` of the inference thread."""
        rate = events / max(seconds, 1e-6)
        self._service_rate = rate if self._service_rate == 0.0 else (1 - MEMORY) * self._service_rate + MEMORY * rate

    def arrived(self) -> None:
        """One event passed the sampler."""
        self._arrivals += 1

    def admitted_share(self, now: float, age: float, queued: int) -> float:
        """The share in [FLOOR, 1] of sampled events to score now.

        `age` is how long ago the event at hand was logged, in seconds; `queued` counts events that wait for a score.
        """
        if self._tick_start is None:
            self._tick_start = now
        if not self._shedding and age > self._max_delay and 0.0 < self._service_rate * QUEUE_SECONDS < queued:
            self._shedding, self._share = True, FIRST_SHARE
            self._arrivals, self._arrival_rate, self._tick_start = 0, 0.0, now
        elapsed = now - self._tick_start
        if elapsed >= TICK_SECONDS:
            self._tick(now, elapsed, queued)
            self._log.look(now, self._shedding, age, self._share)
        return self._share if self._shedding else 1.0

    def _tick(self, now: float, elapsed: float, queued: int) -> None:
        rate = self._arrivals / elapsed
        self._arrival_rate = (1 - MEMORY) * self._arrival_rate + MEMORY * rate if self._arrival_rate else rate
        self._arrivals = 0
        self._tick_start = now
        if not self._shedding:
            return
        target = self._service_rate * QUEUE_SECONDS
        wanted = HEADROOM * self._service_rate + (target - queued) / QUEUE_SECONDS
        self._share = min(1.0, max(FLOOR, wanted / max(self._arrival_rate, 1e-6)))
        if self._share < 1.0:
            self._relaxed_since = None
        elif self._relaxed_since is None:
            self._relaxed_since = now
        elif now - self._relaxed_since >= RECOVERY_SECONDS:
            self._shedding = False
            self._relaxed_since = None
