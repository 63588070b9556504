"""Stories for the alerts on the workers: quiet failures must be told apart, each by its own alert."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from deploy.prometheus.scenario import GONE, Labels, Scenario, Series, growing, level, missing, series, then
from deploy.prometheus.score_scenarios import MINUTE, MONITOR, OLD, OVER, UNDER, Gauges, segment, since
from deploy.prometheus.table import Row, Table

SCORER = {"job": "groundwatch-scorer", "instance": "scorer-0:9108"}
PARTITION = {"topic": "qa.events", "partition": "0", **SCORER}


def worker_scenarios(table: Table) -> Iterator[Scenario]:
    yield from _shares(table)
    yield from _coverage(table)
    yield from _input_and_scores(table)
    yield from _monitors(table)
    yield from _targets(table)
    yield from _lag_and_age(table)
    yield from _offsets(table)
    yield from _dead_letters(table)
    yield from _first_increments(table)
    yield from _redis(table)


def events(steps: int, **per_minute: float) -> list[Series]:
    """Events of one scorer by how they ended, a minute; the outcomes that are not named stay at 0."""
    outcomes = dict.fromkeys(("sampled_out", "ignored", "scored", "unscored", "dead_lettered"), 0.0) | per_minute
    return [
        series("groundwatch_events_total", {"outcome": name, **PARTITION}, growing(by, steps))
        for name, by in outcomes.items()
    ]


def _unscored(metric: str, reason: str, values: str) -> Series:
    return series("groundwatch_unscored_total", {"metric": metric, "reason": reason, **SCORER}, values)


def _shares(table: Table) -> Iterator[Scenario]:
    cases: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
        "ContextMissing": ("topic_similarity", "no_context", {}),
        "Shedding": ("topic_similarity", "shed", {}),
        "JudgeFailing": ("faithfulness", "judge_timeout", {"metric": "faithfulness"}),
        "JudgeOverBudget": ("faithfulness", "budget", {"metric": "faithfulness"}),
    }
    for name, (metric, reason, labels) in cases.items():
        row = table.row(name)
        yield from _share(row, metric, reason, labels)
    row = table.row("JudgeFailing")
    limit, at, steps = row.number("limit"), row.seconds("span") + row.hold_off + 5 * MINUTE, 120
    several = [
        _unscored("faithfulness", r, growing(10 * limit * OVER / 2, steps)) for r in ("judge_busy", "judge_parse")
    ]
    yield Scenario(row.name, "several reasons together", [*events(steps, scored=10), *several], at,
                   [{"metric": "faithfulness"}])  # fmt: skip
    other = [_unscored("faithfulness", "no_claims", growing(9, steps))]
    yield Scenario(row.name, "answers without a claim are no failure", [*events(steps, scored=10), *other], at)


def _share(row: Row, metric: str, reason: str, labels: Labels) -> Iterator[Scenario]:
    limit, least, whole = row.number("limit"), row.number("events"), int(row.seconds("span") / MINUTE)
    at, steps = row.seconds("span") + row.hold_off + 5 * MINUTE, 2 * whole + int(row.hold_off / MINUTE) + 20

    def story(
        title: str, ended: float, share: float, fires: bool, exact: bool = False, reason: str = reason
    ) -> Scenario:
        each = ended / whole
        put = [
            # Half of the events have another metric's score; what is sampled out or dead has no part in this.
            *events(steps, scored=each / 2, unscored=each / 2, sampled_out=50, dead_lettered=20),
            _unscored(metric, reason, growing(each * share, steps)),
            _unscored("question_answer_similarity", reason, level(0, steps)),
        ]
        return Scenario(row.name, title, put, at, [labels] if fires else [], exact=exact)

    yield story("more than the limit", 10 * least, limit * OVER, True, exact=True)
    yield story("just enough events", least * OVER, limit * OVER, True)
    yield story("less than the limit", 10 * least, limit * UNDER, False)
    yield story("low traffic: too few events", least * UNDER, min(1.0, limit * 2), False)
    yield story("another reason", 10 * least, limit * OVER, False, reason="no_reference")
    each = 10 * least / whole
    put = [
        *(
            series("groundwatch_events_total", {"outcome": "scored", **PARTITION, "instance": name}, values)
            for name, values in (("a", growing(each, steps)), ("b", then(growing(each, whole), growing(each, steps))))
        ),
        _unscored(metric, reason, growing(2 * each * limit * OVER, steps)),
    ]
    yield Scenario(row.name, "two scorers, one of them restarted", put, at, [labels])


def _coverage(table: Table) -> Iterator[Scenario]:
    row = table.row("CoverageLow")
    window, limit, samples, own, steps = row.window(), row.number("limit"), row.number("samples"), segment(table), 60
    at = row.hold_off + 10 * MINUTE

    def story(title: str, gauges: Gauges, n: float, fires: bool, exact: bool = False) -> Scenario:
        put = [
            *gauges.series(own, steps),
            *Gauges("topic_similarity", window, 0.8, 0.7, 0.9, n).series(own, steps),
            since("faithfulness", OLD, 0, steps),
            since("topic_similarity", OLD, 0, steps),
        ]
        return Scenario(
            row.name,
            title,
            put,
            at,
            [{"metric": "faithfulness", "window": window, **own}] if fires else [],
            exact=exact,
        )

    low = Gauges("faithfulness", window, 0.9, 0.8, 0.95, samples, coverage=limit - 0.02)
    yield story("many scores are missing", low, samples * OVER, True, exact=True)
    yield story("few scores are missing", replace(low, coverage=limit + 0.02), samples * OVER, False)
    few = Gauges("faithfulness", window, 0.9, 0.8, 0.95, 5, coverage=0.4)
    yield story("low traffic: too few answers", few, samples * UNDER, False)
    # The judge is gone: the metric has no score at all, and no gauge but this one.
    labels = {"metric": "faithfulness", "window": window, "definition": OLD, **own, **MONITOR}
    put = [
        series("groundwatch_rolling_coverage_ratio", labels, level(0, steps)),
        series("groundwatch_rolling_samples", labels, level(0, steps)),
        *Gauges("topic_similarity", window, 0.8, 0.7, 0.9, samples * OVER).series(own, steps),
        since("faithfulness", OLD, 0, steps),
        since("topic_similarity", OLD, 0, steps),
    ]
    yield Scenario(
        row.name,
        "no score of the metric is left",
        put,
        at,
        [{"metric": "faithfulness", "window": window, **own}],
        exact=True,
    )


def _input_and_scores(table: Table) -> Iterator[Scenario]:
    row = table.row("NoInput")
    span, steps = int(row.seconds("span") / MINUTE), 120
    at = row.seconds("span") + row.hold_off + 25 * MINUTE
    up = series("up", SCORER, level(1, steps))
    stopped = then(growing(10, 20), level(200, steps))
    silent = series("groundwatch_events_in_total", PARTITION, stopped)
    yield Scenario(row.name, "the producer has stopped (field case 61)", [up, silent], at, [{}], exact=True)
    slow = series("groundwatch_events_in_total", PARTITION, " ".join(f"{i}x{span - 2}" for i in range(8)))
    yield Scenario(row.name, "one event now and then", [up, slow], at)
    down = series("up", SCORER, then(level(1, 20), level(0, steps)))
    yield Scenario(row.name, "the scorer is down: another alert's business", [down, silent], at)

    row = table.row("NoScores")
    least, whole = row.number("events"), int(row.seconds("span") / MINUTE)
    at = row.seconds("span") + row.hold_off + 5 * MINUTE
    yield Scenario(row.name, "events without any score (field case 61)", events(60, unscored=least * OVER / whole), at,
                   [{}], exact=True)  # fmt: skip
    yield Scenario(row.name, "low traffic: too few events", events(60, unscored=least * UNDER / whole), at)
    yield Scenario(row.name, "some are scored", events(60, unscored=least, scored=0.3), at)


def _monitors(table: Table) -> Iterator[Scenario]:
    row = table.row("MonitorStalled")
    least, whole, steps = row.number("events"), int(row.seconds("span") / MINUTE), 90
    at = row.seconds("span") + row.hold_off + 25 * MINUTE
    up = series("up", MONITOR, level(1, steps))

    def counted(values: str) -> Series:
        return series("groundwatch_scores_read_total", {"outcome": "counted", **MONITOR}, values)

    stopped = counted(then(growing(3, 20), level(60, steps)))
    enough, few = events(steps, scored=least * OVER / whole), events(steps, scored=least * UNDER / whole)
    yield Scenario(row.name, "scores are written and none is read", [up, stopped, *enough], at, [{}], exact=True)
    yield Scenario(row.name, "some are read", [up, counted(growing(0.3, steps)), *enough], at)
    yield Scenario(row.name, "low traffic: too few events", [up, stopped, *few], at)
    down = series("up", MONITOR, level(0, steps))
    yield Scenario(row.name, "the monitor is down: another alert's business", [down, stopped, *enough], at)

    row = table.row("MonitorsActive")
    at, up = row.hold_off + 10 * MINUTE, series("up", MONITOR, level(1, steps))

    def active(instance: str, value: float) -> Series:
        return series("groundwatch_monitor_active", {**MONITOR, "instance": instance}, level(value, steps))

    yield Scenario(row.name, "two at once", [up, active("a", 1), active("b", 1)], at, [{}], exact=True)
    yield Scenario(row.name, "none", [up, active("a", 0), active("b", 0)], at, [{}], exact=True)
    yield Scenario(row.name, "one, and a standby", [up, active("a", 1), active("b", 0)], at)
    yield Scenario(row.name, "all down: another alert's business",
                   [series("up", MONITOR, level(0, steps)), active("a", 0)], at)  # fmt: skip


def _targets(table: Table) -> Iterator[Scenario]:
    row = table.row("TargetDown")
    steps, at = 60, row.hold_off + 10 * MINUTE
    job = {"job": table.scorer_job}

    def up(name: str, values: str, job: str = table.scorer_job) -> Series:
        return series("up", {"job": job, "instance": name}, values)

    pair = [up("a", level(1, steps)), up("m", level(1, steps), table.monitor_job)]
    yield Scenario(row.name, "one of two scorers", [*pair, up("b", level(0, steps))], at, [job], exact=True)
    yield Scenario(row.name, "all up", [*pair, up("b", level(1, steps))], at)
    yield Scenario(
        row.name, "one scrape failed", [*pair, up("b", then(level(1, 10), "0", level(1, steps)))], 11 * MINUTE
    )
    yield Scenario(row.name, "somebody else's target", [*pair, up("x", level(0, steps), "other")], at)

    row = table.row("TargetsGone")
    at = row.hold_off + 10 * MINUTE
    yield Scenario(row.name, "the job has vanished from discovery (field case 61)", [pair[1]], at, [job], exact=True)
    yield Scenario(row.name, "the monitor has vanished", [pair[0]], at, [{"job": table.monitor_job}], exact=True)
    yield Scenario(row.name, "all of them are down", [up("a", level(0, steps)), pair[1]], at, [job], exact=True)
    yield Scenario(row.name, "one of two is up", [*pair, up("b", level(0, steps))], at)
    ended = [up("a", then(level(1, 20), GONE)), pair[1]]
    yield Scenario(row.name, "gone after a while", ended, 21 * MINUTE + row.hold_off + MINUTE, [job])


def _lag_and_age(table: Table) -> Iterator[Scenario]:
    row = table.row("ScoringLag")
    limit, least, steps = row.seconds("limit"), row.number("events"), 90
    at = row.seconds("span") + row.hold_off + 10 * MINUTE

    def lag(title: str, behind: float, per_minute: float, fires: bool, exact: bool = False) -> Scenario:
        put = [
            series("groundwatch_lag_events", PARTITION, level(behind * 0.75, steps)),
            series("groundwatch_lag_events", PARTITION | {"partition": "1"}, level(behind * 0.25, steps)),
            *events(steps, sampled_out=per_minute * 0.9, scored=per_minute * 0.1),
        ]
        return Scenario(row.name, title, put, at, [{"topic": "qa.events"}] if fires else [], exact=exact)

    minutes = limit / MINUTE
    yield lag("takes too long to catch up", 600 * minutes * OVER, 600, True, exact=True)
    yield lag("takes a little", 600 * minutes * UNDER, 600, False)
    yield lag("just enough events", least * OVER, least / minutes / 2, True)
    yield lag("low traffic: too few events", least * UNDER, least / minutes / 2, False)

    row = table.row("EventsOld")
    limit, least = row.number("limit"), row.number("events")
    whole = int(row.seconds("span") / MINUTE)
    at = row.seconds("span") + row.hold_off + 10 * MINUTE

    def age(title: str, count: float, old: float, fires: bool, exact: bool = False) -> Scenario:
        """`old`: share of the events that are older than the limit (and younger than three times it)."""
        each = count / whole
        buckets = {
            f"{limit / 3:g}": each / 2,
            f"{limit:g}": each * (1 - old),
            f"{limit * 3:g}": each,
            "+Inf": each,
        }
        put = [
            *(
                series("groundwatch_event_age_seconds_bucket", {"le": bound, **SCORER}, growing(by, steps))
                for bound, by in buckets.items()
            ),
            series("groundwatch_event_age_seconds_count", SCORER, growing(each, steps)),
        ]
        return Scenario(row.name, title, put, at, [{}] if fires else [], exact=exact)

    yield age("more than one in twenty is old", least * OVER, 0.055, True, exact=True)
    yield age("fewer than one in twenty is old", least * OVER, 0.045, False)
    yield age("low traffic: too few events", least * UNDER, 0.5, False)


def _offsets(table: Table) -> Iterator[Scenario]:
    row = table.row("OffsetStuck")
    limit, steps = row.seconds("limit"), 60
    at = 30 * MINUTE
    # The age is beyond the limit one step after it has reached it, and `for` is counted from there.
    in_time = at - row.hold_off - limit - MINUTE
    progress = "groundwatch_progress_timestamp_seconds"
    other = PARTITION | {"partition": "1"}
    moving = [series(progress, other, growing(MINUTE, steps)), series("groundwatch_lag_events", other, level(9, steps))]
    waits = series("groundwatch_lag_events", PARTITION, level(5, steps))

    def moved_until(moment: float) -> Series:
        number = int(moment / MINUTE)
        return series(progress, PARTITION, then(growing(MINUTE, number), level(number * MINUTE, steps)))

    topic = {"topic": "qa.events"}
    yield Scenario(row.name, "one partition of two stands still (field case 6)",
                   [*moving, waits, moved_until(in_time)], at, [topic], exact=True)  # fmt: skip
    yield Scenario(row.name, "not for long enough", [*moving, waits, moved_until(in_time + MINUTE)], at)
    idle = series("groundwatch_lag_events", PARTITION, level(0, steps))
    yield Scenario(row.name, "an idle topic has nothing to commit", [*moving, idle, moved_until(in_time)], at)
    lost = [(name, then(values.replace(f"x{steps}", "x20"), GONE)) for name, values in (waits, moved_until(60))]
    yield Scenario(row.name, "the partition went to another scorer", [*moving, *lost], at)


def _dead_letters(table: Table) -> Iterator[Scenario]:
    row = table.row("DeadLetters")
    limit, least, whole, steps = row.number("limit"), row.number("letters"), int(row.seconds("span") / MINUTE), 120
    at = row.seconds("span") + row.hold_off + 10 * MINUTE
    reason = {"reason": "missing:answer"}

    def story(title: str, letters: float, share: float, fires: bool, exact: bool = False) -> Scenario:
        each, read = letters / whole, letters / share / whole
        put = [
            *events(steps, scored=read - each, dead_lettered=each, sampled_out=50 * read),
            series("groundwatch_deadletters_total", {**reason, **SCORER}, growing(each, steps)),
            series("groundwatch_deadletters_total", {"reason": "not_json", **SCORER}, level(0, steps)),
        ]
        return Scenario(row.name, title, put, at, [reason] if fires else [], exact=exact)

    yield story("a producer changed its form (field case 70)", least * 10, limit * OVER, True, exact=True)
    yield story("just enough letters", least * OVER, limit * OVER, True)
    yield story("less than the limit", least * 10, limit * UNDER, False)
    yield story("low traffic: too few letters", least * UNDER, 0.5, False)


def _first_increments(table: Table) -> Iterator[Scenario]:
    for name, counter in (
        ("EventsMissing", "groundwatch_events_missing_total"),
        ("OutputRefused", "groundwatch_output_refused_total"),
    ):
        row = table.row(name)
        length = int(row.seconds("span") / MINUTE)
        topic = {"topic": "qa.events"}

        def one(values: str, counter: str = counter) -> list[Series]:
            return [series(counter, {"topic": "qa.events", **SCORER}, values)]

        first = then(level(0, 9), level(1, 200))
        yield Scenario(row.name, "the first one ever", one(first), 12 * MINUTE, [topic], exact=True)
        yield Scenario(row.name, "still told near the end of the span", one(first), (length + 7) * MINUTE, [topic])
        yield Scenario(row.name, "and not for ever", one(first), (length + 13) * MINUTE)
        yield Scenario(row.name, "none", one(level(0, 60)), 12 * MINUTE)
        yield Scenario(row.name, "the worker was restarted", one(then(level(4, 9), level(0, 60))), 12 * MINUTE)
        gap = then(level(4, 9), missing(4), level(4, 60))
        yield Scenario(row.name, "a scrape gap", one(gap), 20 * MINUTE)


def _redis(table: Table) -> Iterator[Scenario]:
    row = table.row("CacheDown")
    limit, least, whole, steps = row.number("limit"), row.number("requests"), int(row.seconds("span") / MINUTE), 60
    at = row.seconds("span") + row.hold_off + 10 * MINUTE
    cache = {"cache": "embedding_redis"}

    def story(
        title: str, requests: float, failed: float, fires: bool, exact: bool = False, cache: Labels = cache
    ) -> Scenario:
        each = requests / whole
        named = {**cache, **SCORER}
        put = [
            series("groundwatch_cache_requests_total", named | {"result": "hit"}, growing(each * (1 - failed), steps)),
            *(
                series(
                    "groundwatch_cache_requests_total", named | {"result": result}, growing(each * failed / 2, steps)
                )
                for result in ("skipped", "write_error")
            ),
        ]
        return Scenario(row.name, title, put, at, [cache] if fires else [], exact=exact)

    yield story("most requests fail or are not tried", least * 10, limit * OVER, True, exact=True)
    yield story("just enough requests", least * OVER, limit * OVER, True)
    yield story("some fail", least * 10, limit * UNDER, False)
    yield story("low traffic: too few requests", least * UNDER, limit * 1.9, False)
    yield story(
        "a cache in the process cannot fail", least * 10, limit * OVER, False, cache={"cache": "embedding_memory"}
    )

    row = table.row("CaseStoreDown")
    at, up = row.hold_off + 10 * MINUTE, "groundwatch_case_store_up"
    yield Scenario(row.name, "no monitor reaches it", [series(up, MONITOR, level(0, steps))], at, [{}], exact=True)
    yield Scenario(row.name, "it is there", [series(up, MONITOR, level(1, steps))], at)
    two = [series(up, MONITOR, level(0, steps)), series(up, {**MONITOR, "instance": "b"}, level(1, steps))]
    yield Scenario(row.name, "the active one reaches it", two, at)
    yield Scenario(row.name, "there is none", [], at)

    row = table.row("PagesDown")
    at, up = row.hold_off + 10 * MINUTE, "groundwatch_pages_up"
    yield Scenario(row.name, "nobody serves them", [series(up, MONITOR, level(0, steps))], at, [{}], exact=True)
    two = [series(up, MONITOR, level(0, steps)), series(up, {**MONITOR, "instance": "b"}, level(1, steps))]
    yield Scenario(row.name, "the other monitor serves them", two, at)
    yield Scenario(row.name, "they are switched off", [], at)
