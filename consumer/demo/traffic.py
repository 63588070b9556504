"""The simulated traffic: requests at a steady mean rate, logged as a production service would log them."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from consumer.demo.script import Scheduled, current
from consumer.demo.service import HelpDesk, broken_record
from metrics.event import Event

BROKEN = 0.015
"""Share of records on the topic that are no events."""


@dataclass(slots=True)
class Sent:
    """How many records were handed over so far."""

    events: int = 0
    broken: int = 0

    @property
    def records(self) -> int:
        return self.events + self.broken


@dataclass(frozen=True, slots=True)
class Outlets:
    """Where records go: events through the client, broken records past it (another writer on the same topic)."""

    log: Callable[[Event], object]
    put_raw: Callable[[bytes | None], object]


def drive(
    desk: HelpDesk,
    outlets: Outlets,
    scheduled: Sequence[Scheduled],
    rate: float,
    seed: int,
    sent: Sent,
    stop: threading.Event,
    clock: Callable[[], float],
    wall: Callable[[], float],
) -> None:
    """Until the schedule ends or `stop` is set: requests as a Poisson process of `rate` a second.

    `clock` is in seconds since traffic began, `wall` in seconds since the epoch.
    """
    rng = random.Random(seed)
    due = 0.0
    while not stop.is_set() and due < scheduled[-1].end:
        if stop.wait(max(0.0, due - clock())):
            return
        if rng.random() < BROKEN:
            outlets.put_raw(broken_record(rng))
            sent.broken += 1
        else:
            outlets.log(desk.handle(current(scheduled, due).act.fault, wall()))
            sent.events += 1
        due += rng.expovariate(rate)
