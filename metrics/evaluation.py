"""Score a batch of events: embed what the metrics need in one call, judge the statements, one outcome per metric.

What a remote judge does takes seconds an event, so it is apart: `evaluate` is the local part of a batch, `Remote.judge`
the remote part of one event, `merged` puts them together and `evaluate_whole` does all of it in a row.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from metrics import faithfulness
from metrics.event import Chunk, Event
from metrics.flags import Flag
from metrics.judge import Judge, Judgement, JudgeRequest, Statement, Verdict
from metrics.metric import Embedder, Metric, Text, Vectors, definition
from metrics.outcome import Outcome, Reason, Scored, Unscored
from metrics.sketch import sketch_of
from metrics.statements import Claims

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge was asked of one answer, and what it said; `verdicts` is empty where there is no judgement."""

    statements: tuple[Statement, ...]
    verdicts: tuple[Verdict, ...]
    refusal: bool
    cost: Mapping[str, int] = field(default_factory=dict)
    evasive: bool = False
    """The answer avoids the question, by the majority of the questions that were made from it."""
    injection: bool = False
    """A text of the event seems to talk to the judge."""
    replies: tuple[str, ...] = ()
    """What the judge said where it could not be read: for the person who reads the case."""
    left_out: int = 0
    """Statements of the answer beyond the most that are judged."""

    @property
    def conflicts(self) -> int:
        """Statements that one passage supports and another contradicts."""
        return sum(verdict.conflict for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All outcomes of one event, by metric name; the sketches of question and context (base64), where wanted; and the
    statements with their verdicts, where faithfulness is scored."""

    outcomes: Mapping[str, Outcome]
    sketch: Mapping[str, str]
    judged: Judged | None = None


@dataclass(frozen=True, slots=True)
class RemoteResult:
    """The remote part of one event: an outcome for every metric that was wanted, and what the judge was asked."""

    outcomes: Mapping[str, Outcome]
    judged: Judged | None = None


class VerdictMetric(Protocol):
    """A metric that is made of the verdicts on an answer's statements, beside faithfulness."""

    @property
    def name(self) -> str: ...

    @property
    def bounds(self) -> tuple[float, float]: ...

    @property
    def threshold(self) -> float | None:
        """The score under which an answer is flagged where nobody says otherwise; None: none is."""
        ...

    def definition(self, judge_identity: str) -> str: ...

    def score(self, request: JudgeRequest, judgement: Judgement | Unscored) -> Outcome: ...


class Remote(Protocol):
    """Judges single events, slowly (a chat endpoint). Safe to call from several threads at once."""

    @property
    def identity(self) -> str: ...

    @property
    def prompts_version(self) -> str: ...

    @property
    def definitions(self) -> Mapping[str, str]:
        """Definition of every metric that it scores."""
        ...

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]: ...

    def judge(self, event: Event, wanted: frozenset[str]) -> RemoteResult:
        """Outcomes of the metrics in `wanted`, no others. Never raises for the sake of an event or of the endpoint."""
        ...


def merged(evaluation: Evaluation, remote: RemoteResult) -> Evaluation:
    """The whole evaluation of an event. A metric that both parts scored is the remote one's."""
    judged = evaluation.judged
    if judged is not None and remote.judged is not None:
        judged = _joined(judged, remote.judged)
    outcomes = {**remote.outcomes, **evaluation.outcomes, **remote.outcomes}
    return Evaluation(outcomes, evaluation.sketch, judged or remote.judged)


def _joined(local: Judged, remote: Judged) -> Judged:
    """Statements and verdicts of the part that has verdicts, the remote one first; costs are added up."""
    verdicts = remote if remote.verdicts or (remote.statements and not local.verdicts) else local
    costs = dict.fromkeys((*local.cost, *remote.cost), 0)
    for cost in (local.cost, remote.cost):
        for kind, number in cost.items():
            costs[kind] += number
    return Judged(
        verdicts.statements,
        verdicts.verdicts,
        local.refusal or remote.refusal,
        costs,
        local.evasive or remote.evasive,
        local.injection or remote.injection,
        local.replies + remote.replies,
        verdicts.left_out,
    )


