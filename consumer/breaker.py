"""A circuit breaker: what has just failed is left alone for a while, then tried by one caller."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Breaker:
    """Opens on the first failure, for `first_seconds`; every failed trial doubles that, up to `longest_seconds`.

    `now` gives monotonic seconds. Safe for threads.
    """

    def __init__(self, now: Callable[[], float], *, first_seconds: float = 1.0, longest_seconds: float = 30.0) -> None:
        self._now = now
        self._first = first_seconds
        self._longest = longest_seconds
        self._lock = threading.Lock()
        self._pause = 0.0
        """How long the circuit was last opened for; 0 = closed."""
        self._retry_at = 0.0

    def allows(self) -> bool:
        """True: go ahead, and say afterwards how it went. While open, one caller is let through when the pause ends."""
        with self._lock:
            if not self._pause:
                return True
            if self._now() < self._retry_at:
                return False
            # The next caller waits another pause, unless this one closes the circuit.
            self._retry_at = self._now() + self._pause
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._pause = 0.0

    def failed(self) -> None:
        with self._lock:
            self._pause = min(self._pause * 2, self._longest) if self._pause else self._first
            self._retry_at = self._now() + self._pause

    @property
    def is_open(self) -> bool:
        with self._lock:
            return bool(self._pause)
