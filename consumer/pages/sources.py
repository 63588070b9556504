"""What the pages are made from. Each part may be missing or away; a page says so and shows the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from consumer.case_store import CaseStore
from consumer.pages.dead_letters import Counted
from consumer.scorebook import Look, Scorebook
from consumer.settings import Settings
from metrics.baseline import Baseline
from metrics.exposition import Progress
from metrics.rolling import Spans

KEPT_SECONDS = 5.0
"""A look at the windows takes some 100 ms in which records wait: so long it serves everybody."""

SPANS_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Sources:
    """`progress` is None, and `ready` says why, before the monitor has begun. `store` None: case files are not kept.
    `now` is wall-clock time."""

    settings: Settings
    version: str
    looks: Looks
    progress: Callable[[], Progress | None]
    ready: Callable[[], tuple[bool, str]]
    store: CaseStore | None
    dead_letters: Callable[[], Counted]
    baseline: Baseline | None
    now: Callable[[], float]


class Looks:
    """The latest look at each window, taken anew when it is older than `KEPT_SECONDS`, and the latest distributions;
    from any thread."""

    def __init__(self, book: Scorebook, monotonic: Callable[[], float]) -> None:
        self.book = book
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, Look]] = {}
        self._spans: tuple[float, list[Spans]] | None = None

    def look(self, window: str) -> Look:
        """What this window says.

        Raises:
            KeyError: there is no such window.
        """
        with self._lock:
            taken = self._kept.get(window)
            if taken is None or self._monotonic() - taken[0] >= KEPT_SECONDS:
                taken = self._kept[window] = self._monotonic(), self.book.look(window)
            return taken[1]

    def spans(self) -> list[Spans]:
        """The distributions of the longest window; one page of a case needs no more."""
        with self._lock:
            if self._spans is None or self._monotonic() - self._spans[0] >= SPANS_SECONDS:
                self._spans = self._monotonic(), self.book.spans()
            return self._spans[1]
