"""The simulated traffic: requests at a steady mean rate, logged as a production service would log them."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from consumer.demo.script import Fault, Scheduled, current
from consumer.demo.service import HelpDesk, broken_record
from metrics.event import Event

BROKEN = 0.015
"""Share of records on the topic that are no events."""


@dataclass(frozen=True, slots=True)
class Scripted:
    """The fault at work when an event was made, and whether it made the answer wrong for its documents."""

    fault: Fault
    bad: bool


@dataclass(slots=True)
class Sent:
    """What was handed over so far: how many records, and by event id what the script did to the answer."""

    events: int = 0
    broken: int = 0
    scripted: dict[str, Scripted] = field(default_factory=dict)

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
            fault = current(scheduled, due).act.fault
            handled = desk.handle(fault, wall())
            sent.scripted[handled.event.id] = Scripted(fault, handled.bad)
            outlets.log(handled.event)
            sent.events += 1
        due += rng.expovariate(rate)
