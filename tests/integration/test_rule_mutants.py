"""A rule with one thing wrong must be found out by the stories of its alert."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from deploy.prometheus.alert import Alert
from deploy.prometheus.merging_scenarios import merging_scenarios
from deploy.prometheus.recording import Recording
from deploy.prometheus.rules import rule_file, rule_of
from deploy.prometheus.scenario import Scenario
from tests.promtool_runs import (
    ALERTS,
    RECORDINGS,
    TABLE_OF_DEFAULTS,
    Played,
    by_step,
    failed,
    needed,
    of,
    said,
    variants,
)

pytestmark = pytest.mark.full
NUMBER = re.compile(r"(?<=[<>] )[0-9.]+|(?<=[<>]= )[0-9.]+|(?<=[+-] )[0-9.]+(?=\))|[0-9.]+(?= \* max)")
"""A threshold, a guard, a margin or a factor in an expression."""


def mutants(alert: Alert) -> Iterator[tuple[str, Alert]]:
    """The alert with one thing wrong."""
    for part in ("conditions", "guards"):
        parts: tuple[str, ...] = getattr(alert, part)
        for index, text in enumerate(parts):
            rest = parts[:index] + parts[index + 1 :]
            yield f"without {text}", replace(alert, **{part: rest})
            for told, other in moved(text):
                yield told, replace(alert, **{part: (*parts[:index], other, *parts[index + 1 :])})
    for told, other in moved(alert.lead):
        yield told, replace(alert, lead=other)
    if alert.for_seconds:
        for factor in (0.4, 2.0):
            yield f"`for` times {factor}", replace(alert, for_seconds=alert.for_seconds * factor)
    if alert.hold_seconds:
        yield "without holding on", replace(alert, hold_seconds=0.0)
    yield "another severity", replace(alert, severity="page" if alert.severity == "ticket" else "ticket")


def moved(text: str) -> Iterator[tuple[str, str]]:
    """Each number of the expression a quarter higher and lower; a bare `> 0` only keeps a division defined."""
    for match in NUMBER.finditer(text):
        number = float(match[0])
        for factor in (0.8, 1.25):
            if number:
                other = text[: match.start()] + f"{number * factor:g}" + text[match.end() :]
                yield f"{number:g} as {number * factor:g} in {text}", other


def changed_rules(alert: Alert) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is wrong, and the rule with it. The first has nothing wrong."""
    yield "nothing", rule_of(alert, TABLE_OF_DEFAULTS)
    for told, mutant in mutants(alert):
        yield told, rule_of(mutant, TABLE_OF_DEFAULTS)
    for label in ("severity", "service"):
        rule = rule_of(alert, TABLE_OF_DEFAULTS)
        yield f"without the label {label}", rule | {"labels": {k: v for k, v in rule["labels"].items() if k != label}}


def survivors(promtool: str, folder: Path, alert: Alert) -> list[str]:
    """What was wrong with the rules that no story found out; `nothing` where a story is itself wrong."""
    changed = list(changed_rules(alert))
    played = variants(alert, [rule for _, rule in changed], needed(RECORDINGS, [alert], of(alert)))
    found = failed(said(promtool, folder, [played]))
    alive = {told for number, (told, _) in enumerate(changed) if f"{alert.full_name}{number}" not in found}
    return [f"{alert.name}: {told}" for told in sorted(alive ^ {"nothing"})]


def test_a_mutated_rule_is_found_out(promtools: list[str], tmp_path: Path) -> None:
    """Threshold, guard, `for`, hold, severity or a label changed or removed: the stories of that alert must fail."""
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda alert: survivors(promtools[0], tmp_path / alert.name, alert), ALERTS))
    assert [told for each in found for told in each] == []


@dataclass(frozen=True)
class Wrong:
    """Recording rules with one thing wrong, and the alert whose stories must find it out."""

    told: str
    alert: str
    recordings: Sequence[Recording]


def with_rule(name: str, expr: str) -> list[Recording]:
    return [replace(rule, expr=expr) if rule.name == name else rule for rule in RECORDINGS]


