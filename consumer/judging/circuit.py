"""When a judge is left alone: after failures in a row, for a while that grows, until a request of our own succeeds.

While the circuit is open no event waits for the judge, not even as a trial: what is tried is a small request without an
event (`JudgeClient.probe`), so that a judge that hangs costs one timeout and not one more every half minute.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from consumer.breaker import Breaker

FAILURES = 3
"""In a row: one request in ten that hangs must not cost the other nine."""


class Circuit:
    """Safe for threads. `now` gives monotonic seconds."""

    def __init__(self, now: Callable[[], float], *, failures: int = FAILURES, first_seconds: float = 1.0) -> None:
        self._breaker = Breaker(now, first_seconds=first_seconds)
        self._failures = failures
        self._in_a_row = 0
        self._now = now
        self._open_since = 0.0
        self._last_success = float("-inf")
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        return self._breaker.is_open

    @property
    def open_seconds(self) -> float:
        """How long it has been open; 0 while it is closed."""
        return self._now() - self._open_since if self._breaker.is_open else 0.0

    def probe_is_due(self) -> bool:
        """True for one caller whenever a pause has ended: it is to try the judge, and to say how it went."""
        return self._breaker.is_open and self._breaker.allows()

    def succeeded(self) -> None:
        with self._lock:
            self._in_a_row = 0
            self._last_success = self._now()
        self._breaker.succeeded()

    def failed(self, sent: float) -> bool:
        """A request for an event, sent at `sent` (of `now`), failed. True where that opened the circuit.

        It counts for nothing where another one succeeded after it was sent (answers that were taken in together time
        out together, and so would open the circuit of a judge that lets one in ten hang), nor while the circuit is
        open.
        """
        with self._lock:
            if sent < self._last_success:
                return False
            self._in_a_row += 1
            if self._in_a_row < self._failures or self._breaker.is_open:
                return False
            self._open_since = self._now()
            self._breaker.failed()
            return True

    def probe_failed(self) -> None:
        """The next one is due after twice the pause, at most half a minute."""
        self._breaker.failed()
