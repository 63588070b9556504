"""The one inference thread: gathers sampled events into micro-batches and evaluates them."""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

from consumer.intake import Sampled
from metrics.evaluation import Evaluation, Evaluator

log = logging.getLogger(__name__)

IDLE_SECONDS = 1.0
BACKGROUND = 15
"""The niceness of the inference thread."""


@dataclass(frozen=True, slots=True)
class Job:
    """One sampled event, and what to call with its evaluation."""

    sampled: Sampled
    done: Callable[[Evaluation], None]


class Inference:
    """A thread that evaluates jobs in batches. Everything that waits takes the clock `now` (monotonic seconds)."""

    def __init__(
        self,
        evaluator: Evaluator,
        *,
        batch_limit: Callable[[], int],
        batch_wait_seconds: float,
        now: Callable[[], float],
        served: Callable[[int, float], None],
        beat: Callable[[], None],
    ) -> None:
        """`batch_limit()` says how many events the next batch may hold; `served(events, seconds)` is told of every
        batch; `beat()` is called whenever the loop turns."""
        self._evaluator = evaluator
        self._batch_limit = batch_limit
        self._batch_wait = batch_wait_seconds
        self._now = now
        self._served = served
        self._beat = beat
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._stopping = False
        self._thread = threading.Thread(target=self._loop, name="inference", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Queue one job; never blocks. The caller bounds how much is in flight."""
        self._jobs.put(job)

    @property
    def queued(self) -> int:
        return self._jobs.qsize()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self, seconds: float) -> None:
        """End after the batch at hand; what is queued is left undone (it was not committed).

        Waits up to `seconds`: a process that ends while the model computes in a thread is aborted by its runtime.
        """
        self._stopping = True
        self._jobs.put(None)
        self._thread.join(seconds)

    def _loop(self) -> None:
        _yield_to_others()
        while (batch := self._gather()) is not None:
            self._beat()
            if batch:
                self._evaluate(batch)

    def _gather(self) -> list[Job] | None:
        """The next batch; empty when nothing came for a while, None when the thread is to end."""
        try:
            first = self._jobs.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            return []
        if first is None or self._stopping:
            return None
        batch = [first]
        deadline = self._now() + self._batch_wait
        limit = self._batch_limit()
        while len(batch) < limit:
            try:
                job = self._jobs.get(timeout=max(0.0, deadline - self._now()))
            except queue.Empty:
                break
            if job is None:
                self._jobs.put(None)
                break
            batch.append(job)
        return batch

    def _evaluate(self, batch: list[Job]) -> None:
        begun = self._now()
        evaluations = self._evaluator.evaluate([job.sampled.event for job in batch])
        self._served(len(batch), self._now() - begun)
        for job, evaluation in zip(batch, evaluations, strict=True):
            job.done(evaluation)


def _yield_to_others() -> None:
    """Scoring is background work: on a full machine the poll thread, which keeps the topic's lag bounded, goes first.

    On Linux the priority is the thread's own, and the model's helper threads inherit it; elsewhere nothing changes.
    """
    if sys.platform.startswith("linux"):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BACKGROUND)
