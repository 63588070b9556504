"""From the local part of an evaluation to the whole: the budget decides, the pool judges, the parts are joined."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from consumer.intake import Sampled
from consumer.judging.budget import Budget
from consumer.judging.pool import RemotePool, unjudged
from metrics.evaluation import Evaluation, RemoteResult, merged
from metrics.event import Event
from metrics.llm.applicable import inapplicable
from metrics.outcome import Reason

log = logging.getLogger(__name__)

Whole = Callable[[Evaluation, Mapping[str, float]], None]
"""Called with the whole evaluation, and the inclusion probability of the metrics that have one of their own."""


class Handover:
    """Takes evaluated events from the inference thread; never blocks it."""

    def __init__(self, pool: RemotePool, budget: Budget, wanted: frozenset[str], model: str) -> None:
        """`wanted`: the metrics that the judge scores; `model`: the judge's."""
        self.pool = pool
        self._budget = budget
        self._wanted = wanted
        self._model = model
        self._warned = False
        self._lock = threading.Lock()

    def take(self, sampled: Sampled, evaluation: Evaluation, whole: Whole) -> None:
        """`whole` is called once: here, or later from a thread of the pool."""
        event = sampled.event
        self._warn_once(event)
        settled = inapplicable(event, evaluation.judged, self._wanted)
        if settled:
            evaluation = merged(evaluation, RemoteResult(settled))
        wanted = self._wanted.difference(settled)
        if not wanted:
            whole(evaluation, {})
            return
        included = self._budget.admits(sampled.unit, sampled.probability)
        if included is None:
            whole(merged(evaluation, unjudged(wanted, Reason.BUDGET)), {})
            return
        own = dict.fromkeys(wanted, included) if included < sampled.probability else {}

        def judged(result: RemoteResult) -> None:
            self._budget.finished()
            whole(merged(evaluation, result), own)

        self.pool.submit(event, wanted, judged)

    def _warn_once(self, event: Event) -> None:
        """A judge of the generator's own family likes its answers (design: section 7)."""
        if self._warned or not same_model(event.labels.get("model", ""), self._model):
            return
        with self._lock:
            told, self._warned = self._warned, True
        if not told:
            log.warning("answers are judged by the model that wrote them (%s): take another one as judge", self._model)


def same_model(label: str, model: str) -> bool:
    """Whether two names mean one model: letter case and the part before a slash are left out.

    >>> same_model("qwen2.5-7b-instruct", "Qwen/Qwen2.5-7B-Instruct"), same_model("", "m")
    (True, False)
    """

    def plain(name: str) -> str:
        return name.strip().casefold().rpartition("/")[2]

    return bool(plain(label)) and plain(label) == plain(model)
