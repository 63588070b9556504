"""One way from an evaluated event to its score record, shared by the scorer and by `score-file`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import version

from consumer.record import MetricScore, MetricUnscored, Position, ScoreRecord
from metrics.evaluation import Evaluation
from metrics.event import Event, content_hash
from metrics.outcome import Reason, Scored, Unscored


def build_record(
    event: Event,
    evaluation: Evaluation,
    *,
    probability: float,
    sampled_by: str,
    source: Position,
    segment: Mapping[str, str],
    labels: Mapping[str, str],
    definitions: Mapping[str, str],
    versions: Mapping[str, str],
    run: str,
    scored_time: float,
    metric_probabilities: Mapping[str, float] | None = None,
) -> ScoreRecord:
    """The score record of one event; it holds no text.

    Args:
        event: As decoded and redacted; `content_hash` is taken of this, so redaction settings are part of it.
        evaluation: One outcome per metric; `all_unscored` makes it for an event that was not evaluated.
        probability: Inclusion probability of the event, in (0, 1]; every metric has it unless
            `metric_probabilities` says otherwise (a costly metric that a budget or shedding thinned further).
        sampled_by: `rate` or `rule:NAME`.
        segment: Allow-listed segment labels.
        labels: Contrast dimensions (model, kb_version, ...).
        definitions: Definition of every metric that is named in the evaluation.
        scored_time: Seconds since the epoch (UTC).
    """
    per_metric = metric_probabilities or {}
    scores: dict[str, MetricScore] = {}
    unscored: dict[str, MetricUnscored] = {}
    for name, outcome in evaluation.outcomes.items():
        included = per_metric.get(name, probability)
        if isinstance(outcome, Scored):
            scores[name] = MetricScore(float(outcome.value), included)
        else:
            unscored[name] = MetricUnscored(outcome.reason.value, included)
    return ScoreRecord(
        id=encodable(event.id),
        content_hash=content_hash(event),
        event_time=event.timestamp,
        scored_time=scored_time,
        source=source,
        segment={encodable(k): encodable(v) for k, v in segment.items()},
        sampled_by=sampled_by,
        probability=probability,
        scores=scores,
        unscored=unscored,
        definitions={name: definitions[name] for name in evaluation.outcomes},
        versions=versions,
        labels={encodable(k): encodable(v) for k, v in labels.items()},
        trace_id=None if event.trace_id is None else encodable(event.trace_id),
        run=run,
        sketch=evaluation.sketch,
    )


def all_unscored(metrics: Iterable[str], reason: Reason) -> Evaluation:
    """What stands in for the evaluation of an event that was not evaluated, e.g. because it was shed."""
    return Evaluation({name: Unscored(reason) for name in metrics}, {})


def encodable(text: str) -> str:
    """`text` with every lone surrogate replaced: strict JSON has no form for it, and one must not stop a record.

    >>> encodable("gpt-" + chr(0xD83D))
    'gpt-?'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def versions_in_force(embedder: str) -> dict[str, str]:
    """The `versions` of a record: the embedder's identity and this package's own version."""
    return {"embedder": embedder, "groundwatch": version("groundwatch")}
