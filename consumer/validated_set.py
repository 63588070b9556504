"""A validated set: rows of (question, contexts, ideal answer), read as events whose answer is the ideal one.

The ideal answer is what people wrote or approved. Where a row has a reference it stands as the answer, whatever else
was answered; where it has none, the answer itself was validated.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from consumer.decode import Decoded, DecodeError
from consumer.decoding.mapping import folded
from consumer.decoding.reasons import Refusal
from consumer.score_file import Decodes
from metrics.blank import is_blank

IDEAL = (
    "ideal_answer", "ideal", "reference", "reference_answer", "reference_output", "ground_truth", "ground_truths",
    "expected_answer", "expected_output", "expected_response", "gold_answer", "golden_answer", "理想答案", "标准答案",
    "参考答案",
)  # fmt: skip
"""Names of the ideal answer in a row, the first that is there counts (case, `_`, `-` and blanks do not matter)."""
_IDEAL = tuple(folded(name) for name in IDEAL)
_ANSWERS = ("answer", "response")
"""Where the known forms have the answer: a row without one is read as if the ideal answer stood there."""


@dataclass(slots=True)
class IdealAnswers:
    """A decoder for the good rows of a validated set, and how many rows it read which way."""

    decoder: Decodes
    by_reference: int = field(default=0, init=False)
    by_answer: int = field(default=0, init=False)

    def decode(self, value: bytes, *, fallback_id: str, broker_time: float | None) -> Decoded:
        """As the decoder behind it; the event's answer is the ideal one.

        Raises:
            DecodeError: no event, or neither a reference nor an answer.
        """
        row = _object(value)
        ideal = _ideal(row)
        decoded = self._read(value, row, ideal, fallback_id, broker_time)
        if decoded.ignored:
            return decoded
        event = decoded.event
        answer = ideal if ideal is not None else event.reference
        if answer is None or is_blank(answer):
            if is_blank(event.answer):
                raise DecodeError(Refusal.MISSING_ANSWER, f"neither an ideal answer ({', '.join(IDEAL[:6])}, ...) "
                                  "nor an answer")  # fmt: skip
            self.by_answer += 1
            return decoded
        self.by_reference += 1
        return replace(decoded, event=replace(event, answer=answer, reference=None))

    def _read(
        self, value: bytes, row: dict[str, Any] | None, ideal: str | None, fallback_id: str, broker_time: float | None
    ) -> Decoded:
        try:
            return self.decoder.decode(value, fallback_id=fallback_id, broker_time=broker_time)
        except DecodeError as error:
            if row is None or ideal is None:
                raise
            for name in _ANSWERS:
                try:
                    filled = orjson.dumps(row | {name: ideal})
                    return self.decoder.decode(filled, fallback_id=fallback_id, broker_time=broker_time)
                except DecodeError:
                    continue
            raise error


def _object(value: bytes) -> dict[str, Any] | None:
    try:
        row = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return row if isinstance(row, dict) else None


def _ideal(row: dict[str, Any] | None) -> str | None:
    if row is None:
        return None
    by_name = {folded(name): text for name, text in row.items()}
    for name in _IDEAL:
        text = by_name.get(name)
        if isinstance(text, list) and text and isinstance(text[0], str):
            text = text[0]
        if isinstance(text, str) and not is_blank(text):
            return text.strip()
    return None
