"""What explains a change that the monitor found: the score log is read back, a day before it and what came after.

The windows keep no events, so that a label that is no segment (model, kb_version) is only in the log. It is looked at
when a change is found, when there are few scores yet, and again later while nothing is named.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from consumer.contrast_words import conclusion
from consumer.contrasting import NothingToContrast, Question, find
from consumer.logs import one_line
from consumer.score_topic import Range, ScoreTopic, ScoreTopicError
from consumer.scorebook import Scorebook
from consumer.settings import Settings
from metrics.answer import ALL
from metrics.changes import Change

log = logging.getLogger(__name__)

BEFORE_SECONDS = 86_400.0
"""A whole day, so that a rhythm of the day is in it."""
LOOKS = (0.0, 3600.0, 6 * 3600.0)
"""When a change is looked at, in seconds since it was found, until something is named."""
MOST = 50_000
"""Offsets that are read of each span at most: some seconds, and it is read beside live scores."""
MOST_TRIES = 3
"""Times that reading may fail before a look is given up."""


class Explainer:
    """Looks at one change at a time. `attend` blocks for some seconds: call it in a thread, from one only."""

    def __init__(
        self, settings: Settings, book: Scorebook, now: Callable[[], float], stopped: Callable[[], bool]
    ) -> None:
        """`now` is wall-clock time; a look ends early where `stopped`."""
        self._settings = settings
        self._book = book
        self._now = now
        self._stopped = stopped
        self._looks: dict[tuple[object, ...], int] = {}
        self._failed = 0

    def attend(self) -> None:
        """Look at the oldest change that is due, if there is one. Call every few seconds."""
        changes = self._book.changes()
        known = {_name(change): change for change in changes}
        self._looks = {name: looks for name, looks in self._looks.items() if name in known}
        for name, change in known.items():
            looks = self._looks.get(name, 0)
            if looks < len(LOOKS) and self._now() >= change.shift.found + LOOKS[looks] and not _explained(change):
                if self._look(change, changes):
                    # What is found late (after a restart, say) need not be looked at once for each time it was due.
                    due = sum(self._now() >= change.shift.found + delay for delay in LOOKS)
                    self._looks[name] = max(looks + 1, due)
                return

    def _look(self, change: Change, changes: tuple[Change, ...]) -> bool:
        """False where it is to be tried again."""
        topic = ScoreTopic(self._settings, self._settings.monitor.group)
        question = self._question(change, changes)
        try:
            records = topic.read(question.before, question.after, MOST, self._stopped)
            found = find(records, question)
        except NothingToContrast as nothing:
            log.info("%s: not explained: %s", _told(change, self._book.segment_keys), nothing)
            return True
        except ScoreTopicError as error:
            self._failed += 1
            log.warning("%s: not explained yet: %s", _told(change, self._book.segment_keys), error)
            if self._failed < MOST_TRIES:
                return False
            self._failed = 0
            return True
        if self._stopped():
            return False
        self._failed = 0
        self._book.explain(change, found.contrast)
        log.info("%s: explained by: %s", _told(change, self._book.segment_keys), one_line(conclusion(found.contrast)))
        return True

    def _question(self, change: Change, changes: tuple[Change, ...]) -> Question:
        shift = change.shift
        earlier = [
            other.shift.found
            for other in changes
            if _series(other) == _series(change) and other.shift.found <= shift.start
        ]
        begin = max(shift.start - BEFORE_SECONDS, *earlier, 0.0)
        later = [other.shift.start for other in changes if _series(other) == _series(change)]
        # The score with which it was found belongs to it. A later change has reasons of its own.
        end = min([self._now(), *(start for start in later if start > shift.found)])
        segment = dict(zip(self._book.segment_keys, change.segment, strict=True))
        return Question(
            change.metric,
            Range(begin, shift.start),
            Range(shift.start, max(end, shift.found + 1.0)),
            {key: value for key, value in segment.items() if value != ALL},
            change.definition,
        )


def _explained(change: Change) -> bool:
    return change.contrast is not None and bool(change.contrast.named)


def _series(change: Change) -> tuple[object, ...]:
    return change.segment, change.metric, change.definition


def _name(change: Change) -> tuple[object, ...]:
    return *_series(change), change.shift.start, change.shift.found


def _told(change: Change, keys: tuple[str, ...]) -> str:
    shift = change.shift
    where = ", ".join(f"{key}={value}" for key, value in zip(keys, change.segment, strict=True))
    return f"change of {change.metric} ({where}): {shift.before:.3f} to {shift.after:.3f}"
