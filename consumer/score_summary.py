"""What `score-file` says at the end: per metric the mean with its interval, what is missing and why, and whether the
missing ones are the long answers (which would make the mean speak for the short and easy ones only)."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from consumer.record import ScoreRecord
from metrics import faithfulness
from metrics.interval import Moments, score_interval
from metrics.judge import Label
from metrics.outcome import Kind, Reason

LENGTHS = (100, 400, 1600)
"""Characters of an answer: the classes are below the first, between each two, and from the last on."""
LENGTH_NAMES = ("under 100", "100-399", "400-1599", "1600 and more")


@dataclass(frozen=True, slots=True)
class Coverage:
    """scored / (scored + failed); what is not applicable counts on neither side."""

    scored: int
    failed: int

    @property
    def share(self) -> float | None:
        total = self.scored + self.failed
        return self.scored / total if total else None


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric over a file. `mean`, its 95 % interval and `p10` are None where nothing was scored."""

    metric: str
    definition: str
    scored: int
    mean: float | None
    low: float | None
    high: float | None
    p10: float | None
    unscored: Mapping[str, int]
    coverage: Coverage
    by_length: tuple[Coverage, ...]


@dataclass(slots=True)
class FlagCounts:
    """Flagged answers, of those that could be: with a score that has a threshold. What is missing on the one side is
    missing on the other too, so unscored answers cannot make a share look small."""

    flagged: int = 0
    could_be: int = 0
    by_flag: Counter[str] = field(default_factory=Counter)
    by_fault: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float | None:
        return self.flagged / self.could_be if self.could_be else None

    def add(self, record: ScoreRecord) -> None:
        self.could_be += not record.thresholds.keys().isdisjoint(record.scores)
        if record.flags:
            self.flagged += 1
            self.by_flag.update(record.flags)
            self.by_fault[record.fault] += 1


class Summary:
    """Takes the results of a file one at a time; asks for 8 bytes a score."""

    def __init__(self, definitions: Mapping[str, str], bounds: Mapping[str, tuple[float, float]]) -> None:
        """By metric: its definition, and its own range."""
        self._definitions = definitions
        self._bounds = bounds
        self._values = {metric: array("d") for metric in definitions}
        self._unscored: dict[str, Counter[str]] = {metric: Counter() for metric in definitions}
        self._by_length = {metric: [[0, 0] for _ in LENGTH_NAMES] for metric in definitions}
        self.judged = faithfulness.NAME in definitions
        """Whether statements and refusals were counted."""
        self.statements = Counter(dict.fromkeys(Label, 0))
        self.refusals = 0
        self.flags = FlagCounts()
        self.scored = 0
        """Events with a value for at least one metric."""
        self.unscored = 0
        self.ignored = 0
        self.bad: Counter[str] = Counter()
        """Lines that hold no event, by reason."""
        self.cost: Counter[str] = Counter()
        """What an LLM judge was asked: judge_calls, prompt_tokens, completion_tokens."""
        self.repairs: Counter[str] = Counter()
        self.forms: Counter[str] = Counter()

    @property
    def events(self) -> int:
        """Events that were read, without the judge's own traffic."""
        return self.scored + self.unscored

    def add(self, record: ScoreRecord, answer_length: int) -> None:
        """`answer_length` in characters."""
        self.statements.update({Label(verdict): count for verdict, count in record.statements.items()})
        self.refusals += record.refusal
        self.cost.update(record.cost)
        self.flags.add(record)
        length = sum(answer_length >= edge for edge in LENGTHS)
        for metric, score in record.scores.items():
            self._values[metric].append(score.value)
            self._by_length[metric][length][0] += 1
        for metric, missing in record.unscored.items():
            self._unscored[metric][missing.reason] += 1
            self._by_length[metric][length][1] += Reason(missing.reason).kind is Kind.FAILED
        if record.scores:
            self.scored += 1
        else:
            self.unscored += 1

    def metrics(self) -> list[MetricSummary]:
        """In the order of the definitions."""
        return [self._metric(metric) for metric in self._definitions]

    def _metric(self, metric: str) -> MetricSummary:
        values = np.frombuffer(self._values[metric], dtype=np.float64)
        n = len(values)
        total = math.fsum(values)
        interval = None
        if n:
            moments = Moments(n=n, w=n, w2=n, ws=total, s=total, s2=math.fsum(values * values))
            interval = score_interval(moments, *self._bounds[metric])
        failed = sum(c for r, c in self._unscored[metric].items() if Reason(r).kind is Kind.FAILED)
        return MetricSummary(
            metric=metric,
            definition=self._definitions[metric],
            scored=n,
            mean=total / n if n else None,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            p10=float(np.quantile(values, 0.1)) if n else None,
            unscored=dict(self._unscored[metric].most_common()),
            coverage=Coverage(n, failed),
            by_length=tuple(Coverage(scored, missed) for scored, missed in self._by_length[metric]),
        )


