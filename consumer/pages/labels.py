"""A label that is given on a page: checked, into Kafka, then beside its case."""

from __future__ import annotations

from typing import cast

from consumer.case_store import CaseStore, CaseStoreError
from consumer.label import VERDICTS, LabelChange, Verdict, label_of
from consumer.label_topic import LabelsNotWritten, LabelWriter
from consumer.labelling import Labelled, put_labels
from consumer.pages.sources import Sources

WRITE_SECONDS = 5.0
AWAY = "none"
"""In place of a verdict: the label is taken away."""


class LabelRefused(Exception):
    """The label was not written; one line that says why. `status`: that of the answer."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def label_case(sources: Sources, store: CaseStore, key: str, verdict: str, by: str, note: str) -> Labelled:
    """Label the case `key` good or bad, or take its label away (`none`). Takes some seconds where the broker is away.

    Raises:
        LabelRefused: no such case or verdict, no name, a note that is too long, or Kafka or Redis did not answer.
    """
    if verdict not in (*VERDICTS, AWAY):
        raise LabelRefused(400, f"A label is good or bad, not {verdict!r}.")
    now = sources.now()
    try:
        cases = store.get([key])
    except CaseStoreError as error:
        raise LabelRefused(503, f"The case cannot be read now: {error}.") from None
    if not cases:
        raise LabelRefused(404, "There is no such case any more, so it cannot be labelled.")
    try:
        label = None if verdict == AWAY else label_of(cases[0], cast(Verdict, verdict), by=by, note=note, now=now)
    except ValueError as error:
        raise LabelRefused(400, f"Not labelled: {error}.") from None
    try:
        with LabelWriter(sources.settings, WRITE_SECONDS) as writer:
            return put_labels(writer, store, [LabelChange(cases[0].record.id, label)], now=now)
    except LabelsNotWritten as error:
        raise LabelRefused(503, f"The label was {error}.") from None
