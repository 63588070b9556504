"""SIGTERM and SIGINT of a long-lived process, from its first moment to its last.

A thread of its own hears the signals: Python runs a signal handler only once the main thread is back from whatever it
does, and loading a model or waiting for a broker keeps it away for seconds.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)
MONITOR_STOP_SECONDS = 9.5
"""From the signal to the end of a monitor at the latest; brokers that hang hold the client's threads for longer."""


class Stopping:
    """What a signal does: leave at once with exit code 0 as long as the process only starts, later what it says."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ask: Callable[[], None] | None = None

    def started(self, ask: Callable[[], None]) -> None:
        """From now on a signal calls `ask`, in a thread of its own: there is something to be ended in order."""
        with self._lock:
            self._ask = ask

    def hear(self, pipe: int) -> None:
        """Reads signal numbers from `pipe` until it is closed."""
        while heard := os.read(pipe, 1):
            if heard[0] not in SIGNALS:
                continue
            with self._lock:
                if self._ask is None:
                    log.info("%s while starting: leaving", signal.Signals(heard[0]).name)
                    logging.shutdown()
                    os._exit(0)
                self._ask()


@contextmanager
def heeded_signals() -> Iterator[Stopping]:
    """Signals are heeded in here. Only the main thread may call this."""
    stopping = Stopping()
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    # The handlers do nothing: the number goes down the pipe for every signal that has a handler in Python.
    previous = {number: signal.signal(number, lambda *_: None) for number in SIGNALS}
    thread = threading.Thread(target=stopping.hear, args=(read,), name="signals", daemon=True)
    thread.start()
    try:
        yield stopping
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        os.close(write)
        thread.join()
        os.close(read)


def leave() -> NoReturn:
    """End the process with exit code 0, at once: for when everything is committed, written and closed.

    Taking the interpreter apart (a model's memory, the client's threads) takes a second, and many on a busy machine.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def leave_after(seconds: float) -> threading.Timer:
    """A timer that ends the process with exit code 1: a broker that hangs may hold a client for long."""

    def give_up() -> None:
        log.error("not stopped within %g s, leaving; what was not committed is read again", seconds)
        logging.shutdown()
        os._exit(1)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    return timer