def as_json(summary: Summary) -> dict[str, Any]:
    """The summary as a JSON object."""
    return {
        "events": summary.events,
        "scored": summary.scored,
        "unscored": summary.unscored,
        "ignored": summary.ignored,
        "bad_lines": dict(summary.bad),
        "repairs": dict(summary.repairs),
        "forms": dict(summary.forms),
        "statements": {label.value: summary.statements[label] for label in Label} if summary.judged else None,
        "refusals": summary.refusals if summary.judged else None,
        "judge_cost": dict(summary.cost),
        "flagged": {
            "answers": summary.flags.flagged,
            "of": summary.flags.could_be,
            "share": summary.flags.share,
            "by_flag": dict(summary.flags.by_flag),
            "by_fault": dict(summary.flags.by_fault),
        },
        "metrics": {m.metric: _metric_json(m) for m in summary.metrics()},
    }


def _metric_json(m: MetricSummary) -> dict[str, Any]:
    return {
        "definition": m.definition,
        "scored": m.scored,
        "mean": m.mean,
        "low": m.low,
        "high": m.high,
        "p10": m.p10,
        "unscored": dict(m.unscored),
        "coverage": m.coverage.share,
        "coverage_by_answer_length": {
            name: c.share for name, c in zip(LENGTH_NAMES, m.by_length, strict=True) if c.share is not None
        },
    }


def judged_lines(summary: Summary) -> Iterator[str]:
    """Statements by verdict, refusals and flagged answers, a line each."""
    if summary.judged:
        verdicts = ", ".join(f"{summary.statements[label]} {label.value}" for label in Label)
        yield f"statements judged: {summary.statements.total()} ({verdicts}); answers that refuse: {summary.refusals}"
    if summary.cost["judge_calls"]:
        yield (
            f"the judge: {summary.cost['judge_calls']:,} calls, {summary.cost['prompt_tokens']:,} prompt and "
            f"{summary.cost['completion_tokens']:,} completion tokens"
        )
    flags = summary.flags
    if flags.share is not None:
        told = f"{flags.flagged} of {flags.could_be} answers flagged ({flags.share:.1%})"
        if flags.flagged:
            by_flag = ", ".join(f"{flag} {count}" for flag, count in flags.by_flag.most_common())
            by_fault = ", ".join(f"{fault} {count}" for fault, count in flags.by_fault.most_common())
            told += f": {by_flag}; likely fault: {by_fault}"
        yield told


def score_table(metrics: Iterable[MetricSummary], coverage_minimum: float) -> RenderableType:
    """Per metric: n, mean, interval, 10th percentile, coverage, and what is unscored by reason."""
    table = Table(title="scores", title_justify="left")
    table.add_column("metric", no_wrap=True)
    for name in ("n", "mean", "95 % interval", "p10", "coverage"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("unscored")
    for m in metrics:
        interval = "-" if m.low is None or m.high is None else f"[{m.low:.4f}, {m.high:.4f}]"
        missing = ", ".join(f"{reason} {count}" for reason, count in m.unscored.items()) or "-"
        table.add_row(
            m.metric, str(m.scored), _number(m.mean), interval, _number(m.p10),
            _coverage(m.coverage, coverage_minimum), missing,
        )  # fmt: skip
    return table


def length_table(metrics: Iterable[MetricSummary], coverage_minimum: float) -> RenderableType:
    """Per metric: coverage by the answer's length in characters."""
    table = Table(title="coverage by answer length (characters)", title_justify="left")
    table.add_column("metric", no_wrap=True)
    for name in LENGTH_NAMES:
        table.add_column(name, justify="right")
    for m in metrics:
        table.add_row(m.metric, *(_coverage(c, coverage_minimum) for c in m.by_length))
    return table


def _coverage(coverage: Coverage, minimum: float) -> str:
    if coverage.share is None:
        return "-"
    mark = " degraded" if coverage.share < minimum else ""
    return f"{coverage.share:.1%} of {coverage.scored + coverage.failed}{mark}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