def recording_mutants() -> Iterator[Wrong]:
    """Old definitions, NaN and thresholds; then every way to merge counters wrongly."""

    def changed(name: str, old: str, new: str) -> list[Recording]:
        (rule,) = [rule for rule in RECORDINGS if rule.name == name]
        assert old in rule.expr, name
        return with_rule(name, rule.expr.replace(old, new))

    by = "FaithfulnessLow"
    newest = " and on (metric, definition) groundwatch:definition:newest"
    yield Wrong("old definitions count too", by, changed("groundwatch:rolling_score_high:newest", newest, ""))
    score = "groundwatch_rolling_score"
    yield Wrong(
        "NaN is kept", by, changed("groundwatch:rolling_score:newest", f"{score} == {score} and", f"{score} and")
    )
    nothing = changed("groundwatch:threshold:in_force", "0 * groundwatch_rolling_samples", "0 * groundwatch_nothing")
    yield Wrong("no default threshold", by, nothing)
    threshold = next(rule for rule in RECORDINGS if "threshold" in rule.name)
    turned = "\nor\n".join(reversed(threshold.expr.split("\nor\n")))
    yield Wrong("the default wins", by, with_rule(threshold.name, turned))
    for rule in RECORDINGS:
        if "increase(" in rule.expr:
            for told, expr in merged_wrongly(rule.expr):
                yield Wrong(f"{told}: {rule.name}", merger_of(rule), with_rule(rule.name, expr))


def merged_wrongly(expr: str) -> Iterator[tuple[str, str]]:
    """Each part of the rule (its segments; all of them) with a mean where it has a sum, or with a mean of quotients."""
    parts = expr.split("\nor\n")
    for index, part in enumerate(parts):
        quotient = re.search(r"sum( by \([^)]*\)|) ?\((increase.*?)\)\s*/\s*\(sum\1 ?\((increase.*?)\) > 0\)", part)
        if quotient is not None:
            mean = f"avg{quotient[1]} (({quotient[2]}) / ({quotient[3]}))"
            yield "a mean of means", _put(parts, index, part.replace(quotient[0], mean))
        else:
            yield "a mean over processes", _put(parts, index, part.replace("sum", "avg"))
        if "sum by (metric)" in part:
            yield "answers counted once a metric", _put(parts, index, part.replace("sum by (metric)", "sum"))


def _put(parts: Sequence[str], index: int, part: str) -> str:
    return "\nor\n".join([*parts[:index], part, *parts[index + 1 :]])


def merger_of(rule: Recording) -> str:
    """The alert whose stories look at what this rule makes of several processes."""
    return next(
        scenario.alert
        for scenario in merging_scenarios(TABLE_OF_DEFAULTS)
        if any(rule.name in _RECORDED.findall(check.expr) for check in scenario.checks)
    )


_RECORDED = re.compile(r"groundwatch:[a-z_]+:[a-z_0-9]+")


def test_a_mutated_recording_rule_is_found_out(promtools: list[str], tmp_path: Path) -> None:
    def survives(numbered: tuple[int, Wrong]) -> str:
        number, wrong = numbered
        (alert,) = [alert for alert in ALERTS if alert.name == wrong.alert]
        stories = of(alert) if wrong.alert == "FaithfulnessLow" else merging(wrong.alert)
        rules = rule_file(TABLE_OF_DEFAULTS, needed(wrong.recordings, [alert], stories), [alert])
        played = Played(alert.name, rules, by_step(stories, ALERTS))
        return "" if said(promtools[0], tmp_path / str(number), [played]) else wrong.told

    with ThreadPoolExecutor(2) as pool:
        assert [told for told in pool.map(survives, enumerate(recording_mutants())) if told] == []


def merging(alert: str) -> list[Scenario]:
    return [scenario for scenario in merging_scenarios(TABLE_OF_DEFAULTS) if scenario.alert == alert]


def test_unchanged_recording_rules_pass_the_stories_of_merging(promtools: list[str], tmp_path: Path) -> None:
    for alert in ALERTS:
        if stories := merging(alert.name):
            rules = rule_file(TABLE_OF_DEFAULTS, needed(RECORDINGS, [alert], stories), [alert])
            assert (
                said(promtools[0], tmp_path / alert.name, [Played(alert.name, rules, by_step(stories, ALERTS))]) == ""
            )
