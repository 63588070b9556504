"""Cases for lists: one may hold megabytes, of which a list shows a line, so few are in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from consumer.case_file import CaseFile
from consumer.case_store import CaseStore

AT_ONCE = 10
BEGINNING = 2000
"""Characters of question and answer that a list keeps."""


def few_at_a_time(store: CaseStore, keys: Sequence[str]) -> Iterator[CaseFile]:
    """Those of the cases that are there, in order.

    Raises:
        CaseStoreError: Redis does not answer.
    """
    for start in range(0, len(keys), AT_ONCE):
        yield from store.get(keys[start : start + AT_ONCE])


def shortened(case: CaseFile) -> CaseFile:
    """The beginning of question and answer, the statements, and no other text."""
    return replace(
        case,
        question=case.question and case.question[:BEGINNING],
        answer=case.answer and case.answer[:BEGINNING],
        contexts=(),
        reference=None,
        conversation=(),
        judge_replies=(),
    )
