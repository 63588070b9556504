"""Stories for the alerts on scores: each must fire just beyond its threshold, and none just before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from deploy.prometheus.scenario import GONE, Check, Labels, Scenario, Series, growing, level, missing, series, then
from deploy.prometheus.table import Table

MINUTE = 60.0
HOUR = 3600.0
OVER, UNDER = 1.08, 0.92
"""How far beyond a threshold, or short of it: a threshold moved by a tenth is found out."""
MONITOR = {"job": "groundwatch-monitor", "instance": "monitor:9109"}
OLD, NEW = "0a0a0a0a", "1b1b1b1b"


def score_scenarios(table: Table) -> Iterator[Scenario]:
    if "faithfulness" in table.settings.thresholds.default:
        # Without a threshold of the settings (a baseline may give one) there is nothing to fall below here.
        yield from _faithfulness(table)
        yield from _missing_and_odd_data(table)
    yield from _topic(table)
    yield from _drift(table)
    yield from _input_drift(table)
    yield from _change(table)
    yield from _refusals(table)
    yield from _retrieval(table)


def segment(table: Table, app: str = "shop") -> dict[str, str]:
    """A segment: the first label is the application, the others are `en`."""
    return {name: app if index == 0 else "en" for index, name in enumerate(table.segments)}


@dataclass(frozen=True, slots=True)
class Gauges:
    """The rolling gauges of one metric, window and definition; values are promtool's, or a number for all steps."""

    metric: str
    window: str
    score: float | str
    low: float | str
    high: float | str
    samples: float | str
    effective: float | str | None = None
    coverage: float | str = 1.0
    definition: str = OLD

    def series(self, own: Labels, steps: int) -> list[Series]:
        named = {"metric": self.metric, "window": self.window, "definition": self.definition, **own, **MONITOR}
        values = {
            "rolling_score": self.score,
            "rolling_score_low": self.low,
            "rolling_score_high": self.high,
            "rolling_samples": self.samples,
            "rolling_effective_samples": self.samples if self.effective is None else self.effective,
            "rolling_coverage_ratio": self.coverage,
        }
        return [series(f"groundwatch_{name}", named, _values(value, steps)) for name, value in values.items()]


def _values(value: float | str, steps: int) -> str:
    return value if isinstance(value, str) else level(value, steps)


def since(metric: str, definition: str, at: float, steps: int) -> Series:
    labels = {"metric": metric, "definition": definition, **MONITOR}
    return series("groundwatch_definition_since_timestamp_seconds", labels, level(at, steps))


def _faithfulness(table: Table) -> Iterator[Scenario]:
    row = table.row("FaithfulnessLow")
    window, samples, coverage = row.window(), row.number("samples"), row.number("coverage")
    default = table.settings.thresholds.default["faithfulness"]
    limit = default + row.number("margin")
    wait, own, steps = row.hold_off, segment(table), 60
    told = {"metric": "faithfulness", "window": window, **own}
    bad = Gauges(
        "faithfulness", window, limit - 0.05, limit - 0.1, limit - 0.01, samples * OVER, coverage=coverage * 1.02
    )

    def story(
        title: str, gauges: Gauges, fires: bool, extra: list[Series] | None = None, exact: bool = False
    ) -> Scenario:
        put = [*gauges.series(own, steps), since("faithfulness", OLD, 0, steps), *(extra or [])]
        return Scenario(row.name, title, put, wait + 10 * MINUTE, [told] if fires else [], exact=exact)

    yield story("the whole interval lies below", bad, True, exact=True)
    yield story("the mean lies below, the interval does not", replace(bad, high=limit + 0.01), False)
    yield story("low traffic: too few samples", replace(bad, samples=samples - 1), False)
    yield story("many samples of very unequal weight", replace(bad, samples=10 * samples, effective=samples - 1), False)
    yield story("too many answers could not be scored", replace(bad, coverage=coverage * 0.98), False)
    yield story("another metric", replace(bad, metric="answer_relevance"), False)
    own_threshold = series("groundwatch_threshold", {"metric": "faithfulness", **own, **MONITOR}, level(0.5, steps))
    yield story("a lower threshold of the segment is in force", bad, False, [own_threshold])
    strict = series("groundwatch_threshold", {"metric": "faithfulness", **own, **MONITOR}, level(0.9, steps))
    fine = replace(bad, score=0.92, low=0.9, high=0.9 + row.number("margin") - 0.01)
    yield story("a higher threshold of the segment is in force", fine, True, [strict])
    yield story("just above that threshold", replace(fine, high=0.9 + row.number("margin") + 0.01), False, [strict])

    good = replace(bad, score=0.95, low=0.93, high=0.97)
    both = [*replace(good, definition=NEW).series(own, steps), since("faithfulness", NEW, 60, steps)]
    yield story("two definitions side by side: the newest is fine", bad, False, both)
    both = [*replace(bad, definition=NEW).series(own, steps), since("faithfulness", NEW, 60, steps)]
    yield story("two definitions side by side: the newest is not", good, True, both)


