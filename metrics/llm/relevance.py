"""Answer relevance: questions made back from the answer, and how near they are to the one that was asked (RAGAS).

Mean cosine of the asked question with n questions that the answer answers, in [0, 1]; a negative mean counts as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metrics.blank import is_blank
from metrics.llm.applicable import only_refuses
from metrics.llm.asking import Session, list_schema
from metrics.llm.injection import without_suspicious
from metrics.llm.passages import Embed
from metrics.llm.replies import by_id, items_of, text_of, truth_of
from metrics.metric import Text, Vector
from metrics.outcome import Outcome, Reason, Unscored, bounded
from metrics.statements import VERSION as STATEMENTS_VERSION

FORMULA = f"answer_relevance/mean-cosine/2/{STATEMENTS_VERSION}"
TOKENS_EACH = 60
"""Completion tokens for one question."""
LONGEST_ANSWER = 6000
"""Characters of an answer that questions are made from; of a longer one, its beginning and its end."""

_NAMES = {
    "en": "English", "zh": "Chinese", "ja": "Japanese", "ko": "Korean", "ar": "Arabic", "hi": "Hindi", "ru": "Russian",
    "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "pt": "Portuguese", "nl": "Dutch", "pl": "Polish",
    "tr": "Turkish", "vi": "Vietnamese", "th": "Thai", "id": "Indonesian", "sv": "Swedish", "cs": "Czech",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Made:
    """A question made back from the answer, and whether the model takes the answer for an evasive one."""

    question: str
    evasive: bool


@dataclass(frozen=True, slots=True)
class Relevance:
    """`outcome` of one answer; `evasive` by the majority of the questions that were made from it.

    A plain refusal, which the rules know, is no question to the judge and counts among the refusals.
    """

    outcome: Outcome
    evasive: bool


def answer_relevance(
    session: Session, question: str | None, answer: str | None, *, count: int, language: str, embed: Embed
) -> Relevance:
    """Relevance of an answer. Reasons: empty_answer, no_question, evasive, generic_questions; judge_incomplete where no
    question was made.

    Raises:
        Unjudged: the judge gave no usable reply.
    """
    if is_blank(answer):
        return Relevance(Unscored(Reason.EMPTY_ANSWER), False)
    if question is None or is_blank(question):
        return Relevance(Unscored(Reason.NO_QUESTION), False)
    if only_refuses(answer):
        return Relevance(Unscored(Reason.EVASIVE), False)
    made = _made(session, answer or "", count, language)
    evasive = is_evasive(made)
    if evasive:
        return Relevance(Unscored(Reason.EVASIVE), True)
    questions = [m.question for m in made if not is_blank(m.question)]
    vectors = embed([Text("query", text) for text in (question, *questions, *session.prompts.generic)])
    asked, others = vectors[0], vectors[1 : 1 + len(questions)]
    if isinstance(asked, Unscored):
        return Relevance(asked, False)
    usable = [v for v in others if not isinstance(v, Unscored)]
    known = [v for v in vectors[1 + len(questions) :] if not isinstance(v, Unscored)]
    return Relevance(relevance(asked, usable, known), False)


def is_evasive(made: Sequence[Made]) -> bool:
    """By majority: more than half of the questions were marked so (field case 29).

    >>> is_evasive([Made("a?", True), Made("b?", False), Made("c?", False)])
    False
    """
    return 2 * sum(m.evasive for m in made) > len(made)


def relevance(asked: Vector, made: Sequence[Vector], generic: Sequence[Vector]) -> Outcome:
    """Mean cosine, vectors of any length. No usable question: judge_incomplete; a zero or infinite vector: non_finite.

    `generic_questions` where more than half of the questions are no nearer to the asked one than to a question that
    fits any answer, and as near to one of those as they are to one another.
    """
    if not made:
        return Unscored(Reason.JUDGE_INCOMPLETE)
    units = [_unit(v) for v in (asked, *made)]
    if any(unit is None for unit in units):
        return Unscored(Reason.NON_FINITE)
    question, *others = [unit for unit in units if unit is not None]
    near = [float(question @ other) for other in others]
    fixed = [unit for unit in (_unit(v) for v in generic) if unit is not None]
    if len(fixed) > 1:
        typical = _typical(fixed)
        nearest = [max(float(other @ f) for f in fixed) for other in others]
        indistinct = [high >= typical and high >= own for high, own in zip(nearest, near, strict=True)]
        if 2 * sum(indistinct) > len(others):
            return Unscored(Reason.GENERIC_QUESTIONS)
    return bounded(max(sum(near) / len(near), 0.0), 0.0, 1.0)


def _typical(fixed: Sequence[np.ndarray[Any, np.dtype[np.float64]]]) -> float:
    """How near a generic question usually is to the nearest other one: the median."""
    nearest = [max(float(a @ b) for k, b in enumerate(fixed) if k != i) for i, a in enumerate(fixed)]
    return float(np.median(nearest))


def _unit(vector: Vector) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    exact = vector.astype(np.float64)
    norm = float(np.linalg.norm(exact))
    return exact / norm if np.isfinite(norm) and norm > 1e-9 else None


def language_name(language: str) -> str:
    """How a prompt names a language: «German»; of one that it has no name for, the answer's own."""
    return _NAMES.get(language, "the language of the answer")


def _made(session: Session, answer: str, count: int, language: str) -> list[Made]:
    text = without_suspicious(answer)
    if len(text) > LONGEST_ANSWER:
        half = LONGEST_ANSWER // 2
        text = f"{text[:half]} […] {text[-half:]}"
    key = session.key("questions", text, str(count), language)
    (known,) = session.known([key])
    made = _read(known, count) if isinstance(known, list) else None
    if made is None:
        made = session.one(
            "questions",
            {"answer": text, "count": str(count), "language": language_name(language)},
            schema=list_schema("questions", count, question={"type": "string"}, evasive={"type": "boolean"}),
            max_tokens=40 + TOKENS_EACH * count,
            read=lambda reply: _read(items_of(reply, "questions", "question"), count),
        )
        session.keep({key: [{"question": m.question, "evasive": m.evasive} for m in made]})
    return made


def _read(items: Sequence[Any] | None, count: int) -> list[Made] | None:
    """At least one question with text; at most `count`. None: nothing usable."""
    if not items:
        return None
    found = by_id(items, count).values() or items
    made = [
        Made(text_of(item.get("question"), 300), truth_of(item.get("evasive")) is True) for item in list(found)[:count]
    ]
    return made if any(m.question or m.evasive for m in made) else None
