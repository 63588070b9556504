"""Statements by the model: self-contained ones, pronouns resolved with the question and the conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from metrics.event import Turn
from metrics.judge import Statement
from metrics.llm.asking import Session, list_schema
from metrics.llm.injection import suspicious_spans, without_suspicious
from metrics.llm.passages import tokens_of
from metrics.llm.replies import items_of, number_of, text_of

SENTENCES_PER_CALL = 20
TURNS = 4
"""Earlier turns, at most, that are shown."""
TURN_CHARACTERS = 400
MOST_EACH = 8
"""Statements of one sentence that are kept."""

_SCHEMA = list_schema("statements", None, text={"type": "string"})


def claiming(answer: str, statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements less those that talk to the judge: an order claims nothing."""
    spans = suspicious_spans(answer)
    if not spans:
        return tuple(statements)
    return tuple(s for s in statements if not any(s.start < high and low < s.end for low, high in spans))


def resplit(
    session: Session, statements: Sequence[Statement], question: str, conversation: Sequence[Turn]
) -> tuple[Statement, ...]:
    """Each sentence of an answer as one or more self-contained statements, at the sentence's own span.

    A sentence that the reply leaves out stays as it is: nothing that an answer says is lost in silence.

    Raises:
        Unjudged: the judge gave no usable reply.
    """
    shown = "\n".join(
        f"{turn.role}: {' '.join(without_suspicious(turn.content).split())[:TURN_CHARACTERS]}"
        for turn in conversation[-TURNS:]
        if turn.content.strip()
    )
    result: list[Statement] = []
    for at in range(0, len(statements), SENTENCES_PER_CALL):
        result += _part(session, statements[at : at + SENTENCES_PER_CALL], question, shown)
    return tuple(dict.fromkeys(result))


def _part(session: Session, part: Sequence[Statement], question: str, conversation: str) -> list[Statement]:
    numbered = "\n".join(f"{n}. {s.text}" for n, s in enumerate(part, start=1))
    key = session.key("split", question, conversation, numbered)
    (known,) = session.known([key])
    found = _texts(known, len(part)) if isinstance(known, list) else None
    if found is None:
        found = session.one(
            "split",
            {"conversation": conversation, "question": question, "sentences": numbered},
            schema=_SCHEMA,
            max_tokens=60 + 20 * len(part) + 2 * tokens_of(numbered),
            read=lambda text: _texts(items_of(text, "statements", "text"), len(part)),
        )
        session.keep({key: [{"id": n, "text": text} for n, texts in found.items() for text in texts]})
    return [
        Statement(text, s.start, s.end)
        for n, s in enumerate(part, start=1)
        for text in (found.get(n) or [s.text])[:MOST_EACH]
    ]


def _texts(items: Sequence[Mapping[str, Any]] | None, count: int) -> dict[int, list[str]] | None:
    """Statements by the number of their sentence; several may share one. None: nothing usable."""
    found: dict[int, list[str]] = {}
    for item in items or ():
        number, text = number_of(item.get("id")), text_of(item.get("text"), 1000)
        if number is not None and 1 <= number <= count and text:
            found.setdefault(number, []).append(text)
    return found or None
