"""Labelling cases: Kafka first, acknowledged, then the index in Redis. Command line and pages go the same way."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import dataclass

from consumer.case_store import CaseStore, CaseStoreError
from consumer.label import LabelChange
from consumer.label_topic import LabelWriter


@dataclass(frozen=True, slots=True)
class Labelled:
    """What became of changes that are in Kafka: `not_indexed` says in one line why Redis does not show them yet (None:
    it does, or there is no Redis). Whatever it is, the monitor brings Redis up to date when it answers again."""

    written: int
    not_indexed: str | None = None


def put_labels(writer: LabelWriter, index: CaseStore | None, changes: Sequence[LabelChange], *, now: float) -> Labelled:
    """Write the changes (see `label.label_of`; a label of None takes the event's label away) to Kafka, and when all are
    acknowledged into Redis. A label replaces the one that the event had. `now` in seconds since the epoch.

    Raises:
        LabelsNotWritten: the broker did not acknowledge them all. Then Redis was not asked; labelling again does no
            harm.
    """
    writer.write(changes)
    if index is None:
        return Labelled(len(changes))
    try:
        index.index_labels(changes, now)
    except CaseStoreError as error:
        return Labelled(len(changes), str(error))
    return Labelled(len(changes))


def own_name() -> str:
    """The user's login."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown user"