def _missing_and_odd_data(table: Table) -> Iterator[Scenario]:
    """Field cases 58, 61 and 63: NaN, data that ends, values that change at every evaluation."""
    row = table.row("FaithfulnessLow")
    window, samples, wait, own = row.window(), row.number("samples") * 2, row.hold_off, segment(table)
    told = {"metric": "faithfulness", "window": window, **own}
    bad = Gauges("faithfulness", window, 0.6, 0.55, 0.65, samples)
    good = Gauges("faithfulness", window, 0.95, 0.93, 0.97, samples)
    begun = int((wait + 5 * MINUTE) / MINUTE)

    def changing(*parts: str) -> list[Series]:
        """Bad until `begun`, then what `parts` say, in every gauge; `{bad}`, `{good}`: that gauge's value."""
        made = []
        for (name, values), (_, fine) in zip(bad.series(own, begun), good.series(own, 0), strict=True):
            later = [part.format(bad=values.split("+")[0], good=fine.split("+")[0]) for part in parts]
            made.append((name, then(values, *later)))
        return made

    always = since("faithfulness", OLD, 0, 600)
    end = begun * MINUTE
    yield Scenario(row.name, "the series ends while it fires: silence is no recovery",
                   [*changing(GONE), always], end + HOUR, [told])  # fmt: skip
    yield Scenario(row.name, "a scrape gap while it fires", [*changing(GONE, missing(3), "{bad}+0x30"), always],
                   end + 3 * MINUTE, [told])  # fmt: skip
    yield Scenario(row.name, "after the silence all is well: it ends",
                   [*changing(GONE, missing(20), "{good}+0x30"), always], end + 30 * MINUTE)  # fmt: skip
    step = 4 * MINUTE
    slower = [(name, values.replace(f"x{begun}", "x3")) for name, values in changing(GONE)]
    lasting = 3 * step + table.hold
    yield Scenario(row.name, "silence that lasts long", [*slower, always], lasting - step, [told], step=step)
    yield Scenario(row.name, "silence that outlasts the hold", [*slower, always], lasting + 2 * step, step=step)
    wavering = replace(bad, score="0.6 0.61 0.59 0.62 0.58 " + "0.6 0.61 0.59 0.62 0.58 " * begun)
    yield Scenario(row.name, "a value that changes all the time keeps one identity",
                   [*wavering.series(own, 5 * begun), always], end, [told], exact=True)  # fmt: skip
    nan = replace(bad, score="NaN " * 60, low="NaN " * 60, high="NaN " * 60)
    nan_seen = Scenario(row.name, "NaN is neither below nor above", [*nan.series(own, 60), always], end,
                        checks=[Check("groundwatch:rolling_score:newest", end)])  # fmt: skip
    yield nan_seen
    other = replace(nan, definition=NEW).series(segment(table, "helpdesk"), 60)
    newest = since("faithfulness", NEW, 0, 600)
    yield Scenario(row.name, "NaN in another segment hides nothing", [*bad.series(own, 60), *other, always, newest],
                   end, [told])  # fmt: skip
    named = [{"series": "groundwatch_rolling_score"}]
    yield Scenario("NotANumber", "a NaN is told by name", nan_seen.series, end, named, exact=True)
    yield Scenario("NotANumber", "numbers only", [*bad.series(own, 60), always], end)