def seen_of(judged: Judged) -> tuple[Flag, ...]:
    """The flags that rest on what a judge saw and on no threshold."""
    conflict = (Flag.CONTEXT_CONFLICT,) if judged.conflicts else ()
    return conflict + ((Flag.SUSPECTED_INJECTION,) if judged.injection else ())


def warm_up_event() -> Event:
    """An event of usual size (4 passages of 100 words, an answer of 40) that no cache holds."""
    word = f"{time.time_ns()} "
    chunks = tuple(Chunk(f"{number} {word}" * 50) for number in range(4))
    return Event("warm-up", 0.0, word * 6, chunks, word * 20)


class Evaluator:
    """Metrics over one embedder and one judge; used by the scorer, by `score-file` and by every benchmark alike."""

    def __init__(
        self,
        metrics: Sequence[Metric],
        embedder: Embedder,
        *,
        sketches: bool,
        judge: Judge | None = None,
        of_verdicts: Sequence[VerdictMetric] = (),
        remote: Remote | None = None,
    ) -> None:
        """`judge` None leaves faithfulness out of the local part; `remote` may have it then. `of_verdicts`: what else
        is made of the judge's verdicts."""
        self.metrics = tuple(metrics)
        self.embedder = embedder
        self.judge = judge
        self.remote = remote
        self.definitions = {m.name: definition(m.formula, embedder.identity) for m in self.metrics}
        self.bounds = {m.name: m.bounds for m in self.metrics}
        if judge is not None:
            own = {faithfulness.NAME: faithfulness.definition_of(judge.identity)}
            own |= {m.name: m.definition(judge.identity) for m in of_verdicts}
            bounds = {faithfulness.NAME: faithfulness.BOUNDS} | {m.name: m.bounds for m in of_verdicts}
            self.definitions, self.bounds = own | self.definitions, bounds | self.bounds
        self._of_verdicts = tuple(of_verdicts) if judge is not None else ()
        if remote is not None:
            self.definitions = {**remote.definitions, **self.definitions, **remote.definitions}
            self.bounds = {**remote.bounds, **self.bounds, **remote.bounds}
        self._sketches = sketches

    @property
    def thresholds(self) -> dict[str, float]:
        """Thresholds that ship with what scores, by metric; settings and baselines come before them."""
        return {m.name: m.threshold for m in self._of_verdicts if m.threshold is not None}

    def evaluate_whole(self, events: Sequence[Event]) -> list[Evaluation]:
        """Local and remote part of every event, one event after the other; all metrics of the remote judge."""
        evaluations = self.evaluate(events)
        remote = self.remote
        if remote is None:
            return evaluations
        wanted = frozenset(remote.definitions)
        return [merged(e, remote.judge(event, wanted)) for event, e in zip(events, evaluations, strict=True)]

    def evaluate(self, events: Sequence[Event]) -> list[Evaluation]:
        """The local part: one evaluation per event, in order. Never raises for the sake of an event, embedder or judge.

        Where faithfulness is left to the remote judge, `judged` still says what the answer claims, and whether it
        refuses: an event that a budget keeps from the judge is counted as a refusal all the same.
        """
        needed = [[m.texts(event) for m in self.metrics] for event in events]
        unique = list(dict.fromkeys(text for per_event in needed for texts in per_event for text in texts))
        vectors = self._embed(unique)
        measured = [self._measure(event, vectors) for event in events]
        judgements = self._judge(events, measured)
        return [
            self._one(event, texts, vectors, outcomes, judged)
            for event, texts, outcomes, judged in zip(events, needed, measured, judgements, strict=True)
        ]

    def _embed(self, texts: list[Text]) -> Vectors:
        if not texts:
            return {}
        try:
            return dict(zip(texts, self.embedder.embed(texts), strict=True))
        except Exception:
            if len(texts) > 1:
                # One text that breaks the embedder must not cost the others of the batch their scores.
                middle = len(texts) // 2
                return {**self._embed(texts[:middle]), **self._embed(texts[middle:])}
            log.exception("embedding a text of %d characters failed", len(texts[0].content))
            return {texts[0]: Unscored(Reason.EMBEDDER_ERROR)}

    def _measure(self, event: Event, vectors: Vectors) -> dict[str, Outcome]:
        """What needs no judge."""
        outcomes: dict[str, Outcome] = {}
        for metric in self.metrics:
            try:
                outcomes[metric.name] = metric.score(event, vectors)
            except Exception:
                log.exception("metric %s failed", metric.name)
                outcomes[metric.name] = Unscored(Reason.INTERNAL_ERROR)
        return outcomes

    def _judge(
        self, events: Sequence[Event], measured: Sequence[Mapping[str, Outcome]]
    ) -> list[tuple[Judged, dict[str, Outcome]] | None]:
        """Statements and the judge's own metrics of every event; all None without a judge. It is told of every chunk
        how similar to the answer it is, as far as that was measured."""
        if self.judge is None:
            return [None] * len(events)
        asked = [_ask(event, _similarities(event, known)) for event, known in zip(events, measured, strict=True)]
        requests = [a.request for a in asked if not isinstance(a.request, Unscored)]
        judgements: list[Judgement | Unscored]
        try:
            judgements = self.judge.judge(requests) if requests else []
            if len(judgements) != len(requests):
                raise ValueError(f"{len(requests)} requests, {len(judgements)} judgements")
        except Exception:
            log.exception("judging a batch of %d answers failed", len(requests))
            judgements = [Unscored(Reason.JUDGE_ERROR)] * len(requests)
        answers = iter(judgements)
        said = [a.request if isinstance(a.request, Unscored) else next(answers) for a in asked]
        return [_combine(a, judgement, self._of_verdicts) for a, judgement in zip(asked, said, strict=True)]

    def _one(
        self,
        event: Event,
        texts: list[tuple[Text, ...]],
        vectors: Vectors,
        outcomes: dict[str, Outcome],
        judged: tuple[Judged, dict[str, Outcome]] | None,
    ) -> Evaluation:
        if judged is not None:
            outcomes |= judged[1]
        used = dict.fromkeys(text for group in texts for text in group)
        sketch = sketch_of(event, used, vectors) if self._sketches else {}
        return Evaluation(outcomes, sketch, judged[0] if judged is not None else self._unjudged(event))

    def _unjudged(self, event: Event) -> Judged | None:
        if self.remote is None or faithfulness.NAME not in self.remote.definitions:
            return None
        claims = _ask(event).claims
        return Judged(claims.statements, (), claims.refusal, left_out=claims.left_out)


