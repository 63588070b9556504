"""Stories of several processes and unequal segments: what recording rules make of them (field case 62).

A mean of means would weigh a process that saw two answers like one that saw a thousand; sums over sums do not.
"""

from __future__ import annotations

from collections.abc import Iterator

from deploy.prometheus.scenario import Check, Labels, Scenario, Series, growing, series, then
from deploy.prometheus.score_scenarios import HOUR, MINUTE, MONITOR, OLD, answers, segment
from deploy.prometheus.table import Table
from deploy.prometheus.worker_scenarios import PARTITION, SCORER


def merging_scenarios(table: Table) -> Iterator[Scenario]:
    yield from _means(table)
    for name in ("FlaggedBudgetFast", "FlaggedBudgetMedium", "FlaggedBudgetSlow"):
        yield _flagged(table, name)
    for name in ("ContextMissing", "JudgeFailing", "JudgeOverBudget"):
        yield _ended(table, name)


def written(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def _means(table: Table) -> Iterator[Scenario]:
    """Process A saw 2 answers of mean 0.20, process B 998 of mean 0.95: 0.9485, not 0.575."""
    own = segment(table)

    def sums(instance: str, count: float, mean: float, steps: int) -> list[Series]:
        named = {"metric": "faithfulness", "definition": OLD, **own, **MONITOR, "instance": instance}
        return [
            series("groundwatch_score_weighted_sum_total", named, growing(count * mean / 60, steps)),
            series("groundwatch_score_weight_total", named, growing(count / 60, steps)),
        ]

    at = 90 * MINUTE
    expected = (written({"metric": "faithfulness", "definition": OLD, **own}), 0.9485)
    check = Check("round(groundwatch:score:mean1h, 0.0001)", at, (expected,))
    put = [*sums("a:9109", 2, 0.20, 120), *sums("b:9109", 998, 0.95, 120)]
    yield Scenario("FaithfulnessLow", "merged over processes (field case 62)", put, at, checks=[check])
    restarted = [(name, then(values.replace("x120", "x70"), values)) for name, values in sums("b:9109", 998, 0.95, 120)]
    put = [*sums("a:9109", 2, 0.20, 130), *restarted]
    yield Scenario("FaithfulnessLow", "merged, one process was restarted (field case 62)", put, at, checks=[check])


def _flagged(table: Table, name: str) -> Scenario:
    """Of one segment process A saw 2 answers, both flagged, and process B 998, none: 0.2 %, not 50. Of another one A
    saw 100, half of them flagged: of all it is 52 of 1,100. Too few by number for an alert, each of weight 100."""
    row = table.row(name)
    long = row.seconds("long")
    step = MINUTE if long <= HOUR else 5 * MINUTE if long <= 6 * HOUR else 20 * MINUTE
    whole = long / step
    steps, at = int(2 * whole), long + 4 * step
    shop, desk, every = segment(table), segment(table, "desk"), dict.fromkeys(table.segments, "all")

    def saw(own: Labels, instance: str, weight: float, flagged: float) -> list[Series]:
        count, total, bad = (growing(part / whole, steps) for part in (weight / 100, weight, flagged))
        return answers(own, count, total, bad, instance=instance)

    # The same answers have a second metric: they are the same answers.
    second = {"metric": "topic_similarity", "definition": OLD, **shop, **MONITOR}
    put = [
        *saw(shop, "a:9109", 2, 2), *saw(shop, "b:9109", 998, 0), *saw(desk, "a:9109", 100, 50),
        series("groundwatch_score_count", second, growing(9.0 / whole, steps)),
    ]  # fmt: skip
    shares = ((written(shop), 0.002), (written(desk), 0.5), (written(every), 0.0473))
    counts = ((written(shop), 10.0), (written(desk), 1.0), (written(every), 11.0))
    checks = [
        Check(f"round(groundwatch:flagged_answers:ratio{row.text(key)}, 0.0001)", at, shares)
        for key in ("long", "short")
    ]
    checks.append(Check(f"round(groundwatch:answers:increase{row.text('long')}, 0.1)", at, counts))
    title = "merged over processes and unequal segments (field case 62)"
    return Scenario(row.name, title, put, at, step=step, checks=checks)


def _ended(table: Table, name: str) -> Scenario:
    """Two scorers: one reads 2 events a minute, the other 6, and one in eight has no value."""
    row = table.row(name)
    minutes = row.seconds("span") / MINUTE
    steps, at = int(3 * minutes), row.seconds("span") + 5 * MINUTE
    reason = {"metric": "faithfulness", "reason": "non_finite"}
    put = []
    for instance, by, lost in (("a:9108", 2.0, 1.0), ("b:9108", 6.0, 0.0)):
        put.append(
            series("groundwatch_events_total", {"outcome": "scored", **PARTITION, "instance": instance},
                   growing(by, steps))
        )  # fmt: skip
        put.append(series("groundwatch_unscored_total", {**reason, **SCORER, "instance": instance},
                          growing(lost, steps)))  # fmt: skip
    span = row.text("span")
    checks = [
        Check(f"round(groundwatch:events:increase{span}, 0.1)", at, (('{outcome="scored"}', 8.0 * minutes),)),
        Check(f"round(groundwatch:unscored:increase{span}, 0.1)", at, ((written(reason), minutes),)),
    ]
    return Scenario(row.name, "merged over scorers (field case 62)", put, at, checks=checks)