def _topic(table: Table) -> Iterator[Scenario]:
    row = table.row("TopicDrift")
    window, reference, fall = row.window(), row.window("reference"), row.number("fall")
    samples, own, metric = row.number("samples"), segment(table), "topic_similarity"
    at = 3 * row.window_seconds() + row.hold_off
    steps = int(at / MINUTE) + 1
    now = Gauges(metric, window, 0.75, 0.74, 0.80 - fall - 0.002, samples * OVER)
    before = Gauges(metric, reference, 0.81, 0.80, 0.82, row.number("reference_samples") * OVER)

    def story(
        title: str, now: Gauges, before: Gauges, fires: bool, seen_since: float = 0, exact: bool = False
    ) -> Scenario:
        put = [*now.series(own, steps), *before.series(own, steps), since(metric, OLD, seen_since, steps)]
        return Scenario(
            row.name, title, put, at, [{"metric": metric, "window": window, **own}] if fires else [], exact=exact
        )

    yield story("the window lies below the day before", now, before, True, exact=True)
    yield story("a smaller fall", replace(now, high=0.80 - fall + 0.002), before, False)
    yield story("low traffic: too few samples", replace(now, samples=samples * UNDER), before, False)
    yield story("no past to compare with", now, replace(before, samples=row.number("reference_samples") * UNDER), False)
    yield story("too many answers could not be scored", replace(now, coverage=0.85), before, False)
    length = row.window_seconds()
    yield story("a definition that has just come", now, before, False, seen_since=at - 1.9 * length)
    settled = at - row.hold_off - 2.1 * length
    yield story("a definition that has just enough of a past", now, before, True, seen_since=settled)
    lasting = [*before.series(own, 2 * steps), since(metric, OLD, 0, 2 * steps)]
    ended = [(name, then(values, GONE)) for name, values in now.series(own, steps)]
    yield Scenario(row.name, "the series ends while it fires: silence is no recovery", [*ended, *lasting],
                   at + HOUR, [{"metric": metric, "window": window, **own}])  # fmt: skip


def _drift(table: Table) -> Iterator[Scenario]:
    row = table.row("DriftSpike")
    window, limit, samples, own = row.window(), row.number("limit"), row.number("samples"), segment(table)
    steps, at = 60, row.hold_off + 10 * MINUTE

    def story(
        title: str, drift: float, null: float, n: float, fires: bool, exact: bool = False, **labels: str
    ) -> Scenario:
        named = {
            "metric": "faithfulness",
            "statistic": "psi",
            "reference": "baseline",
            "window": window,
            **own,
            **MONITOR,
        }
        put = [
            series("groundwatch_drift", named | labels, level(drift, steps)),
            series("groundwatch_drift_null_high", named | labels, level(null, steps)),
            *Gauges("faithfulness", window, 0.9, 0.8, 0.95, n).series(own, steps),
            since("faithfulness", OLD, 0, steps),
        ]
        return Scenario(row.name, title, put, at, [{"metric": "faithfulness", **own}] if fires else [], exact=exact)

    yield story("beyond the limit and beyond chance", limit * OVER, limit / 2, samples * OVER, True, exact=True)
    yield story("below the limit", limit * UNDER, limit / 2, samples * OVER, False)
    yield story("few samples move that far by chance", limit * OVER, limit * OVER * 1.01, samples * OVER, False)
    yield story("low traffic: too few samples", limit * OVER, limit / 2, samples * UNDER, False)
    yield story("another statistic has another scale", 9.0, 0.1, samples * OVER, False, statistic="wasserstein")
    yield story("the previous period is no baseline", 9.0, 0.1, samples * OVER, False, reference="previous")


def _input_drift(table: Table) -> Iterator[Scenario]:
    row = table.row("InputDrift")
    window, times, samples, own = row.window(), row.number("times_null"), row.number("samples"), segment(table)
    steps, at = 90, row.hold_off + 10 * MINUTE

    def story(title: str, metric: str, drift: float, n: float, fires: bool, exact: bool = False) -> Scenario:
        named = {"metric": metric, "statistic": "mmd", "reference": "baseline", "window": window, **own, **MONITOR}
        put = [
            series("groundwatch_drift", named, level(drift, steps)),
            series("groundwatch_drift_null_high", named, level(0.1, steps)),
            *Gauges("topic_similarity", window, 0.8, 0.7, 0.9, n).series(own, steps),
            since("topic_similarity", OLD, 0, steps),
        ]
        expected = [{"metric": metric, "statistic": "mmd", **own}] if fires else []
        return Scenario(row.name, title, put, at, expected, exact=exact)

    yield story("questions beyond chance", "question", 0.1 * times * OVER, samples * OVER, True, exact=True)
    yield story("passages beyond chance", "context", 0.1 * times * OVER, samples * OVER, True)
    yield story("within chance", "question", 0.1 * times * UNDER, samples * OVER, False)
    yield story("low traffic: too few samples", "question", 0.1 * times * OVER, samples * UNDER, False)
    yield story("a score is no input", "faithfulness", 9.0, samples * OVER, False)


