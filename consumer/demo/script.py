"""What happens in the demo, as data: acts one after the other, each with the fault that it plays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    NONE = "none"
    WRONG_DOCUMENTS = "wrong_documents"
    """Retrieval returns documents of another application; the model answers from what it remembers."""


@dataclass(frozen=True, slots=True)
class Act:
    """One stretch of the demo: `share` of the whole, at most `longest` seconds; the last act takes the rest."""

    name: str
    fault: Fault
    share: float
    longest: float
    text: str


@dataclass(frozen=True, slots=True)
class Scheduled:
    """An act with its place in time, in seconds since traffic began."""

    act: Act
    start: float
    end: float


ACTS = (
    Act("calm", Fault.NONE, 0.40, 90.0, "calm traffic: retrieval finds the right documents"),
    Act(
        "wrong documents",
        Fault.WRONG_DOCUMENTS,
        0.35,
        90.0,
        "incident: retrieval returns the documents of the other application",
    ),
    Act("recovery", Fault.NONE, 1.0, float("inf"), "recovery: the index is repaired"),
)


def schedule(acts: Sequence[Act], seconds: float) -> tuple[Scheduled, ...]:
    """Places the acts one after the other in `seconds`.

    >>> [(s.act.name, s.start, s.end) for s in schedule(ACTS, 60.0)]
    [('calm', 0.0, 24.0), ('wrong documents', 24.0, 45.0), ('recovery', 45.0, 60.0)]
    """
    placed = []
    start = 0.0
    for act in acts[:-1]:
        end = start + min(act.share * seconds, act.longest)
        placed.append(Scheduled(act, start, end))
        start = end
    return (*placed, Scheduled(acts[-1], start, seconds))


def current(scheduled: Sequence[Scheduled], elapsed: float) -> Scheduled:
    """The act that plays `elapsed` seconds after traffic began; before the first it is the first, after the last the
    last."""
    return next((s for s in scheduled if elapsed < s.end), scheduled[-1])


def first_incident(scheduled: Sequence[Scheduled]) -> Scheduled:
    """The first act with a fault."""
    return next(s for s in scheduled if s.act.fault is not Fault.NONE)
