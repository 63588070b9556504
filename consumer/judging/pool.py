"""The bounded pool in which answers are judged: a few threads, a short queue, and a deadline for every answer.

Nobody waits for it. An answer that finds no room is judge_busy at once; one whose deadline passes is judge_timeout,
whatever its thread is doing.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from metrics.evaluation import RemoteResult
from metrics.event import Event
from metrics.outcome import Reason, Unscored

log = logging.getLogger(__name__)

IDLE_SECONDS = 0.5
LOOK_SECONDS = 0.1
GRACE_SECONDS = 0.5
"""A thread that notices its deadline by itself brings what was scored in time; it is given this long to do so."""


class TimedJudge(Protocol):
    """A judge that keeps a deadline (of the pool's clock), and says whether it is to be left alone."""

    def judge_until(self, event: Event, wanted: frozenset[str], deadline: float) -> RemoteResult: ...

    @property
    def is_open(self) -> bool:
        """The circuit is open: no answer goes to the judge."""
        ...

    def probe_if_due(self) -> None:
        """Called by idle threads: try the judge, if it is time for that."""
        ...


Done = Callable[[RemoteResult], None]


@dataclass(slots=True)
class _Ticket:
    """One answer in the pool. Whoever settles it first, thread or deadline, calls `done`."""

    event: Event
    wanted: frozenset[str]
    deadline: float
    done: Done
    started: bool = False
    settled: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def settle(self, result: RemoteResult) -> bool:
        with self.lock:
            if self.settled:
                return False
            self.settled = True
        self.done(result)
        return True


@lru_cache(maxsize=256)
def unjudged(wanted: frozenset[str], reason: Reason) -> RemoteResult:
    """Every wanted metric without a value, for one reason. Made once: while a judge hangs nearly every event asks."""
    return RemoteResult(dict.fromkeys(sorted(wanted), Unscored(reason)))


class RemotePool:
    """`concurrency` threads over one judge; `waiting` answers may wait for one of them. `now` is monotonic seconds."""

    def __init__(
        self,
        judge: TimedJudge,
        *,
        concurrency: int,
        waiting: int,
        timeout_seconds: float,
        now: Callable[[], float],
    ) -> None:
        self._judge = judge
        self._room = concurrency + waiting
        self._timeout = timeout_seconds
        self._now = now
        self._queue: queue.SimpleQueue[_Ticket | None] = queue.SimpleQueue()
        self._held: dict[int, _Ticket] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._faulty = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"judge-{number}", daemon=True) for number in range(concurrency)
        ]
        self._threads.append(threading.Thread(target=self._keep_deadlines, name="judge-deadlines", daemon=True))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def held(self) -> int:
        """Answers at the judge or waiting for it."""
        return len(self._held)

    @property
    def sound(self) -> bool:
        """False once a result could not be handed on: that event would stay in flight for good."""
        return not self._faulty.is_set()

    def submit(self, event: Event, wanted: frozenset[str], done: Done) -> None:
        """Judge `event` and call `done` once, from some thread, by the timeout; never blocks, never raises."""
        ticket = self._taken(event, wanted, done)
        if ticket is None:
            done(unjudged(wanted, Reason.JUDGE_BUSY))
        else:
            self._queue.put(ticket)

    def _taken(self, event: Event, wanted: frozenset[str], done: Done) -> _Ticket | None:
        """A ticket for one more answer; None where there is no room, or the judge is left alone."""
        with self._lock:
            if len(self._held) >= self._room or self._judge.is_open or self._ended.is_set():
                return None
            ticket = _Ticket(event, wanted, self._now() + self._timeout, done)
            self._held[id(ticket)] = ticket
        return ticket

    def stop(self, seconds: float) -> None:
        """End; what is at the judge is left undone (it was not committed). Waits up to `seconds` for the threads."""
        self._ended.set()
        for _ in self._threads:
            self._queue.put(None)
        deadline = self._now() + seconds
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - self._now()))

    def _work(self) -> None:
        while not self._ended.is_set():
            try:
                ticket = self._queue.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                self._judge.probe_if_due()
                continue
            if ticket is not None and not ticket.settled:
                ticket.started = True
                self._finish(ticket, self._judged(ticket))

    def _judged(self, ticket: _Ticket) -> RemoteResult:
        try:
            return self._judge.judge_until(ticket.event, ticket.wanted, ticket.deadline)
        except Exception:
            log.exception("judging an answer failed")
            return unjudged(ticket.wanted, Reason.JUDGE_ERROR)

    def _keep_deadlines(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            now = self._now()
            with self._lock:
                held = list(self._held.values())
            for ticket in held:
                if not ticket.started and now >= ticket.deadline:
                    self._finish(ticket, unjudged(ticket.wanted, Reason.JUDGE_BUSY))
                elif ticket.started and now >= ticket.deadline + GRACE_SECONDS:
                    self._finish(ticket, unjudged(ticket.wanted, Reason.JUDGE_TIMEOUT))

    def _finish(self, ticket: _Ticket, result: RemoteResult) -> None:
        with self._lock:
            self._held.pop(id(ticket), None)
        try:
            ticket.settle(result)
        except Exception:
            # Whoever owns the pool must end: this event is in flight until a restart, and holds back every commit.
            self._faulty.set()
            log.exception("the result of a judged answer could not be handed on")
