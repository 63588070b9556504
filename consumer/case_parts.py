"""What a case file is made of, for whoever shows one: signs, faults, the pieces of the answer, statements in order."""

from __future__ import annotations

from collections.abc import Mapping

from consumer.case_file import CaseFile, CaseStatement

SIGNS: Mapping[str, str] = {"supported": "✓", "contradicted": "✗", "not_found": "?"}
FAULTS: Mapping[str, str] = {
    "retrieval": "the passages do not fit the question: look at the retriever, the index, the query",
    "generation": "the passages fit the question, but the answer does not keep to them: look at the model",
    "prompt": "the answer keeps to the passages, but does not fit the question: look at the prompt",
    "documents": "the passages contradict each other: look at the documents and their versions",
    "unknown": (
        "the scores that would tell (similarities, relevance, recall) are missing, or have no threshold: a "
        "validated set gives one (groundwatch calibrate)"
    ),
}


def answer_pieces(answer: str, statements: tuple[CaseStatement, ...]) -> list[tuple[str, int | None]]:
    """The answer cut into pieces, in order; each with the number (from 0) of the statement that stands there, or None.

    Joined, the pieces are the answer. A statement inside an earlier one, or outside the answer, has no piece.
    """
    pieces: list[tuple[str, int | None]] = []
    end = 0
    for at, statement in sorted(enumerate(statements), key=lambda entry: (entry[1].start, entry[0])):
        if not end <= statement.start < statement.end <= len(answer):
            continue
        if answer[end : statement.start]:
            pieces.append((answer[end : statement.start], None))
        pieces.append((answer[statement.start : statement.end], at))
        end = statement.end
    if answer[end:]:
        pieces.append((answer[end:], None))
    return pieces


def without_text(case: CaseFile) -> bool:
    """The broker refused all of its text."""
    return case.truncated and case.question is None and case.answer is None


def verdict_counts(case: CaseFile) -> dict[str, int]:
    """Statements by verdict, worst first; of a case without its text, as they were counted before."""
    labels = ("contradicted", "not_found", "supported")
    if without_text(case):
        return {label: case.record.statements.get(label, 0) for label in labels}
    return {label: sum(s.label == label for s in case.statements) for label in labels}


def worst_first(statements: tuple[CaseStatement, ...]) -> list[tuple[int, CaseStatement]]:
    """Statements with their numbers (from 0): contradicted, not found, supported."""
    order = {"contradicted": 0, "not_found": 1}
    return sorted(enumerate(statements), key=lambda entry: (order.get(entry[1].label, 2), entry[0]))
