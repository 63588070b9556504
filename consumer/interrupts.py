"""Ctrl-C and calls of the Kafka client.

A KeyboardInterrupt raised inside a call of confluent-kafka may be lost, or come out as a SystemError («returned NULL
without setting an exception»). So an interrupt during such a call is held until the call is over.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """`installed()` around a command, `held()` around each call of the client, which must be short."""

    def __init__(self) -> None:
        self._inside = False
        self._waiting = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle SIGINT in here. Outside the main thread nobody may, and it changes nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Raises KeyboardInterrupt at its end if one came; a second one is not held."""
        self._inside = True
        try:
            yield
        finally:
            self._inside = False
            if self._waiting:
                self._waiting = False
                raise KeyboardInterrupt

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        if self._inside and not self._waiting:
            self._waiting = True
        else:
            raise KeyboardInterrupt
