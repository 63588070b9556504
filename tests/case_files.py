"""Case files for the tests of the store, the reader and the page of one case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from consumer.case_file import CaseChunk, CaseEvidence, CaseFile, CaseStatement
from consumer.record import MetricScore
from tests.score_records import score_record

PASSAGE = "Full-time staff have 26 days of paid leave a year. Part-time staff have a share of that."
ANSWER = "You have 28 days of paid leave a year. Part-time staff have a share of that. I hope this helps!"
WRONG, RIGHT = "You have 28 days of paid leave a year.", "Part-time staff have a share of that."


def case_file(number: int, event_time: float, **changes: Any) -> CaseFile:
    """Case `number`: two statements, the first one contradicted. `record` in `changes` changes the score record."""
    of_record: dict[str, Any] = {
        "flags": ("faithfulness_low",),
        "fault": "generation",
        "thresholds": {"faithfulness": 0.75},
        "statements": {"supported": 1, "contradicted": 1, "not_found": 0},
        "trace_id": f"trace-{number}",
    }
    plain = score_record(number, event_time, {"faithfulness": 0.5, "topic_similarity": 0.91})
    record = replace(plain, **(of_record | changes.pop("record", {})))
    fields: dict[str, Any] = {
        "record": record,
        "why": ("flagged",),
        "audit_probability": None,
        "question": f"How many days of leave do I have in grade {number}?",
        "answer": ANSWER,
        "contexts": (
            CaseChunk(PASSAGE, f"leave#{number}", "handbook.pdf", 0.83, 0.91),
            CaseChunk("The canteen opens at 11:30.", "canteen#1", None, None, 0.12),
        ),
        "statements": (
            CaseStatement(WRONG, 0, len(WRONG), "contradicted", "says 28, the passage says 26", 0.06,
                          (_evidence(number, "Full-time staff have 26 days of paid leave a year."),)),
            CaseStatement(RIGHT, ANSWER.index(RIGHT), ANSWER.index(RIGHT) + len(RIGHT), "supported", "same words", 0.97,
                          (_evidence(number, RIGHT),)),
        ),
    }  # fmt: skip
    return CaseFile(**(fields | changes))


def _evidence(number: int, quote: str) -> CaseEvidence:
    start = PASSAGE.index(quote)
    return CaseEvidence(0, f"leave#{number}", start, start + len(quote), quote)


def audited(number: int, event_time: float, **changes: Any) -> CaseFile:
    """A good answer that was chosen by its hash."""
    of_record = {"flags": (), "fault": "unknown", "scores": {"faithfulness": MetricScore(1.0, 0.05)}}
    answer = "Part-time staff have a share of that."
    statement = CaseStatement(answer, 0, len(answer), "supported", "same words", 0.97, (_evidence(number, answer),))
    fields: dict[str, Any] = {
        "record": of_record | changes.pop("record", {}),
        "why": ("audit",),
        "audit_probability": 0.01,
        "answer": answer,
        "statements": (statement,),
    }
    return case_file(number, event_time, **(fields | changes))
