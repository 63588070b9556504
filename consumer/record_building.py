"""One way from an evaluated event to its score record, shared by the scorer and by `score-file`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version

from consumer.record import MetricScore, MetricUnscored, Position, ScoreRecord
from metrics.evaluation import Evaluation, Evaluator, seen_of
from metrics.event import Event, content_hash
from metrics.faithfulness import count
from metrics.flags import fault_of, flags_of
from metrics.outcome import Scored


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
    thresholds: Mapping[str, float],
    metric_probabilities: Mapping[str, float] | None = None,
) -> ScoreRecord:
    """The score record of one event; it holds no text.

    Args:
        event: As decoded and redacted; `content_hash` is taken of this, so redaction settings are part of it.
        evaluation: One outcome per metric.
        probability: Inclusion probability of the event, in (0, 1]; every metric has it unless
            `metric_probabilities` says otherwise (a costly metric that a budget or shedding thinned further).
        sampled_by: `rate` or `rule:NAME`.
        segment: Allow-listed segment labels.
        labels: Contrast dimensions (model, kb_version, ...).
        definitions: Definition of every metric that is named in the evaluation.
        scored_time: Seconds since the epoch (UTC).
        thresholds: In force for the segment, by metric; flags and fault come from them.
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
    values = {name: score.value for name, score in scores.items()}
    in_force = {name: threshold for name, threshold in thresholds.items() if name in evaluation.outcomes}
    judged = evaluation.judged
    flags = flags_of(values, in_force, seen_of(judged) if judged is not None else ())
    counts = count(judged.verdicts) if judged is not None else None
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
        statements=asdict(counts) if counts is not None and counts.total else {},
        refusal=judged.refusal if judged is not None else False,
        flags=tuple(flag.value for flag in flags),
        thresholds=in_force,
        fault=fault_of(values, in_force, flags).value,
        sketch=evaluation.sketch,
        cost=judged.cost if judged is not None else {},
        conflicts=judged.conflicts if judged is not None else 0,
        evasive=judged.evasive if judged is not None else False,
    )


def encodable(text: str) -> str:
    """`text` with every lone surrogate replaced: strict JSON has no form for it, and one must not stop a record.

    >>> encodable("gpt-" + chr(0xD83D))
    'gpt-?'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def versions_in_force(evaluator: Evaluator) -> dict[str, str]:
    """The `versions` of a record: the identities of embedder and judge, and this package's own version."""
    versions = {"embedder": evaluator.embedder.identity, "groundwatch": version("groundwatch")}
    if evaluator.remote is not None:
        return versions | {"judge": evaluator.remote.identity, "prompts": evaluator.remote.prompts_version}
    return versions if evaluator.judge is None else versions | {"judge": evaluator.judge.identity}
