"""The case file (topic `qa.flagged`): the score record plus the redacted text that explains it (design: 4.3).

Evidence spans refer to the redacted text. `why` is `flagged`, or `audit` with its audit probability: only audited cases
may correct the live number, flagged ones are a biased sample. An answer may be both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from consumer.record import VERSION, RecordRejected, ScoreRecord, decode_record

SHRINK_STEP = 2


@dataclass(frozen=True, slots=True)
class CaseChunk:
    """One retrieved passage; `similarity` is its cosine with the answer, None where it was not computed."""

    text: str | None
    id: str | None = None
    source: str | None = None
    score: float | None = None
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class CaseEvidence:
    """`quote` stands in chunk number `chunk` at [start, end); `chunk` None: in an earlier turn of the user."""

    chunk: int | None
    chunk_id: str | None
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class CaseStatement:
    """A statement of the answer at [start, end), and its verdict."""

    text: str
    start: int
    end: int
    label: str
    reason: str
    probability: float
    evidence: tuple[CaseEvidence, ...] = ()
    conflict: bool = False
    """One passage supports it and another contradicts it."""


@dataclass(frozen=True, slots=True)
class CaseFile:
    """Everything that an on-call engineer needs to see why an answer was flagged."""

    record: ScoreRecord
    why: tuple[str, ...]
    audit_probability: float | None
    question: str | None
    answer: str | None
    contexts: tuple[CaseChunk, ...]
    statements: tuple[CaseStatement, ...]
    reference: str | None = None
    conversation: tuple[Mapping[str, str], ...] = ()
    truncated: bool = False
    """Text was left out because the broker refused the whole."""
    statements_left_out: int = 0
    """Statements of the answer beyond the most that are judged."""
    judge_replies: tuple[str, ...] = ()
    """What an LLM judge said where it could not be read."""
    v: int = VERSION


def encode_case(case: CaseFile) -> bytes:
    return orjson.dumps(case)


def smaller_cases(case: CaseFile) -> Iterator[CaseFile]:
    """Ever smaller forms for a broker that refuses the size.

    The least similar chunks lose their text first, half of those that are left each time; then all other text goes.
    Chunks keep their places, so evidence still points right.
    """
    order = sorted(
        (i for i, chunk in enumerate(case.contexts) if chunk.text is not None),
        key=lambda i: (case.contexts[i].similarity is not None, case.contexts[i].similarity or 0.0),
    )
    chunks = list(case.contexts)
    while order:
        half = -(-len(order) // SHRINK_STEP)
        for index in order[:half]:
            chunks[index] = replace(chunks[index], text=None)
        order = order[half:]
        case = replace(case, contexts=tuple(chunks), truncated=True)
        yield case
    yield replace(
        case,
        question=None,
        answer=None,
        contexts=(),
        statements=(),
        reference=None,
        conversation=(),
        judge_replies=(),
        truncated=True,
    )


def decode_case(raw: bytes | None) -> CaseFile:
    """Read a case file.

    Raises:
        RecordRejected: not a case file, or a higher version.
    """
    if raw is None:
        raise RecordRejected("undecodable", "no value")
    try:
        data = orjson.loads(raw)
        version = data.get("v", VERSION)
        if not isinstance(version, int) or version > VERSION:
            raise RecordRejected("other_version", f"version {version!r}; this reader knows {VERSION}")
        return _case(data)
    except KeyError as error:
        raise RecordRejected("undecodable", f"it has no {error.args[0]!r}") from None
    except (orjson.JSONDecodeError, AttributeError, TypeError, ValueError) as error:
        raise RecordRejected("undecodable", str(error)) from None


def _case(data: dict[str, Any]) -> CaseFile:
    return CaseFile(
        record=_checked(decode_record(orjson.dumps(data["record"]))),
        why=tuple(_str(why) for why in data["why"]),
        audit_probability=_optional_number(data.get("audit_probability")),
        question=_optional(data["question"]),
        answer=_optional(data["answer"]),
        contexts=tuple(_chunk(chunk) for chunk in data["contexts"]),
        statements=tuple(_statement(statement) for statement in data["statements"]),
        reference=_optional(data.get("reference")),
        conversation=tuple({_str(k): _str(v) for k, v in turn.items()} for turn in data.get("conversation", ())),
        truncated=bool(data.get("truncated", False)),
        statements_left_out=_int(data.get("statements_left_out", 0)),
        judge_replies=tuple(_str(reply) for reply in data.get("judge_replies", ())),
    )


def _chunk(data: dict[str, Any]) -> CaseChunk:
    return CaseChunk(
        _optional(data["text"]),
        _optional(data.get("id")),
        _optional(data.get("source")),
        _optional_number(data.get("score")),
        _optional_number(data.get("similarity")),
    )


def _statement(data: dict[str, Any]) -> CaseStatement:
    return CaseStatement(
        _str(data["text"]),
        _int(data["start"]),
        _int(data["end"]),
        _str(data["label"]),
        _str(data["reason"]),
        float(data["probability"]),
        tuple(_evidence(evidence) for evidence in data["evidence"]),
        data.get("conflict") is True,
    )


def _evidence(data: dict[str, Any]) -> CaseEvidence:
    chunk = data["chunk"]
    return CaseEvidence(
        None if chunk is None else _int(chunk),
        _optional(data["chunk_id"]),
        _int(data["start"]),
        _int(data["end"]),
        _str(data["quote"]),
    )


def _checked(record: ScoreRecord) -> ScoreRecord:
    """`decode_record` trusts the fields that no gauge is made of; a case file shows and indexes them."""
    for text in (*record.flags, record.fault, record.run, record.sampled_by):
        _str(text)
    _optional(record.trace_id)
    for threshold in record.thresholds.values():
        float(threshold)
    return record


def _str(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"expected text, found {type(value).__name__}")
    return value


def _optional(value: Any) -> str | None:
    return None if value is None else _str(value)


def _int(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"expected a whole number, found {type(value).__name__}")
    return value


def _optional_number(value: Any) -> float | None:
    return None if value is None else float(value)
