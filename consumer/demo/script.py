"""What happens in the demo, as data: acts one after the other, each with the fault that it plays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from metrics.flags import Fault as LikelyFault


class Fault(StrEnum):
    NONE = "none"
    OLD_KNOWLEDGE = "old_knowledge"
    """The documents were updated; the model goes on answering from what it learnt of the old ones."""
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
class Expected:
    """What an incident should show: which rolling scores fall, which stay, and the likely fault of its answers."""

    fall: tuple[str, ...]
    stay: tuple[str, ...]
    likely: LikelyFault


@dataclass(frozen=True, slots=True)
class Scheduled:
    """An act with its place in time, in seconds since traffic began."""

    act: Act
    start: float
    end: float


ACTS = (
    Act("calm", Fault.NONE, 0.28, 90.0, "calm traffic: right documents, answers that keep to them"),
    Act(
        "old knowledge",
        Fault.OLD_KNOWLEDGE,
        0.22,
        90.0,
        "incident 1: the documents were updated, the model goes on answering from the old ones",
    ),
    Act("calm again", Fault.NONE, 0.18, 60.0, "the update is taken back: calm traffic"),
    Act(
        "wrong documents",
        Fault.WRONG_DOCUMENTS,
        0.20,
        90.0,
        "incident 2: retrieval returns the documents of the other application",
    ),
    Act("recovery", Fault.NONE, 1.0, float("inf"), "recovery: the index is repaired"),
)

EXPECTED = {
    Fault.OLD_KNOWLEDGE: Expected(
        fall=("faithfulness",),
        stay=("topic_similarity", "question_context_similarity"),
        likely=LikelyFault.GENERATION,
    ),
    Fault.WRONG_DOCUMENTS: Expected(
        fall=("faithfulness", "topic_similarity", "question_context_similarity"),
        stay=(),
        likely=LikelyFault.RETRIEVAL,
    ),
}


def schedule(acts: Sequence[Act], seconds: float) -> tuple[Scheduled, ...]:
    """Places the acts one after the other in `seconds`.

    >>> [(s.act.name, round(s.start, 1), round(s.end)) for s in schedule(ACTS, 100.0)][:3]
    [('calm', 0.0, 28), ('old knowledge', 28.0, 50), ('calm again', 50.0, 68)]
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


def incidents(scheduled: Sequence[Scheduled]) -> tuple[Scheduled, ...]:
    """The acts with a fault, in order."""
    return tuple(s for s in scheduled if s.act.fault is not Fault.NONE)