def _similarities(event: Event, measured: Mapping[str, Outcome]) -> tuple[float | None, ...]:
    """Of every chunk to the answer; empty where that was not measured."""
    topic = measured.get("topic_similarity")
    per_chunk = topic.per_chunk if isinstance(topic, Scored) else ()
    return per_chunk if len(per_chunk) == len(event.contexts) else ()


def _ask(event: Event, similarities: tuple[float | None, ...] = ()) -> faithfulness.Asked:
    try:
        return faithfulness.ask(event, similarities)
    except Exception:
        log.exception("splitting an answer into statements failed")
        nothing = Claims((), refusal=False, reason=Reason.INTERNAL_ERROR)
        return faithfulness.Asked(nothing, Unscored(Reason.INTERNAL_ERROR))


def _combine(
    asked: faithfulness.Asked, judgement: Judgement | Unscored, of_verdicts: Sequence[VerdictMetric]
) -> tuple[Judged, dict[str, Outcome]]:
    claims = asked.claims
    unjudged = Judged(claims.statements, (), claims.refusal, left_out=claims.left_out)
    if isinstance(asked.request, Unscored):
        return unjudged, dict.fromkeys((faithfulness.NAME, *(m.name for m in of_verdicts)), asked.request)
    outcomes: dict[str, Outcome] = {faithfulness.NAME: faithfulness.faithfulness(claims.statements, judgement)}
    outcomes |= {m.name: m.score(asked.request, judgement) for m in of_verdicts}
    if isinstance(judgement, Unscored) or isinstance(outcomes[faithfulness.NAME], Unscored):
        return unjudged, outcomes
    return replace(unjudged, verdicts=judgement.verdicts, cost=judgement.cost), outcomes
