"""A case file as an event again: one line of JSON in the native form, which `score-file` and `decode` read."""

from __future__ import annotations

from typing import Any

import orjson

from consumer.case_file import CaseFile
from consumer.case_filter import case_key
from consumer.inert_text import inert_json
from consumer.label import Label
from metrics.event import Chunk, Event, Turn, to_native

OTHER = "other"


def exported(case: CaseFile, label: Label | None = None) -> str | None:
    """The line (without its end); None where the broker refused the whole case and text is missing, so that the event
    would be another one.

    `case` in it, which readers of events ignore, says why it was kept and what was found: whoever judges audited cases
    needs their probabilities. `label` is what a person said (`correlate --rating case.label` reads it).
    """
    texts = [chunk.text for chunk in case.contexts]
    if case.truncated or None in texts:
        return None
    record = case.record
    event = Event(
        id=record.id,
        timestamp=record.event_time,
        question=case.question,
        contexts=tuple(Chunk(c.text or "", c.id, c.score, c.source) for c in case.contexts),
        answer=case.answer,
        reference=case.reference,
        trace_id=record.trace_id,
        conversation=tuple(Turn(t.get("role", "user"), t.get("content", "")) for t in case.conversation),
        # `other` is no value of the service's own: the segment is found again from the text, or is `other` again.
        labels={**record.labels, **{name: value for name, value in record.segment.items() if value != OTHER}},
    )
    about: dict[str, Any] = {
        "key": case_key(case),
        "why": case.why,
        "run": record.run,
        "sampled_by": record.sampled_by,
        "probability": record.probability,
        "audit_probability": case.audit_probability,
        "flags": record.flags,
        "fault": record.fault,
        "scores": record.scores,
        "definitions": record.definitions,
        "statements": [{"text": s.text, "verdict": s.label, "reason": s.reason} for s in case.statements],
    } | ({} if label is None else {"label": label.verdict, "label_by": label.by, "label_note": label.note})
    return inert_json(orjson.dumps(to_native(event) | {"case": about}).decode())