def _change(table: Table) -> Iterator[Scenario]:
    row = table.row("ChangeDetected")
    own, samples, window = segment(table), row.number("samples"), row.window()
    length = int(row.seconds("span") / MINUTE)

    def story(title: str, counter: str, n: float, at: float, fires: bool) -> Scenario:
        put = [
            series("groundwatch_changes_total", {"metric": "faithfulness", **own, **MONITOR}, counter),
            *Gauges("faithfulness", window, 0.9, 0.8, 0.95, n).series(own, 3 * length),
            since("faithfulness", OLD, 0, 3 * length),
        ]
        expected = [{"metric": "faithfulness", **own}] if fires else []
        return Scenario(row.name, title, put, at, expected, exact=True)

    first = then(level(0, 9), level(1, 3 * length))
    yield story("the first change ever", first, samples * OVER, 15 * MINUTE, True)
    yield story("still told near the end of the span", first, samples * OVER, (length + 7) * MINUTE, True)
    yield story("and not for ever", first, samples * OVER, (length + 13) * MINUTE, False)
    yield story("low traffic: too few samples", first, samples * UNDER, 15 * MINUTE, False)
    yield story("a monitor that was restarted", then(level(7, 9), level(0, 60)), samples * OVER, 15 * MINUTE, False)
    yield story("old changes", level(7, 60), samples * OVER, 15 * MINUTE, False)


def _refusals(table: Table) -> Iterator[Scenario]:
    row = table.row("RefusalsHigh")
    window, limit, samples, own, steps = row.window(), row.number("limit"), row.number("samples"), segment(table), 60

    def story(title: str, ratio: float, n: float, fires: bool, exact: bool = False) -> Scenario:
        put = [
            series("groundwatch_rolling_refusal_ratio", {"window": window, **own, **MONITOR}, level(ratio, steps)),
            *Gauges("topic_similarity", window, 0.8, 0.7, 0.9, n).series(own, steps),
            since("topic_similarity", OLD, 0, steps),
        ]
        return Scenario(row.name, title, put, row.hold_off + 10 * MINUTE, [own] if fires else [], exact=exact)

    yield story("more than the limit", limit * OVER, samples * OVER, True, exact=True)
    yield story("less than the limit", limit * UNDER, samples * OVER, False)
    yield story("low traffic: too few samples", limit * OVER, samples * UNDER, False)


def answers(own: Labels, count: str, weight: str, flagged: str, instance: str = "monitor:9109") -> list[Series]:
    """Counters of answers: how many were scored, Σ 1/p over them, and over the flagged ones."""
    named = {**own, **MONITOR, "instance": instance}
    return [
        series("groundwatch_score_count", {"metric": "faithfulness", "definition": OLD, **named}, count),
        series("groundwatch_answers_weight_total", named, weight),
        series("groundwatch_flagged_answers_weight_total", named, flagged),
    ]


def _retrieval(table: Table) -> Iterator[Scenario]:
    row = table.row("RetrievalFailing")
    own, limit, least = segment(table), row.number("limit"), row.number("samples")
    whole = int(row.seconds("span") / MINUTE)
    steps, at = 3 * whole, row.seconds("span") + row.hold_off + 2 * MINUTE

    def story(
        title: str, count: float, share: float, fires: bool, fault: str = "retrieval", exact: bool = False
    ) -> Scenario:
        each = count / whole
        named = {"fault": fault, **own, **MONITOR}
        put = [
            *answers(own, growing(each, steps), growing(each, steps), growing(each * share, steps)),
            # Two flags of the same answers are not twice as many answers.
            series(
                "groundwatch_flagged_total",
                named | {"flag": "question_context_similarity_low"},
                growing(each * share, steps),
            ),
            series(
                "groundwatch_flagged_total", named | {"flag": "faithfulness_low"}, growing(each * share * 0.9, steps)
            ),
        ]
        return Scenario(row.name, title, put, at, [own] if fires else [], exact=exact)

    yield story("more than the limit", least * 4, limit * OVER, True, exact=True)
    yield story("just enough answers", least * OVER, limit * OVER, True)
    yield story("less than the limit", least * 4, limit * UNDER, False)
    yield story("low traffic: too few answers", least * UNDER, limit * OVER, False)
    yield story("another part is at fault", least * 4, limit * OVER, False, fault="generation")
