"""A case file made of an event, its evaluation and its score record; apart from the reading, which needs no judge."""

from __future__ import annotations

from consumer.case_file import CaseChunk, CaseEvidence, CaseFile, CaseStatement
from consumer.record import ScoreRecord
from consumer.record_building import encodable
from metrics.evaluation import Evaluation
from metrics.event import Event
from metrics.outcome import Scored


def build_case(
    event: Event, evaluation: Evaluation, record: ScoreRecord, why: tuple[str, ...], audit_probability: float | None
) -> CaseFile:
    """The case file of one redacted event."""
    topic = evaluation.outcomes.get("topic_similarity")
    similarities = topic.per_chunk if isinstance(topic, Scored) else ()
    aligned = similarities if len(similarities) == len(event.contexts) else (None,) * len(event.contexts)
    return CaseFile(
        record=record,
        why=why,
        audit_probability=audit_probability,
        question=_text(event.question),
        answer=_text(event.answer),
        contexts=tuple(
            CaseChunk(encodable(c.text), _text(c.id), _text(c.source), c.score, similarity)
            for c, similarity in zip(event.contexts, aligned, strict=True)
        ),
        statements=_statements(evaluation),
        reference=_text(event.reference),
        conversation=tuple({"role": t.role, "content": encodable(t.content)} for t in event.conversation),
        statements_left_out=evaluation.judged.left_out if evaluation.judged is not None else 0,
        judge_replies=tuple(encodable(reply) for reply in evaluation.judged.replies) if evaluation.judged else (),
    )


def _statements(evaluation: Evaluation) -> tuple[CaseStatement, ...]:
    judged = evaluation.judged
    if judged is None or not judged.verdicts:
        return ()
    return tuple(
        CaseStatement(
            encodable(statement.text),
            statement.start,
            statement.end,
            verdict.label.value,
            encodable(verdict.reason),
            verdict.probability,
            tuple(
                CaseEvidence(e.chunk, _text(e.chunk_id), e.start, e.end, encodable(e.quote)) for e in verdict.evidence
            ),
            verdict.conflict,
        )
        for statement, verdict in zip(judged.statements, judged.verdicts, strict=True)
    )


def _text(text: str | None) -> str | None:
    return None if text is None else encodable(text)
