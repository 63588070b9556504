"""Recording rules: what alerts and dashboards have in common, merged over processes before anything is divided.

Rolling gauges are taken of the newest definition of each metric, whichever monitor shows them. Counters are summed as
increases and divided afterwards: a mean of means would weigh a process that saw two answers like one that saw a
thousand. `>= 0` behind an increase drops NaN, which one bad member would otherwise spread over the sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from deploy.prometheus.table import Table, span

NEWEST = "groundwatch:definition:newest"
THRESHOLD = "groundwatch:threshold:in_force"
SCORE_MEAN = "groundwatch:score:mean1h"
ROLLING = (
    "rolling_score",
    "rolling_score_low",
    "rolling_score_high",
    "rolling_score_p10",
    "rolling_samples",
    "rolling_effective_samples",
    "rolling_coverage_ratio",
)


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording rule."""

    name: str
    expr: str


@dataclass(slots=True)
class Recordings:
    """All recording rules. Those over counters are made when an alert asks for them, one for each span of time."""

    table: Table
    _made: dict[str, str] = field(default_factory=dict)

    def listed(self) -> list[Recording]:
        return [Recording(name, expr) for name, expr in (_always(self.table) | self._made).items()]

    def answers(self, text: str, seconds: float) -> str:
        """Answers that got a score, by segment and for `all`; not weighted: what an estimate rests on."""
        by = ", ".join(self.table.segments)
        each = f"increase(groundwatch_score_count[{span(seconds)}]) >= 0"
        every = _as_all(self.table, f"max(sum by (metric) ({each}))")
        return self._record(
            f"groundwatch:answers:increase{text}", f"max by ({by}) (sum by (metric, {by}) ({each}))\nor\n{every}"
        )

    def flagged_ratio(self, text: str, seconds: float) -> str:
        """Share of flagged answers, weighted by inclusion probability, by segment and for `all`."""
        by = ", ".join(self.table.segments)
        flagged = f"increase(groundwatch_flagged_answers_weight_total[{span(seconds)}]) >= 0"
        answers = f"increase(groundwatch_answers_weight_total[{span(seconds)}]) >= 0"
        every = _as_all(self.table, f"sum({flagged}) / (sum({answers}) > 0)")
        expr = f"sum by ({by}) ({flagged}) / (sum by ({by}) ({answers}) > 0)\nor\n{every}"
        return self._record(f"groundwatch:flagged_answers:ratio{text}", expr)

    def unscored(self, text: str, seconds: float) -> str:
        """Metrics without a value, by metric and reason."""
        expr = f"sum by (metric, reason) (increase(groundwatch_unscored_total[{span(seconds)}]) >= 0)"
        return self._record(f"groundwatch:unscored:increase{text}", expr)

    def ended(self, text: str, seconds: float) -> str:
        """Events by how they ended."""
        expr = f"sum by (outcome) (increase(groundwatch_events_total[{span(seconds)}]) >= 0)"
        return self._record(f"groundwatch:events:increase{text}", expr)

    def _record(self, name: str, expr: str) -> str:
        known = self._made.setdefault(name, expr)
        if known != expr:
            raise ValueError(f"{name} would mean two things: {known} and {expr}")
        return name


def _always(table: Table) -> dict[str, str]:
    by = ", ".join(table.segments)
    since = "groundwatch_definition_since_timestamp_seconds"
    rules = {NEWEST: f"max by (metric, definition) ({since}) == on (metric) group_left () max by (metric) ({since})"}
    for name in ROLLING:
        # x == x drops NaN.
        gauge = f"groundwatch_{name} == groundwatch_{name}"
        rules[f"groundwatch:{name}:newest"] = (
            f"max by (metric, window, {by}) ({gauge} and on (metric, definition) {NEWEST})"
        )
    defaults = [
        f'max by (metric, {by}) (0 * groundwatch_rolling_samples{{metric="{metric}"}} + {value:g})'
        for metric, value in table.settings.thresholds.default.items()
    ]
    rules[THRESHOLD] = "\nor\n".join([f"max by (metric, {by}) (groundwatch_threshold)", *defaults])
    hour = span(3600 / table.scale)
    weighted, weight = (
        f"sum by (metric, definition, {by}) (increase(groundwatch_score_{part}_total[{hour}]) >= 0)"
        for part in ("weighted_sum", "weight")
    )
    rules[SCORE_MEAN] = f"{weighted}\n/\n({weight} > 0)"
    return rules


def _as_all(table: Table, expr: str) -> str:
    """An expression without labels, with `all` in every label of the segment."""
    for name in table.segments:
        expr = f'label_replace({expr}, "{name}", "all", "", "")'
    return expr
